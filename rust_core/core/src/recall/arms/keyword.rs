//! The keyword arm of a scan: BM25 scores of all memories that pass.

use super::semantic::best_rows;
use crate::lexical::LexicalIndex;
use crate::recall::Recall;
use crate::recall::buffers::ScoreArrays;
use astrocyte_text::analysis::AnalyzedQuery;

/// Fills `scores` with BM25 scores, 0 where nothing matches or the filter excludes a memory.
pub(crate) fn score(recall: Recall<'_>, words: &AnalyzedQuery, scores: &mut ScoreArrays) {
    let Recall { index, allowed, .. } = recall;
    // The scores of the thread's last bank are wiped in both arrays: the one that is empty stands for the other.
    scores.rows.clear();
    scores.versions.clear();
    let rows = if index.is_flat() {
        &mut scores.versions
    } else {
        &mut scores.rows
    };
    rows.resize(index.rows() as usize, 0.0);
    index.lexical.score(words, allowed.rows, rows);
    if !index.is_flat() {
        best_rows(
            index,
            allowed.versions,
            0.0,
            &scores.rows,
            &mut scores.versions,
        );
    }
}
