//! The owner of what banks share: scratch space, background work, and the pool that spreads batches.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use crate::api::BankOptions;
use crate::api::Result;
use crate::api::{DenseMethod, LexicalMethod, Tier, TierLimits};
use crate::api::{RecallRequest, RecallResponse};
use crate::bank::{Bank, Shared, check_dimensions};
use crate::batch;
use crate::checkpoint::Label;
use crate::dense::exact_vectors::Scratch;
use crate::graph::BuildMethod;
use crate::maintenance::{GraphWorker, Pace};
use crate::recall::{Planner, PlannerOptions};
use crate::system::allocator;

/// Most processor cores for building.
pub const MOST_CORES: f64 = 256.0;

/// Makes banks and answers batches of recalls.
#[derive(Debug, Clone)]
pub struct Core {
    scratch: Option<Arc<Scratch>>,
    shared: Arc<Shared>,
}

/// Options of a core. `Default` gives the documented defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreOptions {
    /// Rows outside all segments from which on the background makes a segment of them; 0 makes none.
    pub graph_rows: u32,
    /// Processor cores that a build may take, above 0 and at most [`MOST_CORES`]: of 0.5 half the time of one, of 2 two
    /// threads.
    pub build_share: f64,
    /// The method that searches vectors.
    pub dense: DenseMethod,
    /// The method that searches words. Rows are indexed for tantivy in the background, from `graph_rows` on.
    pub lexical: LexicalMethod,
    /// The tier of banks that are not given one of their own.
    pub tier: Tier,
    /// The size from which on [`Tier::Auto`] is the disk tier.
    pub tier_limits: TierLimits,
    /// When graphs are searched, and how far.
    pub planner: PlannerOptions,
    /// Threads of the pool that all cores of a process share, and whose first core makes it; 0 takes one per processor.
    /// One fewer answer what is queued.
    pub threads: usize,
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self {
            graph_rows: 100_000,
            build_share: 0.5,
            dense: DenseMethod::default(),
            lexical: LexicalMethod::default(),
            tier: Tier::default(),
            tier_limits: TierLimits::default(),
            planner: PlannerOptions::default(),
            threads: 0,
        }
    }
}

/// # Errors
/// [`CoreError::Invalid`](crate::CoreError::Invalid) for a method that this build lacks, or for which nothing would be built.
fn check_methods(options: &CoreOptions) -> Result<()> {
    let invalid = |field, expected: &str, got: &str| {
        Err(crate::CoreError::Invalid {
            field,
            expected: expected.to_owned(),
            got: got.to_owned(),
        })
    };
    if options.dense == DenseMethod::Usearch && !astrocyte_segments::HAS_USEARCH {
        let expected = "auto, scan or graph, since this build has no usearch";
        return invalid("dense", expected, "usearch");
    }
    let builds = options.dense.is_forced() || options.lexical == LexicalMethod::Tantivy;
    if builds && options.graph_rows == 0 {
        let expected = "at least 1 for the methods graph, usearch and tantivy, which build from so many rows on";
        return invalid("graph_rows", expected, "0");
    }
    Ok(())
}

/// Starts the pool's threads, unless they are at work already.
fn start_pool(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let named = pool.thread_name(|number| format!("astro-core-{number}"));
    // The first core of the process has decided.
    _ = named.build_global();
}

impl Core {
    /// A core whose large banks keep their original vectors, and segments of usearch and tantivy, in unlinked files in
    /// `scratch_dir`; None keeps them in memory.
    ///
    /// # Errors
    /// [`CoreError::Io`](crate::CoreError::Io) when the file cannot be made.
    pub fn new(scratch_dir: Option<&Path>) -> Result<Self> {
        Self::with_options(scratch_dir, CoreOptions::default())
    }

    /// A core with options; see [`new`](Self::new).
    ///
    /// # Errors
    /// [`CoreError::Invalid`](crate::CoreError::Invalid) for an option out of its range.
    pub fn with_options(scratch_dir: Option<&Path>, options: CoreOptions) -> Result<Self> {
        let share = options.build_share;
        let planner = options.planner;
        if !(share > 0.0 && share <= MOST_CORES) {
            return Err(crate::CoreError::Invalid {
                field: "build_share",
                expected: format!("processor cores, above 0 and at most {MOST_CORES}"),
                got: share.to_string(),
            });
        }
        for (field, value) in [
            ("sampling", planner.sampling),
            ("recall_floor", planner.recall_floor),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(crate::CoreError::Invalid {
                    field,
                    expected: "a share, from 0 to 1".to_owned(),
                    got: value.to_string(),
                });
            }
        }
        check_methods(&options)?;
        start_pool(options.threads);
        let scans = options.dense == DenseMethod::Scan;
        let inverts = options.lexical == LexicalMethod::Tantivy;
        let pace = Pace {
            graph_rows: if scans { 0 } else { options.graph_rows },
            method: if options.dense == DenseMethod::Usearch {
                BuildMethod::Usearch
            } else {
                BuildMethod::Own
            },
            word_rows: if inverts { options.graph_rows } else { 0 },
            disk_word_rows: options.graph_rows,
            limits: options.tier_limits,
            share,
        };
        let scratch = scratch_dir.map(Scratch::create).transpose()?.map(Arc::new);
        Ok(Self {
            scratch,
            shared: Arc::new(Shared {
                worker: GraphWorker::new(pace),
                planner: Arc::new(Planner::new(planner, options.dense)),
                tier: options.tier,
            }),
        })
    }

    /// A new and empty bank.
    ///
    /// # Errors
    /// [`CoreError::Invalid`](crate::CoreError::Invalid) outside 1 to [`MAX_DIMENSIONS`](crate::dense::MAX_DIMENSIONS).
    pub fn bank(&self, options: impl Into<BankOptions>) -> Result<Bank> {
        Bank::new(
            options.into(),
            self.scratch.clone(),
            Arc::clone(&self.shared),
        )
    }

    /// The bank of a checkpoint in `directory`, as it was at the checkpoint's position; later changes are to be
    /// applied.
    ///
    /// # Errors
    /// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when it is another's, or not what was written; the
    /// directory and this core are as before. [`CoreError::Io`](crate::CoreError::Io) when the scratch file fails.
    pub fn load(
        &self,
        directory: &Path,
        label: &Label,
        options: impl Into<BankOptions>,
    ) -> Result<Bank> {
        let options = options.into();
        check_dimensions(options.dimensions)?;
        let (scratch, shared) = (self.scratch.clone(), Arc::clone(&self.shared));
        Bank::load(directory, label, options, scratch, shared)
    }

    /// Gives freed memory back to the system, as far as the allocator can: after evictions, not after each drop.
    pub fn release_memory(&self) {
        allocator::release();
    }

    /// Answers all requests, spread over the cores; each result equals the single call's.
    ///
    /// A request that several banks are asked, the very same one in memory, is analysed once for all.
    ///
    /// # Errors
    /// The first request's error, in the order of the requests.
    pub fn recall_many<B, R>(&self, requests: &[(B, R)]) -> Result<Vec<RecallResponse>>
    where
        B: Borrow<Bank> + Sync,
        R: Borrow<RecallRequest> + Sync,
    {
        let requests: Vec<(&Bank, &RecallRequest)> = requests
            .iter()
            .map(|(bank, request)| (bank.borrow(), request.borrow()))
            .collect();
        batch::recall(&requests)
    }
}
