//! The bundled static embedder: one int8 row per token, averaged.
//!
//! `scripts/distill_static_embedder.py` writes the table. A row already holds its token's weight, so a text's vector
//! is the sum of its rows, brought to length 1. No model runs: a text of 30 tokens takes microseconds.

mod wordpiece;

use xxhash_rust::xxh3::xxh3_64;

use thiserror::Error;
use wordpiece::WordPiece;

/// The bytes are not a valid table of token vectors.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("model table: {0}")]
pub struct ModelError(String);

/// A result of reading a table.
type Result<T> = std::result::Result<T, ModelError>;

/// First bytes of every table.
const MAGIC: &[u8; 8] = b"ASTROEMB";
/// The only layout so far: magic, checksum of the rest, five counts, model id, tokens, scales, rows; little-endian.
const FORMAT_VERSION: u32 = 1;
/// A table with longer rows is none that the script writes; the bound keeps a forged header from overflowing sizes.
const MAX_DIMENSIONS: usize = 4096;

/// Token vectors of a distilled model, and the tokeniser that finds them.
pub struct StaticEmbedder {
    model_id: String,
    dimensions: usize,
    pieces: WordPiece,
    /// One factor per row: its weight times its quantisation step.
    scales: Vec<f32>,
    /// Row after row, `dimensions` values each.
    rows: Vec<i8>,
}

impl StaticEmbedder {
    /// Read a table; the bytes are copied.
    ///
    /// # Errors
    /// [`ModelError`] when the bytes are no table, of another format version, cut short or changed.
    pub fn from_bytes(table: &[u8]) -> Result<Self> {
        let mut reader = Reader { rest: table };
        if reader.take(MAGIC.len(), "magic")? != MAGIC {
            return Err(ModelError(
                "does not start with the magic of a static table".to_owned(),
            ));
        }
        let checksum = u64::from_le_bytes(reader.array("checksum")?);
        if xxh3_64(reader.rest) != checksum {
            return Err(ModelError(
                "checksum differs; the file is damaged".to_owned(),
            ));
        }
        let version = reader.number("format version")?;
        if version != FORMAT_VERSION as usize {
            return Err(ModelError(format!(
                "format version: expected {FORMAT_VERSION}, got {version}"
            )));
        }
        let dimensions = reader.number("dimensions")?;
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return Err(ModelError(format!(
                "dimensions: expected 1 to {MAX_DIMENSIONS}, got {dimensions}"
            )));
        }
        let (count, id_length, words_length) = (
            reader.number("rows")?,
            reader.number("id length")?,
            reader.number("vocabulary length")?,
        );
        let model_id = reader.text(id_length, "model id")?.to_owned();
        let words = reader.text(words_length, "vocabulary")?;
        if words.split('\n').count() != count {
            return Err(ModelError(format!(
                "vocabulary: expected {count} tokens, got another number"
            )));
        }
        let scales = reader.scales(count)?;
        let rows = reader
            .take(count * dimensions, "rows")?
            .iter()
            .map(|byte| byte.cast_signed())
            .collect();
        if !reader.rest.is_empty() {
            return Err(ModelError(format!("{} bytes too many", reader.rest.len())));
        }
        Ok(Self {
            model_id,
            dimensions,
            pieces: WordPiece::new(words.split('\n')),
            scales,
            rows,
        })
    }

    /// Name and version of the vectors. Vectors of two ids are not comparable.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    /// Length of every vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Write the unit vector of `text` to `out` and return whether it says anything.
    ///
    /// A text without any known token (empty, or in a script that the vocabulary lacks) has no signal: `out` becomes
    /// the unit vector with all values equal, which an index accepts, and false comes back, so that a caller can skip
    /// the dense arm. The answer is also false, with `out` untouched, when `out` does not hold `dimensions` values.
    pub fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        if out.len() != self.dimensions {
            return false;
        }
        out.fill(0.0);
        self.pieces.rows(text, |row| self.add(row as usize, out));
        let norm = out.iter().map(|value| value * value).sum::<f32>().sqrt();
        if norm > 0.0 {
            for value in out {
                *value /= norm;
            }
            return true;
        }
        out.fill(1.0 / (self.dimensions as f32).sqrt());
        false
    }

    fn add(&self, row: usize, out: &mut [f32]) {
        let begin = row * self.dimensions;
        if let (Some(scale), Some(values)) = (
            self.scales.get(row),
            self.rows.get(begin..begin + self.dimensions),
        ) {
            for (sum, value) in out.iter_mut().zip(values) {
                *sum += scale * f32::from(*value);
            }
        }
    }
}

/// Takes a table apart from the front.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize, part: &str) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            let got = self.rest.len();
            return Err(ModelError(format!(
                "{part}: expected {length} bytes, got {got}"
            )));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, part)?);
        Ok(array)
    }

    fn number(&mut self, part: &str) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array(part)?) as usize)
    }

    fn text(&mut self, length: usize, part: &str) -> Result<&'a str> {
        std::str::from_utf8(self.take(length, part)?)
            .map_err(|_| ModelError(format!("{part}: not UTF-8")))
    }

    fn scales(&mut self, count: usize) -> Result<Vec<f32>> {
        let bytes = self.take(count * size_of::<f32>(), "scales")?;
        let scales: Vec<f32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|chunk| f32::from_le_bytes(*chunk))
            .collect();
        if scales.iter().any(|scale| !scale.is_finite()) {
            return Err(ModelError("scales: expected finite values".to_owned()));
        }
        Ok(scales)
    }
}

#[cfg(test)]
mod tests;
