//! The retrieval core: filter, dense arm, BM25 arm, outside lists, fusion, dedup and token budget in one call.
//!
//! The crate is pure Rust; `rust_core/python` is the Python extension around it.

pub mod bank;
pub mod bank_fusion;
mod catalog;
mod chains;
pub mod checkpoint;
mod columns;
pub mod error;
pub mod failpoint;
mod filter;
mod fusion;
pub mod lexical;
mod memory;
mod nameless;
mod originals;
mod pages;
pub mod recall;
pub mod registry;
pub mod rowset;
mod segment;
mod topk;
pub mod types;
pub mod vector;

pub use bank::Bank;
pub use error::{CoreError, Result};
pub use recall::{Answered, PlannerOptions, RecallQueue};
pub use registry::{Core, CoreOptions};
pub use types::{
    ArmScore, BankStats, Boost, Chunk, ContentHash, Duplicate, Explained, ExternalList, Fate,
    FusionMethod, Hit, Lift, MemoryId, RecallRequest, RecallResponse, Row, Standing, Step,
    TagMatch,
};
