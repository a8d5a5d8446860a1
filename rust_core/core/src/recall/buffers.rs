//! Arrays that a thread keeps from one recall to the next, so that a recall allocates little.

use std::cell::Cell;

use crate::bitmap::Bitmap;
use crate::dense::TOGETHER;
use crate::index::neighbours::NeighbourTable;
use crate::topk::{Scored, Selection};

use super::arms::ArmScores;
use super::arms::temporal::TimeScores;
use super::candidates::graph::GraphBuffers;
use super::filter::FilterBuffers;

/// The scores of one arm by row and by version.
#[derive(Debug, Default)]
pub(crate) struct ScoreArrays {
    /// By row; empty where the array by version is also that by row.
    pub(crate) rows: Vec<f32>,
    /// By version; empty where the array by row is also that by version.
    pub(crate) versions: Vec<f32>,
    /// Input or room of the context windows; its contents are arbitrary.
    pub(crate) raw: Vec<f32>,
    /// True for cosines of whole bytes, false for coarse ones.
    pub(crate) whole: bool,
}

impl ScoreArrays {
    /// Makes the array by row that by version too; keeps the allocation of the latter for the next context windows.
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

    /// All scores.
    pub(crate) fn scores(&self) -> ArmScores<'_> {
        ArmScores {
            rows: &self.rows,
            versions: self.by_version(),
        }
    }
}

/// Room for the ranking of the semantic arm.
#[derive(Debug, Default)]
pub(crate) struct RankBuffers {
    pub(crate) bytes: Vec<u8>,
    pub(crate) original: Vec<f32>,
    pub(crate) best: Vec<Scored>,
    pub(crate) sorted: Vec<f32>,
    pub(crate) selection: Selection,
    /// Versions that other arms rank.
    pub(crate) proposed: Vec<u32>,
    /// Versions that may be among the best.
    pub(crate) in_head: Bitmap,
    /// Versions whose rows, and those of whose neighbours, are rescored.
    pub(crate) rescored_versions: Bitmap,
    /// Rows whose scores are rescored.
    pub(crate) rescored_rows: Bitmap,
    /// Rows that are rescored next.
    pub(crate) fresh: Vec<u32>,
}

/// Buffers of a scan.
#[derive(Debug, Default)]
pub(crate) struct ScanBuffers {
    pub(crate) semantic: ScoreArrays,
    pub(crate) keyword: ScoreArrays,
    /// Scores of the words that feedback adds.
    pub(crate) further: ScoreArrays,
    /// Neighbours among the memories that pass a filter.
    pub(crate) neighbours: NeighbourTable,
    pub(crate) work: RankBuffers,
}

/// Buffers of the temporal arm and of the fusion.
#[derive(Debug, Default)]
pub(crate) struct FusionBuffers {
    pub(crate) temporal: TimeScores,
    pub(crate) selection: Selection,
    /// Versions that an arm ranks.
    pub(crate) versions: Vec<u32>,
}

/// All buffers of a recall.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) filter: FilterBuffers,
    pub(crate) scan: ScanBuffers,
    pub(crate) graph: GraphBuffers,
    pub(crate) fusion: FusionBuffers,
    /// Cosines of several requests, from one scan.
    pub(crate) together: [Vec<f32>; TOGETHER],
}

thread_local! {
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Runs `recall` with the buffers of this thread. After a panic they are dropped and not used again.
pub(crate) fn with_buffers<R>(recall: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.take().unwrap_or_default();
    let result = recall(&mut buffers);
    BUFFERS.set(Some(buffers));
    result
}
