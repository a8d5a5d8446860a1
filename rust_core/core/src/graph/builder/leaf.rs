//! Compares all vectors of a leaf with each other, many at a time from the caches.

use super::build_threads::{Stopped, Turn};
use super::candidate_pools::CandidatePools;
use super::codes::{Codes, FOUR, Products};
use super::links::leads_elsewhere;
use super::partition::by_place;
use crate::topk::{Scored, Selection, key};

/// Nearest of the leaf that may be told to a vector.
const NEAR: usize = 128;
/// Where fewer are told, they are of one crowd, and the rest of the leaf is looked at: what knows its crowd alone leads
/// nowhere.
const FEW: usize = 2;
/// Those that are told, which lead in different directions. The nearest alone, twice as many, fill a pool with
/// a crowd that knows itself: with 192 candidates .917 of the ten nearest of a million rows are found, with these .985.
const TOLD: usize = 12;

/// Working memory of a leaf.
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
    /// Adds to the pool of each member others of the leaf.
    pub(super) fn meet(
        &mut self,
        codes: &Codes,
        members: &[u32],
        pools: &CandidatePools,
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        codes.gather(members, &mut self.codes);
        self.compare(codes, members, turn)?;
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

    /// Sets the cosines, of which each is that of two.
    fn compare(
        &mut self,
        codes: &Codes,
        members: &[u32],
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        let count = members.len();
        // Every one is written.
        self.cosines.resize(count * count, 0.0);
        for (group, four) in members.chunks(FOUR).enumerate() {
            turn.breathe()?;
            let first = group * FOUR;
            let others = (&self.codes, first);
            codes.cosines(four, others, &mut self.products, &mut self.four);
            for (place, cosines) in (first..count).zip(&self.four) {
                self.cosines[place * count + first..][..cosines.len()].copy_from_slice(cosines);
            }
            for other in first + four.len()..count {
                let own = &mut self.cosines[other * count + first..][..four.len()];
                for (own, cosines) in own.iter_mut().zip(&self.four) {
                    *own = cosines[other - first];
                }
            }
        }
        Ok(())
    }

    /// Chooses what is told to the member at `place`.
    fn choose(&mut self, place: usize, count: usize) {
        // Of equally near ones the one that follows: were it the first of the leaf, all copies of one vector would know
        // the same one, and be known to none.
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
            let elsewhere = |&(chosen, told): &(f32, usize)| {
                leads_elsewhere(cosine, self.cosines[told * count + other], chosen)
            };
            if self.told.iter().all(elsewhere) {
                self.told.push((cosine, other));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::builder::BuildThreads;
    use crate::graph::builder::random::Random;
    use crate::topk::scored;

    const DIMENSIONS: usize = 32;

    /// The contents of the pool of the first of these.
    fn told(vectors: &[Vec<f32>]) -> Vec<u32> {
        let mut codes = Codes::new(DIMENSIONS, vectors.len()).expect("there is memory");
        for vector in vectors {
            codes.push(vector);
        }
        let pools = CandidatePools::new(vectors.len()).expect("there is memory");
        let members: Vec<u32> = (0..vectors.len() as u32).collect();
        let threads = BuildThreads {
            share: 1.0,
            wanted: &|| true,
        };
        let met = Leaf::default().meet(&codes, &members, &pools, &mut threads.turn());
        met.expect("it is wanted");
        let mut keys = Vec::new();
        pools.read(0, &mut keys);
        keys.into_iter().map(|key| scored(key).1).collect()
    }

    fn some(random: &mut Random) -> Vec<f32> {
        let component = |_| random.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0;
        let raw: Vec<f32> = (0..DIMENSIONS).map(component).collect();
        crate::dense::normalise(0, &raw, DIMENSIONS).expect("it has a direction")
    }

    #[test]
    fn one_of_a_crowd_is_told_of_it_once_and_of_others() {
        let mut random = Random(3);
        let copy = some(&mut random);
        for copies in [20, NEAR + 70] {
            let mut vectors = vec![copy.clone(); copies];
            vectors.extend((0..100).map(|_| some(&mut random)));
            let told = told(&vectors);
            assert_eq!(told[0], 1, "the next one");
            assert!(told.len() > FEW, "{told:?}");
            assert!(told[1..].iter().all(|&other| other as usize >= copies));
        }
    }
}
