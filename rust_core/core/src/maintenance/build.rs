//! One build: rows are selected, their vectors read in small batches, a graph is built aside and published by one
//! assignment.
//!
//! The index is locked for reading, for a batch at a time, and for writing only to publish. Meanwhile rows are named by
//! version key and part, since row numbers change when dead rows are compacted.

use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};

use super::policy;
use super::vector_reads::{each_batch, find};
use crate::api::{Result, TierLimits};
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::graph::{
    BuildMethod, BuildThreads, BuiltGraph, GONE, Graph, GraphBuilder, Name, Quality, Segment,
};
use crate::index::{Index, IndexLock};
use crate::system::allocator;

/// Versions or rows that are looked up under one lock: about a millisecond.
pub(super) const LOOKED_UP: u32 = 4096;
/// Rows outside all inverted indexes from which on the disk tier builds one where no graphs are built.
const DISK_WORD_ROWS: u32 = 100_000;
/// Most vectors of a graph of the disk tier, or the [share](DISK_GRAPH_SHARE) of the bank where that is more: a graph is
/// in memory while it is built, and every search reads all graphs.
const DISK_GRAPH_ROWS: u32 = 1 << 18;
/// While it is built, a vector takes three to four times the memory of a row of the disk tier: a graph of a sixteenth of
/// the rows a fifth of what the bank has.
const DISK_GRAPH_SHARE: u32 = 16;

/// A bank that may be gone by the next batch.
pub(super) type Bank = Weak<IndexLock>;

/// The pace of builds, which share the processor with recalls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Rows outside all segments from which on they are built into a graph.
    pub(crate) graph_rows: u32,
    /// The way to build graphs.
    pub(crate) method: BuildMethod,
    /// Rows outside all inverted indexes of tantivy from which on one is built of them; 0 builds none.
    pub(crate) word_rows: u32,
    /// The same in the disk tier, which has inverted indexes whatever is set; 0 leaves it to the default.
    pub(crate) disk_word_rows: u32,
    /// When banks go to the disk tier by themselves.
    pub(crate) limits: TierLimits,
    /// Processor cores that a build may take, above 0; below 1 a share of one.
    pub(crate) share: f64,
}

impl Pace {
    /// The pace of a bank that is in the disk tier or not. In the disk tier graphs are of usearch and postings of
    /// tantivy, since both lie in files.
    pub(crate) fn of_tier(self, disk: bool) -> Self {
        if !disk {
            return self;
        }
        let method = match self.method {
            BuildMethod::Own if astrocyte_segments::HAS_USEARCH => BuildMethod::OwnForUsearch,
            method => method,
        };
        Self {
            method,
            word_rows: if self.disk_word_rows > 0 {
                self.disk_word_rows
            } else {
                DISK_WORD_ROWS
            },
            ..self
        }
    }

    /// Most vectors of a graph that is built of a bank of so many rows.
    pub(crate) fn most_graph_rows(self, disk: bool, rows: u32) -> u32 {
        if disk {
            DISK_GRAPH_ROWS
                .max(rows / DISK_GRAPH_SHARE)
                .max(self.graph_rows)
        } else {
            u32::MAX
        }
    }
}

struct BuildPlan {
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
    // The memory of a build is several times that of the graph.
    allocator::release();
    built
}

/// Notes the number of vectors of the graph that is built.
fn note(bank: &Bank, building: u32) {
    if let Some(bank) = bank.upgrade() {
        bank.change(bank.intend()).segments.building = building;
    }
}

