//! A sealed graph: links between numbered vectors.

use std::sync::atomic::{AtomicBool, Ordering};

use super::layers::Layers;
use crate::system::huge_pages::MemoryRanges;

/// A graph that nobody changes any more.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(super) layers: Layers,
    saved: AtomicBool,
}

impl Graph {
    pub(super) fn new(layers: Layers) -> Self {
        let saved = AtomicBool::new(false);
        Self { layers, saved }
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
        self.layers.lowest.len()
    }

    /// Notes where the links lie that most of a search reads.
    pub(super) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        ranges.note(&self.layers.lowest);
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.layers.bytes()
    }
}
