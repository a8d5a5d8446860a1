//! The nearest vectors that a build has found for each vector, nearest first.
//!
//! The contents of a pool do not depend on the order of insertion, so that any thread may insert.

use parking_lot::{Mutex, MutexGuard};

use crate::api::{CoreError, Result};

/// Pools behind one lock.
const SHARD: usize = 64;
/// Most of the nearest of one vector.
pub(super) const POOL: usize = 64;
/// Fills the unused places of a pool: it compares below every key.
const NONE: u64 = 0;

/// Keys of [`crate::topk::key`]: the nearer is the larger, and of equally near ones the lower number.
pub(super) struct CandidatePools(Vec<Mutex<Vec<[u64; POOL]>>>);

impl CandidatePools {
    /// Empty ones of so many vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for them.
    pub(super) fn new(count: usize) -> Result<Self> {
        let mut shards = Vec::new();
        for first in (0..count).step_by(SHARD) {
            let (mut shard, wanted) = (Vec::new(), SHARD.min(count - first));
            let reserved = shard.try_reserve_exact(wanted);
            reserved.map_err(|error| CoreError::Graph(error.to_string()))?;
            shard.resize(wanted, [NONE; POOL]);
            shards.push(Mutex::new(shard));
        }
        Ok(Self(shards))
    }

    /// Empties the first `count`.
    pub(super) fn clear(&self, count: usize) {
        for shard in &self.0[..count.div_ceil(SHARD)] {
            shard.lock().fill([NONE; POOL]);
        }
    }

    /// Resident bytes of one.
    pub(super) const fn row_bytes() -> usize {
        size_of::<[u64; POOL]>()
    }

    /// Adds to a vector's pool; keys descend.
    pub(super) fn add(&self, number: u32, keys: &[u64]) {
        let mut shard = self.shard(number);
        let pool = &mut shard[place(number)];
        if keys
            .first()
            .is_none_or(|&nearest| nearest <= pool[POOL - 1])
        {
            return;
        }
        let mut added = [NONE; POOL];
        let count = keys.len().min(POOL);
        added[..count].copy_from_slice(&keys[..count]);
        let (before, mut old, mut new) = (*pool, 0, 0);
        for slot in pool {
            // Neither is ahead of the slot. One that is in both is taken from both.
            let (one, other) = (before[old], added[new]);
            *slot = one.max(other);
            old += usize::from(one >= other);
            new += usize::from(other >= one);
        }
    }

    /// Sets `keys` to a vector's pool.
    pub(super) fn read(&self, number: u32, keys: &mut Vec<u64>) {
        keys.clear();
        let shard = self.shard(number);
        keys.extend(shard[place(number)].iter().take_while(|&&key| key != NONE));
    }

    /// Makes `keys`, which descend, a vector's pool.
    pub(super) fn set(&self, number: u32, keys: &[u64]) {
        let mut shard = self.shard(number);
        let pool = &mut shard[place(number)];
        pool.fill(NONE);
        pool[..keys.len()].copy_from_slice(keys);
    }

    fn shard(&self, number: u32) -> MutexGuard<'_, Vec<[u64; POOL]>> {
        self.0[number as usize / SHARD].lock()
    }
}

/// The place of a vector's pool in its shard.
fn place(number: u32) -> usize {
    number as usize % SHARD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_the_nearest_each_once_in_whatever_order_they_come() {
        let parts: Vec<Vec<u64>> = (0..20u64)
            .map(|part| {
                (0..16)
                    .rev()
                    .map(|n| 1 + (n * 31 + part * 7) % 200)
                    .collect()
            })
            .map(|mut part: Vec<u64>| {
                part.sort_unstable_by(|a, b| b.cmp(a));
                part
            })
            .collect();
        let mut all: Vec<u64> = parts.concat();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        let pools = CandidatePools::new(70).expect("there is memory");
        let mut found = Vec::new();
        for (number, parts) in [(65, parts.clone()), (3, parts.into_iter().rev().collect())] {
            for part in &parts {
                pools.add(number, part);
            }
            pools.read(number, &mut found);
            assert_eq!(found, all[..POOL]);
        }
        pools.read(64, &mut found);
        assert!(found.is_empty());
        pools.set(65, &[9, 4]);
        pools.read(65, &mut found);
        assert_eq!(found, [9, 4]);
        pools.clear(70);
        pools.read(65, &mut found);
        assert!(found.is_empty());
    }
}
