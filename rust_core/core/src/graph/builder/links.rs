//! Selects links from the candidate pools: near vectors that lie in different directions, linked both ways.

use super::build_threads::{BuildThreads, Stopped};
use super::candidate_pools::CandidatePools;
use super::codes::Codes;
use crate::graph::layers::Links;
use crate::topk::{key, scored};

/// Vectors that a thread takes at a time.
const SHARE: usize = 1024;

/// Links of each link that are met, the nearest. With all of them, four times as many vectors are compared, and walks with 160
/// candidates find as many of the nearest.
const OF_EACH: usize = 8;
/// Most vectors that one meets among the links of its links: with those that it chose they fit a pool, so that none of
/// these is lost.
const MET: usize = 32;

/// The ways to select links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linking {
    /// Of those that the leaves told, for a graph in memory. A quarter of the room is left to who would be cut off. With all
    /// of it a search finds no more in the same time, and takes half as long again for as many candidates where vectors
    /// in clusters have use for it all.
    Quick,
    /// Of these, and then of the links of links too, for a graph in a file, where each candidate may wait for the disk: of
    /// a quarter of a million rows in clusters of 25, 64 candidates find .976 of the ten nearest, and .944 in a quick one.
    /// Only one place is left to who would be cut off.
    Thorough,
}

/// Sets the links of all vectors: each chooses some, hears of those that chose it, and chooses again of both.
pub(super) fn link<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &mut [Links<ROOM>],
    (linking, threads): (Linking, &BuildThreads<'_>),
) -> Result<(), Stopped> {
    let most = match linking {
        Linking::Quick => ROOM / 4 * 3,
        Linking::Thorough => ROOM - 1,
    };
    let choose_both_ways = |links: &mut [Links<ROOM>]| {
        choose(codes, pools, links, (most, threads))?;
        tell(codes, pools, links, threads)?;
        choose(codes, pools, links, (most, threads))
    };
    choose_both_ways(links)?;
    if linking == Linking::Thorough {
        meet_links_of_links(codes, pools, links, threads)?;
        choose_both_ways(links)?;
    }
    Ok(())
}

/// Adds each vector to the pools of those that it is linked to.
fn tell<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &[Links<ROOM>],
    threads: &BuildThreads<'_>,
) -> Result<(), Stopped> {
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
    })
}

/// Adds to the pool of each vector the nearest of those that its links are linked to (Dong and others, Efficient k-nearest
/// neighbor graph construction for generic similarity measures, 2011).
fn meet_links_of_links<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &[Links<ROOM>],
    threads: &BuildThreads<'_>,
) -> Result<(), Stopped> {
    let shares = links.chunks(SHARE).enumerate();
    let room = || (Vec::new(), Vec::new());
    threads.each(shares, room, |(numbers, keys), (share, some), turn| {
        for (number, own) in ((share * SHARE) as u32..).zip(some) {
            turn.breathe()?;
            let next = own
                .iter()
                .flat_map(|other| links[other as usize].iter().take(OF_EACH));
            numbers.clear();
            numbers.extend(next.filter(|&other| other != number));
            numbers.sort_unstable();
            numbers.dedup();
            keys.clear();
            let met = numbers.iter();
            keys.extend(met.map(|&other| key(codes.cosine(number, other), other)));
            keys.sort_unstable_by(|one, other| other.cmp(one));
            pools.add(number, &keys[..keys.len().min(MET)]);
        }
        Ok(())
    })
}

/// Chooses up to `most` links of each vector from its pool, and leaves nothing else there.
fn choose<const ROOM: usize>(
    codes: &Codes,
    pools: &CandidatePools,
    links: &mut [Links<ROOM>],
    (most, threads): (usize, &BuildThreads<'_>),
) -> Result<(), Stopped> {
    let shares = links.chunks_mut(SHARE).enumerate();
    threads.each(shares, Choice::default, |choice, (share, links), turn| {
        for (number, links) in ((share * SHARE) as u32..).zip(links) {
            turn.breathe()?;
            pools.read(number, &mut choice.near);
            choice.choose(codes, most);
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
