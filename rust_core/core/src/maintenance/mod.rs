//! Background work on banks: graph builds, inverted indexes of tantivy, and the restoring of both from checkpoints.

mod build;
mod policy;
mod restore;
mod words;
mod worker;

pub(crate) use build::Pace;
pub(crate) use restore::restore;
pub(crate) use words::renew;
pub(crate) use worker::GraphWorker;
