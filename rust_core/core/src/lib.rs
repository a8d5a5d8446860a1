//! The retrieval core: filter, dense arm, BM25 arm, outside lists, fusion, dedup and token budget in one call.
//!
//! The crate is pure Rust; `rust_core/python` is the Python extension around it.

pub mod api;
pub mod bank;
pub mod batch;
pub mod bitmap;
pub mod checkpoint;
pub mod cross_bank;
pub mod dense;
mod graph;
mod index;
pub mod lexical;
mod maintenance;
pub mod recall;
pub mod registry;
pub mod system;
mod topk;

pub use api::{
    ArmScore, BankStats, Boost, Chunk, ContentHash, CoreError, Duplicate, Explained, ExternalList,
    Fate, FusionMethod, Hit, LabelBoost, MemoryId, RecallRequest, RecallResponse, Result, Row,
    Standing, Step, TagMatch,
};
pub use bank::Bank;
pub use batch::{Answered, RecallQueue};
pub use recall::PlannerOptions;
pub use registry::{Core, CoreOptions};
