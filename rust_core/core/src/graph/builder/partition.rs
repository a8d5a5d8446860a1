//! Partitions vectors into overlapping leaves of neighbours: each vector goes to the nearest few leaders, and the
//! vectors of a leader are partitioned again until they are few. Vectors at the border of one leaf lie within another
//! (Rubel and others, `PiPNN`: Ultra-scalable graph-based nearest neighbor indexing, 2026).

use parking_lot::Mutex;

use super::build_threads::{BuildThreads, Stopped, Turn};
use super::candidate_pools::CandidatePools;
use super::codes::{Codes, FOUR, Products};
use super::leaf::Leaf;
use super::random::Random;
use crate::topk::{Scored, Selection};

/// Most vectors of a leaf: of 384 dimensions they fit a second cache, and what they are to each other a third.
const LEAF: usize = 1024;
/// Vectors up to which there is nothing to divide among threads.
const WHOLE: usize = 8 * LEAF;
/// Parts that are smaller are put together.
const SMALL: usize = LEAF / 4;
/// Leaders that a vector goes to, first and then; later it goes to one. So it is in twelve leaves where there is
/// something to divide among threads, else in six. At a million rows four and two find .94 of the ten nearest where
/// these find .97, in two thirds of the time to build.
const FANOUT: [usize; 2] = [6, 2];
/// Leaders for as many vectors as a leaf holds, and for each leader that a vector goes to: half a leaf gathers at one.
const LEADERS: usize = 2;
/// Most leaders: each vector is compared with all of them.
const MOST_LEADERS: usize = 1000;
/// Vectors that a thread takes at a time while all are divided.
const SHARE: usize = 4096;

/// Most bytes of one vector while all are divided: the leaders that it chose, and its places in their parts.
pub(super) const fn row_bytes() -> usize {
    FANOUT[0] * (size_of::<(u32, u32)>() + size_of::<u32>())
}

/// Has all vectors meet those that are near to them, and tells their pools.
pub(super) fn partition(
    codes: &Codes,
    pools: &CandidatePools,
    threads: &BuildThreads<'_>,
) -> Result<(), Stopped> {
    let all: Vec<u32> = (0..codes.len() as u32).collect();
    let (parts, depth) = if all.len() > WHOLE {
        (divided(codes, &all, threads)?, 1)
    } else {
        (vec![all], 0)
    };
    let room = || Carver {
        codes,
        pools,
        division: Division::default(),
        leaf: Leaf::default(),
    };
    let parts = parts.into_iter().enumerate();
    threads.each(parts, room, |partitioner, (number, part), turn| {
        partitioner.partition(part, depth, &mut Random(number as u64), turn)
    })
}

/// All vectors, divided by all threads.
fn divided(
    codes: &Codes,
    all: &[u32],
    threads: &BuildThreads<'_>,
) -> Result<Vec<Vec<u32>>, Stopped> {
    let count = (all.len() / LEAF).min(MOST_LEADERS);
    let leaders = codes.of(&leaders(all, count, &mut Random(0)));
    let chosen = Mutex::new(Vec::new());
    let shares = all.chunks(SHARE);
    threads.each(shares, Division::default, |division, members, turn| {
        let mut own = Vec::with_capacity(members.len() * FANOUT[0]);
        let choose = |member, leader| own.push((member, leader));
        division.choose(codes, members, (&leaders, FANOUT[0]), turn, choose)?;
        chosen.lock().push(own);
        Ok(())
    })?;
    let mut chosen = chosen.into_inner();
    chosen.sort_unstable_by_key(|own| own.first().map(|&(member, _)| member));
    let mut parts = vec![Vec::new(); count];
    for (member, leader) in chosen.into_iter().flatten() {
        parts[leader as usize].push(member);
    }
    Ok(joined(parts))
}

/// Members at random, one of each of `count` stretches.
fn leaders(members: &[u32], count: usize, random: &mut Random) -> Vec<u32> {
    let start = |stretch| stretch * members.len() / count;
    let one = |stretch| start(stretch) + random.below(start(stretch + 1) - start(stretch));
    (0..count).map(one).map(|place| members[place]).collect()
}

/// The parts, of which small ones are put together.
fn joined(parts: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let (mut all, mut together) = (Vec::new(), Vec::new());
    for part in parts {
        if part.len() >= SMALL {
            all.push(part);
            continue;
        }
        together.extend(part);
        if together.len() >= LEAF - SMALL {
            all.push(unique(&mut together));
        }
    }
    all.push(unique(&mut together));
    all
}

fn unique(members: &mut Vec<u32>) -> Vec<u32> {
    members.sort_unstable();
    members.dedup();
    std::mem::take(members)
}

