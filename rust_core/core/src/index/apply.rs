//! Applies a commit: it is checked, analysed and quantised before anything changes, then applied as a whole.

use std::borrow::Borrow;

use hashbrown::HashTable;
use rayon::prelude::*;

use super::state::Index;
use crate::api::BankOptions;
use crate::api::Row;
use crate::api::{CoreError, Result};
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{DenseIndex, QuantisedRow, normalise};
use crate::index::columns::Tables;
use crate::lexical::{LexicalIndex, MAX_ROWS};
use crate::system::arrays::reserve_tight;
use astrocyte_text::analysis::AnalyzedText;

/// A batch of this many rows is prepared by all cores: a load, not a write, which would only wake them in vain.
const SPREAD_ROWS: usize = 128;
/// Most memory layers: their numbers are 16 bits.
const MAX_LAYERS: usize = u16::MAX as usize;

/// A row's texts and vectors, ready for the index: the whole first, then its chunks.
pub(crate) struct Prepared {
    parts: Vec<Part>,
}

struct Part {
    vector: Option<Embedded>,
    text: AnalyzedText,
    tokens: u32,
}

struct Embedded {
    unit: Vec<f32>,
    quantised: QuantisedRow,
}

/// The unit vectors of `prepared`, in the order of the rows.
pub(crate) fn units(prepared: &[Prepared]) -> impl Iterator<Item = &[f32]> {
    let parts = prepared.iter().flat_map(|row| &row.parts);
    parts.filter_map(|part| part.vector.as_ref().map(|vector| vector.unit.as_slice()))
}

/// The rows that a commit took out of the index.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Slots that no row has any more.
    pub(crate) slots: Vec<u32>,
    /// The rows that had them.
    pub(crate) rows: Vec<u32>,
}

/// Tables that a commit would otherwise make grow while nobody can read; afterwards, those that were there before.
pub(crate) struct Room {
    versions: Option<Tables>,
    words: Option<HashTable<u32>>,
}

/// Checks and analyses the rows; needs no lock.
pub(crate) fn prepare<R: Borrow<Row> + Sync>(
    rows: &[R],
    options: BankOptions,
) -> Result<Vec<Prepared>> {
    let one = |(index, row): (usize, &R)| prepare_row(index, row.borrow(), options);
    if rows.len() < SPREAD_ROWS {
        return rows.iter().enumerate().map(one).collect();
    }
    let all: Vec<Result<Prepared>> = rows.par_iter().enumerate().map(one).collect();
    // In order, so that the first row that is wrong is the one that is told of.
    all.into_iter().collect()
}

fn prepare_row(index: usize, row: &Row, options: BankOptions) -> Result<Prepared> {
    let whole = (row.vector.as_deref(), row.text.as_str(), row.tokens);
    let chunks = row
        .chunks
        .iter()
        .map(|chunk| (chunk.vector.as_deref(), chunk.text.as_str(), chunk.tokens));
    let parts = std::iter::once(whole)
        .chain(chunks)
        .map(|(vector, text, tokens)| {
            let vector = vector.map(|vector| embedded(index, vector, options.dimensions));
            Ok(Part {
                vector: vector.transpose()?,
                text: options.language.analyze_text(text),
                tokens,
            })
        });
    Ok(Prepared {
        parts: parts.collect::<Result<_>>()?,
    })
}

fn embedded(row: usize, vector: &[f32], dimensions: usize) -> Result<Embedded> {
    let unit = normalise(row, vector, dimensions)?;
    let quantised = QuantisedRow::new(&unit);
    Ok(Embedded { unit, quantised })
}

