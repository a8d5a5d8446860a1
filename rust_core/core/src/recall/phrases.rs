//! Candidates of phrases: the versions that pass a filter and hold all words of each phrase, in any order.
//!
//! An index has neither texts nor positions, so the caller compares the texts of the candidates with the phrases. Terms
//! are read through [`LexicalIndex`], the same in both tiers.

use super::buffers::with_buffers;
use super::filter;
use crate::api::{CoreError, MemoryId, PhraseCandidates, RecallRequest, Result};
use crate::index::Index;
use crate::lexical::{LexicalIndex, QueryTerm};
use astrocyte_text::analysis::{AnalyzedQuery, Language};

/// See [`Bank::phrase_candidates`](crate::Bank::phrase_candidates).
pub(crate) fn candidates(
    index: &Index,
    request: &RecallRequest,
    phrases: &[String],
    most: usize,
    language: Language,
) -> Result<PhraseCandidates> {
    let Some(terms) = terms_of(index, phrases, language)? else {
        return Ok(PhraseCandidates::default());
    };
    let (versions, scores) = with_buffers(|buffers| {
        let allowed = filter::compile(index, request, &mut buffers.filter);
        let versions: Vec<u32> = allowed.versions.iter().collect();
        holding(index, &terms, versions)
    });
    let total = versions.len();
    let mut order: Vec<usize> = (0..total).collect();
    let id = |at: usize| -> &MemoryId { &index.columns.memory_id[versions[at] as usize] };
    order.sort_unstable_by(|&one, &other| {
        let by_score = scores[other].total_cmp(&scores[one]);
        by_score.then_with(|| id(one).cmp(id(other)))
    });
    order.truncate(most);
    let found = order.into_iter().map(|at| {
        let version = versions[at] as usize;
        (index.columns.key[version], index.columns.memory_id[version])
    });
    Ok(PhraseCandidates {
        found: found.collect(),
        total,
    })
}

/// The terms of all phrases, the rarest first; None where no row holds one of them.
fn terms_of(
    index: &Index,
    phrases: &[String],
    language: Language,
) -> Result<Option<Vec<QueryTerm>>> {
    let mut terms = Vec::new();
    for phrase in phrases {
        let own = language.phrase_terms(phrase);
        if own.is_empty() {
            return Err(CoreError::Invalid {
                field: "query",
                expected: "phrases with a word that is not a stop word".to_owned(),
                got: format!("{phrase:?}"),
            });
        }
        terms.extend(own.into_iter().map(|term| (term, 1.0)));
    }
    terms.sort_unstable_by_key(|&(term, _)| term);
    terms.dedup_by_key(|&mut (term, _)| term);
    let mut known = Vec::with_capacity(terms.len());
    // One by one: an index leaves out the commonest of more terms than a query has.
    for term in terms {
        let term = index.lexical.query_terms(&AnalyzedQuery {
            terms: vec![term],
            unions: Vec::new(),
        });
        let Some(term) = term.into_iter().next() else {
            return Ok(None);
        };
        known.push(term);
    }
    known.sort_by_key(|term| (term.rows, term.number));
    Ok(Some(known))
}

/// Those of ascending versions whose wholes hold all the terms, and the sums of what these add to their scores.
fn holding(index: &Index, terms: &[QueryTerm], mut versions: Vec<u32>) -> (Vec<u32>, Vec<f32>) {
    let mut scores = vec![0.0; versions.len()];
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for term in terms {
        rows.clear();
        rows.extend(versions.iter().map(|&version| index.rows_of(version).start));
        parts.clear();
        parts.resize(rows.len(), 0.0);
        index.lexical.add_term_to(term, &rows, &mut parts);
        let mut kept = 0;
        for at in 0..versions.len() {
            if parts[at] > 0.0 {
                (versions[kept], scores[kept]) = (versions[at], scores[at] + parts[at]);
                kept += 1;
            }
        }
        versions.truncate(kept);
        scores.truncate(kept);
    }
    (versions, scores)
}
