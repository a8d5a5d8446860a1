//! The methods by which vectors and words are searched.

/// The way to the rows near to a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DenseMethod {
    /// Graphs for large banks; the planner compares their cost with that of a scan.
    #[default]
    Auto,
    /// A scan of all rows that pass; no graph is built.
    Scan,
    /// A graph wherever there is one, unless so few rows pass that reading these is cheaper.
    Graph,
    /// As `Graph`, by HNSW graphs of usearch.
    Usearch,
}

impl DenseMethod {
    /// Returns true if the planner may not prefer a scan in order.
    pub(crate) fn is_forced(self) -> bool {
        matches!(self, Self::Graph | Self::Usearch)
    }
}

/// The postings that a search of words reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LexicalMethod {
    /// The bank's own.
    #[default]
    Postings,
    /// Inverted indexes of tantivy for most rows, the bank's own for the rest.
    Tantivy,
}
