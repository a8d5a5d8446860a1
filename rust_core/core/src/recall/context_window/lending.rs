//! The order of neighbours: a memory never outranks a neighbour that it borrowed from.
//!
//! Neighbours share their scores both ways. Of two neighbours, the lender is the one whose own score is better: that of
//! the arms without shares of others. After fusion, a lender and a borrower that stand the other way round meet half-way:
//! each takes the mean of the score with which lenders alone would move up and that with which borrowers alone would
//! move down. On conversations both extremes lose more recall than the mean.

use hashbrown::HashMap;

use crate::dense::NO_SCORE;
use crate::index::Index;
use crate::index::neighbours::lookup::{NOBODY, Neighbours, is_short};
use crate::recall::Recall;
use crate::recall::fusion::Fused;

use super::SHARES;

/// The neighbours with which a version shares scores, or [`NOBODY`], as
/// [`NeighbourTable::sharing`](crate::index::neighbours::NeighbourTable::sharing) has them.
pub(crate) fn sharing(recall: Recall<'_>, version: u32) -> [u32; 4] {
    let index: &Index = recall.index;
    if !is_short(index, version) {
        return [NOBODY; 4];
    }
    let Neighbours { before, after } = Neighbours::of(index, recall.allowed.versions, version);
    [before[0], before[1], after[0], after[1]].map(|one| {
        let gives = one != NOBODY && is_short(index, one);
        if gives { one } else { NOBODY }
    })
}

/// The neighbours whose scores are a part of a version's, with the amounts. `score` gives the own score of a version in
/// an arm; None in an arm that shares none.
pub(crate) fn amounts(
    recall: Recall<'_>,
    version: u32,
    score: impl Fn(u32) -> Option<f32>,
) -> Vec<(u32, f64)> {
    if !is_short(recall.index, version) {
        return Vec::new();
    }
    let found = Neighbours::of(recall.index, recall.allowed.versions, version);
    let given = |one: u32| {
        let gives = one != NOBODY && is_short(recall.index, one);
        gives
            .then(|| score(one))
            .flatten()
            .filter(|&own| own != NO_SCORE)
    };
    let mut amounts = Vec::new();
    for (step, share) in SHARES.into_iter().enumerate() {
        let pair = [found.before[step], found.after[step]];
        let both = pair.iter().all(|&one| given(one).is_some());
        // The only one on its side counts twice.
        let factor = if both { share } else { 2.0 * share };
        for one in pair {
            let amount = given(one).map(|own| f64::from(factor * own));
            amounts.extend(
                amount
                    .filter(|&amount| amount != 0.0)
                    .map(|amount| (one, amount)),
            );
        }
    }
    amounts
}

/// Puts lenders above their borrowers. Lenders that are not among `fused` join it.
///
/// `own` gives the fused score of a version by its own scores alone, `sharing` the neighbours with which it shares, and
/// `gives` tells if it has a score to share.
pub(crate) fn order_lenders(
    fused: &mut Vec<Fused>,
    own: impl Fn(u32) -> f64,
    sharing: impl Fn(u32) -> [u32; 4],
    gives: impl Fn(u32) -> bool,
) {
    let mut places: HashMap<u32, usize> = HashMap::with_capacity(2 * fused.len());
    places.extend(fused.iter().enumerate().map(|(at, one)| (one.version, at)));
    let mut owns: Vec<f64> = fused.iter().map(|one| own(one.version)).collect();
    // Borrower and lender.
    let mut loans: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    // Lenders that join have lenders themselves.
    while at < fused.len() {
        for lender in sharing(fused[at].version) {
            if lender == NOBODY {
                continue;
            }
            let known = places.get(&lender).copied();
            let better = known.map_or_else(|| own(lender), |place| owns[place]);
            if better <= owns[at] || !gives(lender) {
                continue;
            }
            let place = known.unwrap_or_else(|| {
                fused.push(Fused {
                    version: lender,
                    score: f64::NEG_INFINITY,
                });
                owns.push(better);
                places.insert(lender, fused.len() - 1);
                fused.len() - 1
            });
            loans.push((at, place));
        }
        at += 1;
    }
    // Who borrows from a lender has a lower own score, so that one pass in this order settles all chains of loans.
    loans.sort_unstable_by(|a, b| owns[a.0].total_cmp(&owns[b.0]).then(a.cmp(b)));
    let mut raised: Vec<f64> = fused.iter().map(|one| one.score).collect();
    raise(&loans, &mut raised);
    // One that joined has no score of its own yet.
    let scores = fused.iter().zip(&raised);
    let mut lowered: Vec<f64> = scores
        .map(|(one, &raised)| {
            if one.score.is_finite() {
                one.score
            } else {
                raised
            }
        })
        .collect();
    for &(borrower, lender) in loans.iter().rev() {
        lowered[borrower] = lowered[borrower].min(lowered[lender].next_down());
    }
    let means = raised.iter().zip(&lowered);
    let mut means: Vec<f64> = means.map(|(up, down)| f64::midpoint(*up, *down)).collect();
    // Rounding may have made two of them equal.
    raise(&loans, &mut means);
    for (one, score) in fused.iter_mut().zip(means) {
        one.score = score;
    }
}

/// Raises each lender to just above its borrowers.
fn raise(loans: &[(usize, usize)], scores: &mut [f64]) {
    for &(borrower, lender) in loans {
        scores[lender] = scores[lender].max(scores[borrower].next_up());
    }
}
