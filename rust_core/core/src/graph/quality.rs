//! Measured recall of graph searches, by comparison with scans.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counts of graph searches of one bank that were compared with scans.
#[derive(Debug, Default)]
pub(crate) struct Quality {
    /// Comparisons that were started because too little was known, since the last widening.
    pub(crate) started: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) found: AtomicU64,
    pub(crate) wanted: AtomicU64,
    /// Number of times that the search was widened.
    pub(crate) widened: AtomicU32,
}

impl Quality {
    /// Keeps 1 part in `parts` of what is known, or nothing of it where `parts` is 1.
    pub(crate) fn forget(&self, parts: u64) {
        for count in [&self.samples, &self.found, &self.wanted] {
            let kept = if parts == 1 {
                0
            } else {
                count.load(Ordering::Relaxed) / parts
            };
            count.store(kept, Ordering::Relaxed);
        }
    }
}
