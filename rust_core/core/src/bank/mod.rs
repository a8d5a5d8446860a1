//! A bank: its commits, its recalls, and its background work.

mod checkpoint;
mod spellings;

use std::borrow::Borrow;
use std::sync::Arc;

use crate::api::{
    BankOptions, BankStats, ContentHash, Duplicate, Explained, MemoryId, PhraseCandidates,
    RecallRequest, RecallResponse, Row, Tier,
};
use crate::api::{CoreError, Result};
use crate::dense::MAX_DIMENSIONS;
use crate::dense::exact_vectors::Scratch;
use crate::graph::build_bytes;
use crate::index::{self, Changing, Index, IndexLock};
use crate::lexical::SealedPart;
use crate::maintenance::{self, GraphWorker};
use crate::recall::{self, Comparison, Planner, Running};
use spellings::Spellings;

/// Flat int8 scan with f32 rescoring, BM25, columns and bitmaps, behind one lock. Clones share the index.
///
/// One commit at a time is applied. Recalls wait for the part of it that changes the index, and for nothing else: not
/// for its analysis, its files, a compaction that follows, or a commit that waits for another recall.
#[derive(Debug, Clone)]
pub struct Bank {
    options: BankOptions,
    index: Arc<IndexLock>,
    spellings: Arc<Spellings>,
    shared: Arc<Shared>,
}

/// The parts that all banks of a core share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) worker: GraphWorker,
    pub(crate) planner: Arc<Planner>,
    /// The tier of banks that are not given one of their own.
    pub(crate) tier: Tier,
}

impl Bank {
    pub(crate) fn new(
        options: BankOptions,
        scratch: Option<Arc<Scratch>>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        check_dimensions(options.dimensions)?;
        Ok(Self {
            options,
            index: Arc::new(IndexLock::new(Index::new(
                options.dimensions,
                scratch,
                options.tier.unwrap_or(shared.tier),
            ))),
            spellings: Arc::default(),
            shared,
        })
    }

    /// Applies one commit: the upserts in their order, then the ends (key, known until), then the removals.
    ///
    /// A position at or below the last applied one is a no-op. A row whose key is there replaces it. Keys that are not
    /// there are passed over: they were forgotten. A refused batch changes nothing.
    ///
    /// # Errors
    /// [`CoreError::Dimensions`] and [`CoreError::Vector`] with the index of the row in `upserts`.
    pub fn apply<R: Borrow<Row> + Sync>(
        &self,
        position: u64,
        upserts: &[R],
        ended: &[(u64, i64)],
        removed: &[u64],
    ) -> Result<()> {
        if position <= self.position() {
            return Ok(());
        }
        let prepared = {
            let _running = self.enter();
            index::prepare(upserts, self.options)?
        };
        // Before the rows can be found, so that whoever finds them finds their words.
        let texts = upserts
            .iter()
            .map(|row| Borrow::<Row>::borrow(row).text.as_str());
        self.spellings.follow(self.options.language, texts);
        let index = self.index.intend();
        // Another thread may have applied it meanwhile.
        if position <= index.position {
            return Ok(());
        }
        index.admit(upserts, &prepared)?;
        let stored = index.exact_vectors.store(index::units(&prepared));
        let mut room = index.room(&prepared);
        let mut index = self.index.change(index);
        index.swap_room(&mut room);
        let freed = index.commit(upserts, &prepared, stored, ended, removed);
        index.position = position;
        let due = self.is_due(&mut index);
        let mut index = Changing::downgrade_to_upgradable(index);
        // Recalls go on from here.
        index.exact_vectors.erase(&freed.slots);
        while let Some(failed) = index.segments.erase(&freed.rows, index.rows()) {
            let mut changing = self.index.change(index);
            let Index {
                segments, slots, ..
            } = &mut *changing;
            segments.drop_segment(failed, slots);
            index = Changing::downgrade_to_upgradable(changing);
        }
        if index.is_wasteful() {
            index = index::compact(&self.index, index);
        }
        drop(index);
        if due {
            self.shared.worker.queue(Arc::downgrade(&self.index));
        }
        Ok(())
    }

    /// Answers one recall on the present state.
    ///
    /// # Errors
    /// [`CoreError::Invalid`] for a parameter out of range, [`CoreError::Dimensions`] and [`CoreError::Vector`] for the
    /// query's vector, [`CoreError::Io`] when the scratch file cannot be read.
    pub fn recall(&self, request: &RecallRequest) -> Result<RecallResponse> {
        let query = recall::Query::new(request, self.options)?;
        self.answer(request, &query)
    }

