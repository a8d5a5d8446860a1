//! The owner of scratch space and the index of one bank.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::answer::Answer;
use super::arguments::{Id, Text, Vector, strings};
use super::errors::{detached, invalid};
use super::explanation::Explanation;
use super::request::RecallRequest;
use super::row::Row;
use astrocyte_core::checkpoint::{self, Label};
use astrocyte_core::failpoint::reach;
use astrocyte_core::{
    BankOptions, CoreOptions, DenseMethod, LexicalMethod, PlannerOptions, Tier, TierLimits, api,
};
use astrocyte_text::analysis::Language;

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Core {
    core: astrocyte_core::Core,
}

#[pymethods]
impl Core {
    #[new]
    #[pyo3(signature = (
        scratch_dir=None, *, graph_rows=0, build_share=0.5, graph_candidates=160, scan_rows=0, sampling=0.01,
        recall_floor=0.98, threads=0, dense=None, lexical=None, tier=None, disk_rows=0, disk_bytes=0
    ))]
    #[pyo3(
        text_signature = "(scratch_dir=None, *, graph_rows=0, build_share=0.5, graph_candidates=160, scan_rows=0, \
        sampling=0.01, recall_floor=0.98, threads=0, dense='auto', lexical='postings', tier='auto', disk_rows=0, \
        disk_bytes=0)"
    )]
    #[expect(clippy::too_many_arguments, reason = "one keyword argument per option")]
    fn new(
        py: Python<'_>,
        scratch_dir: Option<Text>,
        graph_rows: u32,
        build_share: f64,
        graph_candidates: usize,
        scan_rows: u32,
        sampling: f64,
        recall_floor: f64,
        threads: usize,
        dense: Option<Text>,
        lexical: Option<Text>,
        tier: Option<Text>,
        disk_rows: u32,
        disk_bytes: u64,
    ) -> PyResult<Self> {
        let directory = scratch_dir.map(|directory| PathBuf::from(directory.into_string()));
        let options = CoreOptions {
            graph_rows,
            build_share,
            dense: dense.map_or(Ok(DenseMethod::Auto), |name| dense_method(&name.0))?,
            lexical: lexical.map_or(Ok(LexicalMethod::Postings), |name| lexical_method(&name.0))?,
            tier: tier.map_or(Ok(Tier::Auto), |name| named_tier(&name.0))?,
            tier_limits: TierLimits {
                rows: disk_rows,
                bytes: disk_bytes,
            },
            planner: PlannerOptions {
                candidates: graph_candidates,
                scan_rows,
                sampling,
                recall_floor,
            },
            threads,
        };
        let core = detached(py, || {
            astrocyte_core::Core::with_options(directory.as_deref(), options)
        })?;
        Ok(Self { core })
    }

    #[pyo3(signature = (dimensions, language, tier=None))]
    #[pyo3(text_signature = "($self, dimensions, language, tier=None)")]
    fn bank(
        &self,
        py: Python<'_>,
        dimensions: usize,
        language: Text,
        tier: Option<Text>,
    ) -> PyResult<Bank> {
        let options = options(dimensions, &language, tier.as_ref())?;
        let bank = detached(py, || self.core.bank(options))?;
        Ok(Bank { bank })
    }

    #[pyo3(signature = (directory, dimensions, bank, model, recipe, language, tier=None))]
    #[pyo3(
        text_signature = "($self, directory, dimensions, bank, model, recipe, language, tier=None)"
    )]
    #[expect(
        clippy::too_many_arguments,
        reason = "one argument per part of the call"
    )]
    fn load(
        &self,
        py: Python<'_>,
        directory: Text,
        dimensions: usize,
        bank: Text,
        model: Text,
        recipe: Text,
        language: Text,
        tier: Option<Text>,
    ) -> PyResult<Bank> {
        let options = options(dimensions, &language, tier.as_ref())?;
        let directory = PathBuf::from(directory.into_string());
        let label = label(bank, model, recipe, String::new());
        let bank = detached(py, || self.core.load(&directory, &label, options))?;
        Ok(Bank { bank })
    }

    fn release_memory(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.core.release_memory();
            Ok(())
        })
    }

    fn recall_many(
        &self,
        py: Python<'_>,
        requests: Vec<(Py<Bank>, Py<RecallRequest>)>,
    ) -> PyResult<Vec<Answer>> {
        let responses = detached(py, || {
            let requests: Vec<(&astrocyte_core::Bank, &api::RecallRequest)> = requests
                .iter()
                .map(|(bank, request)| (&bank.get().bank, &*request.get().request))
                .collect();
            self.core.recall_many(&requests)
        })?;
        Ok(responses.into_iter().map(Answer::new).collect())
    }
}

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Bank {
    pub(super) bank: astrocyte_core::Bank,
}

