//! A sealed graph: links between numbered vectors, or a graph of usearch, which holds vectors of its own.

use std::io;
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

/// The library that a graph is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphKind {
    Own,
    Usearch,
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

    /// The method that searches it.
    pub(crate) fn kind(&self) -> GraphKind {
        match self.links {
            GraphLinks::Own(_) => GraphKind::Own,
            GraphLinks::Usearch(_) => GraphKind::Usearch,
        }
    }

    /// Overwrites the vectors of these numbers, which are removed, where the graph has them in a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn erase(&self, numbers: &[u32]) -> io::Result<()> {
        match &self.links {
            GraphLinks::Own(_) => Ok(()),
            GraphLinks::Usearch(graph) => graph.erase(numbers),
        }
    }

    /// Bytes in a mapped file.
    pub(crate) fn mapped_bytes(&self) -> usize {
        match &self.links {
            GraphLinks::Own(_) => 0,
            GraphLinks::Usearch(graph) => graph.mapped_bytes(),
        }
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
