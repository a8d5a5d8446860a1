//! The background threads: one builds graphs and inverted indexes, one at a time for all banks; one restores those of checkpoints, which
//! takes seconds where builds take minutes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::build::{self, Bank, Pace};
use super::restore::restore;
use super::{tier, words};
use crate::api::Result;
use crate::index::IndexLock;

/// Interval in which the growth of a bank's tail is measured, in steps after which the thread may be stopped.
const WATCHED: Duration = Duration::from_millis(500);
const WATCH_STEP: Duration = Duration::from_millis(20);
/// A tail that grows by more than one row in so many meanwhile doubles in about a minute, in which a graph takes some
/// hundred thousand rows: what is built of it now would be half of the bank, and every search would read one graph
/// more.
const GROWING: u32 = 128;

/// A thread, and the way to hand it banks.
type Worker = (Sender<Bank>, JoinHandle<()>);

/// The threads, each started by the first bank that is due.
#[derive(Debug)]
pub(crate) struct GraphWorker {
    pace: Pace,
    restorer: Mutex<Option<Worker>>,
    worker: Mutex<Option<Worker>>,
    stopped: Arc<AtomicBool>,
    /// Held by whoever builds.
    building: Arc<Mutex<()>>,
}

impl GraphWorker {
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            restorer: Mutex::default(),
            worker: Mutex::default(),
            stopped: Arc::default(),
            building: Arc::default(),
        }
    }

    /// When builds are due, and how they are done.
    pub(crate) fn pace(&self) -> Pace {
        self.pace
    }

    /// Builds what the bank needs, in the background.
    pub(crate) fn queue(&self, bank: Weak<IndexLock>) {
        // The receiver lives as long as the thread, which lives as long as the sender.
        let _ = self.builder().send(bank);
    }

    /// Puts back what the bank's checkpoint has, moves its vectors, then builds what else it needs, in the background.
    pub(crate) fn queue_restore(&self, bank: Weak<IndexLock>) {
        let mut restorer = self.restorer.lock();
        let (sender, _) = restorer.get_or_insert_with(|| {
            let builder = self.builder();
            let stopped = Arc::clone(&self.stopped);
            start("astrocyte-restore", move |bank| {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                restore(&bank);
                make_huge(&bank, &stopped);
                while !stopped.load(Ordering::Relaxed) && move_vectors(&bank) {}
                let _ = builder.send(bank);
            })
        });
        let _ = sender.send(bank);
    }

    /// Builds what the bank needs, now and without rests: on the caller's thread, and by as many more as the pace
    /// allows.
    ///
    /// # Errors
    /// When there is no memory for a graph, or the scratch file cannot be read.
    pub(crate) fn build_now(&self, bank: &Arc<IndexLock>) -> Result<()> {
        let pace = Pace {
            share: self.pace.share.ceil(),
            ..self.pace
        };
        let bank = Arc::downgrade(bank);
        restore(&bank);
        let next = || {
            let _building = self.building.lock();
            step(&bank, pace)
        };
        while next()? {}
        make_huge(&bank, &self.stopped);
        Ok(())
    }

    /// The way to the thread that builds.
    fn builder(&self) -> Sender<Bank> {
        let mut worker = self.worker.lock();
        let (sender, _) = worker.get_or_insert_with(|| {
            let (pace, stopped) = (self.pace, Arc::clone(&self.stopped));
            let building = Arc::clone(&self.building);
            start("astrocyte-fold", move |bank| {
                tier::begin(&bank);
                // After a failure the rest stays in memory, and the next commits ask again.
                let moves = || {
                    tier::step(&bank, pace).unwrap_or(false) || {
                        let _building = building.lock();
                        drop_postings(&bank, pace).unwrap_or(false)
                    }
                };
                settle(&bank, &stopped, moves);
                // After a failure the scan goes on answering, and the next commits ask again.
                let next = || {
                    let _building = building.lock();
                    step(&bank, pace).unwrap_or(false)
                };
                let mut built = false;
                while !stopped.load(Ordering::Relaxed) && next() {
                    built = true;
                }
                if built {
                    make_huge(&bank, &stopped);
                }
            })
        });
        sender.clone()
    }
}

/// Builds an inverted index of a bank in the disk tier, whose rows then need no postings in memory; false where there is
/// none to build. During an import they would take more memory than all else.
fn drop_postings(bank: &Bank, pace: Pace) -> Result<bool> {
    let disk = bank.upgrade().is_some_and(|bank| bank.read().disk);
    let pace = pace.of_tier(true);
    Ok(disk && pace.word_rows > 0 && words::step(bank, pace)?)
}

/// Does what is most useful for the bank: a step to its tier, or the build of a graph or of an inverted index.
fn step(bank: &Bank, pace: Pace) -> Result<bool> {
    if tier::step(bank, pace)? || drop_postings(bank, pace)? {
        return Ok(true);
    }
    let disk = bank.upgrade().is_some_and(|bank| bank.read().disk);
    let pace = pace.of_tier(disk);
    let built = pace.graph_rows > 0 && build::step(bank, pace)?;
    Ok(built || (pace.word_rows > 0 && words::step(bank, pace)?))
}

/// A thread that does its `work` with each bank that it is handed.
fn start(name: &str, work: impl Fn(Bank) + Send + 'static) -> Worker {
    let (sender, receiver) = channel::<Bank>();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let handle = thread.spawn(move || receiver.into_iter().for_each(work));
    (sender, handle.expect("a thread can be started"))
}

/// Has what recalls by graphs read here and there lie in huge pages, where the bank has graphs.
fn make_huge(bank: &Bank, stopped: &AtomicBool) {
    let ranges = bank.upgrade().and_then(|bank| {
        let index = bank.read();
        (!index.segments.all.is_empty()).then(|| index.ranges())
    });
    if let Some(ranges) = ranges {
        ranges.make_huge(|| bank.strong_count() > 0 && !stopped.load(Ordering::Relaxed));
    }
}

/// Moves some of the vectors that are where the bank's checkpoint has them; false when none are left.
fn move_vectors(bank: &Bank) -> bool {
    let Some(exact_vectors) = bank
        .upgrade()
        .map(|bank| Arc::clone(&bank.read().exact_vectors))
    else {
        return false;
    };
    // Where the checkpoint cannot be read any more, reads of its vectors fail.
    exact_vectors.move_some().unwrap_or(false)
}

/// Waits for the end of an import, so that one graph is built of it. Meanwhile what comes is moved to its tier, and in the
/// disk tier words go to inverted indexes.
fn settle(bank: &Bank, stopped: &AtomicBool, moves: impl Fn() -> bool) {
    let tail = || {
        let bank = bank.upgrade()?;
        let index = bank.read();
        Some(index.rows() - index.segments.covered.len())
    };
    let mut before = tail();
    while let Some(rows) = before {
        while !stopped.load(Ordering::Relaxed) && moves() {}
        for _ in 0..WATCHED.as_millis() / WATCH_STEP.as_millis() {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(WATCH_STEP);
        }
        let now = tail();
        if now.is_none_or(|now| now.saturating_sub(rows) <= rows / GROWING) {
            return;
        }
        before = now;
    }
}

impl Drop for GraphWorker {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Its banks are dropped with it, so a build under way ends when it breathes next. Who restores can hand banks
        // to who builds, and so ends first.
        for worker in [&self.restorer, &self.worker] {
            if let Some((sender, handle)) = worker.lock().take() {
                drop(sender);
                let _ = handle.join();
            }
        }
    }
}
