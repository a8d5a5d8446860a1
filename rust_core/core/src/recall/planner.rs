//! Chooses how the nearest rows are found: by a scan of all rows that pass or by a graph search. The cheaper one is
//! used, by the bytes that each reads of the coarse planes. A graph search whose sampled recall is too low keeps more
//! candidates, which raises its cost, and is excluded in the end.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::api::DenseMethod;
use crate::graph::{GraphKind, Quality, Segment};
use crate::index::Index;
use crate::recall::filter::Allowed;
use crate::recall::read_costs::ReadCosts;

/// Rows that pass, as a share of all, from which on the scan in order is faster than reading them one by one.
const IN_ORDER: f64 = 0.6;
/// Distances that a search computes for each candidate that it keeps, measured on clustered vectors of 384 dimensions.
const HOPS: f64 = 15.0;
/// A filter lengthens the search by the share that passes to this power.
const FILTER_EXPONENT: f64 = -0.8;
/// A hop costs this many random reads of a row: the list of neighbours, the set of visited ones, the heaps.
const READS_PER_HOP: f64 = 2.5;
/// Additional cost of scoring candidates, their neighbours and a sample apart from the search.
const CANDIDATES_NANOS: f64 = 500_000.0;
/// A graph search is used where it is estimated to take less than this share of the scan's time: the scan is exact, and
/// on real text a graph needs up to twice the default candidates for the recall that is asked for.
const WORTHWHILE: f64 = 0.75;
/// One row in so many has to pass, or the arrays of the scan, which are as long as the bank, cost more than they save:
/// of 200,000 rows of 384 dimensions 2,000 took 0.93 ms by it and 1.70 without, 200 took 0.63 and 0.44.
const SPARSE: u64 = 256;
/// Share of a segment's rows that pass from which on those that do not are dropped from the answer, not on the way.
const MOST: f64 = 0.9;
/// Vectors of a graph up to which the candidates that are set are enough; beyond, they grow with the root of its size.
/// 160 find .984 of the ten nearest of 200,000 rows of real text, and 207 .990 of a million.
const ENOUGH: u32 = 600_000;
/// Samples of a bank's graph searches before anything is concluded from them: fewer do not tell the default floor from a
/// hundredth more. Until there are so many, every search is a sample, so that bad graphs are not used for long.
const SAMPLES: u64 = 64;
/// Samples after which old ones count half.
const MEMORY: u64 = 256;
/// Number of times that a search is widened, each time to twice as many candidates, before the scan replaces it.
const WIDENINGS: u32 = 3;
/// Neighbours of a sample that are looked for.
pub(crate) const SAMPLED_NEIGHBOURS: usize = 10;

/// Options of the planner. `Default` gives the documented defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannerOptions {
    /// Candidates that a search keeps in a graph of 600,000 vectors or fewer; in a larger one they are more, and in each
    /// of several graphs of the disk tier fewer.
    pub candidates: usize,
    /// Rows that pass up to which all are read; 0 leaves it to the costs that were measured at start.
    pub scan_rows: u32,
    /// Share of searches that are compared with a full scan, in the background; 0 compares none.
    pub sampling: f64,
    /// Recall at 10 below which a bank's searches are widened, and in the end given up for the scan.
    pub recall_floor: f64,
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self {
            candidates: 160,
            scan_rows: 0,
            sampling: 0.01,
            recall_floor: 0.98,
        }
    }
}

/// Chooses plans for all banks of a core.
#[derive(Debug)]
pub(crate) struct Planner {
    options: PlannerOptions,
    dense: DenseMethod,
    searches: AtomicU64,
    /// Recalls, commits, checkpoints and comparisons that are under way.
    running: AtomicU32,
}

/// Work that is under way, until it is dropped.
pub(crate) struct Running<'a> {
    running: &'a AtomicU32,
    /// True if there was no other when it began.
    first: bool,
}