/// Builds what is planned, and shows it; false where nobody wants it any more.
fn build(bank: &Bank, pace: Pace, plan: &BuildPlan) -> Result<bool> {
    let wanted = || bank.strong_count() > 0;
    let threads = BuildThreads {
        share: pace.share,
        wanted: &wanted,
    };
    let mut turn = threads.turn();
    let mut builder = GraphBuilder::new(pace.method, plan.dimensions, plan.names.len())?;
    let mut names = Vec::with_capacity(plan.names.len());
    let all = each_batch(bank, &plan.names, |read| {
        for (name, vector) in read {
            builder.add(&vector)?;
            names.push(name);
            if turn.breathe().is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    });
    if !all? {
        return Ok(false);
    }
    let Some(BuiltGraph { graph, order }) = builder.finish(&threads, optional_file(bank))? else {
        return Ok(false);
    };
    if let Some(order) = order {
        names = order.iter().map(|&number| names[number as usize]).collect();
    }
    Ok(publish(bank, graph, &names, &plan.replaced))
}

/// An empty file without a name for a segment; None where the bank keeps nothing in files.
pub(super) fn segment_file(index: &Index) -> Option<io::Result<File>> {
    let scratch = index.exact_vectors.scratch()?;
    Some(scratch.segment_file())
}

/// The same for a segment that can be in memory too, where no file can be made.
pub(super) fn optional_file(bank: &Bank) -> Option<File> {
    segment_file(&bank.upgrade()?.read())?.ok()
}

/// Chooses what to build. A bank whose rows get new numbers meanwhile is looked through again.
fn begin(bank: &Bank, pace: Pace) -> Option<BuildPlan> {
    loop {
        let (job, renumberings, mut plan, wanted, most) = {
            let bank = bank.upgrade()?;
            let mut index = bank.change(bank.intend());
            index.segments.queued = false;
            index.segments.removed = 0;
            drop(index);
            let index = bank.read();
            let tail = tail_rows(&index);
            if index.segments.restoring() {
                return None;
            }
            let live = &index.live_rows();
            let most = pace.most_graph_rows(index.disk, index.rows());
            let sizes = (pace.graph_rows, most);
            let job = policy::next(&index.segments, live, tail, (sizes, pace.method.kind()))?;
            let mut wanted = Bitmap::empty(index.rows());
            let replaced = job.replaced.iter().map(|&number| {
                let segment = &index.segments.all[number];
                segment.live_rows().for_each(|row| _ = wanted.insert(row));
                Arc::clone(&segment.graph)
            });
            let plan = BuildPlan {
                dimensions: index.exact_vectors.dimensions(),
                replaced: replaced.collect(),
                names: Vec::new(),
            };
            (job, index.segments.renumberings, plan, wanted, most)
        };
        if collect(bank, job.tail, renumberings, &wanted, &mut plan.names)? {
            if plan.replaced.is_empty() {
                // The rest of a long tail is the next build.
                plan.names.truncate(most as usize);
            }
            return Some(plan);
        }
    }
}

/// Live rows with a vector that no segment stands for.
fn tail_rows(index: &Index) -> u32 {
    let covered = &index.segments.covered;
    (0..index.rows())
        .filter(|&row| index.slots[row as usize] != NO_SLOT && !covered.contains(row))
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
        let index = bank.upgrade()?;
        let index = index.read();
        if index.segments.renumberings != renumberings {
            return Some(false);
        }
        let end = index.columns.len().min(first + LOOKED_UP);
        for version in first..end {
            if !index.columns.live.contains(version) {
                continue;
            }
            let rows = index.rows_of(version);
            for row in rows.clone() {
                let in_tail = tail && !index.segments.covered.contains(row);
                let is_wanted = in_tail || (row < wanted.bound() && wanted.contains(row));
                if is_wanted && index.slots[row as usize] != NO_SLOT {
                    names.push((index.columns.key[version as usize], row - rows.start));
                }
            }
        }
        if end == index.columns.len() {
            return Some(true);
        }
        first = end;
    }
}

/// Shows the graph in the place of what it replaces; false where nobody wants it any more, or its file cannot be written.
pub(super) fn publish(bank: &Bank, graph: Graph, names: &[Name], replaced: &[Arc<Graph>]) -> bool {
    let Some(bank) = bank.upgrade() else {
        return false;
    };
    loop {
        let renumberings = bank.read().segments.renumberings;
        let mut rows = Vec::with_capacity(names.len());
        for batch in names.chunks(LOOKED_UP as usize) {
            let index = bank.read();
            rows.extend(batch.iter().map(|&name| find(&index, name).unwrap_or(GONE)));
        }
        let index = bank.intend();
        if index.segments.renumberings != renumberings {
            continue;
        }
        let segment = Segment::new(graph, rows);
        // What was removed before the commit that follows knows of the segment.
        let gone = |row| row == GONE || index.slots[row as usize] == NO_SLOT;
        if segment.erase(gone).is_err() {
            return false;
        }
        let rows = segment.rows();
        let mut covered = index.segments.covered.clone();
        covered.grow(index.rows());
        for &row in rows.iter().filter(|&&row| row != GONE) {
            covered.insert(row);
        }
        let mut all = index.segments.all.clone();
        all.retain(|segment| !replaced.iter().any(|old| Arc::ptr_eq(old, &segment.graph)));
        all.push(segment);
        let mut index = bank.change(index);
        let segments = &mut index.segments;
        std::mem::swap(&mut segments.all, &mut all);
        std::mem::swap(&mut segments.covered, &mut covered);
        // Other graphs, other quality.
        segments.quality = Quality::default();
        return true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_of_the_disk_tier_has_a_sixteenth_of_a_large_bank() {
        let pace = Pace {
            graph_rows: 1_000,
            method: BuildMethod::Own,
            word_rows: 0,
            disk_word_rows: 1_000,
            limits: TierLimits::default(),
            share: 1.0,
        };
        let most = |disk, rows| pace.most_graph_rows(disk, rows);
        assert_eq!(most(true, 1_000_000), DISK_GRAPH_ROWS);
        assert_eq!(most(true, 16_000_000), 1_000_000);
        assert_eq!(most(false, 16_000_000), u32::MAX);
        let wanted = Pace {
            graph_rows: 500_000,
            ..pace
        };
        assert_eq!(wanted.most_graph_rows(true, 1_000_000), 500_000);
    }
}
