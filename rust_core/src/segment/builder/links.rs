//! From pools to links: of what is near to a vector, what leads on in different directions, both ways.

use super::codes::Codes;
use super::crew::{Crew, Stopped};
use super::pools::Pools;
use crate::segment::layers::Links;
use crate::topk::{key, scored};

/// Vectors that a thread takes at a time.
const SHARE: usize = 1024;

/// Sets the links of all vectors: each chooses some, hears of those that chose it, and chooses again of both.
///
/// A quarter of the room is left to who would be cut off. With all of it a walk finds no more in the same time, and takes half
/// as long again for as many candidates where vectors in clusters have use for it all.
pub(super) fn link<const ROOM: usize>(
    codes: &Codes,
    pools: &Pools,
    links: &mut [Links<ROOM>],
    crew: &Crew<'_>,
) -> Result<(), Stopped> {
    choose(codes, pools, links, crew)?;
    let shares = links.chunks(SHARE).enumerate();
    let room = || ();
    crew.each(shares, room, |(), (share, links), turn| {
        for (number, links) in ((share * SHARE) as u32..).zip(links) {
            turn.breathe()?;
            for other in links.iter() {
                pools.add(other, &[key(codes.cosine(number, other), number)]);
            }
        }
        Ok(())
    })?;
    choose(codes, pools, links, crew)
}

/// Chooses links from the pools, and leaves nothing else in them.
fn choose<const ROOM: usize>(
    codes: &Codes,
    pools: &Pools,
    links: &mut [Links<ROOM>],
    crew: &Crew<'_>,
) -> Result<(), Stopped> {
    let shares = links.chunks_mut(SHARE).enumerate();
    crew.each(shares, Choice::default, |choice, (share, links), turn| {
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

/// What links are chosen in.
#[derive(Default)]
struct Choice {
    near: Vec<u64>,
    numbers: Vec<u32>,
    /// Those of all that are near: where they lie together, they are read once.
    codes: Codes,
    places: Vec<u32>,
    chosen: Vec<u64>,
}

impl Choice {
    /// Chooses up to `most`, each nearer to the vector than to all that were chosen before it (Toussaint, The relative
    /// neighbourhood graph of a finite planar set, 1980; for search Malkov and Yashunin 2016, algorithm 4).
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
            let leads = |&chosen: &u32| self.codes.cosine(chosen, place) < cosine;
            if self.places.iter().all(leads) {
                self.places.push(place);
                self.chosen.push(near);
            }
        }
    }
}