impl Running<'_> {
    /// Returns true if there was no other when it began, and there are threads that it may take.
    pub(crate) fn alone(&self) -> bool {
        // Threads of the pool are at work on several recalls already.
        self.first && rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A way to find the nearest rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As in a bank without graphs: all rows, or those that pass, with arrays as long as the bank.
    Scan,
    /// The rows that pass, one by one, and nothing that grows with the bank.
    Gather,
    /// The graphs, and the rows that none covers.
    Graph {
        /// Candidates to keep.
        candidates: usize,
        /// True if nearly all rows pass.
        most_pass: bool,
    },
}

/// The reason for a choice between a scan and a graph search, for the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Basis {
    /// There are no graphs, or `scan_rows` decides.
    #[default]
    Settings,
    /// The sampled recall of graph searches is below the floor at the largest number of candidates.
    LowRecall,
    /// The estimated costs.
    Costs {
        /// Bytes that a scan reads.
        scan_bytes: u64,
        scan_nanos: f64,
        graph_nanos: f64,
    },
}

impl fmt::Display for Basis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Settings => Ok(()),
            Self::LowRecall => write!(out, "; graphs excluded: sampled recall below the floor"),
            Self::Costs {
                scan_bytes,
                scan_nanos,
                graph_nanos,
            } => write!(
                out,
                "; estimated: {:.0} us to scan {scan_bytes} bytes, {:.0} us by graphs",
                scan_nanos / 1e3,
                graph_nanos / 1e3
            ),
        }
    }
}

/// A way, and what it was chosen from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) basis: Basis,
    passing: u32,
    rows: u32,
    segments: usize,
    tail: u32,
    dense: DenseMethod,
}

impl Plan {
    /// The share of the rows that passes.
    fn share(&self) -> f64 {
        f64::from(self.passing) / f64::from(self.rows.max(1))
    }

    /// Nanoseconds of reading what passes, in this plan's way, and of a graph search that keeps so many candidates.
    fn costs(&self, row: ReadCosts, candidates: usize) -> (f64, f64) {
        let each = if self.way == Way::Scan {
            row.in_order
        } else {
            row.random
        };
        let scan = f64::from(self.passing) * each;
        let reads = HOPS * candidates as f64 * self.share().max(1e-9).powf(FILTER_EXPONENT);
        let graphs = self.segments as f64 * reads * READS_PER_HOP * row.random
            + f64::from(self.tail) * row.random
            + CANDIDATES_NANOS;
        (scan, graphs)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passing, rows, .. } = self;
        match self.way {
            Way::Scan => write!(out, "scan: {passing} of {rows} rows")?,
            Way::Gather => write!(out, "gather: {passing} of {rows} rows")?,
            Way::Graph { candidates, .. } => {
                let name = match self.dense {
                    DenseMethod::Usearch => "graph of usearch",
                    DenseMethod::Auto | DenseMethod::Scan | DenseMethod::Graph => "graph",
                };
                write!(
                    out,
                    "{name}: {passing} of {rows} rows, {candidates} candidates from each of {} segments, {} rows \
                    scanned",
                    self.segments, self.tail
                )?;
            }
        }
        self.basis.fmt(out)
    }
}

impl Planner {
    pub(crate) fn new(options: PlannerOptions, dense: DenseMethod) -> Self {
        Self {
            options,
            dense,
            searches: AtomicU64::new(0),
            running: AtomicU32::new(0),
        }
    }

