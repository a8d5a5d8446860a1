//! Writes a checkpoint: the index in slices, each under a short read lock, then the manifest; then reads all of it
//! back.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::manifest::{self, Manifest, io};
use super::{
    FILES, Label, MEMBERS, NAMES, PLANES, VECTORS, VERSIONS, WORDS, Written, graphs, loader,
    postings,
};
use astrocyte_text::analysis::Language;

use crate::api::Result;
use crate::dense::FlatIndex;
use crate::dense::exact_vectors::NO_SLOT;
use crate::graph::Graph;
use crate::index::{Index, IndexLock};
use crate::lexical::SealedPart;
use crate::system::checked_file::{FileWriter, put_text, put_u32, refused};
use crate::system::failpoint;

/// Versions, labels or terms of one slice: a few hundred microseconds.
pub(super) const TOGETHER: u32 = 4096;
/// Rows get new numbers when a fifth of a bank was removed, so hardly twice within a checkpoint.
const ATTEMPTS: usize = 3;

/// Writes a checkpoint of the bank into an empty directory, and reads it back. One that is not `durable` may be damaged
/// by a loss of power, which is found out when it is loaded.
///
/// # Errors
/// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when a file cannot be written, or is not what was written.
pub(crate) fn write(
    bank: &IndexLock,
    language: Language,
    directory: &Path,
    label: &Label,
    durable: bool,
) -> Result<Written> {
    failpoint::reach("checkpoint.begin");
    for _ in 0..ATTEMPTS {
        let mut slices = Slices::begin(bank);
        let Some(manifest) = slices.write(language, directory, label, durable)? else {
            continue;
        };
        failpoint::reach("checkpoint.files");
        manifest::write(directory, &manifest, durable).map_err(|error| io(&error))?;
        failpoint::reach("checkpoint.manifest");
        if durable {
            let sync = File::open(directory).and_then(|directory| directory.sync_all());
            sync.map_err(|error| io(&error))?;
        }
        let written = manifest::read(directory)?;
        loader::verify(directory, &written)?;
        graphs::verify(directory, &written)?;
        postings::verify(directory, &written)?;
        failpoint::reach("checkpoint.verified");
        slices
            .graphs
            .iter()
            .for_each(|graph| graph.note_saved(true));
        slices
            .postings
            .iter()
            .for_each(|part| part.note_saved(true));
        return Ok(Written {
            position: manifest.position,
            bytes: manifest.bytes(),
            longest_hold: slices.longest,
        });
    }
    Err(refused(
        "the rows were renumbered during every attempt; try again later",
    ))
}

/// The slices of an index that a checkpoint holds.
pub(super) struct Slices<'a> {
    bank: &'a IndexLock,
    position: u64,
    dimensions: u32,
    versions: u32,
    rows: u32,
    renumberings: (u64, u64),
    longest: Duration,
    graphs: Vec<Arc<Graph>>,
    postings: Vec<Arc<SealedPart>>,
}

impl<'a> Slices<'a> {
    fn begin(bank: &'a IndexLock) -> Self {
        let index = bank.read();
        Self {
            bank,
            position: index.position,
            dimensions: index.exact_vectors.dimensions() as u32,
            versions: index.columns.len(),
            rows: index.rows(),
            renumberings: index.renumberings(),
            longest: Duration::ZERO,
            graphs: Vec::new(),
            postings: Vec::new(),
        }
    }

    /// Rows that the checkpoint holds.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// Looks at the bank for a moment; None when rows or terms have other numbers by now.
    pub(super) fn look<T>(&mut self, at: impl FnOnce(&Index) -> T) -> Option<T> {
        let index = self.bank.read();
        if index.renumberings() != self.renumberings {
            return None;
        }
        let start = Instant::now();
        let seen = at(&index);
        drop(index);
        self.longest = self.longest.max(start.elapsed());
        Some(seen)
    }