impl Index {
    /// Checks what depends on the bank, before anything changes.
    pub(crate) fn admit<R: Borrow<Row>>(&self, rows: &[R], prepared: &[Prepared]) -> Result<()> {
        let more: usize = prepared.iter().map(|row| row.parts.len()).sum();
        if self.rows() as usize + more > MAX_ROWS as usize {
            return Err(CoreError::Invalid {
                field: "upserts",
                expected: format!("at most {MAX_ROWS} rows in a bank"),
                got: format!("{} and {more} more", self.rows()),
            });
        }
        let mut layers: Vec<&str> = self.layers.iter().map(AsRef::as_ref).collect();
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

    /// Larger tables, where the rows need more room.
    pub(crate) fn room(&self, prepared: &[Prepared]) -> Room {
        let parts = prepared.iter().flat_map(|row| &row.parts);
        let words = parts.map(|part| part.text.terms.len()).sum();
        Room {
            versions: self.columns.larger_tables(prepared.len()),
            words: self.lexical.larger_dictionary(words),
        }
    }

    /// Takes the room and leaves what was there before.
    pub(crate) fn swap_room(&mut self, room: &mut Room) {
        if let Some(tables) = &mut room.versions {
            self.columns.swap_tables(tables);
        }
        if let Some(dictionary) = &mut room.words {
            self.lexical.swap_dictionary(dictionary);
        }
    }

    /// Applies a commit: first the upserts in their order, then the ends, then the removals. `stored` are the slots of
    /// the upserts' vectors.
    pub(crate) fn commit<R: Borrow<Row>>(
        &mut self,
        rows: &[R],
        prepared: &[Prepared],
        stored: Vec<u32>,
        ended: &[(u64, i64)],
        removed: &[u64],
    ) -> Removed {
        let (mut stored, mut freed) = (stored.into_iter(), Removed::default());
        self.neighbours.take();
        for (row, prepared) in rows.iter().zip(prepared) {
            self.upsert(row.borrow(), prepared, &mut stored, &mut freed);
        }
        for &(key, known_until) in ended {
            if let Some(version) = self.columns.find_key(key) {
                self.end(version, known_until);
            }
        }
        for &key in removed {
            self.remove(key, &mut freed);
        }
        self.conversations.settle(&self.columns);
        freed
    }

    fn upsert(
        &mut self,
        row: &Row,
        prepared: &Prepared,
        stored: &mut impl Iterator<Item = u32>,
        freed: &mut Removed,
    ) {
        self.remove(row.key, freed);
        let first = self.rows();
        let layer = self.layer_number(&row.layer);
        let current = row.known_until.is_none();
        let version = self.columns.push(row, first, layer);
        self.labels.push(row);
        self.conversations.push(row, version, &self.columns);
        for (
            part,
            Part {
                vector,
                text,
                tokens,
            },
        ) in prepared.parts.iter().enumerate()
        {
            let number = first + part as u32;
            let slot = vector.as_ref().and_then(|_| stored.next());
            let quantised = vector.as_ref().map(|vector| &vector.quantised);
            self.vectors.push(quantised);
            reserve_tight(&mut self.slots, 1);
            reserve_tight(&mut self.tokens, 1);
            self.slots.push(slot.unwrap_or(NO_SLOT));
            self.tokens.push(*tokens);
            self.segments.covered.grow(number + 1);
            if slot.is_none() {
                // Nothing to find it by.
                self.segments.covered.insert(number);
            }
            self.lexical.add(number, text, current && part == 0);
            self.current_rows.grow(number + 1);
            if current {
                self.current_rows.insert(number);
            }
        }
    }

    fn end(&mut self, version: u32, known_until: i64) {
        self.columns.end(version, known_until);
        let rows = self.rows_of(version);
        self.lexical.retire(rows.start);
        rows.for_each(|row| _ = self.current_rows.remove(row));
    }

    /// Removes the version with this key, with its text and vectors, if there is one.
    fn remove(&mut self, key: u64, freed: &mut Removed) {
        let Some(version) = self.columns.find_key(key) else {
            return;
        };
        for row in self.rows_of(version) {
            self.lexical.remove(row);
            self.vectors.erase(row);
            let slot = std::mem::replace(&mut self.slots[row as usize], NO_SLOT);
            if slot != NO_SLOT {
                freed.slots.push(slot);
                freed.rows.push(row);
            }
            self.tokens[row as usize] = 0;
            self.current_rows.remove(row);
            self.dead_rows += 1;
            self.segments.removed += u32::from(self.segments.covered.contains(row));
        }
        self.labels.remove(version);
        self.conversations.remove(version, &self.columns);
        self.columns.remove(version);
    }

    fn layer_number(&mut self, name: &str) -> u16 {
        let known = self.layers.iter().position(|layer| **layer == *name);
        known.unwrap_or_else(|| {
            self.layers.push(name.into());
            self.layers.len() - 1
        }) as u16
    }
}
