//! Copies of what checkpoints have of usearch and tantivy, for this process alone.

use std::path::Path;
use std::sync::Arc;

use astrocyte_segments::SegmentBytes;

use crate::api::Result;
use crate::dense::exact_vectors::Scratch;
use crate::system::checked_file::{FileReader, Sum, copy_verified, open_verified};
use crate::system::failpoint;

/// The releases of the libraries: what another one wrote is built anew.
pub(super) fn version() -> String {
    astrocyte_segments::libraries()
}

/// The place of copies.
#[derive(Debug, Clone)]
pub(super) struct SegmentCopies(Option<Arc<Scratch>>);

impl SegmentCopies {
    /// Copies beside the scratch file, or in memory where there is none.
    pub(super) fn new(scratch: Option<Arc<Scratch>>) -> Self {
        Self(scratch)
    }

    /// A copy of a file, of which every byte was held against its checksum: in a file without a name, or in memory
    /// where none can be made.
    ///
    /// # Errors
    /// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when the file cannot be read, or is not what was written.
    pub(super) fn take(&self, directory: &Path, name: &str, sum: Sum) -> Result<SegmentBytes> {
        let scratch = self.0.as_ref();
        let bytes = if let Some(Ok(file)) = scratch.map(|scratch| scratch.segment_file()) {
            copy_verified(directory, name, sum, &file)?;
            SegmentBytes::File(file)
        } else {
            let file = open_verified(directory, name, sum, |_| true)?;
            let mut reader = FileReader::new(file, "a segment", sum.length);
            SegmentBytes::Memory(reader.take(sum.length as usize, 1)?.to_vec())
        };
        failpoint::reach("checkpoint.segment");
        Ok(bytes)
    }
}