    /// Writes all data files; None when rows or terms got other numbers meanwhile.
    fn write(
        &mut self,
        language: Language,
        directory: &Path,
        label: &Label,
        durable: bool,
    ) -> Result<Option<Manifest>> {
        let create = |name| FileWriter::create(directory, name).map_err(|error| io(&error));
        let mut files = [
            create(VERSIONS)?,
            create(PLANES)?,
            create(WORDS)?,
            create(VECTORS)?,
            create(NAMES)?,
            create(MEMBERS)?,
        ];
        let [versions, planes, words, vectors, names, members] = &mut files;
        let mut used = Used::default();
        // Versions first: a row may have gone since its version was written, but no row is left of one that had gone.
        let Some(()) = self.versions(versions, &mut used)? else {
            return Ok(None);
        };
        let Some(with_vector) = self.write_rows([planes, words, vectors], &mut used)? else {
            return Ok(None);
        };
        // Names last: every number that was written has its name, if it is still in use.
        let Some(()) = self.names(names, &used)? else {
            return Ok(None);
        };
        let Some((graphs, of_graphs)) = graphs::write(self, directory, members, durable)? else {
            return Ok(None);
        };
        self.graphs = graphs;
        let written = postings::write(self, directory, members, durable)?;
        let Some((parts, of_postings)) = written else {
            return Ok(None);
        };
        self.postings = parts;
        let mut sums = Vec::with_capacity(FILES.len());
        for file in files {
            sums.push(file.finish(durable).map_err(|error| io(&error))?);
            failpoint::reach("checkpoint.file");
        }
        Ok(Some(Manifest {
            label: label.clone(),
            position: self.position,
            analysis: language.fingerprint(),
            dimensions: self.dimensions,
            versions: self.versions,
            rows: self.rows,
            vectors: with_vector,
            sums: std::array::from_fn(|number| sums[number]),
            graphs: of_graphs,
            postings: of_postings,
        }))
    }

    fn versions(&mut self, file: &mut FileWriter, used: &mut Used) -> Result<Option<()>> {
        let mut out = Vec::new();
        for range in slices(self.versions, TOGETHER) {
            out.clear();
            put_u32(range.end - range.start, &mut out);
            let looked = self.look(|index| {
                index.columns.save(range.clone(), &mut out);
                index
                    .labels
                    .save(range.clone(), &index.columns.live, &mut out);
                index.conversations.save(
                    range.clone(),
                    &index.columns,
                    &mut used.conversations,
                    &mut out,
                );
            });
            if looked.is_none() {
                return Ok(None);
            }
            file.put(&out).map_err(|error| io(&error))?;
        }
        Ok(Some(()))
    }

    /// Returns how many rows have a vector.
    fn write_rows(
        &mut self,
        mut files: [&mut FileWriter; 3],
        used: &mut Used,
    ) -> Result<Option<u32>> {
        let mut parts: [Vec<u8>; 3] = Default::default();
        let mut with_vector = 0;
        for range in slices(self.rows, FlatIndex::TOGETHER) {
            for part in &mut parts {
                part.clear();
            }
            let [planes, words, vectors] = &mut parts;
            put_u32(range.end - range.start, planes);
            put_u32(range.end - range.start, words);
            let looked = self.look(|index| {
                index.vectors.save(range.clone(), planes);
                index.lexical.save(range.clone(), &mut used.terms, words);
                let rows = range.start as usize..range.end as usize;
                for &tokens in &index.tokens[rows.clone()] {
                    put_u32(tokens, planes);
                }
                let slots = &index.slots[rows];
                for &slot in slots {
                    planes.push(u8::from(slot != NO_SLOT));
                    with_vector += u32::from(slot != NO_SLOT);
                }
                index.exact_vectors.save(slots, vectors)
            });
            match looked {
                None => return Ok(None),
                Some(read) => read?,
            }
            for (file, part) in files.iter_mut().zip(&parts) {
                file.put(part).map_err(|error| io(&error))?;
            }
        }
        Ok(Some(with_vector))
    }

    fn names(&mut self, file: &mut FileWriter, used: &Used) -> Result<Option<()>> {
        let mut out = Vec::new();
        let counts = self.look(|index| {
            put_u32(index.layers.len() as u32, &mut out);
            for layer in &index.layers {
                put_text(layer, &mut out);
            }
            put_u32(used.conversations.len() as u32, &mut out);
            for name in index.conversations.saved_names(&used.conversations) {
                out.push(u8::from(name.is_some()));
                put_text(name.unwrap_or_default(), &mut out);
            }
            put_u32(used.terms.len() as u32, &mut out);
            put_u32(index.labels.names_count(), &mut out);
            index.labels.names_count()
        });
        let Some(labels) = counts else {
            return Ok(None);
        };
        for range in slices(used.terms.len() as u32, TOGETHER) {
            let range = range.start as usize..range.end as usize;
            let looked = self.look(|index| {
                let lexical = &index.lexical;
                lexical.save_terms(range, &used.terms, &mut out);
            });
            if looked.is_none() {
                return Ok(None);
            }
        }
        for range in slices(labels, TOGETHER) {
            let looked = self.look(|index| index.labels.save_names(range, &mut out));
            if looked.is_none() {
                return Ok(None);
            }
        }
        file.put(&out).map_err(|error| io(&error))?;
        Ok(Some(()))
    }
}

/// Numbers that what was written refers to.
#[derive(Default)]
struct Used {
    conversations: Vec<bool>,
    terms: Vec<bool>,
}

/// The numbers below `count`, some at a time.
pub(super) fn slices(count: u32, together: u32) -> impl Iterator<Item = Range<u32>> {
    (0..count)
        .step_by(together as usize)
        .map(move |first| first..count.min(first + together))
}
