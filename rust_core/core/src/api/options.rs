//! The options of a bank.

use astrocyte_text::analysis::Language;

use super::tier::Tier;

/// The options of a bank at its creation. From a number of dimensions alone, its words are English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BankOptions {
    /// Values of a vector.
    pub dimensions: usize,
    /// Language of the Latin words.
    pub language: Language,
    /// The tier; None takes that of the core.
    pub tier: Option<Tier>,
}

impl From<usize> for BankOptions {
    fn from(dimensions: usize) -> Self {
        Self {
            dimensions,
            language: Language::default(),
            tier: None,
        }
    }
}
