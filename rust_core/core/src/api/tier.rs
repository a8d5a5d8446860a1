//! The tiers in which the index of a bank can lie.

/// The tier of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tier {
    /// Memory up to the [limits](TierLimits), the disk beyond.
    #[default]
    Auto,
    /// Memory.
    Memory,
    /// Mapped files: the quantised vectors, graphs of usearch, the terms of rows and inverted indexes of tantivy. The
    /// newest rows, columns and statistics are in memory.
    Disk,
}

/// The size beyond which [`Tier::Auto`] is the disk tier. 0 stands for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierLimits {
    /// Rows of a bank.
    pub rows: u32,
    /// Bytes that the bank would take in the memory tier, without graphs; estimated.
    pub bytes: u64,
}