    /// Counts a recall; or a commit, a checkpoint or a comparison, for whose threads a recall should not wait.
    pub(crate) fn enter(&self) -> Running<'_> {
        Running {
            running: &self.running,
            first: self.running.fetch_add(1, Ordering::Relaxed) == 0,
        }
    }

    /// The cheapest way to the rows of `allowed`, for at least `depth` candidates.
    pub(crate) fn plan(&self, index: &Index, allowed: Allowed<'_>, depth: usize) -> Plan {
        let mut plan = self.scan_or_search(index, allowed, depth);
        let dense = u64::from(plan.passing) * SPARSE >= u64::from(plan.rows);
        if plan.way == Way::Gather && dense {
            plan.way = Way::Scan;
        }
        plan
    }

    /// The cheaper of a graph search and reading the rows that pass one by one, or a scan where most pass.
    fn scan_or_search(&self, index: &Index, allowed: Allowed<'_>, depth: usize) -> Plan {
        let (passing, rows) = (allowed.rows.len(), index.rows() - index.dead_rows);
        let covered = index.segments.covered.len().min(passing);
        let mut plan = Plan {
            way: Way::Gather,
            basis: Basis::Settings,
            passing,
            rows,
            segments: index.segments.all.len(),
            tail: passing - covered,
            dense: method_of(index, self.dense),
        };
        let share = plan.share();
        if share >= IN_ORDER {
            plan.way = Way::Scan;
        }
        let widened = index.segments.quality.widened.load(Ordering::Relaxed);
        if index.segments.all.is_empty() || passing <= self.options.scan_rows {
            return plan;
        }
        if widened > WIDENINGS {
            plan.basis = Basis::LowRecall;
            return plan;
        }
        let sizes = index.segments.all.iter().map(Segment::len);
        let (largest, all) = sizes.fold((0, 0), |(most, sum), size| (most.max(size), sum + size));
        let all = if index.disk { all } else { largest };
        let candidates = of_each(self.options.candidates, depth, largest, all) << widened;
        let graphs = Way::Graph {
            candidates,
            most_pass: share >= MOST,
        };
        if self.options.scan_rows > 0 {
            plan.way = graphs;
            return plan;
        }
        let row_bytes = index.vectors.coarse_row_bytes();
        let (scan_nanos, graph_nanos) =
            plan.costs(ReadCosts::measured().of_row(row_bytes), candidates);
        plan.basis = Basis::Costs {
            scan_bytes: u64::from(passing) * row_bytes as u64,
            scan_nanos,
            graph_nanos,
        };
        let forced = self.dense.is_forced() && (plan.way == Way::Scan || graph_nanos < scan_nanos);
        // Reading all rows of the disk tier may read the disk.
        let worthwhile = if index.disk { 1.0 } else { WORTHWHILE };
        if forced || graph_nanos < worthwhile * scan_nanos {
            plan.way = graphs;
        }
        plan
    }

    /// Returns true if this search is one of those that are compared with a scan: a share of all, and each bank's first.
    pub(crate) fn samples(&self, quality: &Quality) -> bool {
        if self.options.sampling <= 0.0 {
            return false;
        }
        // Counted when they start: comparisons may take longer than the searches meanwhile.
        if quality.started.load(Ordering::Relaxed) < SAMPLES {
            quality.started.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let every = (1.0 / self.options.sampling).max(1.0) as u64;
        self.searches
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(every)
    }

    /// Counts a comparison: of the nearest [`SAMPLED_NEIGHBOURS`] rows, `found` were found.
    pub(crate) fn learn(&self, quality: &Quality, found: u64, wanted: u64) {
        let samples = quality.samples.fetch_add(1, Ordering::Relaxed) + 1;
        let found = quality.found.fetch_add(found, Ordering::Relaxed) + found;
        let wanted = quality.wanted.fetch_add(wanted, Ordering::Relaxed) + wanted;
        if samples >= SAMPLES && (found as f64) < self.options.recall_floor * wanted as f64 {
            quality.widened.fetch_add(1, Ordering::Relaxed);
            quality.forget(1);
            quality.started.store(0, Ordering::Relaxed);
        } else if samples >= MEMORY {
            quality.forget(2);
        }
    }
}

/// The method whose graphs the bank has: in the disk tier they are of usearch, whatever is set.
fn method_of(index: &Index, dense: DenseMethod) -> DenseMethod {
    let usearch = |segment: &Segment| segment.graph.kind() == GraphKind::Usearch;
    if index.segments.all.iter().any(usearch) {
        return DenseMethod::Usearch;
    }
    if dense == DenseMethod::Usearch {
        // They are on their way.
        return DenseMethod::Graph;
    }
    dense
}

/// The candidates to keep in a graph of so many vectors.
fn for_size(candidates: usize, vectors: u32) -> usize {
    let growth = (f64::from(vectors) / f64::from(ENOUGH)).max(1.0).sqrt();
    (candidates as f64 * growth).round() as usize
}

/// The candidates to keep in each graph for at least `depth` in all: of `all` vectors the largest graph has `largest`.
fn of_each(candidates: usize, depth: usize, largest: u32, all: u32) -> usize {
    for_each(for_size(candidates, largest).max(depth), largest, all)
}

