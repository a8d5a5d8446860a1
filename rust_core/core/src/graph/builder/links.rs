//! Selects links from the candidate pools: near vectors that lie in different directions, linked both ways.

use super::build_threads::{BuildThreads, Stopped};
use super::candidate_pools::CandidatePools;
use super::codes::Codes;
use crate::graph::layers::Links;
use crate::topk::{key, scored};

/// Vectors that a thread takes at a time.
const SHARE: usize = 1024;

/// Sets the links of all vectors: each chooses some, hears of those that chose it, and chooses again of both.
///
/// A quarter of the room is left to who would be cut off. With all of it a search finds no more in the same time, and
/// takes half as long again for as many candidates where vectors in clusters have use for it all.
pub(super) fn link<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &mut [Links<ROOM>],
    threads: &BuildThreads<'_>,
) -> Result<(), Stopped> {
    choose(codes, pools, links, threads)?;
    let shares = links.chunks(SHARE).enumerate();
    let room = || ();
    threads.each(shares, room, |(), (share, links), turn| {
        for (number, links) in ((share * SHARE) as u32..).zip(links) {
            turn.breathe()?;
            for other in links.iter() {
                pools.add(other, &[key(codes.cosine(number, other), number)]);
            }
        }
        Ok(())
    })?;
    choose(codes, pools, links, threads)
}

/// Chooses links from the pools, and leaves nothing else in them.
fn choose<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &mut [Links<ROOM>],
    threads: &BuildThreads<'_>,
) -> Result<(), Stopped> {
    let shares = links.chunks_mut(SHARE).enumerate();
    threads.each(shares, Choice::default, |choice, (share, links), turn| {
        for (number, links) in ((share * SHARE) as u32..).zip(links) {
            turn.breathe()?;
            pools.read(number, &mut choice.near);
            choice.choose(codes, ROOM / 4 * 3);
            pools.set(number, &choice.chosen);
            *links = Links::new(choice.chosen.iter().map(|&key| scored(key).1));
        }
        Ok(())
    })
}

/// Returns true if a candidate of this `cosine` with a vector leads elsewhere than a link that was `chosen` for its own
/// cosine: the candidate is nearer to the vector than the cosine `between` the two (Toussaint, The relative neighbourhood
/// graph of a finite planar set, 1980; for search Malkov and Yashunin 2016, algorithm 4). A candidate as near to a copy of
/// the vector leads elsewhere, another copy does not.
pub(super) fn leads_elsewhere(cosine: f32, between: f32, chosen: f32) -> bool {
    between < cosine || (between <= cosine && cosine < chosen)
}

/// Working memory of the selection of links.
#[derive(Default)]
struct Choice {
    near: Vec<u64>,
    numbers: Vec<u32>,
    /// Codes of all near vectors, gathered to be read once.
    codes: Codes,
    places: Vec<u32>,
    chosen: Vec<u64>,
}

impl Choice {
    /// Chooses up to `most` that lead in different directions, the nearest first.
    fn choose(&mut self, codes: &Codes, most: usize) {
        self.numbers.clear();
        self.numbers
            .extend(self.near.iter().map(|&near| scored(near).1));
        codes.gather(&self.numbers, &mut self.codes);
        self.places.clear();
        self.chosen.clear();
        for (place, &near) in (0..).zip(&self.near) {
            if self.chosen.len() == most {
                return;
            }
            let cosine = scored(near).0;
            let mut chosen = self.chosen.iter().zip(&self.places);
            let elsewhere = |(&chosen, &at): (&u64, &u32)| {
                leads_elsewhere(cosine, self.codes.cosine(at, place), scored(chosen).0)
            };
            if chosen.all(elsewhere) {
                self.places.push(place);
                self.chosen.push(near);
            }
        }
    }
}
