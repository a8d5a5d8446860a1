//! Banks in the disk tier, and the files that they map.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use astrocyte_core::{
    ArmScore, Bank, Core, CoreOptions, DenseMethod, Hit, LexicalMethod, PlannerOptions,
    RecallRequest, RecallResponse, Row, Tier, TierLimits,
};

use super::{Random, clustered};

/// Rows that are sealed together.
pub const GROUP: u64 = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;
pub const WIDE: usize = 64;

pub fn core(scratch: Option<&Path>, dense: DenseMethod, tier: Tier, limits: TierLimits) -> Core {
    let options = CoreOptions {
        graph_rows: 1000,
        build_share: 1.0,
        dense,
        lexical: LexicalMethod::Postings,
        tier,
        tier_limits: limits,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    Core::with_options(scratch, options).expect("the options are in their ranges")
}

pub fn disk(scratch: &Path, dense: DenseMethod) -> Core {
    core(Some(scratch), dense, Tier::Disk, TierLimits::default())
}

pub fn memory(dense: DenseMethod) -> Core {
    core(None, dense, Tier::Memory, TierLimits::default())
}

pub fn bank(core: &Core, dimensions: usize) -> Bank {
    core.bank(dimensions).expect("the dimensions are in range")
}

pub fn built(bank: &Bank) {
    bank.build_graphs().expect("there is room");
}

pub fn ask(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    bank.recall(request).expect("the request is right")
}

pub fn rows(random: &mut Random, keys: std::ops::Range<u64>) -> Vec<Row> {
    let vectors = clustered(random, WIDE, (keys.end - keys.start) as usize);
    let row = |(key, vector)| {
        let mut row = super::row(key, random.text(8));
        row.vector = Some(vector);
        row
    };
    keys.zip(vectors).map(row).collect()
}

/// A bank of two groups and a tail in the disk tier, and its rows.
pub fn filled(core: &Core, random: &mut Random) -> (Bank, Vec<Row>) {
    let rows = rows(random, 1..2 * GROUP + 300);
    let bank = bank(core, WIDE);
    bank.apply(1, &rows, &[], &[]).expect("the rows are right");
    built(&bank);
    (bank, rows)
}

/// Keys and arm scores of hits, in their order. Fused scores are standardised by statistics that graphs estimate.
pub fn ranked(hits: &[Hit]) -> Vec<(u64, Vec<ArmScore>)> {
    hits.iter().map(|hit| (hit.key, hit.arms.clone())).collect()
}

/// Contents of mapped files, by the file's inode.
pub type Contents = BTreeMap<String, Vec<u8>>;

/// The contents of all maps of files without names below a folder, in the order of their addresses: a file may have
/// several.
pub fn mapped(folder: &Path) -> Contents {
    let folder = folder.to_string_lossy().into_owned();
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let memory = File::open("/proc/self/mem").expect("it is ours");
    let ours = |line: &&str| line.contains(&folder) && line.ends_with("(deleted)");
    let mut contents = Contents::new();
    for line in maps.lines().filter(ours) {
        let mut fields = line.split_whitespace();
        let range = fields.next().expect("a range of addresses");
        let (start, end) = range.split_once('-').expect("two addresses");
        let address = |digits| u64::from_str_radix(digits, 16).expect("in hexadecimal");
        let mut bytes = vec![0; (address(end) - address(start)) as usize];
        memory
            .read_exact_at(&mut bytes, address(start))
            .expect("it is mapped");
        // The inode is the fifth of the fields.
        let inode = fields.nth(3).expect("an inode").to_owned();
        contents.entry(inode).or_default().extend(bytes);
    }
    contents
}

/// The former contents of the cache lines that changed, by file, in those that are still there.
pub fn overwritten(before: &Contents, after: &Contents) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut changed = BTreeMap::new();
    for (inode, old) in before {
        let new = after.get(inode).map_or(&old[..], |new| new);
        assert_eq!(old.len(), new.len(), "{inode} has other maps");
        let pairs = old.chunks(LINE).zip(new.chunks(LINE));
        let lines = pairs.filter(|(old, new)| old != new);
        let lines: Vec<_> = lines.map(|(old, _)| old.to_vec()).collect();
        if !lines.is_empty() {
            changed.insert(inode.clone(), lines);
        }
    }
    changed
}

/// Number of places in the files at which one of the lines stands.
pub fn places(lines: &BTreeSet<Vec<u8>>, files: &Contents) -> usize {
    // Most places are passed over by their first bytes.
    let begins: HashSet<&[u8]> = lines.iter().map(|line| &line[..8]).collect();
    let windows = files.values().flat_map(|bytes| bytes.windows(LINE));
    windows
        .filter(|window| begins.contains(&window[..8]) && lines.contains(*window))
        .count()
}
