//! Finds near duplicates: the current memories nearest to each of some vectors.

use super::state::Index;
use crate::api::Duplicate;
use crate::api::Result;
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{DenseIndex, QuantisedQuery, dot, error_margin};
use crate::topk::{Scored, better_first};

/// Memories that are told of: a guard that refuses the nearest one still has a choice.
const NEAREST: usize = 4;
/// Candidates that are compared exactly; more near-identical rows than this cannot change the answer by more than the
/// quantisation error.
const EXACT: usize = 64;

impl Index {
    /// Per unit vector the most similar current memories at or above `threshold`, the nearest first.
    pub(crate) fn near_duplicates(
        &self,
        units: &[Vec<f32>],
        threshold: f32,
    ) -> Result<Vec<Vec<Duplicate>>> {
        let queries: Vec<_> = units.iter().map(|unit| QuantisedQuery::new(unit)).collect();
        // A near duplicate has steps like the query's.
        let floors: Vec<_> = queries
            .iter()
            .map(|query| threshold - error_margin(query.scale, query.scale))
            .collect();
        let mut found: Vec<Vec<Scored>> = vec![Vec::new(); units.len()];
        self.vectors
            .near(&queries, &floors, &mut |query, row, score| {
                if let Some(version) = self.current_whole(row) {
                    let found = &mut found[query];
                    found.push((score, version));
                    if found.len() > EXACT * 4 {
                        self.keep_best(found, EXACT);
                    }
                }
            });
        units
            .iter()
            .zip(found)
            .map(|(unit, found)| self.nearest(unit, found, threshold))
            .collect()
    }

    fn keep_best(&self, found: &mut Vec<Scored>, count: usize) {
        found.sort_unstable_by(|&a, &b| better_first(a, b, &self.columns.memory_id));
        found.truncate(count);
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
    ) -> Result<Vec<Duplicate>> {
        self.keep_best(&mut found, EXACT);
        let (mut bytes, mut original) = (Vec::new(), Vec::new());
        for (score, version) in &mut found {
            let slot = self.slots[self.columns.first_row[*version as usize] as usize];
            if slot != NO_SLOT {
                self.exact_vectors.read(slot, &mut bytes, &mut original)?;
                *score = dot(unit, &original);
            }
        }
        found.retain(|&(score, _)| score >= threshold);
        self.keep_best(&mut found, NEAREST);
        let duplicate = |(cosine, version): Scored| Duplicate {
            key: self.columns.key[version as usize],
            memory_id: self.columns.memory_id[version as usize],
            cosine,
        };
        Ok(found.into_iter().map(duplicate).collect())
    }
}
