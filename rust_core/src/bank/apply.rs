//! One commit: checked and analysed before anything changes, then applied as a whole.

use std::borrow::Borrow;

use rayon::prelude::*;

use super::state::State;
use crate::analysis::{AnalyzedText, analyze_text};
use crate::error::{CoreError, Result};
use crate::lexical::{LexicalIndex, MAX_ROWS};
use crate::originals::NO_SLOT;
use crate::types::Row;
use crate::vector::{DenseIndex, normalise, reserve_tight};

/// Dead rows are dropped when they are more than a fifth: a rebuild then costs less than five times what it frees.
const DEAD_SHARE: u32 = 5;
/// Below this many dead rows a rebuild gains nothing that can be measured.
const DEAD_MINIMUM: u32 = 64;
/// A batch of this many rows is prepared by all cores: a load, not a write, which would only wake them in vain.
const SPREAD_ROWS: usize = 128;
/// Most memory layers: their numbers are 16 bits.
const MAX_LAYERS: usize = u16::MAX as usize;

/// A row's text and vector, ready for the index: the whole first, then its chunks.
pub(super) struct Prepared {
    parts: Vec<(Option<Vec<f32>>, AnalyzedText, u32)>,
}

/// Checks and analyses the rows; needs no lock.
pub(super) fn prepare<R: Borrow<Row> + Sync>(
    rows: &[R],
    dimensions: usize,
) -> Result<Vec<Prepared>> {
    let one = |(index, row): (usize, &R)| prepare_row(index, row.borrow(), dimensions);
    if rows.len() < SPREAD_ROWS {
        return rows.iter().enumerate().map(one).collect();
    }
    let all: Vec<Result<Prepared>> = rows.par_iter().enumerate().map(one).collect();
    // In order, so that the first row that is wrong is the one that is told of.
    all.into_iter().collect()
}

fn prepare_row(index: usize, row: &Row, dimensions: usize) -> Result<Prepared> {
    let whole = (row.vector.as_deref(), row.text.as_str(), row.tokens);
    let chunks = row
        .chunks
        .iter()
        .map(|chunk| (chunk.vector.as_deref(), chunk.text.as_str(), chunk.tokens));
    let parts = std::iter::once(whole)
        .chain(chunks)
        .map(|(vector, text, tokens)| {
            let unit = vector
                .map(|vector| normalise(index, vector, dimensions))
                .transpose()?;
            Ok((unit, analyze_text(text), tokens))
        });
    Ok(Prepared {
        parts: parts.collect::<Result<_>>()?,
    })
}

impl State {
    /// Checks what depends on the bank, before anything changes.
    pub(super) fn admit<R: Borrow<Row>>(&self, rows: &[R], prepared: &[Prepared]) -> Result<()> {
        let more: usize = prepared.iter().map(|row| row.parts.len()).sum();
        if self.rows() as usize + more > MAX_ROWS as usize {
            return Err(CoreError::Invalid {
                field: "upserts",
                expected: format!("at most {MAX_ROWS} rows in a bank"),
                got: format!("{} and {more} more", self.rows()),
            });
        }
        let mut layers: Vec<&str> = self.layers.iter().map(String::as_str).collect();
        for row in rows {
            let layer = row.borrow().layer.as_str();
            if !layers.contains(&layer) {
                layers.push(layer);
            }
        }
        if layers.len() > MAX_LAYERS {
            return Err(CoreError::Invalid {
                field: "layer",
                expected: format!("at most {MAX_LAYERS} different layers"),
                got: layers.len().to_string(),
            });
        }
        Ok(())
    }

