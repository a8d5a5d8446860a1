//! Byte-pair merging of a piece that is no token itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Vocabulary;

/// Tokens that `piece`, which is not empty, merges to: the pair of lowest rank first, the leftmost of equal ones.
///
/// A heap of candidate pairs keeps this at n log n, so that a blob of one "word" costs no quadratic time.
pub(super) fn count(piece: &[u8], vocabulary: &Vocabulary) -> usize {
    let mut parts = Parts::new(piece.len());
    let mut pairs = BinaryHeap::with_capacity(piece.len());
    for start in 0..piece.len().saturating_sub(1) {
        push_pair(&mut pairs, &parts, start, piece, vocabulary);
    }
    let mut count = piece.len();
    while let Some(Reverse((_, start, end))) = pairs.pop() {
        // A pair is stale when one of its halves was merged since.
        if !parts.is_pair(start, end) {
            continue;
        }
        parts.merge(start);
        count -= 1;
        push_pair(&mut pairs, &parts, start, piece, vocabulary);
        if let Some(before) = parts.before(start) {
            push_pair(&mut pairs, &parts, before, piece, vocabulary);
        }
    }
    count
}

type Pairs = BinaryHeap<Reverse<(u32, usize, usize)>>;

/// Adds the part at `start` and its successor, if together they are a token.
fn push_pair(
    pairs: &mut Pairs,
    parts: &Parts,
    start: usize,
    piece: &[u8],
    vocabulary: &Vocabulary,
) {
    if let Some(end) = parts.pair_end(start)
        && let Some(rank) = vocabulary.rank(&piece[start..end])
    {
        pairs.push(Reverse((rank, start, end)));
    }
}

/// The cuts of a piece, as a list linked by offsets.
struct Parts {
    /// End of the part that starts here; 0 where no part starts.
    ends: Vec<usize>,
    /// Start of the part before the one that starts here.
    befores: Vec<usize>,
}

impl Parts {
    /// One part per byte.
    fn new(length: usize) -> Self {
        Self {
            ends: (1..=length).collect(),
            befores: (0..length).map(|start| start.wrapping_sub(1)).collect(),
        }
    }

    /// End of the part that follows the one at `start`.
    fn pair_end(&self, start: usize) -> Option<usize> {
        self.ends.get(self.ends[start]).copied()
    }

    fn is_pair(&self, start: usize, end: usize) -> bool {
        self.ends[start] != 0 && self.pair_end(start) == Some(end)
    }

    /// Joins the part at `start` with its successor.
    fn merge(&mut self, start: usize) {
        let middle = self.ends[start];
        let end = self.ends[middle];
        self.ends[start] = end;
        self.ends[middle] = 0;
        if let Some(before) = self.befores.get_mut(end) {
            *before = start;
        }
    }

    fn before(&self, start: usize) -> Option<usize> {
        self.befores
            .get(start)
            .copied()
            .filter(|&before| before != usize::MAX)
    }
}
