//! The owner of scratch space and of the pool that spreads batches over the cores.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::bank::Bank;
use crate::error::Result;
use crate::memory;
use crate::originals::Scratch;
use crate::types::{RecallRequest, RecallResponse};

/// Makes banks and answers batches of recalls.
#[derive(Debug, Clone)]
pub struct Core {
    scratch: Option<Arc<Scratch>>,
}

impl Core {
    /// A core whose large banks keep their original vectors in an unlinked file in `scratch_dir`; None keeps them in
    /// memory.
    ///
    /// # Errors
    /// [`CoreError::Io`](crate::CoreError::Io) when the file cannot be made.
    pub fn new(scratch_dir: Option<&Path>) -> Result<Self> {
        let scratch = scratch_dir.map(Scratch::create).transpose()?.map(Arc::new);
        Ok(Self { scratch })
    }

    /// A new and empty bank for vectors of `dimensions`.
    ///
    /// # Errors
    /// [`CoreError::Invalid`](crate::CoreError::Invalid) outside 1 to [`MAX_DIMENSIONS`](crate::vector::MAX_DIMENSIONS).
    pub fn bank(&self, dimensions: usize) -> Result<Bank> {
        Bank::new(dimensions, self.scratch.clone())
    }

    /// Gives freed memory back to the system, as far as the allocator can: after evictions, not after each drop.
    pub fn release_memory(&self) {
        memory::release();
    }

    /// Answers all requests, spread over the cores; each result equals the single call's.
    ///
    /// # Errors
    /// The first request's error, in the order of the requests.
    pub fn recall_many(&self, requests: &[(Bank, RecallRequest)]) -> Result<Vec<RecallResponse>> {
        // A lone request gains nothing from a change of thread.
        if let [(bank, request)] = requests {
            return Ok(vec![bank.recall(request)?]);
        }
        let answers: Vec<_> = requests
            .par_iter()
            .map(|(bank, request)| bank.recall(request))
            .collect();
        answers.into_iter().collect()
    }
}
