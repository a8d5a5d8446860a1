//! The retrieval core: filter, dense arm, BM25 arm, outside lists, fusion, dedup and token budget in one call.
//!
//! The crate is pure Rust. Only `python`, behind the feature of the same name, knows that Python exists; `serve`, behind its
//! own, is the gRPC server that Python answers for.

pub mod analysis;
pub mod bank;
pub mod bank_fusion;
mod catalog;
mod chains;
pub mod checkpoint;
mod columns;
pub mod embed;
pub mod error;
mod failpoint;
mod filter;
mod fusion;
pub mod hash;
pub mod lexical;
mod memory;
mod nameless;
mod originals;
mod pages;
pub mod pii;
#[cfg(feature = "python")]
mod python;
mod recall;
pub mod registry;
pub mod rowset;
mod segment;
#[cfg(feature = "serve")]
pub mod serve;
pub mod tokens;
mod topk;
pub mod types;
pub mod vector;
pub mod wire;

pub use bank::Bank;
pub use error::{CoreError, Result};
pub use recall::{Answered, PlannerOptions, RecallQueue};
pub use registry::{Core, CoreOptions};
pub use types::{
    ArmScore, BankStats, Boost, Chunk, ContentHash, Duplicate, Explained, ExternalList, Fate,
    FusionMethod, Hit, Lift, MemoryId, RecallRequest, RecallResponse, Row, Standing, Step,
    TagMatch,
};
