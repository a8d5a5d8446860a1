//! Loads a checkpoint: verifies all bytes, decodes and checks each file, and builds the index.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::manifest::{self, Label, Manifest};
use super::segment_copy::SegmentCopies;
use super::{FILES, MEMBERS, NAMES, PLANES, VECTORS, VERSIONS, WORDS, graphs, postings};
use crate::api::BankOptions;
use crate::api::{Result, Tier, TierLimits};
use crate::bitmap::Bitmap;
use crate::dense::FlatIndex;
use crate::dense::exact_vectors::{ExactVectors, NO_SLOT, Scratch, finite};
use crate::graph::Segments;
use crate::index::Index;
use crate::index::columns::Columns;
use crate::index::conversations::Conversations;
use crate::index::labels::Labels;
use crate::index::tier::{belongs_on_disk, memory_tier_bytes};
use crate::lexical::{Bm25Index, SealedPart};
use crate::system::checked_file::refused;
use crate::system::checked_file::{FileReader, open_verified};
use crate::system::failpoint;

/// The bank of a checkpoint, as it was at the position of the manifest or, in part, later.
///
/// # Errors
/// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when it is of another bank, model or version, a byte is not
/// what was written, or what was written makes no bank; [`CoreError::Io`](crate::CoreError::Io) when a file fails.
pub(crate) fn load(
    directory: &Path,
    label: &Label,
    options: BankOptions,
    (scratch, tier): (Option<Arc<Scratch>>, (Tier, TierLimits)),
) -> Result<Index> {
    let dimensions = options.dimensions;
    let manifest = manifest::read(directory)?;
    manifest.expect(label, options)?;
    let [versions, planes, words, vectors, names, members] = verify(directory, &manifest)?;
    failpoint::reach("checkpoint.load");
    let names = Names::read(reader(names, NAMES, &manifest))?;
    let Names {
        layers,
        conversations,
        fingerprints,
        labels,
    } = names;
    let copies = SegmentCopies::new(scratch.clone());
    let disk = scratch.is_some() && belongs_on_disk(tier, size(&manifest), false);
    let files = scratch.as_deref().filter(|_| disk);
    let mut members = reader(members, MEMBERS, &manifest);
    let saved = graphs::read(&mut members, &manifest, directory, &copies)?;
    let mut saved_words = postings::read(&mut members, &manifest, directory, &copies)?;
    members.end()?;
    // In the disk tier the postings of these rows are made nowhere else.
    let opened = if disk { saved_words.len() } else { 0 };
    let opened = saved_words.drain(..opened);
    let parts: Vec<SealedPart> = opened.map_while(|one| (one.open)().ok()).collect();
    let (described, scanned) = rayon::join(
        || {
            read_versions(
                reader(versions, VERSIONS, &manifest),
                &manifest,
                layers.len(),
                conversations,
                labels,
            )
        },
        || {
            rayon::join(
                || {
                    let planes = reader(planes, PLANES, &manifest);
                    read_planes(planes, &manifest, dimensions, files)
                },
                || {
                    rayon::join(
                        || {
                            let words = reader(words, WORDS, &manifest);
                            read_words(words, &manifest, &fingerprints, (files, parts))
                        },
                        || restore(&manifest, dimensions, scratch.clone(), vectors),
                    )
                },
            )
        },
    );
    let (planes, (lexical, exact_vectors)) = scanned;
    let (columns, labels, conversations) = described?;
    let (vectors, tokens, slots) = planes?;
    saved_words.reverse();
    let mut index = Index {
        position: manifest.position,
        tier: tier.0,
        disk,
        columns,
        labels,
        conversations,
        layers,
        vectors,
        exact_vectors: Arc::new(exact_vectors?),
        slots,
        tokens,
        lexical: lexical?,
        current_rows: Bitmap::default(),
        dead_rows: 0,
        segments: Segments::of(saved),
        saved_words,
        neighbours: OnceLock::new(),
    };
    index.count();
    Ok(index)
}

/// Opens all files and holds every byte of them against the manifest.
///
/// # Errors
/// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) for the first that differs.
pub(super) fn verify(directory: &Path, manifest: &Manifest) -> Result<[File; FILES.len()]> {
    let mut files = Vec::with_capacity(FILES.len());
    for (name, sum) in FILES.into_iter().zip(manifest.sums) {
        // A block of the vectors' holds whole numbers.
        let sane = if name == VECTORS {
            finite
        } else {
            |_: &[u8]| true
        };
        files.push(open_verified(directory, name, sum, sane)?);
    }
    files
        .try_into()
        .map_err(|_| refused("the manifest lacks a file"))
}

fn reader(file: File, name: &'static str, manifest: &Manifest) -> FileReader {
    let at = FILES.iter().position(|one| *one == name).unwrap_or(0);
    FileReader::new(file, name, manifest.sums[at].length)
}

/// The names behind numbers.
struct Names {
    layers: Vec<Arc<str>>,
    conversations: Vec<Option<String>>,
    fingerprints: Vec<u64>,
    labels: Vec<String>,
}

