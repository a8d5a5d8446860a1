//! Graph search: greedily down to the lowest layer, then best-first from the nearest vectors found, until no vector
//! left is nearer than all that are kept (Malkov and Yashunin 2016, algorithms 2 and 5).
//!
//! Vectors are read from the dense index, half a byte a component: memory reads dominate the cost, and a whole byte
//! would double them. The vectors found are rescored afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layers::Layers;
use crate::dense::{DenseIndex, NO_SCORE, QuantisedQuery};

/// Vectors that are expanded at once. Of one alone, memory brings a dozen vectors before it is known where to go on:
/// at a million rows four take a fourteenth off a dense question, two half of that, and find as much.
const LEADING: usize = 4;

/// Room to search in, kept from one search to the next.
#[derive(Debug, Default)]
pub(crate) struct SearchBuffers {
    /// A bit for each number that was met, in words of which those that have one are `touched`.
    met: Vec<u64>,
    touched: Vec<u32>,
    /// Still to be looked around from, the nearest first.
    ahead: BinaryHeap<Found>,
    /// The nearest that may be kept, the farthest first.
    kept: BinaryHeap<Reverse<Found>>,
    /// The vectors that are expanded at once, each with the number of unvisited ones by then.
    leading: Vec<(Found, usize)>,
    /// The vectors that are scored: numbers, rows and scores.
    fresh: Vec<u32>,
    rows: Vec<u32>,
    scores: Vec<f32>,
}

/// A vector and its score, in one number that compares like the score, and ties by the lower number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found(u64);

impl Found {
    fn new(score: f32, number: u32) -> Self {
        let bits = score.to_bits();
        // Of negative numbers the larger bits are the lower score.
        let ordered = if bits >> 31 == 0 {
            bits | 1 << 31
        } else {
            !bits
        };
        Self(u64::from(ordered) << 32 | u64::from(!number))
    }

    fn number(self) -> u32 {
        !(self.0 as u32)
    }

    /// Another with the same score.
    fn instead(self, number: u32) -> Self {
        Self(self.0 >> 32 << 32 | u64::from(!number))
    }
}

impl SearchBuffers {
    fn clear(&mut self, count: usize) {
        for word in self.touched.drain(..) {
            self.met[word as usize] = 0;
        }
        self.met.resize(self.met.len().max(count.div_ceil(64)), 0);
        self.ahead.clear();
        self.kept.clear();
    }

    /// Notes a number; whether it was not met before.
    fn meet(&mut self, number: u32) -> bool {
        let (at, bit) = (number >> 6, 1 << (number & 63));
        let word = &mut self.met[at as usize];
        let fresh = *word & bit == 0;
        if *word == 0 {
            self.touched.push(at);
        }
        *word |= bit;
        fresh
    }

    /// Takes out the nearest to look around from; false where none is left that is nearer than `count` that are kept.
    fn lead(&mut self, count: usize) -> bool {
        self.leading.clear();
        while self.leading.len() < LEADING
            && let Some(next) = self.ahead.peek().copied()
            && !self.is_behind(next, count)
        {
            self.ahead.pop();
            self.leading.push((next, 0));
        }
        !self.leading.is_empty()
    }

    /// Returns true if `count` are kept that are all nearer.
    fn is_behind(&self, one: Found, count: usize) -> bool {
        self.kept.len() >= count && self.kept.peek().is_some_and(|last| one < last.0)
    }
}

/// The search of one query through the graph of some of a bank's rows.
pub(super) struct GraphSearch<'a, V> {
    pub(super) layers: &'a Layers,
    /// Row by number; of one that has no score the vector is gone.
    pub(super) rows: &'a [u32],
    pub(super) vectors: &'a V,
    pub(super) query: &'a QuantisedQuery,
}

impl<V: DenseIndex> GraphSearch<'_, V> {
    /// Appends up to `count` rows near to the query to `found`, of those that may be kept.
    pub(super) fn nearest(
        &self,
        count: usize,
        may_keep: impl Fn(u32) -> bool,
        room: &mut SearchBuffers,
        found: &mut Vec<u32>,
    ) {
        room.clear(self.layers.lowest.len());
        if count == 0 || self.layers.lowest.is_empty() {
            return;
        }
        let keep = |one: Found, score: f32, room: &mut SearchBuffers| {
            if score != NO_SCORE && may_keep(self.rows[one.number() as usize]) {
                room.kept.push(Reverse(one));
                if room.kept.len() > count {
                    room.kept.pop();
                }
            }
        };
        let (entry, score) = self.descend(room);
        let first = Found::new(score, entry);
        room.meet(entry);
        room.ahead.push(first);
        keep(first, score, room);
        loop {
            if !room.lead(count) {
                // Who knows one crowd alone leads nowhere else; from the entry all can be reached.
                let entry = self.layers.entry;
                if room.kept.len() >= count || !room.meet(entry) {
                    break;
                }
                let score = self.score_of(entry, room);
                let one = Found::new(score, entry);
                room.ahead.push(one);
                keep(one, score, room);
                continue;
            }
            self.look_around(room);
            let mut at = 0;
            for leader in 0..room.leading.len() {
                let (next, end) = room.leading[leader];
                for at in at..end {
                    let (number, score) = (room.fresh[at], room.scores[at]);
                    // One that is gone leads on to its neighbours like the one that led to it.
                    let one = if score == NO_SCORE {
                        next.instead(number)
                    } else {
                        Found::new(score, number)
                    };
                    if !room.is_behind(one, count) {
                        room.ahead.push(one);
                        keep(one, score, room);
                    }
                }
                at = end;
            }
        }
        let kept = room.kept.iter();
        found.extend(kept.map(|one| self.rows[one.0.number() as usize]));
    }

    /// The vector of the lowest layer at which to begin, and its score.
    fn descend(&self, room: &mut SearchBuffers) -> (u32, f32) {
        let mut at = self.layers.entry;
        let mut score = self.score_of(at, room);
        for layer in self.layers.upper.iter().rev() {
            loop {
                room.fresh.clear();
                room.fresh.extend(layer.of(at));
                self.score(room);
                let scored = room.fresh.iter().zip(&room.scores);
                match scored.max_by(|one, other| one.1.total_cmp(other.1)) {
                    Some((&nearer, &more)) if more > score => (at, score) = (nearer, more),
                    _ => break,
                }
            }
        }
        (at, score)
    }

    /// Meets the neighbours of those that lead on the lowest layer, and scores those that are fresh.
    fn look_around(&self, room: &mut SearchBuffers) {
        room.fresh.clear();
        for leader in 0..room.leading.len() {
            let links = &self.layers.lowest[room.leading[leader].0.number() as usize];
            for number in links.iter() {
                if room.meet(number) {
                    room.fresh.push(number);
                }
            }
            room.leading[leader].1 = room.fresh.len();
        }
        self.score(room);
    }

    /// The score of one.
    fn score_of(&self, number: u32, room: &mut SearchBuffers) -> f32 {
        room.fresh.clear();
        room.fresh.push(number);
        self.score(room);
        room.scores[0]
    }

    /// Scores the fresh.
    fn score(&self, room: &mut SearchBuffers) {
        room.rows.clear();
        let rows = room.fresh.iter().map(|&number| self.rows[number as usize]);
        room.rows.extend(rows);
        let (query, rows) = (self.query, &room.rows);
        self.vectors.coarse_cosines(query, rows, &mut room.scores);
    }
}
