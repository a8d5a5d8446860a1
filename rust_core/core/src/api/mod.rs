//! The values that cross the border of the crate: rows, requests, responses and errors.

mod error;
mod explain;
mod methods;
mod options;
mod request;
mod response;
mod row;
mod stats;
mod tier;
mod turns;

pub use astrocyte_text::hash::ContentHash;

pub use error::{CoreError, Result};
pub use explain::{Explained, Fate, Share, Standing, Step};
pub use methods::{DenseMethod, LexicalMethod};
pub use options::BankOptions;
pub use request::{ExternalList, FusionMethod, LabelBoost, RecallRequest, TagMatch};
pub use response::{
    ArmScore, Boost, Duplicate, Evidence, Expansion, Hit, PhraseCandidates, RecallResponse,
    SubjectEvidence,
};
pub use row::{Chunk, MemoryId, Row};
pub use stats::BankStats;
pub use tier::{Tier, TierLimits};
pub use turns::{ADDRESS, FIRST_NAME, QUESTION, SPEAKER_KEY, TURN_KEY, TurnBoosts, WHOLE_NAME};