    /// Applies a commit: first the upserts in their order, then the ends, then the removals.
    pub(super) fn commit<R: Borrow<Row>>(
        &mut self,
        rows: &[R],
        prepared: Vec<Prepared>,
        ended: &[(u64, i64)],
        removed: &[u64],
    ) {
        self.layout.take();
        for (row, prepared) in rows.iter().zip(prepared) {
            self.upsert(row.borrow(), prepared);
        }
        self.originals.flush();
        for &(key, known_until) in ended {
            if let Some(version) = self.columns.find_key(key) {
                self.end(version, known_until);
            }
        }
        for &key in removed {
            self.remove(key);
        }
        self.chains.settle(&self.columns);
        let worth_it = self.dead_rows >= DEAD_MINIMUM || self.dead_rows == self.rows();
        if worth_it && self.dead_rows > self.rows() / DEAD_SHARE {
            self.compact();
        }
    }

    fn upsert(&mut self, row: &Row, prepared: Prepared) {
        self.remove(row.key);
        let first = self.rows();
        let layer = self.layer_number(&row.layer);
        let current = row.known_until.is_none();
        let version = self.columns.push(row, first, layer);
        self.catalog.push(row);
        self.chains.push(row, version, &self.columns);
        for (part, (vector, text, tokens)) in prepared.parts.into_iter().enumerate() {
            let number = first + part as u32;
            let has_vector = vector.is_some();
            self.vectors.push(vector.as_deref());
            reserve_tight(&mut self.slots, 1);
            reserve_tight(&mut self.tokens, 1);
            self.slots
                .push(vector.map_or(NO_SLOT, |vector| self.originals.store(&vector)));
            self.tokens.push(tokens);
            self.segments.covered.grow(number + 1);
            if !has_vector {
                // Nothing to find it by.
                self.segments.covered.insert(number);
            }
            self.lexical.add(number, &text, current && part == 0);
            self.current_rows.grow(number + 1);
            if current {
                self.current_rows.insert(number);
            }
        }
    }

    fn end(&mut self, version: u32, known_until: i64) {
        self.columns.end(version, known_until);
        let rows = self.columns.rows_of(version, self.rows());
        self.lexical.retire(rows.start);
        rows.for_each(|row| _ = self.current_rows.remove(row));
    }

    /// Removes the version with this key, with its text and vectors, if there is one.
    fn remove(&mut self, key: u64) {
        let Some(version) = self.columns.find_key(key) else {
            return;
        };
        for row in self.columns.rows_of(version, self.rows()) {
            self.lexical.remove(row);
            self.vectors.erase(row);
            self.originals.erase(self.slots[row as usize]);
            self.slots[row as usize] = NO_SLOT;
            self.tokens[row as usize] = 0;
            self.current_rows.remove(row);
            self.dead_rows += 1;
            self.segments.removed += u32::from(self.segments.covered.contains(row));
        }
        self.catalog.remove(version);
        self.chains.remove(version, &self.columns);
        self.columns.remove(version);
    }

    fn layer_number(&mut self, name: &str) -> u16 {
        let known = self.layers.iter().position(|layer| layer == name);
        known.unwrap_or_else(|| {
            self.layers.push(name.to_owned());
            self.layers.len() - 1
        }) as u16
    }

    /// Drops dead rows and gives the others new numbers, in the same order.
    fn compact(&mut self) {
        let total = self.rows();
        let mut new_versions = vec![u32::MAX; self.columns.len() as usize];
        let mut new_rows = vec![u32::MAX; total as usize];
        let mut next_row = 0;
        for (number, version) in self.columns.live.iter().enumerate() {
            new_versions[version as usize] = number as u32;
            for row in self.columns.rows_of(version, total) {
                new_rows[row as usize] = next_row;
                next_row += 1;
            }
        }
        self.chains.compact(&new_versions);
        self.catalog.compact(&new_versions);
        self.columns.compact(&new_versions, &new_rows);
        self.vectors.compact(&new_rows);
        self.lexical.compact(&new_rows);
        crate::columns::keep(&mut self.slots, &new_rows);
        crate::columns::keep(&mut self.tokens, &new_rows);
        self.current_rows.reset(next_row);
        for version in self.columns.current.iter() {
            for row in self.columns.rows_of(version, next_row) {
                self.current_rows.insert(row);
            }
        }
        self.segments.renumber(&new_rows, next_row);
        self.dead_rows = 0;
    }
}
