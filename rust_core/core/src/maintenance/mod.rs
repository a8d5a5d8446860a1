//! Background work on banks: graph builds, inverted indexes of tantivy, the restoring of both from checkpoints, and moves
//! between tiers.

mod build;
mod policy;
mod restore;
mod tier;
mod vector_reads;
mod words;
mod worker;

pub(crate) use build::Pace;
pub(crate) use restore::restore;
pub(crate) use tier::own_postings;
pub(crate) use words::{renew, replace};
pub(crate) use worker::GraphWorker;
