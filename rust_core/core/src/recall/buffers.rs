//! Arrays that a thread keeps from one recall to the next, so that a recall allocates little.

use std::cell::Cell;

use crate::bitmap::Bitmap;
use crate::dense::TOGETHER;
use crate::recall::filter::FilterBuffers;
use crate::topk::{Scored, Selection};

use super::arms::temporal::TimeScores;
use super::candidates::graph::LargeBuffers;
use crate::index::neighbours::NeighbourTable;

/// An arm's scores by row and by version.
#[derive(Debug, Default)]
pub(crate) struct ArmScores {
    /// By row; empty where the versions' array is the rows'.
    pub(crate) rows: Vec<f32>,
    /// By version; empty where the rows' array is the versions'.
    pub(crate) versions: Vec<f32>,
    /// Room for smoothing: what scores by version were made of or are made in, with whatever was left there.
    pub(crate) raw: Vec<f32>,
    /// Of cosines: whether they are of whole bytes, not coarse.
    pub(crate) whole: bool,
}

impl ArmScores {
    /// Leaves the rows' array to be the versions'; the room of the latter stays as it is for the next smoothing.
    pub(crate) fn leave_to_rows(&mut self) {
        if !self.versions.is_empty() {
            std::mem::swap(&mut self.versions, &mut self.raw);
            self.versions.clear();
        }
    }

    /// The scores by version.
    pub(crate) fn by_version(&self) -> &[f32] {
        if self.versions.is_empty() {
            &self.rows
        } else {
            &self.versions
        }
    }
}

/// Room for reading exact vectors and for lists of rows.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) bytes: Vec<u8>,
    pub(crate) original: Vec<f32>,
    pub(crate) best: Vec<Scored>,
    pub(crate) sorted: Vec<f32>,
    pub(crate) selection: Selection,
    /// Versions that other arms rank.
    pub(crate) proposed: Vec<u32>,
    /// Versions that may be among the best.
    pub(crate) in_head: Bitmap,
    /// Versions whose rows, and those of whose neighbours, have been refined.
    pub(crate) looked: Bitmap,
    /// Rows whose scores have been refined.
    pub(crate) refined: Bitmap,
    /// Rows that are refined next.
    pub(crate) fresh: Vec<u32>,
}

/// Everything that a recall works with.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) filter: FilterBuffers,
    pub(crate) dense: ArmScores,
    pub(crate) keyword: ArmScores,
    pub(crate) temporal: TimeScores,
    /// What further words score; see `feedback`.
    pub(crate) further: ArmScores,
    /// Conversations of what passes a filter.
    pub(crate) layout: NeighbourTable,
    pub(crate) large: LargeBuffers,
    pub(crate) candidates: Vec<u32>,
    pub(crate) work: Work,
    /// Cosines of several queries, each for a recall to come.
    pub(crate) ready: [Vec<f32>; TOGETHER],
}

thread_local! {
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Runs `recall` with this thread's buffers. After a panic they are dropped, not used again.
pub(crate) fn with_buffers<R>(recall: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.take().unwrap_or_default();
    let result = recall(&mut buffers);
    BUFFERS.set(Some(buffers));
    result
}
