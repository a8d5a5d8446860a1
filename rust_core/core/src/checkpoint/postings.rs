//! Indexes of tantivy in a checkpoint: one file each, and among the members the rows that they cover.
//!
//! An index with words of removed rows is left out. Like graphs, the others are verified when they are restored.

use std::path::Path;
use std::sync::Arc;

use super::manifest::{Manifest, io};
use super::segment_copy::{SegmentCopies, version};
use super::writer::Slices;
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::lexical::{SavedWords, SealedPart};
use crate::system::checked_file::{
    FileReader, FileWriter, Sum, open_verified, put_array, put_text, put_u32, refused,
};
use crate::system::failpoint;

/// All indexes, and what the manifest is to hold of the files of those that were written.
type Postings = (Vec<Arc<SealedPart>>, Vec<Sum>);

/// Writes the indexes from the first row on up to the first one that has words of removed rows, and what they cover to
/// `members`; None when rows or terms got other numbers meanwhile.
pub(super) fn write(
    bank: &mut Slices<'_>,
    directory: &Path,
    members: &mut FileWriter,
    durable: bool,
) -> Result<Option<Postings>> {
    let Some(parts) = bank.look(|index| index.lexical.sealed_parts().to_vec()) else {
        return Ok(None);
    };
    // Later ones cover rows that were not there when the checkpoint began.
    let within = |part: &&Arc<SealedPart>| part.rows().end <= bank.rows() && !part.is_stale();
    let all: Vec<&Arc<SealedPart>> = parts.iter().take_while(within).collect();
    let mut out = Vec::new();
    put_text(&version(), &mut out);
    put_u32(all.len() as u32, &mut out);
    for part in &all {
        let rows = part.rows();
        put_u32(rows.start, &mut out);
        put_u32(rows.end, &mut out);
        put_array(part.held().words(), u64::to_le_bytes, &mut out);
    }
    members.put(&out).map_err(|error| io(&error))?;
    let mut sums = Vec::with_capacity(all.len());
    for (number, part) in all.iter().enumerate() {
        let file = FileWriter::create(directory, &name_of(number));
        let mut file = file.map_err(|error| io(&error))?;
        file.put(part.as_bytes()).map_err(|error| io(&error))?;
        sums.push(file.finish(durable).map_err(|error| io(&error))?);
        failpoint::reach("checkpoint.file");
    }
    Ok(Some((parts, sums)))
}

/// The indexes that the manifest names, to be restored.
pub(super) fn read(
    members: &mut FileReader,
    manifest: &Manifest,
    directory: &Path,
    copies: &SegmentCopies,
) -> Result<Vec<SavedWords>> {
    let known = members.take_text()? == version();
    if members.take_u32()? as usize != manifest.postings.len() {
        return Err(refused(
            "the number of inverted indexes differs from the manifest",
        ));
    }
    let (mut saved, mut next) = (Vec::new(), 0);
    for (number, &sum) in manifest.postings.iter().enumerate() {
        let (first, end) = (members.take_u32()?, members.take_u32()?);
        if first != next || end <= first || end > manifest.rows {
            return Err(refused("inverted indexes cover rows that are not there"));
        }
        next = end;
        let mut words = Vec::new();
        let count = (end - first).div_ceil(u64::BITS) as usize;
        members.take_array(count, u64::from_le_bytes, &mut words)?;
        let held = Bitmap::of_words(words, end - first)
            .ok_or_else(|| refused("an inverted index has words of rows that it does not cover"))?;
        let (directory, copies) = (directory.to_owned(), copies.clone());
        let open = move || {
            let bytes = copies.take(&directory, &name_of(number), sum)?;
            let part = SealedPart::open(first, end - first, held, bytes);
            part.map_err(|error| refused(error.to_string()))
        };
        if known {
            saved.push(SavedWords {
                open: Box::new(open),
            });
        }
    }
    Ok(saved)
}

/// Holds every byte of all indexes against the manifest.
pub(super) fn verify(directory: &Path, manifest: &Manifest) -> Result<()> {
    let mut postings = manifest.postings.iter().enumerate();
    postings.try_for_each(|(number, &sum)| {
        open_verified(directory, &name_of(number), sum, |_| true).map(drop)
    })
}

/// The file of an index.
fn name_of(number: usize) -> String {
    format!("postings{number}")
}