/// The candidates to keep in each of several graphs, where one would take `candidates`: of `all` vectors the largest has
/// `largest`, and the nearest rows lie in several. Not as the sizes are, since memories of one time are often of one
/// graph; so they fall with the cube root of the largest's share: with its square root, four graphs of a million rows in
/// all found .977 of the ten nearest at a depth of 60, and with this .988.
fn for_each(candidates: usize, largest: u32, all: u32) -> usize {
    let share = f64::from(largest) / f64::from(all.max(1));
    (candidates as f64 * share.cbrt()).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_graphs_are_searched_with_more_candidates() {
        assert_eq!(for_size(160, 1_000), 160);
        assert_eq!(for_size(160, ENOUGH), 160);
        assert_eq!(for_size(160, 1_000_000), 207);
        assert_eq!(for_size(10, 60_000_000), 100);
    }

    #[test]
    fn each_of_several_graphs_is_searched_with_fewer_candidates() {
        let each = [1, 2, 4, 16].map(|graphs| for_each(160, 1_000, graphs * 1_000));
        assert_eq!(each, [160, 127, 101, 63]);
        // A recall of some depth finds it in all of them together.
        assert_eq!(of_each(160, 500, 1_000, 1_000), 500);
        assert_eq!(of_each(160, 500, 1_000, 16_000), 198);
        assert_eq!(of_each(160, 100, 1_000, 16_000), 63);
        // Small ones beside a large one count as little.
        assert_eq!(for_each(160, 1_000, 1_210), 150);
    }

    #[test]
    fn a_graph_is_used_where_it_reads_less() {
        let measured = ReadCosts {
            in_order: 9.0,
            random: 18.0,
        };
        let graphs_win = |rows: u32, row_bytes: usize, candidates: usize| {
            let plan = Plan {
                way: Way::Scan,
                basis: Basis::Settings,
                passing: rows,
                rows,
                segments: 1,
                tail: 0,
                dense: DenseMethod::Auto,
            };
            let (scan, graphs) = plan.costs(measured.of_row(row_bytes), candidates);
            graphs < WORTHWHILE * scan
        };
        assert!(!graphs_win(105_000, 128, 160));
        assert!(graphs_win(1_000_000, 128, 207));
        // Equal rows, more bytes.
        assert!(!graphs_win(130_000, 128, 160));
        assert!(graphs_win(130_000, 384, 160));
        // Equal rows, more candidates for the same recall.
        assert!(graphs_win(200_000, 128, 160));
        assert!(!graphs_win(200_000, 128, 160 << WIDENINGS));
    }

    #[test]
    fn the_first_searches_are_compared_until_enough_is_known() {
        let options = |sampling| PlannerOptions {
            sampling,
            ..PlannerOptions::default()
        };
        let planner = Planner::new(options(1e-9), DenseMethod::Auto);
        let quality = Quality::default();
        let first = (0..SAMPLES).filter(|_| planner.samples(&quality));
        assert_eq!(first.count() as u64, SAMPLES);
        // The first of the share of all.
        assert!(planner.samples(&quality));
        assert!(!planner.samples(&quality));
        for _ in 0..SAMPLES {
            planner.learn(&quality, 9, 10);
        }
        assert_eq!(quality.widened.load(Ordering::Relaxed), 1);
        assert!(planner.samples(&quality), "wider searches are new ones");
        let none = Planner::new(options(0.0), DenseMethod::Auto);
        assert!(!none.samples(&Quality::default()));
    }

    #[test]
    fn only_the_first_at_work_is_alone_and_none_in_the_pool() {
        let planner = Planner::new(PlannerOptions::default(), DenseMethod::Auto);
        let threads = rayon::current_num_threads() > 1;
        let first = planner.enter();
        assert_eq!(first.alone(), threads);
        assert!(!planner.enter().alone());
        drop(first);
        assert_eq!(planner.enter().alone(), threads);
        // A scope begun by another thread is carried out in the pool.
        rayon::scope(|_| assert!(!planner.enter().alone()));
    }
}
