//! The errors of the core.

use thiserror::Error;

/// A result whose failure is the core's.
pub type Result<T> = std::result::Result<T, CoreError>;

/// Every failure of the core. The border turns the first group into a caller's error, the second into ours.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A vector has another length than the bank.
    #[error("row {row}: the vector has {got} dimensions, the bank has {expected}")]
    Dimensions {
        /// Index of the row in the batch; 0 for a query.
        row: usize,
        /// The bank's number of dimensions.
        expected: usize,
        /// The length that came.
        got: usize,
    },
    /// A vector that cannot be compared by cosine: NaN, infinite or all zero.
    #[error("row {row}: the vector {problem}")]
    Vector {
        /// Index of the row in the batch; 0 for a query.
        row: usize,
        /// The problem, as the end of a sentence: "has a NaN at index 3".
        problem: String,
    },
    /// A parameter out of its range.
    #[error("{field}: expected {expected}, got {got}")]
    Invalid {
        /// Name of the parameter.
        field: &'static str,
        /// The values that are accepted.
        expected: String,
        /// The value that was given.
        got: String,
    },
    /// A graph could not be made.
    #[error("graph: {0}")]
    Graph(String),
    /// An inverted index could not be made.
    #[error("keyword index: {0}")]
    Lexical(String),
    /// A checkpoint that is not used, and why; rows are.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// The scratch file of original vectors could not be read or written.
    #[error("scratch file: {0}")]
    Io(#[from] std::io::Error),
}
