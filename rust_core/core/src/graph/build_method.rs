//! The builder of a graph, by the method that searches it.

use std::fs::File;

use astrocyte_segments::{SegmentError, VectorGraph, VectorGraphBuilder};

use super::builder::{BuildThreads, Builder};
use super::links::{Graph, GraphLinks};
use crate::api::{CoreError, DenseMethod, Result};

/// Vectors that become a graph.
pub(crate) enum GraphBuilder {
    Own(Builder),
    Usearch(VectorGraphBuilder),
}

fn failed(error: &SegmentError) -> CoreError {
    CoreError::Graph(error.to_string())
}

impl GraphBuilder {
    /// An empty one for up to `capacity` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(crate) fn new(method: DenseMethod, dimensions: usize, capacity: usize) -> Result<Self> {
        if method == DenseMethod::Usearch {
            let builder = VectorGraphBuilder::new(dimensions, capacity);
            return builder.map(Self::Usearch).map_err(|error| failed(&error));
        }
        Builder::new(dimensions, capacity).map(Self::Own)
    }

    /// Adds a vector under the next number.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when usearch has no memory for it.
    pub(crate) fn add(&mut self, vector: &[f32]) -> Result<()> {
        match self {
            Self::Own(builder) => builder.add(vector),
            Self::Usearch(builder) => builder.add(vector).map_err(|error| failed(&error))?,
        }
        Ok(())
    }

    /// The graph, or none where nobody wants it any more. One of usearch goes into the empty `file`, where there is
    /// one.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    #[allow(unreachable_code, reason = "without usearch its builder has no values")]
    pub(crate) fn finish(
        self,
        threads: &BuildThreads<'_>,
        file: Option<File>,
    ) -> Result<Option<Graph>> {
        match self {
            Self::Own(builder) => builder.finish(threads),
            Self::Usearch(builder) => {
                let graph = builder.finish(file).map_err(|error| failed(&error))?;
                Ok(Some(Graph::of(GraphLinks::Usearch(graph))))
            }
        }
    }
}

/// Resident bytes of one vector while a graph of `dimensions` is made, which are more than those of the sealed one.
pub(crate) fn build_bytes(method: DenseMethod, dimensions: usize) -> usize {
    if method == DenseMethod::Usearch {
        return VectorGraph::row_bytes(dimensions);
    }
    Builder::row_bytes(dimensions)
}
