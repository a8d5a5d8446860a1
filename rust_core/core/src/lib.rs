//! The search index of Astrocyte: dense and keyword search over the memories of a bank, with filters, fusion,
//! deduplication and token budgets in one call.
//!
//! A [`Core`] makes [`Bank`]s. [`Bank::apply`] adds, ends and removes rows in commits; [`Bank::recall`] searches. Banks
//! live in memory. [`Bank::checkpoint`] writes one to files, and [`Core::load`] reads it back.
//!
//! ```
//! use astrocyte_core::{Core, RecallRequest, Row};
//!
//! # fn main() -> astrocyte_core::Result<()> {
//! let bank = Core::new(None)?.bank(3)?;
//! let mut tea = Row::new(1, [1; 16], [1; 16], "Ann drinks green tea".to_owned(), 0);
//! tea.vector = Some(vec![1.0, 0.0, 0.0]);
//! let mut rain = Row::new(2, [2; 16], [2; 16], "It rains in Bergen".to_owned(), 0);
//! rain.vector = Some(vec![0.0, 1.0, 0.0]);
//! bank.apply(1, &[tea, rain], &[], &[])?;
//!
//! let request = RecallRequest {
//!     text: Some("who likes tea?".to_owned()),
//!     vector: Some(vec![0.9, 0.1, 0.0]),
//!     k: 1,
//!     ..RecallRequest::default()
//! };
//! let response = bank.recall(&request)?;
//! assert_eq!(response.hits[0].key, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Glossary
//!
//! | Term | Meaning |
//! |---|---|
//! | memory, version | A memory has a 16-byte id. Each change makes a version with a key of its own; one version is current. |
//! | row, whole, chunk | A version is indexed as one row for its whole text and one row for each chunk. |
//! | commit, position | [`Bank::apply`] applies a commit. Its number is the position of the bank. |
//! | bank, core | The index of one group of memories; the owner of what banks share. |
//! | arm | A way to rank memories: semantic, keyword, temporal, or an external list. |
//! | candidates | Memories that arms rank. A scan scores all that pass the filter; graphs propose some. |
//! | coarse scan, rescore | Cosines from half of the bytes of all rows; from all bytes of some rows; from exact vectors of few. |
//! | exact vectors | The original f32 vectors, in memory or in the scratch file. |
//! | graph, segment | A proximity graph over the vectors of many rows; a graph with the rows that it covers. |
//! | search method | Whose graphs and postings are searched: the core's, or those of usearch and tantivy. |
//! | graph search | A best-first search of a graph from its entry point. |
//! | graph rows | Rows outside all segments from which on a graph is built of them. |
//! | labels | Tags, metadata, fact types and layers, by which filters select. |
//! | conversation | The memories of one session in order of time. |
//! | context window | A short turn's score together with the scores of its neighbours in the conversation. |
//! | score stats | Mean and deviation of an arm's scores over all memories that pass the filter. |
//! | feedback | A second keyword search with words of the first hits. |
//! | distribution-based score fusion | A weighted sum of z-scores. Reciprocal rank fusion sums inverse ranks. |
//! | label boost | A bounded amount added to the scores of memories with a label. |
//! | checkpoint | The index of a bank in files. |

pub mod api;
mod bank;
mod batch;
mod bitmap;
pub mod checkpoint;
pub mod cross_bank;
mod dense;
mod graph;
mod index;
mod lexical;
mod maintenance;
mod recall;
mod registry;
mod system;
mod topk;

pub use api::{
    ArmScore, BankOptions, BankStats, Boost, Chunk, ContentHash, CoreError, DenseMethod, Duplicate,
    Evidence, Expansion, Explained, ExternalList, Fate, FusionMethod, Hit, LabelBoost,
    LexicalMethod, MemoryId, PhraseCandidates, RecallRequest, RecallResponse, Result, Row, Share,
    Standing, Step, SubjectEvidence, TagMatch, Tier, TierLimits, TurnBoosts,
};
pub use bank::Bank;
pub use dense::{MAX_DIMENSIONS, simd_path};
pub use recall::{KEYWORD, PlannerOptions, SEMANTIC, TEMPORAL, at_rank, text_relevance};
pub use registry::{Core, CoreOptions, MOST_CORES};
pub use system::failpoint;

/// Parts of the index for the tests and benchmarks of this crate. They may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::bitmap::Bitmap;
    pub use crate::dense::{Block, Kernel, QuantisedQuery, dot, normalise};
    pub use crate::lexical::{Bm25Index, LexicalIndex, Sums};
}
