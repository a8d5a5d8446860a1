//! Text analysis for search: words and stems, token counts, content hashes and static embeddings.

pub mod analysis;
pub mod embed;
pub mod hash;
pub mod tokens;
