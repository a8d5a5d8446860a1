//! The Python extension `astrocyte._core`: the only code that knows Python. `_core.pyi` is its documentation.
//!
//! Each entry point copies or pins its arguments, detaches from the interpreter, and runs the core behind a guard that
//! turns a panic into an exception (`errors::detached`). No lock is taken while attached.

mod answer;
mod arguments;
mod bank;
mod bank_fusion;
mod embedder;
mod errors;
mod explanation;
mod hit_encoding;
mod pii;
mod request;
mod result_encoding;
mod row;
mod server;
mod text;

use pyo3::prelude::*;

#[pymodule(name = "_core")]
mod core_module {
    #[pymodule_export]
    use super::answer::{Answer, AnswerTrace, Hit, encode_batch};
    #[pymodule_export]
    use super::bank::{Bank, Core, describe_checkpoint, failpoint};
    #[pymodule_export]
    use super::bank_fusion::{fuse_banks, split_budget, summarise};
    #[pymodule_export]
    use super::embedder::StaticEmbedder;
    #[pymodule_export]
    use super::explanation::{Explanation, Fate};
    #[pymodule_export]
    use super::pii::{PiiScanner, pii_kinds};
    #[pymodule_export]
    use super::request::RecallRequest;
    #[pymodule_export]
    use super::row::Row;
    #[pymodule_export]
    use super::server::{GrpcCall, GrpcServer};
    #[pymodule_export]
    use super::text::{
        build_info, content_hash, count_tokens, count_tokens_many, holds_phrases, languages,
        phrase_word_count, relevance_at_rank, split_sentences, split_words, stemmed_words,
        text_relevance,
    };

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        super::errors::keep_panics_quiet();
        super::declare_names(module)
    }
}

/// Sets `__all__` in the order of the stub.
fn declare_names(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.setattr(
        "__all__",
        [
            "Answer",
            "AnswerTrace",
            "Bank",
            "Core",
            "Explanation",
            "Fate",
            "GrpcCall",
            "GrpcServer",
            "Hit",
            "PiiScanner",
            "RecallRequest",
            "Row",
            "StaticEmbedder",
            "build_info",
            "content_hash",
            "count_tokens",
            "count_tokens_many",
            "describe_checkpoint",
            "encode_batch",
            "failpoint",
            "fuse_banks",
            "holds_phrases",
            "languages",
            "phrase_word_count",
            "pii_kinds",
            "relevance_at_rank",
            "split_budget",
            "split_sentences",
            "split_words",
            "stemmed_words",
            "summarise",
            "text_relevance",
        ],
    )
}
