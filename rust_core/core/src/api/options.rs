//! What a bank is made with.

use astrocyte_text::analysis::Language;

/// What a bank holds. Made of a number of dimensions, its words are English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BankOptions {
    /// Values of a vector.
    pub dimensions: usize,
    /// Language of the Latin words.
    pub language: Language,
}

impl From<usize> for BankOptions {
    fn from(dimensions: usize) -> Self {
        Self {
            dimensions,
            language: Language::default(),
        }
    }
}
