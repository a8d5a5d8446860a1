//! Splits one token budget over the hits of several banks.

use std::collections::BTreeSet;

/// The hits that fit the token budget.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Share {
    /// Places of the hits that are taken, ascending.
    pub places: Vec<usize>,
    /// True if a hit was left out for the budget, or the first one must be cut.
    pub truncated: bool,
    /// True if the first hit is larger than the whole budget: it is taken alone, and its text must be cut.
    pub cut: bool,
    /// Each bank's part of the budget.
    pub parts: Vec<u64>,
}

/// Shares a token budget between banks in proportion to their weights; what one leaves is given to the others.
///
/// The first hit is always taken, if need be at the cost of the other banks' parts. Then, in order, a hit is taken if
/// its bank's part still has room for it. What no bank used is in the end one part for those that were passed over.
///
/// `sizes` has, per hit, best first, its bank's place in `weights` and its tokens; banks without a hit are left out of
/// the split. `most` is the number of hits wanted, at least 1.
///
/// # Panics
/// When a hit's bank has no weight in `weights`.
pub fn split_budget(sizes: &[(usize, u64)], weights: &[f64], budget: u64, most: usize) -> Share {
    let mut present: BTreeSet<usize> = sizes.iter().map(|&(bank, _)| bank).collect();
    let parts = parts_of(&present, weights, budget);
    let Some(&(first, size)) = sizes.first() else {
        return Share {
            parts,
            ..Share::default()
        };
    };
    if size > budget {
        return Share {
            places: vec![0],
            truncated: true,
            cut: true,
            parts,
        };
    }
    let mut left = parts.clone();
    if size > left[first] {
        present.remove(&first);
        left = parts_of(&present, weights, budget - size);
    } else {
        left[first] -= size;
    }
    let (mut taken, mut passed) = (vec![0], Vec::new());
    for (place, &(bank, tokens)) in sizes.iter().enumerate().skip(1) {
        if taken.len() == most {
            break;
        }
        if tokens <= left[bank] {
            left[bank] -= tokens;
            taken.push(place);
        } else {
            passed.push(place);
        }
    }
    let mut spare = budget - taken.iter().map(|&place| sizes[place].1).sum::<u64>();
    let mut truncated = false;
    for place in passed {
        let tokens = sizes[place].1;
        if tokens <= spare && taken.len() < most {
            spare -= tokens;
            taken.push(place);
        } else {
            truncated = true;
        }
    }
    taken.sort_unstable();
    Share {
        places: taken,
        truncated,
        cut: false,
        parts,
    }
}

/// Each bank's part of the budget in whole tokens, 0 for those that are not present.
fn parts_of(present: &BTreeSet<usize>, weights: &[f64], budget: u64) -> Vec<u64> {
    let total = present.iter().fold(0.0, |sum, &bank| sum + weights[bank]);
    let mut parts = vec![0; weights.len()];
    for &bank in present {
        parts[bank] = (budget as f64 * weights[bank] / total) as u64;
    }
    parts
}