/// Key, memory id and cosine.
type Duplicate<'py> = (u64, Bound<'py, PyBytes>, f32);
/// Key and memory id of a version that may hold phrases.
type Candidate<'py> = (u64, Bound<'py, PyBytes>);

#[pymethods]
impl Bank {
    #[pyo3(signature = (position, upserts=vec![], ended=vec![], removed=vec![]))]
    #[pyo3(text_signature = "($self, position, upserts=(), ended=(), removed=())")]
    fn apply(
        &self,
        py: Python<'_>,
        position: u64,
        upserts: Vec<Py<Row>>,
        ended: Vec<(u64, i64)>,
        removed: Vec<u64>,
    ) -> PyResult<()> {
        detached(py, || {
            let rows: Vec<&api::Row> = upserts.iter().map(|row| &row.get().row).collect();
            self.bank.apply(position, &rows, &ended, &removed)
        })
    }

    fn recall(&self, py: Python<'_>, request: &RecallRequest) -> PyResult<Answer> {
        let response = detached(py, || self.bank.recall(&request.request))?;
        Ok(Answer::new(response))
    }

    fn explain(
        &self,
        py: Python<'_>,
        request: &RecallRequest,
        memory_ids: Vec<Id>,
    ) -> PyResult<Explanation> {
        let ids: Vec<api::MemoryId> = memory_ids.into_iter().map(|id| id.0).collect();
        let explained = detached(py, || self.bank.explain(&request.request, &ids))?;
        Explanation::new(py, explained)
    }

