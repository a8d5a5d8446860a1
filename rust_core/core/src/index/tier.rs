//! The tier of a bank: chosen by its setting and its size, and reached by the background step by step.

use super::state::Index;
use crate::api::{Tier, TierLimits};

/// Bytes of a row's columns, maps and labels; measured.
const COLUMN_BYTES: u64 = 150;
/// A bank returns to memory below three quarters of a limit: at the limit it would move with every change.
const RETURN_QUARTERS: u64 = 3;

/// Returns true if a bank of this size belongs in the disk tier, where it `is` already or not.
pub(crate) fn belongs_on_disk(
    (tier, limits): (Tier, TierLimits),
    (rows, bytes): (u64, u64),
    is: bool,
) -> bool {
    let quarters = if is { RETURN_QUARTERS } else { 4 };
    let above = |size: u64, limit: u64| limit > 0 && size * 4 > limit * quarters;
    match tier {
        Tier::Memory => false,
        Tier::Disk => true,
        Tier::Auto => above(rows, u64::from(limits.rows)) || above(bytes, limits.bytes),
    }
}

/// Bytes that rows take in the memory tier, from those of their vectors and words.
pub(crate) fn memory_tier_bytes(rows: u64, vectors: u64, words: u64) -> u64 {
    rows * COLUMN_BYTES + vectors + words
}

impl Index {
    /// Returns true if the bank belongs in the disk tier, and has a place for files.
    pub(crate) fn wants_disk(&self, limits: TierLimits) -> bool {
        let rows = u64::from(self.rows() - self.dead_rows);
        let vectors = rows * self.vectors.row_bytes() as u64;
        let bytes = memory_tier_bytes(rows, vectors, self.lexical.memory_tier_bytes() as u64);
        self.exact_vectors.scratch().is_some()
            && belongs_on_disk((self.tier, limits), (rows, bytes), self.disk)
    }

    /// Returns true, once, if the background should move some of the bank to where it belongs.
    pub(crate) fn tier_due(&mut self, limits: TierLimits) -> bool {
        if self.segments.queued {
            return false;
        }
        let wanted = self.wants_disk(limits);
        let filled = wanted && (self.vectors.can_seal() || self.lexical.can_seal_terms());
        // Few rows stay in memory in either tier.
        self.segments.queued = filled || (self.disk && !wanted);
        self.segments.queued
    }

    /// Rows whose vectors and words are in files.
    pub(crate) fn rows_on_disk(&self) -> u32 {
        self.vectors.sealed_rows().min(self.lexical.sealed_rows())
    }

    /// Names the disk tier in a plan; empty in the memory tier.
    pub(crate) fn tier_note(&self) -> String {
        if !self.disk {
            return String::new();
        }
        format!(
            "; disk tier: {} of {} rows in files",
            self.rows_on_disk(),
            self.rows()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TierLimits = TierLimits {
        rows: 100,
        bytes: 1000,
    };

    #[test]
    fn a_bank_beyond_either_limit_goes_to_disk_and_returns_well_below_both() {
        let goes = |rows, bytes, is| belongs_on_disk((Tier::Auto, LIMITS), (rows, bytes), is);
        assert!(!goes(100, 1000, false));
        assert!(goes(101, 0, false) && goes(0, 1001, false));
        assert!(goes(76, 0, true) && goes(0, 751, true));
        assert!(!goes(75, 750, true));
    }

    #[test]
    fn a_setting_wins_over_the_size_and_no_limit_is_never_passed() {
        let none = TierLimits::default();
        let goes =
            |tier, limits| belongs_on_disk((tier, limits), (u64::from(u32::MAX), 1 << 60), false);
        assert!(!goes(Tier::Memory, LIMITS) && !goes(Tier::Auto, none) && goes(Tier::Auto, LIMITS));
        assert!(belongs_on_disk((Tier::Disk, none), (0, 0), false));
    }
}
