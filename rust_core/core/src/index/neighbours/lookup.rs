//! Finds the neighbours of one version in its conversation, by the rules of [`NeighbourTable`](super::NeighbourTable),
//! without building a table.

use super::SHORT_TOKENS;
use crate::bitmap::Bitmap;
use crate::index::Index;
use crate::index::conversations::memories::Memories;

/// No version.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The versions one and two steps before and after one, nearest first, or [`NOBODY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub(crate) before: [u32; 2],
    pub(crate) after: [u32; 2],
}

impl Neighbours {
    const NONE: Self = Self {
        before: [NOBODY; 2],
        after: [NOBODY; 2],
    };

    /// The neighbours of `version`, which passes.
    pub(crate) fn of(index: &Index, passes: &Bitmap, version: u32) -> Self {
        let Some((places, at)) = index.conversations.around(version, &index.columns) else {
            return Self::NONE;
        };
        let [back, forth] = Memories::around(places, at, &index.columns);
        Self {
            before: side(passes, back),
            after: side(passes, forth),
        }
    }

    /// All that there are.
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        self.before
            .into_iter()
            .chain(self.after)
            .filter(|&version| version != NOBODY)
    }

    /// `version`, whose neighbours they are, and all that there are.
    pub(crate) fn with(self, version: u32) -> impl Iterator<Item = u32> {
        std::iter::once(version).chain(self.iter())
    }

    pub(crate) fn linked(self) -> bool {
        self.before[0] != NOBODY || self.after[0] != NOBODY
    }
}

/// Returns true if the whole of a version is short enough to share its score.
pub(crate) fn is_short(index: &Index, version: u32) -> bool {
    index.tokens[index.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
}

fn side(passes: &Bitmap, mut walk: Memories<'_>) -> [u32; 2] {
    let mut found = [NOBODY; 2];
    for place in &mut found {
        let Some(version) = walk.next().and_then(|memory| memory.passing(passes)) else {
            break;
        };
        *place = version;
    }
    found
}
