//! A leaf: all of its vectors are compared with each other, which a processor does from its caches, many at a time.

use super::carve::by_place;
use super::codes::{Codes, FOUR, Products};
use super::crew::{Stopped, Turn};
use super::pools::Pools;
use crate::topk::{Scored, Selection, key};

/// Nearest of the leaf that may be told to a vector.
const NEAR: usize = 128;
/// Where fewer are told, they are of one crowd, and the rest of the leaf is looked at: what knows its crowd alone leads nowhere.
const FEW: usize = 2;
/// Those that are told, each nearer to the vector than to all that are told before it. The nearest alone, twice as many, fill a pool with
/// a crowd that knows itself: at a million rows .92 of the ten nearest are found in the time in which these find .98.
const TOLD: usize = 12;

/// What a leaf is compared in.
#[derive(Default)]
pub(super) struct Leaf {
    codes: Codes,
    products: Products,
    four: [Vec<f32>; FOUR],
    /// The cosines of each member with all, one after the other.
    cosines: Vec<f32>,
    others: Vec<f32>,
    selection: Selection,
    near: Vec<Scored>,
    /// Their cosines and places.
    told: Vec<(f32, usize)>,
    keys: Vec<u64>,
}

impl Leaf {
    /// Tells each member's pool of others.
    pub(super) fn meet(
        &mut self,
        codes: &Codes,
        members: &[u32],
        pools: &Pools,
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        codes.gather(members, &mut self.codes);
        self.cosines.clear();
        for four in members.chunks(FOUR) {
            turn.breathe()?;
            codes.cosines(four, &self.codes, &mut self.products, &mut self.four);
            for cosines in &self.four[..four.len()] {
                self.cosines.extend_from_slice(cosines);
            }
        }
        for (place, &member) in members.iter().enumerate() {
            turn.breathe()?;
            self.choose(place, members.len());
            self.keys.clear();
            let told = self.told.iter();
            let keys = told.map(|&(cosine, place)| key(cosine, members[place]));
            self.keys.extend(keys);
            self.keys.sort_unstable_by(|one, other| other.cmp(one));
            pools.add(member, &self.keys);
        }
        Ok(())
    }

    /// Chooses what is told to the member at `place`.
    fn choose(&mut self, place: usize, count: usize) {
        // Of equally near ones the one that follows: were it the first of the leaf, all copies of one vector would know the
        // same one, and be known to none.
        let (before, own) = self.cosines[place * count..(place + 1) * count].split_at(place);
        self.others.clear();
        self.others.extend_from_slice(&own[1..]);
        self.others.extend_from_slice(before);
        self.choose_of(NEAR, place, count);
        if self.told.len() < FEW && self.others.len() > NEAR {
            self.choose_of(count, place, count);
        }
    }

    fn choose_of(&mut self, near: usize, place: usize, count: usize) {
        let least = f32::NEG_INFINITY;
        self.selection
            .top(&self.others, least, near, by_place, &mut self.near);
        self.told.clear();
        for &(cosine, other) in &self.near {
            if self.told.len() == TOLD {
                return;
            }
            let other = (place + 1 + other as usize) % count;
            let leads = |&(_, told): &(f32, usize)| self.cosines[told * count + other] < cosine;
            if self.told.iter().all(leads) {
                self.told.push((cosine, other));
            }
        }
    }
}