/// One thread's room.
struct Carver<'a> {
    codes: &'a Codes,
    pools: &'a CandidatePools,
    division: Division,
    leaf: Leaf,
}

impl Carver<'_> {
    /// Divides the members until they fit leaves.
    fn partition(
        &mut self,
        members: Vec<u32>,
        depth: usize,
        random: &mut Random,
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        let count = members.len();
        if count <= LEAF {
            return self.leaf.meet(self.codes, &members, self.pools, turn);
        }
        let fanout = FANOUT.get(depth).copied().unwrap_or(1);
        let wanted = (LEADERS * fanout).max(4) * count / LEAF;
        let leaders = leaders(&members, wanted.min(MOST_LEADERS), random);
        let leaders = self.codes.of(&leaders);
        let mut parts = vec![Vec::new(); leaders.len()];
        let choose = |member, leader: u32| parts[leader as usize].push(member);
        self.division
            .choose(self.codes, &members, (&leaders, fanout), turn, choose)?;
        drop(members);
        for mut part in joined(parts) {
            if part.len() <= count - count / 8 {
                self.partition(part, depth + 1, random, turn)?;
                continue;
            }
            // Near copies would be partitioned for ever.
            random.shuffle(&mut part);
            let mut leaves = part.chunks(LEAF);
            leaves.try_for_each(|leaf| self.leaf.meet(self.codes, leaf, self.pools, turn))?;
        }
        Ok(())
    }
}

/// Working memory of the partition.
#[derive(Default)]
struct Division {
    products: Products,
    cosines: [Vec<f32>; FOUR],
    selection: Selection,
    best: Vec<Scored>,
}

impl Division {
    /// Calls `chosen` with each member and, nearest first, some of the leaders.
    fn choose(
        &mut self,
        codes: &Codes,
        members: &[u32],
        (leaders, fanout): (&Codes, usize),
        turn: &mut Turn<'_>,
        mut chosen: impl FnMut(u32, u32),
    ) -> Result<(), Stopped> {
        for four in members.chunks(FOUR) {
            turn.breathe()?;
            codes.cosines(four, (leaders, 0), &mut self.products, &mut self.cosines);
            for (&member, cosines) in four.iter().zip(&self.cosines) {
                let (least, best) = (f32::NEG_INFINITY, &mut self.best);
                self.selection.top(cosines, least, fanout, by_place, best);
                for &(_, leader) in best.iter() {
                    chosen(member, leader);
                }
            }
        }
        Ok(())
    }
}

/// Prefers the lower number of two that are equally near.
pub(super) fn by_place(one: u32, other: u32) -> std::cmp::Ordering {
    one.cmp(&other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_put_together_each_member_once() {
        let parts = vec![
            vec![3, 1],
            (0..SMALL as u32).collect(),
            vec![2, 1],
            (0..SMALL as u32 - 1).collect(),
        ];
        let joined = joined(parts);
        let own: Vec<u32> = (0..SMALL as u32).collect();
        assert_eq!(joined, [own.clone(), own[..SMALL - 1].to_vec()]);
    }

    #[test]
    fn all_go_to_their_nearest_leaders() {
        let (mut random, count) = (Random(9), 10_000);
        let mut codes = Codes::new(64, count).expect("there is memory");
        for _ in 0..count {
            let vector: Vec<f32> = (0..64).map(|_| random.below(255) as f32 - 127.0).collect();
            codes.push(&vector);
        }
        let all: Vec<u32> = (0..count as u32).collect();
        let leaders = leaders(&all, count / LEAF, &mut Random(0));
        let mut wanted = vec![Vec::new(); leaders.len()];
        for &member in &all {
            let mut nearest: Vec<usize> = (0..leaders.len()).collect();
            let cosine = |at: usize| codes.cosine(member, leaders[at]);
            nearest.sort_by(|&one, &other| cosine(other).total_cmp(&cosine(one)));
            for &leader in &nearest[..FANOUT[0]] {
                wanted[leader].push(member);
            }
        }
        for share in [1.0, 2.0] {
            let threads = BuildThreads {
                share,
                wanted: &|| true,
            };
            assert!(divided(&codes, &all, &threads) == Ok(joined(wanted.clone())));
        }
    }

    #[test]
    fn each_leader_is_of_its_own_stretch() {
        let members: Vec<u32> = (0..1000).map(|number| number * 3).collect();
        let leaders = leaders(&members, 7, &mut Random(5));
        assert_eq!(leaders.len(), 7);
        for (stretch, leader) in (0..).zip(leaders) {
            assert!((stretch * 3000 / 7..(stretch + 1) * 3000 / 7).contains(&leader));
        }
    }
}
