//! A sealed segment: a graph, and the rows to which its vectors belong.

use std::io;
use std::sync::Arc;

use super::links::{Graph, GraphLinks};
use super::search::{GraphSearch, SearchBuffers};
use crate::bitmap::Bitmap;
use crate::dense::{DenseIndex, QuantisedQuery};
use crate::topk::Scored;

/// A row that a segment's vector no longer stands for.
pub(crate) const GONE: u32 = u32::MAX;

/// Rows that graphs propose.
#[derive(Debug, Default)]
pub(crate) struct Proposed {
    pub(crate) rows: Vec<u32>,
    /// Rows with the cosines of their quantised vectors.
    pub(crate) scored: Vec<Scored>,
}

/// A graph, and which rows its vectors are now.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) graph: Arc<Graph>,
    /// Row by number in the graph, or [`GONE`].
    rows: Arc<Vec<u32>>,
}

impl Segment {
    pub(crate) fn new(graph: Graph, rows: Vec<u32>) -> Self {
        Self {
            graph: Arc::new(graph),
            rows: Arc::new(rows),
        }
    }

    /// Vectors in the graph, dead ones included.
    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Row by number in the graph, or [`GONE`].
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Overwrites the vectors of the rows that are `gone`, where the graph has them in a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn erase(&self, gone: impl Fn(u32) -> bool) -> io::Result<()> {
        if self.graph.mapped_bytes() == 0 {
            return Ok(());
        }
        let numbered = self.rows.iter().zip(0..);
        let numbers: Vec<u32> = numbered
            .filter(|&(&row, _)| gone(row))
            .map(|(_, number)| number)
            .collect();
        self.graph.erase(&numbers)
    }

    /// The rows that the segment stands for.
    pub(crate) fn live_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().copied().filter(|&row| row != GONE)
    }

    /// Appends up to `count` rows of `allowed` that are near to the query, those of usearch with their cosines.
    ///
    /// `most_pass` says that nearly all rows of the segment are allowed: then those that are not are dropped from the
    /// answer, which is faster than asking at each step of the way. Where usearch fails, all rows of the segment that
    /// pass are appended, so that none is missed.
    pub(crate) fn search(
        &self,
        (vectors, query): (&impl DenseIndex, &QuantisedQuery),
        count: usize,
        (allowed, most_pass): (&Bitmap, bool),
        room: &mut SearchBuffers,
        Proposed {
            rows: found,
            scored,
        }: &mut Proposed,
    ) {
        let passes = |row: u32| row < allowed.bound() && allowed.contains(row);
        let layers = match &self.graph.links {
            GraphLinks::Own(layers) => layers,
            GraphLinks::Usearch(graph) => {
                let row = |number: u32| self.rows.get(number as usize).copied().unwrap_or(GONE);
                let (before, query) = (scored.len(), query.levels());
                let numbers = graph.nearest(&query, count, |number| passes(row(number)), scored);
                if numbers.is_ok() {
                    scored[before..]
                        .iter_mut()
                        .for_each(|(_, number)| *number = row(*number));
                } else {
                    scored.truncate(before);
                    found.extend(self.rows.iter().copied().filter(|&row| passes(row)));
                }
                return;
            }
        };
        let search = GraphSearch {
            layers,
            rows: &self.rows,
            vectors,
            query,
        };
        if !most_pass {
            return search.nearest(count, passes, room, found);
        }
        let before = found.len();
        search.nearest(count, |_| true, room, found);
        let mut kept = before;
        for at in before..found.len() {
            if passes(found[at]) {
                found.swap(kept, at);
                kept += 1;
            }
        }
        found.truncate(kept);
    }

    /// The segment after rows got new numbers.
    pub(crate) fn renumbered(&self, new_rows: &[u32]) -> Self {
        let rows = self.rows.iter().map(|&row| {
            if row == GONE {
                GONE
            } else {
                new_rows[row as usize]
            }
        });
        Self {
            graph: Arc::clone(&self.graph),
            rows: Arc::new(rows.collect()),
        }
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.graph.bytes() + self.rows.capacity() * size_of::<u32>()
    }
}