impl Names {
    fn read(mut reader: FileReader) -> Result<Self> {
        let reader = &mut reader;
        let count = reader.take_u32()?;
        let layers = (0..count)
            .map(|_| reader.take_text().map(Arc::from))
            .collect::<Result<_>>()?;
        let count = reader.take_u32()?;
        let chain = |_| {
            let named = reader.take(1, 1)?[0] != 0;
            let name = reader.take_text()?;
            Ok(named.then_some(name))
        };
        let conversations = (0..count).map(chain).collect::<Result<_>>()?;
        let terms = reader.take_u32()? as usize;
        let count = reader.take_u32()?;
        let mut fingerprints = Vec::new();
        reader.take_array(terms, u64::from_le_bytes, &mut fingerprints)?;
        let labels = (0..count)
            .map(|_| reader.take_text())
            .collect::<Result<_>>()?;
        reader.end()?;
        Ok(Self {
            layers,
            conversations,
            fingerprints,
            labels,
        })
    }
}

fn read_versions(
    mut reader: FileReader,
    manifest: &Manifest,
    layers: usize,
    conversations: Vec<Option<String>>,
    labels: Vec<String>,
) -> Result<(Columns, Labels, Conversations)> {
    let mut columns = Columns::default();
    let (mut labels, mut conversations) =
        (Labels::named(labels), Conversations::named(conversations));
    while columns.len() < manifest.versions {
        let count = reader.take_u32()? as usize;
        if count == 0 {
            return Err(refused("a slice of versions is empty"));
        }
        columns.read(count, &mut reader)?;
        labels.read(count, &mut reader)?;
        conversations.read(count, &mut reader)?;
    }
    reader.end()?;
    if columns.len() != manifest.versions || (columns.len() == 0) != (manifest.rows == 0) {
        return Err(refused("the number of versions differs from the manifest"));
    }
    columns.settle(manifest.rows, layers)?;
    labels.settle(&columns.live)?;
    conversations.arrange(&columns);
    Ok((columns, labels, conversations))
}

type Planes = (FlatIndex, Vec<u32>, Vec<u32>);

/// The size of the bank in the memory tier: rows, and estimated bytes.
fn size(manifest: &Manifest) -> (u64, u64) {
    let length = |name| {
        let at = FILES.iter().position(|one| *one == name);
        at.map_or(0, |at| manifest.sums[at].length)
    };
    let rows = u64::from(manifest.rows);
    (
        rows,
        memory_tier_bytes(rows, length(PLANES), 2 * length(WORDS)),
    )
}

fn read_planes(
    mut reader: FileReader,
    manifest: &Manifest,
    dimensions: usize,
    mut files: Option<&Scratch>,
) -> Result<Planes> {
    let mut vectors = FlatIndex::new(dimensions);
    let (mut tokens, mut slots, mut next) = (Vec::new(), Vec::new(), 0);
    while (tokens.len() as u32) < manifest.rows {
        let count = reader.take_u32()? as usize;
        if count == 0 {
            return Err(refused("a slice of rows is empty"));
        }
        vectors.read(count, &mut reader)?;
        while vectors.can_seal() && files.is_some() {
            // Where a file cannot be written, the rest stays in memory.
            files = files.filter(|files| vectors.seal_next(files).is_ok());
        }
        reader.take_array(count, u32::from_le_bytes, &mut tokens)?;
        for &flag in reader.take(count, 1)? {
            slots.push(if flag == 0 { NO_SLOT } else { next });
            next += u32::from(flag != 0);
        }
    }
    reader.end()?;
    if tokens.len() as u32 != manifest.rows || next != manifest.vectors {
        return Err(refused("the number of rows differs from the manifest"));
    }
    Ok((vectors, tokens, slots))
}

fn read_words(
    mut reader: FileReader,
    manifest: &Manifest,
    fingerprints: &[u64],
    (mut files, parts): (Option<&Scratch>, Vec<SealedPart>),
) -> Result<Bm25Index> {
    let mut lexical = Bm25Index::of_terms(fingerprints);
    while lexical.row_count() < manifest.rows {
        let count = reader.take_u32()? as usize;
        if count == 0 {
            return Err(refused("a slice of words is empty"));
        }
        lexical.read(count, &mut reader)?;
        while lexical.can_seal_terms() && files.is_some() {
            files = files.filter(|files| lexical.seal_next_terms(files).is_ok());
        }
    }
    reader.end()?;
    if lexical.row_count() != manifest.rows {
        return Err(refused("the words have more rows than the manifest"));
    }
    lexical.take_parts(parts);
    lexical.settle()?;
    Ok(lexical)
}

fn restore(
    manifest: &Manifest,
    dimensions: usize,
    scratch: Option<Arc<Scratch>>,
    file: File,
) -> Result<ExactVectors> {
    let bytes = u64::from(manifest.vectors) * (dimensions * size_of::<f32>()) as u64;
    if file.metadata()?.len() != bytes {
        return Err(refused("the number of vectors differs from the manifest"));
    }
    ExactVectors::restore(dimensions, scratch, manifest.vectors, file)
}
