//! A sealed graph: links between numbered vectors, or a graph of usearch, which holds vectors of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use astrocyte_segments::VectorGraph;

use super::layers::Layers;
use crate::system::huge_pages::MemoryRanges;

/// A graph that nobody changes any more.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(super) links: GraphLinks,
    saved: AtomicBool,
}

/// The links of a graph, by the method that searches it.
#[derive(Debug)]
pub(super) enum GraphLinks {
    /// Links alone; the dense index holds the vectors.
    Own(Layers),
    Usearch(VectorGraph),
}

impl Graph {
    pub(super) fn new(layers: Layers) -> Self {
        Self::of(GraphLinks::Own(layers))
    }

    pub(super) fn of(links: GraphLinks) -> Self {
        let saved = AtomicBool::new(false);
        Self { links, saved }
    }

    /// Returns true if checkpoints hold it. A graph of usearch holds vectors, which an erasure would have to find in
    /// the file; it is built anew after a restart.
    pub(crate) fn is_savable(&self) -> bool {
        matches!(self.links, GraphLinks::Own(_))
    }

    /// Notes whether the newest checkpoint has it.
    pub(crate) fn note_saved(&self, saved: bool) {
        self.saved.store(saved, Ordering::Relaxed);
    }

    /// Returns true if the newest checkpoint has it.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved.load(Ordering::Relaxed)
    }

    /// Vectors that it has links of.
    pub(crate) fn len(&self) -> usize {
        match &self.links {
            GraphLinks::Own(layers) => layers.lowest.len(),
            GraphLinks::Usearch(graph) => graph.len(),
        }
    }

    /// Notes where the links lie that most of a search reads.
    pub(super) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        if let GraphLinks::Own(layers) = &self.links {
            ranges.note(&layers.lowest);
        }
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.links {
            GraphLinks::Own(layers) => layers.bytes(),
            GraphLinks::Usearch(graph) => graph.bytes(),
        }
    }
}
