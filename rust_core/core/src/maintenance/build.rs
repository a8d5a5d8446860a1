//! One build: rows chosen, their vectors read in small batches, a graph made aside, then shown by one assignment.
//!
//! The bank is locked for reading only, for a batch at a time, and for writing only to show what is done. Rows are named
//! by version key and part meanwhile, since their numbers change when dead rows are dropped.

use std::sync::{Arc, Weak};

use super::policy;
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::graph::{BuildThreads, Builder, GONE, Graph, Name, Quality, Segment};
use crate::index::{Index, IndexLock};
use crate::system::allocator;

/// Versions or rows that are looked up under one lock: about a millisecond.
const LOOKED_UP: u32 = 4096;
/// Vectors read under one lock.
const BATCH: usize = 64;

/// A bank that may be gone by the next batch.
pub(super) type Bank = Weak<IndexLock>;

/// How builds share the processor with recalls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Rows outside all segments from which on they are folded into one.
    pub(crate) fold_rows: u32,
    /// Processor cores that a build may take, above 0; below 1 a share of one.
    pub(crate) share: f64,
}

struct Plan {
    dimensions: usize,
    names: Vec<Name>,
    replaced: Vec<Arc<Graph>>,
}

/// Does the most useful build of the bank; returns whether there was one.
///
/// # Errors
/// When there is no memory for a graph, or the scratch file cannot be read.
pub(super) fn step(bank: &Bank, pace: Pace) -> Result<bool> {
    let Some(plan) = begin(bank, pace) else {
        return Ok(false);
    };
    note(bank, plan.names.len() as u32);
    let built = build(bank, pace, &plan);
    note(bank, 0);
    // What it was built in is several times the graph.
    allocator::release();
    built
}

/// Says of how many vectors a graph is built.
fn note(bank: &Bank, building: u32) {
    if let Some(bank) = bank.upgrade() {
        bank.change(bank.intend()).segments.building = building;
    }
}

/// Builds what is planned, and shows it; false where nobody wants it any more.
fn build(bank: &Bank, pace: Pace, plan: &Plan) -> Result<bool> {
    let wanted = || bank.strong_count() > 0;
    let crew = BuildThreads {
        share: pace.share,
        wanted: &wanted,
    };
    let mut builder = Builder::new(plan.dimensions, plan.names.len())?;
    let mut names = Vec::with_capacity(plan.names.len());
    let mut turn = crew.turn();
    for batch in plan.names.chunks(BATCH) {
        let Some(state) = bank.upgrade() else {
            return Ok(false);
        };
        let read = read(&state.read(), batch)?;
        drop(state);
        for (name, vector) in read {
            builder.add(&vector);
            names.push(name);
        }
        if turn.breathe().is_err() {
            return Ok(false);
        }
    }
    let Some(graph) = builder.finish(&crew)? else {
        return Ok(false);
    };
    publish(bank, graph, &names, &plan.replaced);
    Ok(true)
}

/// Chooses what to build. A bank whose rows get new numbers meanwhile is looked through again.
fn begin(bank: &Bank, pace: Pace) -> Option<Plan> {
    loop {
        let (job, renumberings, mut plan, wanted) = {
            let bank = bank.upgrade()?;
            let mut state = bank.change(bank.intend());
            state.segments.queued = false;
            state.segments.removed = 0;
            drop(state);
            let state = bank.read();
            let tail = tail_rows(&state);
            if state.segments.restoring() {
                return None;
            }
            let live = &state.live_rows();
            let job = policy::next(&state.segments, live, tail, pace.fold_rows)?;
            let mut wanted = Bitmap::empty(state.rows());
            let replaced = job.replaced.iter().map(|&number| {
                let segment = &state.segments.all[number];
                segment.live_rows().for_each(|row| _ = wanted.insert(row));
                Arc::clone(&segment.graph)
            });
            let plan = Plan {
                dimensions: state.exact_vectors.dimensions(),
                replaced: replaced.collect(),
                names: Vec::new(),
            };
            (job, state.segments.renumberings, plan, wanted)
        };
        if collect(bank, job.tail, renumberings, &wanted, &mut plan.names)? {
            return Some(plan);
        }
    }
}

/// Live rows with a vector that no segment stands for.
fn tail_rows(state: &Index) -> u32 {
    let covered = &state.segments.covered;
    (0..state.rows())
        .filter(|&row| state.slots[row as usize] != NO_SLOT && !covered.contains(row))
        .count() as u32
}

/// Gathers the names of the wanted rows; false when rows got new numbers, None when the bank is gone.
fn collect(
    bank: &Bank,
    tail: bool,
    renumberings: u64,
    wanted: &Bitmap,
    names: &mut Vec<Name>,
) -> Option<bool> {
    let mut first = 0;
    loop {
        let state = bank.upgrade()?;
        let state = state.read();
        if state.segments.renumberings != renumberings {
            return Some(false);
        }
        let end = state.columns.len().min(first + LOOKED_UP);
        for version in first..end {
            if !state.columns.live.contains(version) {
                continue;
            }
            let rows = state.rows_of(version);
            for row in rows.clone() {
                let in_tail = tail && !state.segments.covered.contains(row);
                let is_wanted = in_tail || (row < wanted.bound() && wanted.contains(row));
                if is_wanted && state.slots[row as usize] != NO_SLOT {
                    names.push((state.columns.key[version as usize], row - rows.start));
                }
            }
        }
        if end == state.columns.len() {
            return Some(true);
        }
        first = end;
    }
}

fn read(state: &Index, names: &[Name]) -> Result<Vec<(Name, Vec<f32>)>> {
    let mut bytes = Vec::new();
    let mut found = Vec::with_capacity(names.len());
    for &name in names {
        // What was removed meanwhile is left out.
        if let Some(row) = find(state, name) {
            let (slot, mut vector) = (state.slots[row as usize], Vec::new());
            state.exact_vectors.read(slot, &mut bytes, &mut vector)?;
            found.push((name, vector));
        }
    }
    Ok(found)
}

/// The row of this name, if it is there with a vector.
fn find(state: &Index, (key, part): Name) -> Option<u32> {
    let version = state.columns.find_key(key)?;
    let rows = state.rows_of(version);
    let row = rows.start.checked_add(part)?;
    (row < rows.end && state.slots[row as usize] != NO_SLOT).then_some(row)
}

/// Shows the graph in the place of what it replaces.
pub(super) fn publish(bank: &Bank, graph: Graph, names: &[Name], replaced: &[Arc<Graph>]) {
    let Some(bank) = bank.upgrade() else {
        return;
    };
    loop {
        let renumberings = bank.read().segments.renumberings;
        let mut rows = Vec::with_capacity(names.len());
        for batch in names.chunks(LOOKED_UP as usize) {
            let state = bank.read();
            rows.extend(batch.iter().map(|&name| find(&state, name).unwrap_or(GONE)));
        }
        let state = bank.intend();
        if state.segments.renumberings != renumberings {
            continue;
        }
        let mut covered = state.segments.covered.clone();
        covered.grow(state.rows());
        for &row in rows.iter().filter(|&&row| row != GONE) {
            covered.insert(row);
        }
        let mut all = state.segments.all.clone();
        all.retain(|segment| !replaced.iter().any(|old| Arc::ptr_eq(old, &segment.graph)));
        all.push(Segment::new(graph, rows));
        let mut state = bank.change(state);
        let segments = &mut state.segments;
        std::mem::swap(&mut segments.all, &mut all);
        std::mem::swap(&mut segments.covered, &mut covered);
        // Other graphs, other quality.
        segments.quality = Quality::default();
        return;
    }
}
