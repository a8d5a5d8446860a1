//! The nearest current memory of each of many vectors, for the check before a memory is stored.

use super::state::State;
use crate::error::Result;
use crate::topk::{Scored, better_first};
use crate::types::MemoryId;
use crate::vector::{QuantisedQuery, dot, error_margin};

/// Rows per pass: they stay in the second cache while every vector is compared with them.
const PASS_ROWS: usize = 1024;
/// Candidates that are compared exactly; more near-identical rows than this cannot change the answer by more than the
/// quantisation error.
const EXACT: usize = 64;

impl State {
    /// Per unit vector the most similar current memory at or above `threshold`.
    pub(super) fn near_duplicates(
        &self,
        units: &[Vec<f32>],
        threshold: f32,
    ) -> Result<Vec<Option<(u64, MemoryId, f32)>>> {
        let queries: Vec<_> = units.iter().map(|unit| QuantisedQuery::new(unit)).collect();
        let mut found: Vec<Vec<Scored>> = vec![Vec::new(); units.len()];
        let mut scores = [0.0; PASS_ROWS];
        for first in (0..self.vectors.len()).step_by(PASS_ROWS) {
            let scores = &mut scores[..PASS_ROWS.min(self.vectors.len() - first)];
            for (query, found) in queries.iter().zip(&mut found) {
                self.vectors.scan(query, first, scores);
                self.collect(
                    scores,
                    first,
                    threshold - error_margin(query.scale, query.scale),
                    found,
                );
            }
        }
        let best = units
            .iter()
            .zip(found)
            .map(|(unit, found)| self.nearest(unit, found, threshold));
        best.collect()
    }

    fn collect(&self, scores: &[f32], first: usize, floor: f32, found: &mut Vec<Scored>) {
        // Most steps have nothing near: one comparison a row settles them.
        for (step, lanes) in scores.chunks(16).enumerate() {
            if lanes
                .iter()
                .fold(0, |near, &score| near + u32::from(score >= floor))
                == 0
            {
                continue;
            }
            for (lane, &score) in lanes
                .iter()
                .enumerate()
                .filter(|&(_, &score)| score >= floor)
            {
                let row = (first + step * 16 + lane) as u32;
                if let Some(version) = self.current_whole(row) {
                    found.push((score, version));
                }
            }
        }
        if found.len() > EXACT * 4 {
            found.sort_unstable_by(|&a, &b| better_first(a, b, &self.columns.memory_id));
            found.truncate(EXACT);
        }
    }

    /// The current version whose whole is at `row`.
    fn current_whole(&self, row: u32) -> Option<u32> {
        let version = if self.is_flat() {
            row
        } else {
            self.columns.first_row.binary_search(&row).ok()? as u32
        };
        self.columns.current.contains(version).then_some(version)
    }

    fn nearest(
        &self,
        unit: &[f32],
        mut found: Vec<Scored>,
        threshold: f32,
    ) -> Result<Option<(u64, MemoryId, f32)>> {
        found.sort_unstable_by(|&a, &b| better_first(a, b, &self.columns.memory_id));
        found.truncate(EXACT);
        let (mut bytes, mut original) = (Vec::new(), Vec::new());
        for (score, version) in &mut found {
            let row = self.columns.first_row[*version as usize];
            self.originals
                .read(self.slots[row as usize], &mut bytes, &mut original)?;
            *score = dot(unit, &original);
        }
        found.sort_unstable_by(|&a, &b| better_first(a, b, &self.columns.memory_id));
        let best = found.first().filter(|&&(score, _)| score >= threshold);
        Ok(best.map(|&(score, v)| {
            (
                self.columns.key[v as usize],
                self.columns.memory_id[v as usize],
                score,
            )
        }))
    }
}
