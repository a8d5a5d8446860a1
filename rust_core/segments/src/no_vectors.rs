//! Graphs of a build without usearch: none can be made.

use std::fs::File;
use std::io;

use crate::{LinkedGraph, Result, SegmentBytes, SegmentError};

/// No release.
pub(crate) fn version() -> &'static str {
    "none"
}

const NONE: &str = "this build has no usearch; build with the feature `usearch`";

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
        Err(SegmentError::Usearch(NONE.to_owned()))
    }

    /// Adds nothing.
    ///
    /// # Errors
    /// Never.
    pub fn add(&mut self, _vector: &[f32]) -> Result<()> {
        match *self {}
    }

    /// Finishes nothing.
    ///
    /// # Errors
    /// Never.
    pub fn finish(self, _file: Option<File>) -> Result<VectorGraph> {
        match self {}
    }
}

impl VectorGraph {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build has no usearch.
    pub fn linked(
        _graph: &impl LinkedGraph,
        _dimensions: usize,
        _file: Option<File>,
    ) -> Result<Self> {
        Err(SegmentError::Usearch(NONE.to_owned()))
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always: this build has no usearch.
    pub fn open(_bytes: SegmentBytes, _dimensions: usize, _count: usize) -> Result<Self> {
        Err(SegmentError::Usearch(NONE.to_owned()))
    }

    /// Saves nothing.
    ///
    /// # Errors
    /// Never.
    pub fn save(
        &self,
        _dead: impl Fn(u32) -> bool,
        _put: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match *self {}
    }

    /// Erases nothing.
    ///
    /// # Errors
    /// Never.
    pub fn erase(&self, _numbers: &[u32]) -> io::Result<()> {
        match *self {}
    }

    /// Maps nothing.
    pub fn mapped_bytes(&self) -> usize {
        match *self {}
    }

    /// Finds nothing.
    ///
    /// # Errors
    /// Never.
    pub fn nearest(
        &self,
        _query: &[i8],
        _count: usize,
        _passes: impl Fn(u32) -> bool,
        _found: &mut Vec<(f32, u32)>,
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
