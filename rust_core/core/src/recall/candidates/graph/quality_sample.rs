//! Comparison of graph searches with scans, from which the planner learns how well the graphs of a bank do.

use std::sync::{Arc, Weak};

use super::nearest::{MARGIN_ROWS, NearestBuffers};
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{DenseIndex, QuantisedQuery, dot};
use crate::index::IndexLock;
use crate::recall::Recall;
use crate::recall::planner::{Planner, SAMPLED_NEIGHBOURS};
use crate::topk::Scored;

/// Rows that a comparison scores under one lock: less than a millisecond.
const COMPARED: usize = 1 << 14;

/// The result of a graph search, to be compared with a scan.
#[derive(Debug)]
pub(crate) struct SearchSample {
    allowed: Bitmap,
    proposed: Vec<u32>,
    renumberings: u64,
}

impl SearchSample {
    /// A sample of a recall that proposed these rows.
    pub(crate) fn new(recall: Recall<'_>, proposed: &[u32]) -> Self {
        Self {
            allowed: recall.allowed.rows.clone(),
            proposed: proposed.to_vec(),
            renumberings: recall.index.segments.renumberings,
        }
    }
}

/// The comparison of a graph search with a scan.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) bank: Weak<IndexLock>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) unit: Vec<f32>,
    pub(crate) query: QuantisedQuery,
    pub(crate) sample: SearchSample,
}

impl Comparison {
    /// Scans, and tells the planner. A bank that is gone, or whose rows got new numbers, tells nothing.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    pub(crate) fn run(mut self) -> Result<()> {
        let planner = Arc::clone(&self.planner);
        let _running = planner.enter();
        let mut buffers = NearestBuffers::default();
        let mut best: Vec<Scored> = Vec::new();
        let rows: Vec<u32> = self.sample.allowed.iter().collect();
        let wanted = SAMPLED_NEIGHBOURS + MARGIN_ROWS;
        for part in rows.chunks(COMPARED) {
            let Some(index) = self.bank.upgrade() else {
                return Ok(());
            };
            let index = index.read();
            if index.segments.renumberings != self.sample.renumberings {
                return Ok(());
            }
            buffers.rows.clear();
            buffers.rows.extend_from_slice(part);
            index
                .vectors
                .cosines(&self.query, &buffers.rows, &mut buffers.cosines);
            buffers.keep_best(wanted);
            best.extend_from_slice(&buffers.best);
        }
        let Some(index) = self.bank.upgrade() else {
            return Ok(());
        };
        let index = index.read();
        if index.segments.renumberings != self.sample.renumberings {
            return Ok(());
        }
        best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(wanted);
        let (mut bytes, mut original) = (Vec::new(), Vec::new());
        for (score, row) in &mut best {
            let slot = index.slots[*row as usize];
            if slot != NO_SLOT {
                index.exact_vectors.read(slot, &mut bytes, &mut original)?;
                *score = dot(&self.unit, &original);
            }
        }
        best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(SAMPLED_NEIGHBOURS);
        self.sample.proposed.sort_unstable();
        let found = best
            .iter()
            .filter(|(_, row)| self.sample.proposed.binary_search(row).is_ok());
        let (found, wanted) = (found.count() as u64, best.len() as u64);
        self.planner.learn(&index.segments.quality, found, wanted);
        Ok(())
    }
}
