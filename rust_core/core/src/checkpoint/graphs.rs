//! Graphs in a checkpoint: one file each, and one that names the vectors of all.
//!
//! A graph of usearch holds vectors; those of removed rows are zeroed on the way to the file. When it is restored, the
//! file is copied to one without a name, which is mapped: nobody else can change or cut that one, and vectors can be
//! overwritten in it while the checkpoint stays as it was verified.
//!
//! A graph is large, and a bank answers without it. It is therefore verified when it is restored in the background, not
//! when the bank is loaded. Vectors are named by version key and part, which do not change. Vectors removed before the
//! checkpoint have no name.

use std::path::Path;
use std::sync::Arc;

use super::manifest::{Manifest, io};
use super::segment_copy::{SegmentCopies, version};
use super::writer::{Slices, TOGETHER, slices};
use crate::api::Result;
use crate::graph::{DEAD_SHARE, GONE, Graph, GraphKind, Name, Saved, Segment};
use crate::index::Index;
use crate::system::checked_file::refused;
use crate::system::checked_file::{
    FileReader, FileWriter, Sum, open_verified, put_array, put_text, put_u32,
};
use crate::system::failpoint;

/// Stands for a vector that is gone: no version has this key.
const NOBODY: Name = (u64::MAX, u32::MAX);

/// All graphs, and what the manifest is to hold of the files of those that were written.
type Graphs = (Vec<Arc<Graph>>, Vec<Sum>);

/// The name of a kind of graph among the members; graphs of the core have none.
fn kind_name(kind: GraphKind) -> String {
    match kind {
        GraphKind::Own => String::new(),
        GraphKind::Usearch => version(),
    }
}

/// Writes the graphs that are worth it, and whose they are to `members`; None when rows or terms got other numbers
/// meanwhile.
pub(super) fn write(
    bank: &mut Slices<'_>,
    directory: &Path,
    members: &mut FileWriter,
    durable: bool,
) -> Result<Option<Graphs>> {
    let Some(all) = bank.look(|index| index.segments.all.clone()) else {
        return Ok(None);
    };
    let graphs = all.iter().map(|one| Arc::clone(&one.graph)).collect();
    let (mut out, mut kept) = (Vec::new(), Vec::with_capacity(all.len()));
    for segment in all {
        let Some(names) = names(bank, &segment) else {
            return Ok(None);
        };
        let dead = names.iter().filter(|name| **name == NOBODY).count();
        // One that is about to be built anew, or that is empty, is not worth it.
        if (dead as u32) < segment.len().div_ceil(DEAD_SHARE) {
            put_text(&kind_name(segment.graph.kind()), &mut out);
            put_names(&names, &mut out);
            kept.push((segment.graph, names));
        }
    }
    let count = (kept.len() as u32).to_le_bytes();
    for part in [&count, &out[..]] {
        members.put(part).map_err(|error| io(&error))?;
    }
    let mut sums = Vec::with_capacity(kept.len());
    for (number, (graph, names)) in kept.iter().enumerate() {
        let file = FileWriter::create(directory, &name_of(number));
        let mut file = file.map_err(|error| io(&error))?;
        let dead = |number: u32| names[number as usize] == NOBODY;
        graph
            .save(dead, |bytes| file.put(bytes))
            .map_err(|error| io(&error))?;
        sums.push(file.finish(durable).map_err(|error| io(&error))?);
        failpoint::reach("checkpoint.file");
    }
    Ok(Some((graphs, sums)))
}

/// The graphs that the manifest names, to be restored.
pub(super) fn read(
    members: &mut FileReader,
    manifest: &Manifest,
    directory: &Path,
    copies: &SegmentCopies,
) -> Result<Vec<Saved>> {
    if members.take_u32()? as usize != manifest.graphs.len() {
        return Err(refused("the number of graphs differs from the manifest"));
    }
    let mut saved = Vec::with_capacity(manifest.graphs.len());
    for (number, &sum) in manifest.graphs.iter().enumerate() {
        let kind = members.take_text()?;
        let names = take_names(members)?;
        let (directory, count) = (directory.to_owned(), names.len());
        let (copies, dimensions) = (copies.clone(), manifest.dimensions as usize);
        let (kind, open): (_, Box<dyn FnOnce() -> Result<Graph> + Send + Sync>) = if kind.is_empty()
        {
            let open = move || {
                let file = open_verified(&directory, &name_of(number), sum, |_| true)?;
                Graph::read(&mut FileReader::new(file, "a graph", sum.length), count)
            };
            (GraphKind::Own, Box::new(open))
        } else if kind == version() {
            let open = move || {
                let bytes = copies.take(&directory, &name_of(number), sum)?;
                Graph::open(bytes, dimensions, count)
            };
            (GraphKind::Usearch, Box::new(open))
        } else {
            // Of another release, which may read it otherwise.
            continue;
        };
        saved.push(Saved { kind, names, open });
    }
    Ok(saved)
}

/// Holds every byte of all graphs against the manifest.
pub(super) fn verify(directory: &Path, manifest: &Manifest) -> Result<()> {
    let mut graphs = manifest.graphs.iter().enumerate();
    graphs.try_for_each(|(number, &sum)| {
        open_verified(directory, &name_of(number), sum, |_| true).map(drop)
    })
}

/// The file of a graph.
fn name_of(number: usize) -> String {
    format!("graph{number}")
}

/// The names of a segment's vectors, by number.
fn names(bank: &mut Slices<'_>, segment: &Segment) -> Option<Vec<Name>> {
    let mut names = Vec::with_capacity(segment.rows().len());
    for range in slices(segment.len(), TOGETHER) {
        let rows = &segment.rows()[range.start as usize..range.end as usize];
        bank.look(|index| names.extend(rows.iter().map(|&row| name(index, row))))?;
    }
    Some(names)
}

fn name(index: &Index, row: u32) -> Name {
    if row == GONE {
        return NOBODY;
    }
    let version = index.version_of(row);
    if !index.columns.live.contains(version) {
        return NOBODY;
    }
    let first = index.rows_of(version).start;
    (index.columns.key[version as usize], row - first)
}

fn put_names(names: &[Name], out: &mut Vec<u8>) {
    let (keys, parts): (Vec<u64>, Vec<u32>) = names.iter().copied().unzip();
    put_u32(names.len() as u32, out);
    put_array(&keys, u64::to_le_bytes, out);
    put_array(&parts, u32::to_le_bytes, out);
}

fn take_names(members: &mut FileReader) -> Result<Vec<Name>> {
    let count = members.take_u32()? as usize;
    let (mut keys, mut parts) = (Vec::new(), Vec::new());
    members.take_array(count, u64::from_le_bytes, &mut keys)?;
    members.take_array(count, u32::from_le_bytes, &mut parts)?;
    Ok(keys.into_iter().zip(parts).collect())
}
