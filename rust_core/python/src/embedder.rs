//! The static embedder.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::arguments::Text;
use super::errors::{detached, fault};
use astrocyte_text::embed;

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct StaticEmbedder {
    embedder: embed::StaticEmbedder,
}

#[pymethods]
impl StaticEmbedder {
    #[new]
    fn new(py: Python<'_>, table: PyBackedBytes) -> PyResult<Self> {
        let embedder =
            detached(py, || Ok(embed::StaticEmbedder::from_bytes(&table)))?.map_err(fault)?;
        Ok(Self { embedder })
    }

    #[getter]
    fn model_id(&self) -> &str {
        self.embedder.model_id()
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    fn embed<'py>(&self, py: Python<'py>, texts: Vec<Text>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let vectors = detached(py, || {
            Ok(texts
                .iter()
                .map(|text| self.embed_one(&text.0))
                .collect::<Vec<_>>())
        })?;
        Ok(vectors
            .iter()
            .map(|bytes| PyBytes::new(py, bytes))
            .collect())
    }
}

impl StaticEmbedder {
    /// The vector of `text` as little-endian bytes.
    fn embed_one(&self, text: &str) -> Vec<u8> {
        let mut vector = vec![0.0; self.embedder.dimensions()];
        self.embedder.embed(text, &mut vector);
        vector.into_iter().flat_map(f32::to_le_bytes).collect()
    }
}
