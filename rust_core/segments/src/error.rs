//! The errors of segments.

use thiserror::Error;

/// A result whose failure is a segment's.
pub type Result<T> = std::result::Result<T, SegmentError>;

/// Every failure of a segment.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// usearch refused or failed.
    #[error("usearch: {0}")]
    Usearch(String),
    /// tantivy refused or failed.
    #[error("tantivy: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    /// A file cannot be read or written.
    #[error("a segment cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not of a segment, or of another one than expected.
    #[error("a segment {0}")]
    Another(&'static str),
}
