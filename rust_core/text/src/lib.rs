//! Text analysis for search: words and stems, cuts, token counts, content hashes and static embeddings.

pub mod analysis;
pub mod boundaries;
pub mod embed;
pub mod hash;
pub mod tokens;
