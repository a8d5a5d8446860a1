//! Rows near to the query's vector, by the plan's way; and how many of the nearest the walk of a graph has found.

use std::sync::{Arc, Weak};

use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::{DenseIndex, NO_SCORE, QuantisedQuery, dot};
use crate::graph::SearchBuffers;
use crate::index::{Index, IndexLock};
use crate::recall::filter::Allowed;
use crate::recall::planner::{Plan, Planner, SAMPLED_NEIGHBOURS, Way};
use crate::topk::Scored;

/// Rows beyond those asked for whose cosines are made exact.
pub(crate) const MARGIN_ROWS: usize = 54;
/// Rows that a comparison scores under one lock: less than a millisecond.
const COMPARED: usize = 1 << 14;

/// Room for rows and their cosines.
#[derive(Debug, Default)]
pub(crate) struct NearBuffers {
    rows: Vec<u32>,
    cosines: Vec<f32>,
    best: Vec<Scored>,
    walk: SearchBuffers,
}

/// Appends to `proposed` the rows of `allowed` that are near to the query.
pub(crate) fn propose(
    state: &Index,
    allowed: Allowed<'_>,
    plan: &Plan,
    query: &QuantisedQuery,
    depth: usize,
    buffers: &mut NearBuffers,
    proposed: &mut Vec<u32>,
) {
    buffers.rows.clear();
    match plan.way {
        Way::Graph {
            candidates,
            most_pass,
        } => {
            for segment in &state.segments.all {
                let (vectors, passing) = ((&state.vectors, query), (allowed.rows, most_pass));
                segment.search(vectors, candidates, passing, &mut buffers.walk, proposed);
            }
            uncovered(allowed.rows, &state.segments.covered, &mut buffers.rows);
        }
        Way::Scan | Way::Gather => buffers.rows.extend(allowed.rows.iter()),
    }
    state
        .vectors
        .cosines(query, &buffers.rows, &mut buffers.cosines);
    keep_best(buffers, depth + MARGIN_ROWS);
    proposed.extend(buffers.best.iter().map(|&(_, row)| row));
}

/// Rows that pass and that no segment covers.
fn uncovered(allowed: &Bitmap, covered: &Bitmap, rows: &mut Vec<u32>) {
    if covered.len() == covered.bound() && allowed.bound() <= covered.bound() {
        return;
    }
    for (index, (&passes, &is_covered)) in allowed.words().iter().zip(covered.words()).enumerate() {
        let mut left = passes & !is_covered;
        while left != 0 {
            rows.push(((index as u32) << 6) | left.trailing_zeros());
            left &= left - 1;
        }
    }
}

/// Keeps the `count` best of the rows that have a cosine.
fn keep_best(buffers: &mut NearBuffers, count: usize) {
    let NearBuffers {
        rows,
        cosines,
        best,
        ..
    } = buffers;
    let scored = rows.iter().zip(&*cosines);
    best.clear();
    best.extend(
        scored
            .filter(|&(_, &cosine)| cosine != NO_SCORE)
            .map(|(&row, &cosine)| (cosine, row)),
    );
    if best.len() > count && count > 0 {
        best.select_nth_unstable_by(count - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    }
    best.truncate(count);
}

/// What a walk was asked for and found, for a comparison.
#[derive(Debug)]
pub(crate) struct SearchSample {
    allowed: Bitmap,
    proposed: Vec<u32>,
    renumberings: u64,
}

impl SearchSample {
    /// Of what was proposed in the present state.
    pub(crate) fn new(state: &Index, allowed: Allowed<'_>, proposed: &[u32]) -> Self {
        Self {
            allowed: allowed.rows.clone(),
            proposed: proposed.to_vec(),
            renumberings: state.segments.renumberings,
        }
    }
}

/// A walk to be compared with a scan.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) bank: Weak<IndexLock>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) unit: Vec<f32>,
    pub(crate) query: QuantisedQuery,
    pub(crate) walked: SearchSample,
}

impl Comparison {
    /// Scans, and tells the planner. A bank that is gone, or whose rows got new numbers, tells nothing.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    pub(crate) fn run(mut self) -> Result<()> {
        let planner = Arc::clone(&self.planner);
        let _running = planner.enter();
        let mut buffers = NearBuffers::default();
        let mut best: Vec<Scored> = Vec::new();
        let rows: Vec<u32> = self.walked.allowed.iter().collect();
        let wanted = SAMPLED_NEIGHBOURS + MARGIN_ROWS;
        for part in rows.chunks(COMPARED) {
            let Some(state) = self.bank.upgrade() else {
                return Ok(());
            };
            let state = state.read();
            if state.segments.renumberings != self.walked.renumberings {
                return Ok(());
            }
            buffers.rows.clear();
            buffers.rows.extend_from_slice(part);
            state
                .vectors
                .cosines(&self.query, &buffers.rows, &mut buffers.cosines);
            keep_best(&mut buffers, wanted);
            best.extend_from_slice(&buffers.best);
        }
        let Some(state) = self.bank.upgrade() else {
            return Ok(());
        };
        let state = state.read();
        if state.segments.renumberings != self.walked.renumberings {
            return Ok(());
        }
        best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(wanted);
        let (mut bytes, mut original) = (Vec::new(), Vec::new());
        for (score, row) in &mut best {
            let slot = state.slots[*row as usize];
            if slot != crate::dense::exact_vectors::NO_SLOT {
                state.exact_vectors.read(slot, &mut bytes, &mut original)?;
                *score = dot(&self.unit, &original);
            }
        }
        best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(SAMPLED_NEIGHBOURS);
        self.walked.proposed.sort_unstable();
        let found = best
            .iter()
            .filter(|(_, row)| self.walked.proposed.binary_search(row).is_ok());
        let (found, wanted) = (found.count() as u64, best.len() as u64);
        self.planner.learn(&state.segments.quality, found, wanted);
        Ok(())
    }
}
