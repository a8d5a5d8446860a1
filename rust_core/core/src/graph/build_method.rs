//! The ways to build a graph, and what searches it.

use std::fs::File;

use astrocyte_segments::{SegmentError, VectorGraph, VectorGraphBuilder};

use super::builder::{BuildThreads, Builder};
use super::links::{Graph, GraphKind, GraphLinks};
use crate::api::{CoreError, Result};

/// The ways to build a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildMethod {
    /// All vectors are linked at once, for the core to search.
    Own,
    /// All vectors are linked at once, for usearch to search.
    OwnForUsearch,
    /// usearch inserts one vector after the other.
    Usearch,
}

impl BuildMethod {
    /// The kind of the graphs: by the method that searches them.
    pub(crate) fn kind(self) -> GraphKind {
        match self {
            Self::Own => GraphKind::Own,
            Self::OwnForUsearch | Self::Usearch => GraphKind::Usearch,
        }
    }
}

/// Vectors that become a graph.
pub(crate) enum GraphBuilder {
    Own(Builder),
    OwnForUsearch(Builder),
    Usearch(VectorGraphBuilder),
}

/// A graph that was built.
pub(crate) struct BuiltGraph {
    pub(crate) graph: Graph,
    /// The order of its vectors, each by the number under which it was added, where it is another one.
    pub(crate) order: Option<Vec<u32>>,
}

fn failed(error: &SegmentError) -> CoreError {
    CoreError::Graph(error.to_string())
}

impl GraphBuilder {
    /// An empty one for up to `capacity` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(crate) fn new(method: BuildMethod, dimensions: usize, capacity: usize) -> Result<Self> {
        match method {
            BuildMethod::Own => Builder::new(dimensions, capacity).map(Self::Own),
            BuildMethod::OwnForUsearch => {
                Builder::new(dimensions, capacity).map(Self::OwnForUsearch)
            }
            BuildMethod::Usearch => {
                let builder = VectorGraphBuilder::new(dimensions, capacity);
                builder.map(Self::Usearch).map_err(|error| failed(&error))
            }
        }
    }

    /// Adds a vector under the next number.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when usearch has no memory for it.
    pub(crate) fn add(&mut self, vector: &[f32]) -> Result<()> {
        match self {
            Self::Own(builder) | Self::OwnForUsearch(builder) => builder.add(vector),
            Self::Usearch(builder) => builder.add(vector).map_err(|error| failed(&error))?,
        }
        Ok(())
    }

    /// The graph, or none where nobody wants it any more. One of usearch goes into the empty `file`, where there is one.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    #[allow(unreachable_code, reason = "without usearch its builder has no values")]
    pub(crate) fn finish(
        self,
        threads: &BuildThreads<'_>,
        file: Option<File>,
    ) -> Result<Option<BuiltGraph>> {
        let built = match self {
            Self::Own(builder) => builder.finish(threads)?.map(|graph| (graph, None)),
            Self::OwnForUsearch(builder) => builder
                .finish_for_usearch(threads, file)?
                .map(|(graph, order)| (graph, Some(order))),
            Self::Usearch(builder) => {
                let graph = builder.finish(file).map_err(|error| failed(&error))?;
                Some((Graph::of(GraphLinks::Usearch(graph)), None))
            }
        };
        Ok(built.map(|(graph, order)| BuiltGraph { graph, order }))
    }
}

/// Resident bytes of one vector while a graph of `dimensions` is made, which are more than those of the sealed one.
pub(crate) fn build_bytes(method: BuildMethod, dimensions: usize) -> usize {
    match method {
        BuildMethod::Own | BuildMethod::OwnForUsearch => Builder::row_bytes(dimensions),
        BuildMethod::Usearch => VectorGraph::row_bytes(dimensions),
    }
}
