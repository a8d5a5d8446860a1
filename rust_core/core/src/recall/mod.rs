//! One recall, in order: filter, arms, context windows, feedback, fusion, deduplication, budget.

mod arms;
mod boost;
mod buffers;
mod candidates;
mod context_window;
mod explain;
mod feedback;
pub(crate) mod filter;
mod filtered_scores;
mod fusion;
mod hits;
mod planner;
mod score_stats;

use std::time::Instant;

use crate::api::{CoreError, Result};
use crate::api::{Explained, MemoryId, RecallRequest, RecallResponse};
use crate::dense::{Beside, DenseIndex, Plan, QuantisedQuery, normalise};
use crate::index::Index;
pub(crate) use arms::{Arm, Scores};
pub use arms::{KEYWORD, SEMANTIC, TEMPORAL};
use arms::{semantic as dense, temporal as times};
use astrocyte_text::analysis::{AnalyzedQuery, analyze_query};
use boost as lift;
use buffers::{Buffers, with_buffers};
use candidates::graph as large;
pub(crate) use candidates::graph::{Comparison, SearchSample};
use context_window as windows;
use explain::{Looked, Probe};
use feedback::Feedback;
pub use planner::PlannerOptions;
pub(crate) use planner::{Planner, Running, Way};

/// Rows from which on a scan is worth a second thread, where there is one to spare: it takes a third off the time for a
/// quarter more of the processors' at 200,000 rows, a sixth for two fifths at 40,000.
const SPREAD_ROWS: u32 = 1 << 16;
/// As many rows that are read one by one, words and all, take about half a millisecond in a bank of that size.
const SPREAD_GATHERED: u32 = 1 << 11;

/// A request's text and vector, checked and ready to search with.
pub(crate) struct Query {
    words: Option<AnalyzedQuery>,
    vector: Option<(Vec<f32>, QuantisedQuery)>,
}

impl Query {
    /// The unit vector and its bytes.
    pub(crate) fn vector(&self) -> Option<&(Vec<f32>, QuantisedQuery)> {
        self.vector.as_ref()
    }

    /// Checks the request and prepares its text and vector. An arm of weight 0 is left out.
    pub(crate) fn new(request: &RecallRequest, dimensions: usize) -> Result<Self> {
        check(request)?;
        let vector = request
            .vector
            .as_deref()
            .map(|vector| normalise(0, vector, dimensions))
            .transpose()?;
        let [semantic, keyword, _] = request.weights;
        Ok(Self {
            words: request
                .text
                .as_deref()
                .filter(|_| keyword > 0.0)
                .map(analyze_query),
            vector: vector.filter(|_| semantic > 0.0).map(|unit| {
                let quantised = QuantisedQuery::new(&unit);
                (unit, quantised)
            }),
        })
    }
}

fn check(request: &RecallRequest) -> Result<()> {
    let weights = request
        .weights
        .iter()
        .chain(request.external.iter().map(|list| &list.weight));
    for &weight in weights.chain(request.layer_weights.iter().map(|(_, weight)| weight)) {
        require(
            weight.is_finite() && weight >= 0.0,
            "weights",
            "finite numbers from 0 up",
            weight,
        )?;
    }
    let constant = request.rank_constant;
    require(
        constant.is_finite() && constant > 0.0,
        "rank_constant",
        "a finite number above 0",
        constant,
    )?;
    require(
        request.time_tail_ms > 0,
        "time_tail_ms",
        "a number above 0",
        request.time_tail_ms,
    )?;
    for &(first, last) in &request.time_windows {
        require(
            first <= last,
            "time_windows",
            "windows that end after they begin",
            format!("{first} to {last}"),
        )?;
    }
    require(
        (0.0..=1.0).contains(&request.feedback),
        "feedback",
        "a number from 0 to 1",
        request.feedback,
    )?;
    for &(_, score) in request.external.iter().flat_map(|list| &list.hits) {
        require(score.is_finite(), "external", "finite scores", score)?;
    }
    if let Some(lift) = &request.lift {
        for value in [lift.value, lift.standing] {
            require(value.is_finite(), "lift", "finite numbers", value)?;
        }
    }
    if let Some(threshold) = request.dedup_threshold {
        require(
            threshold.is_finite(),
            "dedup_threshold",
            "a finite cosine",
            threshold,
        )?;
    }
    Ok(())
}

