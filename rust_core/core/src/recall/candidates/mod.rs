//! Where candidates come from.

pub(crate) mod graph;
