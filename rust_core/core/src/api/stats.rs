//! Counts and bytes of a bank.

/// Counts and bytes of a bank's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BankStats {
    /// Current memories.
    pub memories: u64,
    /// Versions held, ended ones included.
    pub versions: u64,
    /// Indexed rows: wholes and chunks.
    pub rows: u64,
    /// Rows of removed versions, not yet compacted away.
    pub dead_rows: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Conversations.
    pub sessions: u64,
    /// Resident bytes of the int8 rows.
    pub bytes_vectors: u64,
    /// Resident bytes of the keyword index.
    pub bytes_lexical: u64,
    /// Resident bytes of columns, maps and filters.
    pub bytes_columns: u64,
    /// Bytes of original vectors: on disk, or in memory without a scratch file.
    pub bytes_scratch: u64,
    /// Sealed segments.
    pub segments: u64,
    /// Vectors in the segments' graphs, dead ones included.
    pub graph_rows: u64,
    /// Resident bytes of the graphs.
    pub bytes_graphs: u64,
    /// Bytes of graphs of usearch, indexes of tantivy and rows of the disk tier in mapped files. They are in no other
    /// number: the system drops them where memory is short.
    pub bytes_mapped: u64,
    /// 1 in the disk tier, on the way to it too; 0 in the memory tier.
    pub on_disk: u64,
    /// Rows whose quantised vectors and words are in mapped files, removed ones included until a compaction.
    pub disk_rows: u64,
    /// Recent graph searches that were compared with a scan.
    pub sampled: u64,
    /// The number of rows among the ten nearest of these searches.
    pub sampled_wanted: u64,
    /// The number of these rows that the graph search found.
    pub sampled_found: u64,
    /// Number of times that searches were widened because too few rows were found; beyond three, scans replace them.
    pub widened: u64,
    /// All resident bytes, with what the builds that are due will add.
    pub bytes: u64,
}