    fn phrase_candidates<'py>(
        &self,
        py: Python<'py>,
        request: &RecallRequest,
        phrases: Vec<Text>,
        most: usize,
    ) -> PyResult<(Vec<Candidate<'py>>, usize)> {
        let phrases = strings(phrases);
        let found = detached(py, || {
            self.bank
                .phrase_candidates(&request.request, &phrases, most)
        })?;
        let to_python = |(key, id): (u64, api::MemoryId)| (key, PyBytes::new(py, &id));
        Ok((
            found.found.into_iter().map(to_python).collect(),
            found.total,
        ))
    }

    fn begin_spellings(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || Ok(self.bank.begin_spellings()))
    }

    fn add_spellings(&self, py: Python<'_>, generation: u64, texts: Vec<Text>) -> PyResult<bool> {
        let texts = strings(texts);
        detached(py, || Ok(self.bank.add_spellings(generation, &texts)))
    }

    fn finish_spellings(&self, py: Python<'_>, generation: u64) -> PyResult<bool> {
        detached(py, || Ok(self.bank.finish_spellings(generation)))
    }

    // Waits for no lock.
    fn has_spellings(&self) -> bool {
        self.bank.has_spellings()
    }

    #[pyo3(signature = (prefix, most, *, past=false))]
    fn expand(
        &self,
        py: Python<'_>,
        prefix: Text,
        most: usize,
        past: bool,
    ) -> PyResult<Option<(Vec<String>, usize, bool)>> {
        let found = detached(py, || Ok(self.bank.expand(&prefix.0, most, past)))?;
        Ok(found.map(|found| (found.words, found.total, found.cut)))
    }

    fn near_duplicates<'py>(
        &self,
        py: Python<'py>,
        vectors: Vec<Vector>,
        threshold: f32,
    ) -> PyResult<Vec<Vec<Duplicate<'py>>>> {
        let vectors: Vec<Vec<f32>> = vectors.into_iter().map(|vector| vector.0).collect();
        let found = detached(py, || self.bank.near_duplicates(&vectors, threshold))?;
        let to_python =
            |found: api::Duplicate| (found.key, PyBytes::new(py, &found.memory_id), found.cosine);
        Ok(found
            .into_iter()
            .map(|nearest| nearest.into_iter().map(to_python).collect())
            .collect())
    }

    fn contains_hashes<'py>(
        &self,
        py: Python<'py>,
        hashes: Vec<Id>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let hashes: Vec<api::ContentHash> = hashes.into_iter().map(|hash| hash.0).collect();
        let found = detached(py, || Ok(self.bank.contains_hashes(&hashes)))?;
        Ok(found
            .into_iter()
            .map(|id| id.map(|id| PyBytes::new(py, &id)))
            .collect())
    }

    fn set_tier(&self, py: Python<'_>, tier: Text) -> PyResult<()> {
        let tier = named_tier(&tier.0)?;
        detached(py, || {
            self.bank.set_tier(tier);
            Ok(())
        })
    }

    fn fold(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.bank.build_graphs())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a label, and how it is written"
    )]
    fn checkpoint(
        &self,
        py: Python<'_>,
        directory: Text,
        bank: Text,
        model: Text,
        recipe: Text,
        note: Text,
        durable: bool,
    ) -> PyResult<(u64, u64, f64)> {
        let directory = PathBuf::from(directory.into_string());
        let label = label(bank, model, recipe, note.into_string());
        let written = detached(py, || self.bank.checkpoint(&directory, &label, durable))?;
        let seconds = written.longest_hold.as_secs_f64();
        Ok((written.position, written.bytes, seconds))
    }

    fn keys_of(&self, py: Python<'_>, memory_ids: Vec<Id>) -> PyResult<Vec<u64>> {
        let ids: Vec<api::MemoryId> = memory_ids.into_iter().map(|id| id.0).collect();
        detached(py, || Ok(self.bank.keys_of(&ids)))
    }

    fn times(&self, py: Python<'_>) -> PyResult<Option<(i64, i64)>> {
        detached(py, || Ok(self.bank.times()))
    }

    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || Ok(self.bank.position()))
    }

    #[getter]
    fn unsaved_graph_rows(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || Ok(self.bank.unsaved_graph_rows()))
    }

    #[getter]
    fn unsaved_word_rows(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || Ok(self.bank.unsaved_word_rows()))
    }

    fn scrub(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.bank.scrub();
            Ok(())
        })
    }

    #[getter]
    fn dimensions(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || Ok(self.bank.dimensions()))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = detached(py, || Ok(self.bank.stats()))?;
        let dict = PyDict::new(py);
        for (name, value) in [
            ("memories", stats.memories),
            ("versions", stats.versions),
            ("rows", stats.rows),
            ("dead_rows", stats.dead_rows),
            ("terms", stats.terms),
            ("sessions", stats.sessions),
            ("bytes_vectors", stats.bytes_vectors),
            ("bytes_lexical", stats.bytes_lexical),
            ("bytes_columns", stats.bytes_columns),
            ("bytes_scratch", stats.bytes_scratch),
            ("segments", stats.segments),
            ("graph_rows", stats.graph_rows),
            ("bytes_graphs", stats.bytes_graphs),
            ("bytes_mapped", stats.bytes_mapped),
            ("on_disk", stats.on_disk),
            ("disk_rows", stats.disk_rows),
            ("sampled", stats.sampled),
            ("sampled_wanted", stats.sampled_wanted),
            ("sampled_found", stats.sampled_found),
            ("widened", stats.widened),
            ("bytes", stats.bytes),
        ] {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

fn label(bank: Text, model: Text, recipe: Text, note: String) -> Label {
    Label {
        bank: bank.into_string(),
        model: model.into_string(),
        recipe: recipe.into_string(),
        note,
    }
}

#[pyfunction]
pub(super) fn describe_checkpoint(py: Python<'_>, directory: Text) -> PyResult<(u64, String)> {
    let directory = PathBuf::from(directory.into_string());
    let (label, position) = detached(py, || checkpoint::describe(&directory))?;
    Ok((position, label.note))
}

#[pyfunction]
pub(super) fn failpoint(py: Python<'_>, name: Text) -> PyResult<()> {
    detached(py, || {
        reach(&name.into_string());
        Ok(())
    })
}

/// The options of a bank from Python's arguments.
fn options(dimensions: usize, language: &Text, tier: Option<&Text>) -> PyResult<BankOptions> {
    let language = Language::from_name(&language.0).ok_or_else(|| {
        let names: Vec<&str> = Language::ALL.iter().map(|one| one.name()).collect();
        invalid("language", format!("expected one of {}", names.join(", ")))
    })?;
    Ok(BankOptions {
        dimensions,
        language,
        tier: tier.map(|name| named_tier(&name.0)).transpose()?,
    })
}

fn named_tier(name: &str) -> PyResult<Tier> {
    match name {
        "auto" => Ok(Tier::Auto),
        "memory" => Ok(Tier::Memory),
        "disk" => Ok(Tier::Disk),
        _ => Err(invalid(
            "tier",
            format!("expected auto, memory or disk, got {name:?}"),
        )),
    }
}

fn dense_method(name: &str) -> PyResult<DenseMethod> {
    match name {
        "auto" => Ok(DenseMethod::Auto),
        "scan" => Ok(DenseMethod::Scan),
        "graph" => Ok(DenseMethod::Graph),
        "usearch" => Ok(DenseMethod::Usearch),
        _ => Err(invalid(
            "dense",
            format!("expected auto, scan, graph or usearch, got {name:?}"),
        )),
    }
}

fn lexical_method(name: &str) -> PyResult<LexicalMethod> {
    match name {
        "postings" => Ok(LexicalMethod::Postings),
        "tantivy" => Ok(LexicalMethod::Tantivy),
        _ => Err(invalid(
            "lexical",
            format!("expected postings or tantivy, got {name:?}"),
        )),
    }
}