fn require(holds: bool, field: &'static str, expected: &str, got: impl ToString) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(CoreError::Invalid {
        field,
        expected: expected.to_owned(),
        got: got.to_string(),
    })
}

/// Answers `request` on `state`; with what the walk of its graphs found, where that is to be compared with a scan.
pub(crate) fn run(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    planner: &Planner,
) -> Result<(RecallResponse, Option<SearchSample>)> {
    let running = planner.enter();
    with_buffers(|buffers| {
        let Buffers {
            filter,
            large,
            candidates,
            temporal,
            work,
            ..
        } = buffers;
        if !state.segments.all.is_empty() {
            let allowed = filter::compile(state, request, filter);
            let plan = planner.plan(state, allowed, request.depth);
            if plan.way != Way::Scan {
                let walks = matches!(plan.way, Way::Graph { .. }) && query.vector.is_some();
                let compare = walks && planner.samples();
                let rest = (temporal, &mut work.selection);
                let plan = (&plan, compare, running.alone());
                return large::answer(
                    state, request, query, allowed, plan, large, rest, candidates,
                );
            }
        }
        let look = if state.rows() >= SPREAD_ROWS && running.alone() {
            Look::ScoreStats
        } else {
            Look::Alone
        };
        answer(state, request, query, buffers, look, None).map(|response| (response, None))
    })
}

/// Answers up to [`TOGETHER`] requests by one scan of the rows, each as [`run`] does; None where they have to be answered
/// one by one: the rows are few, a filter may leave out most, there are graphs, or a request has no vector.
pub(crate) fn run_together(
    state: &Index,
    asked: &[(&RecallRequest, &Query)],
) -> Option<Vec<Result<RecallResponse>>> {
    let alike = asked
        .iter()
        .all(|(request, query)| query.vector.is_some() && !filter::restricts(request));
    if asked.len() < 2 || !alike || !state.segments.all.is_empty() {
        return None;
    }
    let allowed = filter::everything(state);
    let (plan, _) = arms::plan(allowed, state);
    if plan != Plan::Scan || !dense::is_coarse(allowed) {
        return None;
    }
    Some(with_buffers(|buffers| {
        let start = Instant::now();
        let mut ready = std::mem::take(&mut buffers.ready);
        let queries: Vec<_> = asked
            .iter()
            .filter_map(|(_, query)| query.vector.as_ref().map(|(_, quantised)| quantised))
            .collect();
        let scores = &mut ready[..queries.len()];
        state
            .vectors
            .coarse_scan_many(&queries, allowed.rows, scores);
        let share = arms::micros_since(start) / asked.len() as f64;
        let answers = asked
            .iter()
            .zip(scores)
            .map(|(&(request, query), scores)| {
                let look = Look::Ready(scores, share);
                answer(state, request, query, buffers, look, None)
            })
            .collect();
        buffers.ready = ready;
        answers
    }))
}

/// How the semantic arm looks at all rows.
enum Look<'a> {
    /// By itself.
    Alone,
    /// With a second thread.
    ScoreStats,
    /// It has done so together with others: the cosines, and its share of the microseconds.
    Ready(&'a mut Vec<f32>, f64),
}

/// Answers `request` by a scan, and tells what became of the memories `ids` in it.
pub(crate) fn explain(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    ids: &[MemoryId],
) -> Result<Explained> {
    let mut probe = Probe::new(ids);
    let response = with_buffers(|buffers| {
        answer(
            state,
            request,
            query,
            buffers,
            Look::Alone,
            Some(&mut probe),
        )
    })?;
    Ok(Explained {
        response,
        fates: probe.fates,
        arm_cuts: probe.cuts,
    })
}

