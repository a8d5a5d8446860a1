//! The lock of an index: readers wait only while a change is made, not while it is prepared.
//!
//! A writer first takes the intent to write, which excludes other writers but no readers, and prepares the change. Only
//! the change itself excludes readers. While it waits for readers, new ones may begin, so that a long recall delays the
//! commit behind it but not other recalls; readers that leave no gap are held back after a moment. Threads of the pool
//! are never held back: a recall that is reading may wait for them.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use parking_lot::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};

use super::state::Index;

/// Longest delay of a change by readers that leave no gap: less than a durable commit takes.
const PATIENCE: Duration = Duration::from_millis(1);

/// The state, to be read.
pub(crate) type Reading<'a> = RwLockReadGuard<'a, Index>;
/// The state, to be read by who will change it.
pub(crate) type Intending<'a> = RwLockUpgradableReadGuard<'a, Index>;
/// The state, to be changed.
pub(crate) type Changing<'a> = RwLockWriteGuard<'a, Index>;

/// The state of a bank, and its lock.
#[derive(Debug)]
pub(crate) struct IndexLock {
    index: RwLock<Index>,
    /// True if a writer has waited long enough.
    pressing: AtomicBool,
    /// Held by an erasure until it is done: each one makes builds begun before it worthless, those of another erasure
    /// too.
    erasing: Mutex<()>,
}

impl IndexLock {
    pub(crate) fn new(index: Index) -> Self {
        Self {
            index: RwLock::new(index),
            pressing: AtomicBool::new(false),
            erasing: Mutex::new(()),
        }
    }

    /// For an erasure, of which there is one at a time. Taken before the intent to write.
    pub(crate) fn erase(&self) -> MutexGuard<'_, ()> {
        self.erasing.lock()
    }

    /// For a look.
    pub(crate) fn read(&self) -> Reading<'_> {
        // A recall that reads may wait for a thread of the pool, which must never wait for the writer that waits for
        // it.
        let may_wait = rayon::current_thread_index().is_none();
        // A reader that misses the flag is one more that the writer waits for.
        if may_wait && self.pressing.load(Ordering::Relaxed) {
            self.index.read()
        } else {
            self.index.read_recursive()
        }
    }

    /// For a change to come, of which there is one at a time.
    pub(crate) fn intend(&self) -> Intending<'_> {
        self.index.upgradable_read()
    }

    /// From the intent to the change.
    pub(crate) fn change<'a>(&'a self, intent: Intending<'a>) -> Changing<'a> {
        let index = Intending::try_upgrade_for(intent, PATIENCE).unwrap_or_else(|intent| {
            self.pressing.store(true, Ordering::Relaxed);
            let index = Intending::upgrade(intent);
            self.pressing.store(false, Ordering::Relaxed);
            index
        });
        after_readers(index)
    }
}

/// Orders the change after whatever readers did who have left: the upgrade with a time limit, when it finds nobody to
/// wait for, does not (`parking_lot` 0.12.5 subtracts without `Acquire` there).
fn after_readers(index: Changing<'_>) -> Changing<'_> {
    if cfg!(feature = "thread-sanitizer") {
        // ThreadSanitizer knows no fences. The upgrade without a limit orders in a way that it sees.
        return Intending::upgrade(Changing::downgrade_to_upgradable(index));
    }
    fence(Ordering::Acquire);
    index
}
