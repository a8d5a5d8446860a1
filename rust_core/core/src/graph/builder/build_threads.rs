//! The threads of a build: they share the work, rest between parts, and stop when the build is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Work between two rests: about what a recall waits for where there is no other processor.
const STINT: Duration = Duration::from_millis(5);

/// Nobody wants what was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// The threads of a build.
pub(crate) struct BuildThreads<'a> {
    /// Processor cores that all of them take, above 0; those that take less than a whole one rest. There are as many
    /// threads, but no more than processors.
    pub(crate) share: f64,
    /// Returns true while the graph is wanted.
    pub(crate) wanted: &'a (dyn Fn() -> bool + Sync),
}

impl BuildThreads<'_> {
    /// Does `work` with each of the items, by all threads, each with a room of its own.
    ///
    /// # Errors
    /// [`Stopped`] when the graph is not wanted any more: some items were then left.
    pub(super) fn each<T: Send, R>(
        &self,
        items: impl Iterator<Item = T> + Send,
        room: impl Fn() -> R + Sync,
        work: impl Fn(&mut R, T, &mut Turn<'_>) -> Result<(), Stopped> + Sync,
    ) -> Result<(), Stopped> {
        let (items, stopped) = (Mutex::new(items), AtomicBool::new(false));
        let take = || {
            let (mut turn, mut room) = (self.turn_of(self.share / self.threads() as f64), room());
            // Not in the loop's head, where the lock would be held for the whole turn.
            let next = || items.lock().next();
            while let Some(item) = next() {
                if stopped.load(Ordering::Relaxed) || work(&mut room, item, &mut turn).is_err() {
                    stopped.store(true, Ordering::Relaxed);
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads() {
                let thread = std::thread::Builder::new().name("astrocyte-fold".to_owned());
                // One that the system refuses is done without.
                _ = thread.spawn_scoped(scope, take);
            }
            take();
        });
        if stopped.into_inner() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// A turn of one thread while the others have nothing to do. It begins now.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.turn_of(self.share)
    }

    fn turn_of(&self, share: f64) -> Turn<'_> {
        Turn {
            share,
            wanted: self.wanted,
            since: Instant::now(),
        }
    }

    fn threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (self.share.ceil() as usize).clamp(1, processors)
    }
}

/// One thread's work and rests.
pub(crate) struct Turn<'a> {
    share: f64,
    wanted: &'a (dyn Fn() -> bool + Sync),
    since: Instant,
}

impl Turn<'_> {
    /// To be called often: rests when it is time.
    ///
    /// # Errors
    /// [`Stopped`] when the graph is not wanted any more.
    pub(crate) fn breathe(&mut self) -> Result<(), Stopped> {
        let worked = self.since.elapsed();
        if worked < STINT {
            return Ok(());
        }
        if self.share < 1.0 {
            std::thread::sleep(worked.mul_f64((1.0 - self.share) / self.share));
        }
        self.since = Instant::now();
        if (self.wanted)() {
            Ok(())
        } else {
            Err(Stopped)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(turn: &mut Turn<'_>) -> Result<(), Stopped> {
        let start = Instant::now();
        while start.elapsed() < STINT {
            std::hint::spin_loop();
        }
        turn.breathe()
    }

    #[test]
    fn every_item_is_done_once_by_whoever_comes_to_it() {
        for share in [1.0, 3.0] {
            let (threads, done) = (
                BuildThreads {
                    share,
                    wanted: &|| true,
                },
                Mutex::new(Vec::new()),
            );
            let work = |(): &mut (), item, turn: &mut Turn<'_>| {
                done.lock().push(item);
                turn.breathe()
            };
            assert_eq!(threads.each(0..1000, || (), work), Ok(()));
            let mut done = done.into_inner();
            done.sort_unstable();
            assert!(done.into_iter().eq(0..1000));
        }
    }

    #[test]
    fn what_nobody_wants_is_left() {
        for share in [1.0, 3.0] {
            let (threads, done) = (
                BuildThreads {
                    share,
                    wanted: &|| false,
                },
                Mutex::new(0),
            );
            let work = |(): &mut (), _, turn: &mut Turn<'_>| {
                *done.lock() += 1;
                spin(turn)
            };
            assert_eq!(threads.each(0..1000, || (), work), Err(Stopped));
            assert!(done.into_inner() <= 3);
        }
    }

    #[test]
    fn a_share_of_a_core_is_what_is_taken() {
        let threads = BuildThreads {
            share: 0.25,
            wanted: &|| true,
        };
        let (start, mut turn) = (Instant::now(), threads.turn());
        for _ in 0..4 {
            assert_eq!(spin(&mut turn), Ok(()));
        }
        assert!(start.elapsed() >= 4 * 4 * STINT);
    }
}
