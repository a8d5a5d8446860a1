//! The manifest of a checkpoint: its bank, its position, and the length and checksum of every file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::FILES;
use crate::api::BankOptions;
use crate::api::{CoreError, Result};
use crate::system::checked_file::refused;
use crate::system::checked_file::{Sum, create, put_text};

pub(super) const MANIFEST: &str = "MANIFEST";
const MAGIC: &[u8; 8] = b"astrockp";
/// Raised with every change of what is in the files.
const FORMAT: u32 = 6;
/// A manifest is some hundred bytes; what is longer is none.
const LARGEST: u64 = 64 << 10;
/// Bytes of the checksum at the end.
const SUM_BYTES: usize = 8;

/// The identity of a checkpoint. All but the note must be as the loader expects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Label {
    /// Permanent name of the bank.
    pub bank: String,
    /// The embedding model that its vectors are from.
    pub model: String,
    /// Version of the way that rows are made of memories.
    pub recipe: String,
    /// The writer's own, up to some hundred bytes.
    pub note: String,
}

/// A manifest, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) label: Label,
    pub(super) position: u64,
    /// Of the text analysis that made the terms.
    pub(super) analysis: u64,
    pub(super) dimensions: u32,
    pub(super) versions: u32,
    pub(super) rows: u32,
    /// Rows with a vector.
    pub(super) vectors: u32,
    /// In the order of [`FILES`].
    pub(super) sums: [Sum; FILES.len()],
    pub(super) graphs: Vec<Sum>,
    /// Indexes of tantivy.
    pub(super) postings: Vec<Sum>,
}

impl Manifest {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&probe().to_le_bytes());
        bytes.extend_from_slice(&self.position.to_le_bytes());
        bytes.extend_from_slice(&self.analysis.to_le_bytes());
        for number in [self.dimensions, self.versions, self.rows, self.vectors] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let label = &self.label;
        for text in [&label.bank, &label.model, &label.recipe, &label.note] {
            put_text(text, &mut bytes);
        }
        for files in [&self.postings, &self.graphs] {
            bytes.extend_from_slice(&(files.len() as u32).to_le_bytes());
        }
        let files = self.postings.iter().chain(&self.graphs);
        for sum in files.chain(&self.sums) {
            bytes.extend_from_slice(&sum.length.to_le_bytes());
            bytes.extend_from_slice(&sum.hash.to_le_bytes());
        }
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = Parts(bytes);
        let (position, analysis) = (parts.u64()?, parts.u64()?);
        let [dimensions, versions, rows, vectors] =
            [parts.u32()?, parts.u32()?, parts.u32()?, parts.u32()?];
        let label = Label {
            bank: parts.text()?,
            model: parts.text()?,
            recipe: parts.text()?,
            note: parts.text()?,
        };
        let (postings, graphs) = (parts.u32()?, parts.u32()?);
        let mut sums = |count| (0..count).map(|_| parts.sum()).collect::<Option<_>>();
        let (postings, graphs) = (sums(postings)?, sums(graphs)?);
        let mut sums = [Sum { length: 0, hash: 0 }; FILES.len()];
        for sum in &mut sums {
            *sum = parts.sum()?;
        }
        parts.0.is_empty().then_some(Self {
            label,
            position,
            analysis,
            dimensions,
            versions,
            rows,
            vectors,
            sums,
            graphs,
            postings,
        })
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        let all = self.sums.iter().chain(&self.graphs);
        let all = all.chain(&self.postings);
        all.map(|sum| sum.length).sum()
    }

    /// # Errors
    /// [`CoreError::Checkpoint`] when it is of another bank, model, text analysis or version than expected.
    pub(super) fn expect(&self, label: &Label, options: BankOptions) -> Result<()> {
        for (what, same) in [
            ("bank", self.label.bank == label.bank),
            ("embedding model", self.label.model == label.model),
            (
                "number of dimensions",
                self.dimensions as usize == options.dimensions,
            ),
            (
                "text analysis",
                self.analysis == options.language.fingerprint(),
            ),
            ("version", self.label.recipe == label.recipe),
        ] {
            if !same {
                return Err(refused(format!("it is of another {what}")));
            }
        }
        Ok(())
    }
}

/// Writes the manifest; with `durable` it survives a loss of power.
pub(super) fn write(directory: &Path, manifest: &Manifest, durable: bool) -> std::io::Result<()> {
    let mut file = create(&directory.join(MANIFEST))?;
    file.write_all(&manifest.encode())?;
    if durable { file.sync_all() } else { Ok(()) }
}

/// Reads and checks a manifest.
///
/// # Errors
/// [`CoreError::Checkpoint`] when it is not there, damaged, or of another format.
pub(super) fn read(directory: &Path) -> Result<Manifest> {
    let path = directory.join(MANIFEST);
    let failed =
        |error: std::io::Error| refused(format!("{MANIFEST} cannot be read: {}", error.kind()));
    let length = fs::metadata(&path).map_err(failed)?.len();
    let damaged = || refused(format!("{MANIFEST} is damaged"));
    if length > LARGEST {
        return Err(damaged());
    }
    let bytes = fs::read(&path).map_err(failed)?;
    let (body, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or_else(damaged)?;
    if xxh3_64(body) != u64::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let mut parts = Parts(body.strip_prefix(MAGIC).ok_or_else(damaged)?);
    if parts.u32().ok_or_else(damaged)? != FORMAT || parts.u64().ok_or_else(damaged)? != probe() {
        return Err(refused("the format version is not supported"));
    }
    Manifest::decode(parts.0).ok_or_else(damaged)
}

/// The result of hashing and quantising a sample: a checkpoint of code with another result is not used.
fn probe() -> u64 {
    static PROBE: OnceLock<u64> = OnceLock::new();
    *PROBE.get_or_init(|| {
        let mut bytes = astrocyte_text::hash::content_hash("naïve 東京 10² résumés").to_vec();
        let vector: Vec<f32> = (0..130u16).map(|n| f32::from(n % 17) - 7.5).collect();
        crate::dense::quantised_bytes(&vector, &mut bytes);
        xxh3_64(&bytes)
    })
}

/// The bytes that are left to decode.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (four, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*four))
    }

    fn u64(&mut self) -> Option<u64> {
        let (eight, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*eight))
    }

    fn sum(&mut self) -> Option<Sum> {
        let (length, hash) = (self.u64()?, self.u64()?);
        Some(Sum { length, hash })
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

/// An error of the file system, without the path that it may name.
pub(super) fn io(error: &std::io::Error) -> CoreError {
    refused(format!("cannot be written: {}", error.kind()))
}
