//! The values that cross the border of the crate: rows, requests, responses and errors.

mod error;
mod explain;
mod options;
mod request;
mod response;
mod row;
mod stats;

pub use astrocyte_text::hash::ContentHash;

pub use error::{CoreError, Result};
pub use explain::{Explained, Fate, Standing, Step};
pub use options::BankOptions;
pub use request::{ExternalList, FusionMethod, LabelBoost, RecallRequest, TagMatch};
pub use response::{ArmScore, Boost, Duplicate, Hit, RecallResponse};
pub use row::{Chunk, MemoryId, Row};
pub use stats::BankStats;
