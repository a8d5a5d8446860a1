//! Graphs of a build without usearch: none can be made.

use crate::{Result, SegmentError};

/// A graph that cannot exist.
#[derive(Debug)]
pub enum VectorGraph {}

/// A builder that cannot exist.
#[derive(Debug)]
pub enum VectorGraphBuilder {}

impl VectorGraphBuilder {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build has no usearch.
    pub fn new(_dimensions: usize, _capacity: usize) -> Result<Self> {
        let reason = "this build has no usearch; build with the feature `usearch`";
        Err(SegmentError::Usearch(reason.to_owned()))
    }

    /// Adds nothing.
    ///
    /// # Errors
    /// Never.
    pub fn add(&mut self, _vector: &[f32]) -> Result<()> {
        match *self {}
    }

    /// Finishes nothing.
    pub fn finish(self) -> VectorGraph {
        match self {}
    }
}

impl VectorGraph {
    /// Finds nothing.
    ///
    /// # Errors
    /// Never.
    pub fn nearest(
        &self,
        _query: &[i8],
        _count: usize,
        _passes: impl Fn(u32) -> bool,
        _found: &mut Vec<u32>,
    ) -> Result<()> {
        match *self {}
    }

    /// Has no length.
    pub fn len(&self) -> usize {
        match *self {}
    }

    /// Is not there.
    pub fn is_empty(&self) -> bool {
        match *self {}
    }

    /// Takes no bytes.
    pub fn bytes(&self) -> usize {
        match *self {}
    }

    /// Takes no bytes.
    pub fn row_bytes(_dimensions: usize) -> usize {
        0
    }
}
