//! Commits and requests as a store and its callers make them, at random.

use std::collections::BTreeMap;

use super::{Random, id};
use astrocyte_core::{Chunk, MemoryId, RecallRequest, Row, TagMatch};

pub const DIMENSIONS: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Commit {
    pub upserts: Vec<Row>,
    pub ended: Vec<(u64, i64)>,
    pub removed: Vec<u64>,
}

/// Some of `choices`, each with even odds.
pub fn some(random: &mut Random, choices: &[&str]) -> Vec<String> {
    choices
        .iter()
        .filter(|_| random.below(2) == 0)
        .map(ToString::to_string)
        .collect()
}

pub fn time(random: &mut Random) -> i64 {
    random.below(20) as i64
}

pub fn random_row(random: &mut Random, key: u64, memory: MemoryId, now: i64) -> Row {
    let mut row = Row::new(key, memory, id(random.below(50)), random.text(6), now);
    row.vector = (random.below(8) > 0).then(|| random.vector(DIMENSIONS));
    row.tokens = random.below(300) as u32;
    row.occurred_at = (random.below(3) > 0).then(|| time(random));
    row.retained_at = (random.below(3) == 0).then(|| now.min(time(random)));
    row.valid_from = (random.below(4) == 0).then(|| time(random));
    row.valid_until = (random.below(4) == 0).then(|| time(random));
    row.fact_type = String::from(["world", "experience", ""][random.below(3) as usize]);
    row.layer = String::from(["semantic", "episodic"][random.below(2) as usize]);
    row.tags = some(random, &["red", "green", "blue"]);
    row.metadata = some(random, &["a", "b"])
        .into_iter()
        .map(|key| (key, "1".to_owned()))
        .collect();
    row.session = (random.below(2) == 0).then(|| format!("s{}", random.below(4)));
    let chunks = if random.below(4) == 0 {
        random.below(4)
    } else {
        0
    };
    row.chunks = (0..chunks)
        .map(|_| Chunk {
            text: random.text(3),
            vector: row.vector.is_some().then(|| random.vector(DIMENSIONS)),
            tokens: random.below(100) as u32,
        })
        .collect();
    row
}

/// Commits that insert, replace and forget memories, as a store makes them.
pub fn commits(seed: u64, count: usize, inserts: u64) -> Vec<Commit> {
    let mut random = Random(seed);
    let (mut key, mut current) = (0, BTreeMap::<MemoryId, u64>::new());
    let mut all_keys = BTreeMap::<MemoryId, Vec<u64>>::new();
    (0..count)
        .map(|now| {
            let now = now as i64;
            let mut commit = Commit::default();
            for _ in 0..=random.below(inserts) {
                key += 1;
                let known: Vec<_> = current.keys().copied().collect();
                let replaced = (!known.is_empty() && random.below(3) == 0)
                    .then(|| known[random.below(known.len() as u64) as usize]);
                let memory = replaced.unwrap_or_else(|| id(key));
                if let Some(old) = current.insert(memory, key) {
                    commit.ended.push((old, now));
                }
                all_keys.entry(memory).or_default().push(key);
                commit
                    .upserts
                    .push(random_row(&mut random, key, memory, now));
            }
            for memory in current.clone().into_keys().filter(|_| random.below(5) == 0) {
                current.remove(&memory);
                commit
                    .removed
                    .extend(all_keys.remove(&memory).unwrap_or_default());
            }
            commit
        })
        .collect()
}

pub fn random_request(random: &mut Random) -> RecallRequest {
    let pick = |random: &mut Random| random.below(3) == 0;
    let range = |random: &mut Random| {
        let (first, last) = (time(random), time(random));
        (
            pick(random).then_some(first.min(last)),
            pick(random).then_some(first.max(last)),
        )
    };
    RecallRequest {
        text: Some(random.text(4)),
        vector: Some(random.vector(DIMENSIONS)),
        k: 1000,
        depth: 1000,
        tags: if pick(random) {
            some(random, &["red", "green", "unseen"])
        } else {
            Vec::new()
        },
        tag_match: [TagMatch::Any, TagMatch::All, TagMatch::None][random.below(3) as usize],
        fact_types: if pick(random) {
            some(random, &["world", "experience", "unseen"])
        } else {
            Vec::new()
        },
        metadata: if pick(random) {
            vec![("a".to_owned(), "1".to_owned())]
        } else {
            Vec::new()
        },
        session: pick(random).then(|| format!("s{}", random.below(5))),
        occurred: pick(random).then(|| range(random)),
        retained: pick(random).then(|| range(random)),
        as_of: pick(random).then(|| time(random)),
        valid_at: pick(random).then(|| time(random)),
        memory_ids: pick(random).then(|| (0..20).map(id).collect()),
        time_windows: if pick(random) {
            vec![(3, 6)]
        } else {
            Vec::new()
        },
        context_windows: random.below(2) == 0,
        ..RecallRequest::default()
    }
}
