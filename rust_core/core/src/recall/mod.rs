//! One recall: filter, arms, context windows, feedback, fusion, deduplication, budget.
//!
//! [`pipeline`] holds the steps, [`candidates`] the ways to find and score memories.

mod arms;
mod boost;
mod buffers;
mod candidates;
mod context_window;
mod explain;
mod feedback;
mod filter;
mod filtered_scores;
mod fusion;
mod hits;
pub(crate) mod phrases;
mod pipeline;
mod planner;
mod query;
mod read_costs;
mod relevance;
mod score_stats;
mod turns;

use std::time::Instant;

use arms::micros_since;
pub use arms::{KEYWORD, SEMANTIC, TEMPORAL};
use buffers::{Buffers, with_buffers};
use candidates::graph::GraphCandidates;
pub(crate) use candidates::graph::{Comparison, SearchSample};
use candidates::scan::{Scan, ScanMode, coarse_scan_serves};
use explain::Probe;
use filter::Allowed;
pub use planner::PlannerOptions;
use planner::{Basis, Way};
pub(crate) use planner::{Planner, Running};
pub(crate) use query::Query;
pub use relevance::{at_rank, text_relevance};

use crate::api::{Explained, MemoryId, RecallRequest, RecallResponse, Result};
use crate::dense::DenseIndex;
use crate::index::Index;

/// The context of one recall.
#[derive(Clone, Copy)]
pub(crate) struct Recall<'a> {
    pub(crate) index: &'a Index,
    pub(crate) request: &'a RecallRequest,
    pub(crate) query: &'a Query,
    /// The memories that pass the request's filter.
    pub(crate) allowed: Allowed<'a>,
}

/// Answers `request`; with a sample of its graph search where that is to be compared with a scan.
pub(crate) fn run(
    index: &Index,
    request: &RecallRequest,
    query: &Query,
    planner: &Planner,
) -> Result<(RecallResponse, Option<SearchSample>)> {
    let running = planner.enter();
    with_buffers(|buffers| {
        let Buffers {
            filter,
            scan,
            graph,
            fusion,
            ..
        } = buffers;
        let recall = Recall {
            index,
            request,
            query,
            allowed: filter::compile(index, request, filter),
        };
        let mut basis = Basis::default();
        if !index.segments.all.is_empty() {
            let plan = planner.plan(index, recall.allowed, request.depth);
            if plan.way != Way::Scan {
                let searches = matches!(plan.way, Way::Graph { .. }) && query.vector.is_some();
                let compared = searches && planner.samples(&index.segments.quality);
                let mut candidates =
                    GraphCandidates::new(recall, plan, compared, running.alone(), graph);
                let response = pipeline::answer(recall, &mut candidates, fusion, None);
                let sample = candidates.finish();
                return Ok((response?, sample));
            }
            basis = plan.basis;
        }
        let mode = ScanMode::for_size(index, running.alone());
        let mut candidates = Scan::new(recall, mode, basis, scan);
        let response = pipeline::answer(recall, &mut candidates, fusion, None)?;
        Ok((response, None))
    })
}

/// Answers up to [`TOGETHER`](crate::dense::TOGETHER) requests by one scan of the rows, each as [`run`] does. None
/// where they must be answered one by one: the rows are few, a filter may exclude most, there are graphs, or a request
/// has no vector.
pub(crate) fn run_together(
    index: &Index,
    asked: &[(&RecallRequest, &Query)],
) -> Option<Vec<Result<RecallResponse>>> {
    let alike = asked
        .iter()
        .all(|(request, query)| query.vector.is_some() && !filter::restricts(request));
    let allowed = filter::everything(index);
    let together = asked.len() > 1 && alike && index.segments.all.is_empty();
    if !together || !coarse_scan_serves(index, allowed) {
        return None;
    }
    Some(with_buffers(|buffers| {
        let start = Instant::now();
        let Buffers {
            scan,
            fusion,
            together,
            ..
        } = buffers;
        let queries: Vec<_> = asked
            .iter()
            .filter_map(|(_, query)| query.vector.as_ref().map(|(_, quantised)| quantised))
            .collect();
        let scores = &mut together[..queries.len()];
        index
            .vectors
            .coarse_scan_many(&queries, allowed.rows, scores);
        let share = micros_since(start) / asked.len() as f64;
        asked
            .iter()
            .zip(scores)
            .map(|(&(request, query), scores)| {
                let recall = Recall {
                    index,
                    request,
                    query,
                    allowed,
                };
                let mode = ScanMode::Done(scores, share);
                let mut candidates = Scan::new(recall, mode, Basis::default(), scan);
                pipeline::answer(recall, &mut candidates, fusion, None)
            })
            .collect()
    }))
}

/// Answers `request` by a scan, and reports what became of the memories `ids` in it.
pub(crate) fn explain(
    index: &Index,
    request: &RecallRequest,
    query: &Query,
    ids: &[MemoryId],
) -> Result<Explained> {
    let mut probe = Probe::new(ids);
    let response = with_buffers(|buffers| {
        let Buffers {
            filter,
            scan,
            fusion,
            ..
        } = buffers;
        let recall = Recall {
            index,
            request,
            query,
            allowed: filter::compile(index, request, filter),
        };
        let mut candidates = Scan::new(recall, ScanMode::Alone, Basis::default(), scan);
        pipeline::answer(recall, &mut candidates, fusion, Some(&mut probe))
    })?;
    Ok(Explained {
        response,
        fates: probe.fates,
        arm_cuts: probe.cuts,
    })
}