/// Answers `request` by a scan.
#[expect(clippy::too_many_lines, reason = "the steps of one pipeline, in order")]
fn answer(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    buffers: &mut Buffers,
    look: Look<'_>,
    probe: Option<&mut Probe<'_>>,
) -> Result<RecallResponse> {
    let Buffers {
        filter,
        large: _,
        dense,
        keyword,
        temporal,
        further,
        layout: own,
        candidates,
        work,
        ready: _,
    } = buffers;
    let allowed = filter::compile(state, request, filter);
    let (plan, described) = arms::plan(allowed, state);
    let mut arms = Vec::with_capacity(3 + request.external.len());
    let mut matched = None;
    let mut find_words = || {
        matched = query.words.as_ref().map(|words| {
            let start = Instant::now();
            arms::keyword(state, allowed, words, keyword);
            Arm::new(arms::KEYWORD, start)
        });
    };
    let worth_it = plan == Plan::Scan || allowed.rows.len() >= SPREAD_GATHERED;
    let spread = matches!(look, Look::ScoreStats) && worth_it;
    match &query.vector {
        Some((_, quantised)) => {
            let (start, mut shared) = (Instant::now(), 0.0);
            if let Look::Ready(cosines, share) = look {
                shared = share;
                dense::take(state, allowed, cosines, dense);
            } else {
                let beside = spread.then_some(&mut find_words as Beside<'_>);
                dense::look(state, allowed, plan, quantised, beside, dense);
            }
            let mut arm = Arm::new(arms::SEMANTIC, start);
            arm.micros += shared;
            arms.push(arm);
            if !spread {
                find_words();
            }
        }
        None => find_words(),
    }
    arms.extend(matched);
    let layout = if request.context_windows {
        windows::lay_out(state, allowed, &mut arms, own)
    } else {
        None
    };
    if let Some(layout) = layout {
        windows::smooth(allowed, layout, &mut arms, dense, keyword);
    }
    if !request.time_windows.is_empty() && request.weights[2] > 0.0 {
        let start = Instant::now();
        times::score(state, allowed, request, temporal);
        arms.push(Arm::new(arms::TEMPORAL, start));
    }
    let scores = arms::Scores {
        semantic: dense.by_version(),
        keyword: keyword.by_version(),
        temporal: &temporal.values,
    };
    for arm in &mut arms {
        arm.rank(state, allowed, request.depth, scores, &mut work.selection);
    }
    let unknown_external = arms::external(state, allowed, request, &mut arms);
    if let Some(query) = &query.vector {
        let start = Instant::now();
        let mut proposed = std::mem::take(&mut work.proposed);
        arms::proposed(&arms, &mut proposed);
        let mut ranking = dense::Ranking {
            state,
            allowed,
            query,
            layout,
            scores: &mut *dense,
            work,
        };
        ranking.rank((request.k, request.depth), &proposed, &mut arms[0].ranked)?;
        work.proposed = proposed;
        arms[0].micros += arms::micros_since(start);
    }
    let mut looked = Feedback::default();
    if let Some(words) = query.words.as_ref().filter(|_| request.feedback > 0.0) {
        let room = feedback::Room {
            dense: &*dense,
            keyword: &mut *keyword,
            temporal: &temporal.values,
            further,
            layout,
            candidates: &mut *candidates,
            selection: &mut work.selection,
        };
        looked = feedback::search(state, allowed, request, words, &mut arms, room);
        if let Some(query) = &query.vector {
            let mut proposed = std::mem::take(&mut work.proposed);
            arms::proposed(&arms, &mut proposed);
            let mut ranking = dense::Ranking {
                state,
                allowed,
                query,
                layout,
                scores: &mut *dense,
                work,
            };
            ranking.refine(&proposed);
            work.proposed = proposed;
        }
    }
    let scores = arms::Scores {
        semantic: dense.by_version(),
        keyword: keyword.by_version(),
        temporal: &temporal.values,
    };
    let mut fused = fusion::fuse(state, request, &arms, scores, candidates);
    looked.keep_first(&mut fused);
    let (mut hits, truncated) = hits::build(state, request, &fused, &arms, (dense, keyword))?;
    let lead = hits.first().map_or_else(Vec::new, |hit| hit.arms.clone());
    let lift_micros = lift::apply(state, request, looked.terms > 0, &mut hits);
    if let Some(probe) = probe {
        probe.look(&Looked {
            state,
            request,
            allowed,
            arms: &arms,
            scores,
            fused: &fused,
            rows: (dense, keyword),
        })?;
    }
    Ok(RecallResponse {
        hits,
        arm_names: arms.iter().map(|arm| arm.name.clone()).collect(),
        arm_micros: arms.iter().map(|arm| arm.micros).collect(),
        arm_candidates: arms.iter().map(|arm| arm.ranked.len() as u32).collect(),
        feedback_micros: looked.micros,
        feedback_terms: looked.terms,
        lead,
        lift_micros,
        arm_spreads: arms
            .iter()
            .map(|arm| (arm.spread.mean, arm.spread.deviation))
            .collect(),
        candidates: fused.len() as u32,
        allowed: allowed.versions.len(),
        plan: described,
        truncated,
        unknown_external,
        position: state.position,
    })
}
