//! Checkpoints of a bank, and the queries by which a caller brings a loaded bank up to date.

use std::path::Path;
use std::sync::Arc;

use super::{Bank, Shared};
use crate::api::BankOptions;
use crate::api::MemoryId;
use crate::api::Result;
use crate::checkpoint::{self, Label, Written};
use crate::dense::exact_vectors::Scratch;
use crate::index::IndexLock;
use crate::maintenance;

impl Bank {
    /// Writes a checkpoint into an empty directory, while the bank goes on, and reads it back. What is applied
    /// meanwhile is to be replayed over it like what comes after. One that is not `durable` is written sooner; a loss
    /// of power may damage it, which is found out when it is loaded.
    ///
    /// # Errors
    /// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when a file cannot be written, or is not what was
    /// written.
    pub fn checkpoint(&self, directory: &Path, label: &Label, durable: bool) -> Result<Written> {
        // Segments that are not restored yet would be missing in it.
        let bank = Arc::downgrade(&self.index);
        maintenance::restore(&bank);
        let pace = self.shared.worker.pace();
        let pace = pace.of_tier(self.index.read().disk);
        // Nor does it have indexes with words of removed rows. Where tantivy fails it has none of these.
        if pace.word_rows > 0 {
            _ = maintenance::renew(&bank, pace.share);
        }
        let _running = self.enter();
        checkpoint::write(
            &self.index,
            self.options.language,
            directory,
            label,
            durable,
        )
    }

    /// The bank of a checkpoint.
    pub(crate) fn load(
        directory: &Path,
        label: &Label,
        options: BankOptions,
        scratch: Option<Arc<Scratch>>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let mut index = {
            let _running = shared.planner.enter();
            let tier = options.tier.unwrap_or(shared.tier);
            let tier = (tier, shared.worker.pace().limits);
            checkpoint::load(directory, label, options, (scratch, tier))?
        };
        let pace = shared.worker.pace();
        let moves = index.tier_due(pace.limits);
        let pace = pace.of_tier(index.disk);
        let due = moves || index.is_due(pace.graph_rows, pace.word_rows);
        let kind = (pace.graph_rows > 0).then(|| pace.method.kind());
        index.restore_only(kind, pace.word_rows > 0);
        let restoring = index.segments.restoring() || index.exact_vectors.stay();
        let index = Arc::new(IndexLock::new(index));
        if restoring {
            shared.worker.queue_restore(Arc::downgrade(&index));
        } else if due {
            shared.worker.queue(Arc::downgrade(&index));
        }
        Ok(Self {
            options,
            index,
            spellings: Arc::default(),
            shared,
        })
    }

    /// Vectors in graphs that the newest checkpoint does not have.
    pub fn unsaved_graph_rows(&self) -> u64 {
        let index = self.index.read();
        let graphs = index.segments.all.iter().map(|segment| &segment.graph);
        let unsaved = graphs.filter(|graph| !graph.is_saved());
        unsaved.map(|graph| graph.len() as u64).sum()
    }

    /// Rows in indexes of tantivy that the newest checkpoint does not have.
    pub fn unsaved_word_rows(&self) -> u64 {
        self.index.read().lexical.unsaved_rows()
    }

    /// Keys of all versions of these memories.
    pub fn keys_of(&self, memories: &[MemoryId]) -> Vec<u64> {
        let index = self.index.read();
        let columns = &index.columns;
        let keys = |id| {
            columns
                .versions_of(id)
                .map(|version| columns.key[version as usize])
        };
        memories.iter().flat_map(keys).collect()
    }

    /// When the first and the last of what is held happened, or was stored where that is not known, in milliseconds.
    pub fn times(&self) -> Option<(i64, i64)> {
        self.index.read().times()
    }
}
