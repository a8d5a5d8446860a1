//! Background work on banks: builds of graphs, and graphs of checkpoints that are put back.

mod build;
mod policy;
mod restore;
mod worker;

pub(crate) use build::Pace;
pub(crate) use restore::restore;
pub(crate) use worker::GraphWorker;
