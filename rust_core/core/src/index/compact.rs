//! Compaction: the index is copied without dead rows while readers go on, and the copy replaces it at once.

use super::lock::{Changing, IndexLock, Intending};
use super::state::Index;
use crate::bitmap::Bitmap;
use crate::dense::{DenseIndex, FlatIndex};
use crate::graph::Segment;
use crate::index::columns::Columns;
use crate::index::conversations::Conversations;
use crate::index::labels::Labels;
use crate::lexical::{Bm25Index, LexicalIndex};

/// Dead rows are dropped when they are more than a fifth: a rebuild then costs less than five times what it frees.
const DEAD_SHARE: u32 = 5;
/// Below this many dead rows a rebuild gains nothing that can be measured.
const DEAD_MINIMUM: u32 = 64;

/// The parts of an index that hold numbers of rows or versions. The exact vectors stay where they are.
struct Compacted {
    columns: Columns,
    labels: Labels,
    conversations: Conversations,
    vectors: FlatIndex,
    slots: Vec<u32>,
    tokens: Vec<u32>,
    lexical: Bm25Index,
    current_rows: Bitmap,
    segments: Vec<Segment>,
    covered: Bitmap,
}

/// Gives the live rows of a bank new numbers, in the same order. Needs as much memory again for as long as it takes.
pub(crate) fn compact<'a>(bank: &'a IndexLock, index: Intending<'a>) -> Intending<'a> {
    let mut compacted = index.compacted();
    let mut index = bank.change(index);
    index.adopt(&mut compacted);
    // The old parts are freed after readers are back.
    Changing::downgrade_to_upgradable(index)
}

impl Index {
    /// Returns true if enough rows are dead for a compaction.
    pub(crate) fn is_wasteful(&self) -> bool {
        let worth_it = self.dead_rows >= DEAD_MINIMUM || self.dead_rows == self.rows();
        let dead = worth_it && self.dead_rows > self.rows() / DEAD_SHARE;
        dead || self.lexical.is_wasteful()
    }

    fn compacted(&self) -> Compacted {
        let total = self.rows();
        let mut new_versions = vec![u32::MAX; self.columns.len() as usize];
        let mut new_rows = vec![u32::MAX; total as usize];
        let mut rows = 0;
        for (number, version) in self.columns.live.iter().enumerate() {
            new_versions[version as usize] = number as u32;
            for row in self.columns.rows_of(version, total) {
                new_rows[row as usize] = rows;
                rows += 1;
            }
        }
        let columns = self.columns.compacted(&new_versions, &new_rows);
        let mut current_rows = Bitmap::empty(rows);
        for version in columns.current.iter() {
            for row in columns.rows_of(version, rows) {
                current_rows.insert(row);
            }
        }
        let scratch = self.exact_vectors.scratch().map(|scratch| &**scratch);
        let files = scratch.filter(|_| self.disk);
        let lexical = if self.lexical.is_on_disk() {
            self.lexical.rebuilt(&new_rows, files)
        } else {
            let mut copy = self.lexical.clone();
            copy.compact(&new_rows);
            copy
        };
        let (segments, covered) = self.segments.renumbered(&new_rows, rows);
        Compacted {
            labels: self.labels.compacted(&new_versions),
            conversations: self.conversations.compacted(&new_versions),
            vectors: self.vectors.compacted(&new_rows, files),
            slots: crate::system::arrays::kept(&self.slots, &new_rows),
            tokens: crate::system::arrays::kept(&self.tokens, &new_rows),
            columns,
            lexical,
            current_rows,
            segments,
            covered,
        }
    }

    /// Takes the place of what it was made of, which is left in `other`.
    fn adopt(&mut self, other: &mut Compacted) {
        use std::mem::swap;
        swap(&mut self.columns, &mut other.columns);
        swap(&mut self.labels, &mut other.labels);
        swap(&mut self.conversations, &mut other.conversations);
        swap(&mut self.vectors, &mut other.vectors);
        swap(&mut self.slots, &mut other.slots);
        swap(&mut self.tokens, &mut other.tokens);
        swap(&mut self.lexical, &mut other.lexical);
        swap(&mut self.current_rows, &mut other.current_rows);
        self.segments.adopt(&mut other.segments, &mut other.covered);
        self.dead_rows = 0;
        self.neighbours.take();
    }
}
