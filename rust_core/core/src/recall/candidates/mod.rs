//! The ways to find candidates: a scan scores all memories that pass, graphs propose some and score only those.

pub(crate) mod graph;
pub(crate) mod scan;

use super::arms::{Arm, Scores};
use crate::api::Result;
use astrocyte_text::analysis::AnalyzedQuery;

/// The semantic and the keyword arm of one recall.
///
/// The pipeline calls [`search`](Self::search), then [`rank`](Self::rank), then [`extend`](Self::extend) where feedback
/// is on. [`scores`](Self::scores) holds the scores of everything that an arm ranks from [`rank`](Self::rank) on.
pub(crate) trait Candidates {
    /// Searches with the request's vector and words. Returns the arms that the request has, the semantic one first;
    /// their rankings may be empty.
    fn search(&mut self) -> Vec<Arm>;

    /// Ranks the semantic and the keyword arm, which come first in `arms`. All memories that the others rank get
    /// scores.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    fn rank(&mut self, arms: &mut [Arm]) -> Result<()>;

    /// Adds the words of `further` to the keyword arm and ranks again.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    fn extend(&mut self, arms: &mut [Arm], further: &AnalyzedQuery) -> Result<()>;

    /// The scores of both arms, beside those of the temporal arm.
    fn scores<'a>(&'a self, temporal: &'a [f32]) -> Scores<'a>;

    /// True if neighbours share their scores.
    fn shares(&self) -> bool;

    /// The neighbours with which a version shares scores, or [`NOBODY`](crate::index::neighbours::lookup::NOBODY).
    fn sharing(&self, version: u32) -> [u32; 4];

    /// The semantic and the keyword score of a version without its neighbours' shares, by the words of the request.
    /// [`NO_SCORE`](crate::dense::NO_SCORE) and 0 where it has none.
    fn own(&self, version: u32) -> [f32; 2];

    /// The keyword score, without its neighbours' shares, by the words that feedback added.
    fn own_feedback(&self, version: u32) -> f32;

    /// Describes how candidates were found, with counts.
    fn plan(&self) -> String;
}
