//! A bank to a checkpoint and back, and what whoever brings it up to date must know of it.

use std::path::Path;
use std::sync::Arc;

use super::{Bank, Shared};
use crate::api::MemoryId;
use crate::api::Result;
use crate::checkpoint::{self, Label, Written};
use crate::dense::exact_vectors::Scratch;
use crate::index::IndexLock;
use crate::maintenance;

impl Bank {
    /// Writes a checkpoint into an empty directory, while the bank goes on, and reads it back. What is applied meanwhile
    /// is to be replayed over it like what comes after. One that is not `durable` is written sooner; a loss of power may
    /// damage it, which is found out when it is loaded.
    ///
    /// # Errors
    /// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when a file cannot be written, or is not what was written.
    pub fn checkpoint(&self, directory: &Path, label: &Label, durable: bool) -> Result<Written> {
        // What is not back yet would be missing in it.
        maintenance::restore(&Arc::downgrade(&self.state));
        let _running = self.enter();
        checkpoint::write(&self.state, directory, label, durable)
    }

    /// The bank of a checkpoint.
    pub(crate) fn load(
        directory: &Path,
        label: &Label,
        dimensions: usize,
        scratch: Option<Arc<Scratch>>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let mut state = {
            let _running = shared.planner.enter();
            checkpoint::load(directory, label, dimensions, scratch)?
        };
        let (rows, fold_rows) = (state.rows(), shared.folder.fold_rows());
        let due = state.segments.due(rows, fold_rows);
        if fold_rows == 0 {
            state.segments.restore_none();
        }
        let restoring = state.segments.restoring() || state.exact_vectors.stay();
        let state = Arc::new(IndexLock::new(state));
        if restoring {
            shared.folder.queue_restore(Arc::downgrade(&state));
        } else if due {
            shared.folder.queue(Arc::downgrade(&state));
        }
        Ok(Self {
            dimensions,
            state,
            shared,
        })
    }

    /// Vectors in graphs that the newest checkpoint does not have.
    pub fn unsaved_graph_rows(&self) -> u64 {
        let state = self.state.read();
        let graphs = state.segments.all.iter().map(|segment| &segment.graph);
        let unsaved = graphs.filter(|graph| !graph.is_saved());
        unsaved.map(|graph| graph.len() as u64).sum()
    }

    /// Keys of all versions of these memories.
    pub fn keys_of(&self, memories: &[MemoryId]) -> Vec<u64> {
        let state = self.state.read();
        let columns = &state.columns;
        let keys = |id| {
            columns
                .versions_of(id)
                .map(|version| columns.key[version as usize])
        };
        memories.iter().flat_map(keys).collect()
    }

    /// When the first and the last of what is held happened, or was stored where that is not known, in milliseconds.
    pub fn times(&self) -> Option<(i64, i64)> {
        self.state.read().times()
    }
}