    /// Counts work that takes threads, until what it returns is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.shared.planner.enter()
    }

    /// Answers a recall whose request is prepared for the dimensions of this bank.
    pub(crate) fn answer(
        &self,
        request: &RecallRequest,
        query: &recall::Query,
    ) -> Result<RecallResponse> {
        let planner = &self.shared.planner;
        let (response, sample) = recall::run(&self.index.read(), request, query, planner)?;
        if let Some(sample) = sample
            && let Some((unit, query)) = query.vector().cloned()
        {
            let comparison = Comparison {
                bank: Arc::downgrade(&self.index),
                planner: Arc::clone(planner),
                unit,
                query,
                sample,
            };
            // A failure tells nothing of the graph; the next comparison will.
            rayon::spawn(move || drop(comparison.run()));
        }
        Ok(response)
    }

    /// Answers up to [`TOGETHER`](crate::dense::TOGETHER) recalls as [`answer`](Self::answer) does each; with one
    /// reading of the rows where that will do.
    pub(crate) fn answer_together(
        &self,
        asked: &[(&RecallRequest, &recall::Query)],
    ) -> Vec<Result<RecallResponse>> {
        let together = recall::run_together(&self.index.read(), asked);
        together.unwrap_or_else(|| {
            let alone = asked
                .iter()
                .map(|(request, query)| self.answer(request, query));
            alone.collect()
        })
    }

    /// Answers one recall by a scan, and tells what became of the memories `ids` in it.
    ///
    /// # Errors
    /// As [`recall`](Self::recall).
    pub fn explain(&self, request: &RecallRequest, ids: &[MemoryId]) -> Result<Explained> {
        let query = recall::Query::new(request, self.options)?;
        recall::explain(&self.index.read(), request, &query, ids)
    }

    /// Up to `most` versions that pass the filter of `request` and hold all words of each phrase, in any order; the words
    /// of its text and its vector do not count.
    ///
    /// # Errors
    /// [`CoreError::Invalid`] for a phrase of stop words alone, which no index has.
    pub fn phrase_candidates(
        &self,
        request: &RecallRequest,
        phrases: &[String],
        most: usize,
    ) -> Result<PhraseCandidates> {
        let language = self.options.language;
        recall::phrases::candidates(&self.index.read(), request, phrases, most, language)
    }

    /// Per vector the current memories at or above `threshold`, at most four, the most similar first. Wholes are
    /// compared, not chunks; equal cosines by ascending memory id.
    ///
    /// # Errors
    /// [`CoreError::Dimensions`] and [`CoreError::Vector`] with the index of the vector, [`CoreError::Io`] when the
    /// scratch file cannot be read.
    pub fn near_duplicates(
        &self,
        vectors: &[Vec<f32>],
        threshold: f32,
    ) -> Result<Vec<Vec<Duplicate>>> {
        if !threshold.is_finite() {
            return Err(CoreError::Invalid {
                field: "threshold",
                expected: "a finite cosine".to_owned(),
                got: threshold.to_string(),
            });
        }
        let units = vectors
            .iter()
            .enumerate()
            .map(|(row, vector)| crate::dense::normalise(row, vector, self.options.dimensions))
            .collect::<Result<Vec<_>>>()?;
        self.index.read().near_duplicates(&units, threshold)
    }

    /// Per content hash the memory id of the current memory that has it, or None.
    pub fn contains_hashes(&self, hashes: &[ContentHash]) -> Vec<Option<MemoryId>> {
        let index = self.index.read();
        let find = |hash| {
            index
                .columns
                .current_with_hash(hash)
                .map(|v| index.columns.memory_id[v as usize])
        };
        hashes.iter().map(find).collect()
    }

    /// Position of the last applied commit; 0 before the first.
    pub fn position(&self) -> u64 {
        self.index.read().position
    }

    /// Length of the bank's vectors.
    pub fn dimensions(&self) -> usize {
        self.options.dimensions
    }

    /// The options of the bank.
    pub(crate) fn options(&self) -> BankOptions {
        self.options
    }

    /// Builds now, and without rests, all segments that the background would build in time.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for a graph, [`CoreError::Io`] when the scratch file cannot be
    /// read.
    pub fn build_graphs(&self) -> Result<()> {
        self.shared.worker.build_now(&self.index)
    }

    /// Moves the bank to a tier, in the background; recalls go on meanwhile.
    pub fn set_tier(&self, tier: Tier) {
        let mut index = self.index.change(self.index.intend());
        index.tier = tier;
        let due = self.is_due(&mut index);
        drop(index);
        if due {
            self.shared.worker.queue(Arc::downgrade(&self.index));
        }
    }

    /// Returns true, once, if the background has something to do for the bank.
    fn is_due(&self, index: &mut Index) -> bool {
        let pace = self.shared.worker.pace();
        let moves = index.tier_due(pace.limits);
        let pace = pace.of_tier(index.disk);
        moves || index.is_due(pace.graph_rows, pace.word_rows)
    }

    /// Drops what files of segments still have of removed rows, however they were removed: the indexes of tantivy with
    /// their words. The bank's own postings answer until these are built again; where it has none, in the disk tier, they
    /// are built again first. A removal itself overwrites vectors and the terms of rows. The words that are kept for
    /// [`expand`](Self::expand) are dropped.
    pub fn scrub(&self) {
        self.spellings.drop_all();
        let _erasing = self.index.erase();
        // What is not restored yet may be opened already.
        maintenance::restore(&Arc::downgrade(&self.index));
        let mut index = self.index.change(self.index.intend());
        if index.lexical.lacks_postings() {
            let stale = index.lexical.begin_erasure();
            drop(index);
            self.replace(&stale);
            return;
        }
        let dropped = index.lexical.drop_stale();
        let due = !dropped.is_empty() && self.is_due(&mut index);
        drop(index);
        drop(dropped);
        if due {
            self.shared.worker.queue(Arc::downgrade(&self.index));
        }
    }

    /// Builds indexes of tantivy again that have words of removed rows. Where that fails, the bank gets postings of its
    /// own, and its indexes are dropped.
    fn replace(&self, stale: &[Arc<SealedPart>]) {
        let share = self.shared.worker.pace().share.ceil();
        // What is left is seen below.
        _ = maintenance::replace(&Arc::downgrade(&self.index), stale, share);
        let index = self.index.intend();
        if stale
            .iter()
            .any(|part| index.lexical.plan_of(part).is_some())
        {
            maintenance::own_postings(&self.index, index);
            // The bank goes back to its tier.
            self.shared.worker.queue(Arc::downgrade(&self.index));
        }
    }

    /// Counts and bytes.
    pub fn stats(&self) -> BankStats {
        let (mut stats, building) = {
            let index = self.index.read();
            (index.stats(), u64::from(index.segments.building))
        };
        stats.bytes += self.spellings.bytes();
        let disk = stats.on_disk > 0;
        let pace = self.shared.worker.pace().of_tier(disk);
        if pace.graph_rows > 0 && stats.rows >= u64::from(pace.graph_rows) {
            let most = pace.most_graph_rows(disk, stats.rows as u32);
            let due = stats.rows.saturating_sub(stats.graph_rows).max(building);
            let row = build_bytes(pace.method, self.options.dimensions) as u64;
            stats.bytes += due.min(u64::from(most)) * row;
        }
        stats
    }
}

/// # Errors
/// [`CoreError::Invalid`] outside 1 to [`MAX_DIMENSIONS`].
pub(crate) fn check_dimensions(dimensions: usize) -> Result<()> {
    if (1..=MAX_DIMENSIONS).contains(&dimensions) {
        return Ok(());
    }
    Err(CoreError::Invalid {
        field: "dimensions",
        expected: format!("1 to {MAX_DIMENSIONS}"),
        got: dimensions.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use crate::graph::{BuildMethod, build_bytes};
    use crate::{Core, CoreOptions, Row};

    #[test]
    fn a_graph_that_is_built_anew_counts_while_it_is_built() {
        let options = CoreOptions {
            graph_rows: 10,
            ..CoreOptions::default()
        };
        let bank = Core::with_options(None, options).and_then(|core| core.bank(4));
        let bank = bank.expect("the options are in range");
        let row = |key: u64| {
            let id = u128::from(key).to_be_bytes();
            let mut row = Row::new(key, id, id, String::new(), 0);
            row.vector = Some(vec![1.0, key as f32, 0.0, 0.0]);
            row
        };
        let rows: Vec<Row> = (1..30).map(row).collect();
        bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
        bank.build_graphs().expect("there is memory");
        let settled = bank.stats().bytes;
        let build = |rows| bank.index.change(bank.index.intend()).segments.building = rows;
        build(20);
        assert_eq!(
            bank.stats().bytes,
            settled + 20 * build_bytes(BuildMethod::Own, 4) as u64
        );
        build(0);
        assert_eq!(bank.stats().bytes, settled);
    }
}
