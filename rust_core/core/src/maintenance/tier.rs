//! Moves a bank to the tier in which it belongs, a few thousand rows at a time, while recalls go on.

use std::io;
use std::sync::Arc;

use super::build::{Bank, Pace, segment_file};
use crate::api::Result;
use crate::index::{Index, IndexLock, Intending};
use crate::system::failpoint;

/// Takes the next step towards the bank's tier; false when it is there.
///
/// # Errors
/// When a file cannot be made or written. What was moved stays where it is, and the rest in memory.
pub(super) fn step(bank: &Bank, pace: Pace) -> Result<bool> {
    let Some(bank) = bank.upgrade() else {
        return Ok(false);
    };
    let index = bank.intend();
    let wanted = index.wants_disk(pace.limits);
    if wanted != index.disk {
        let mut index = bank.change(index);
        index.disk = wanted;
        return Ok(true);
    }
    if wanted {
        to_disk(&bank, index, pace.of_tier(true))
    } else {
        Ok(to_memory(&bank, index))
    }
}

/// Notes that the background looks at the bank: what fills up from here on is to be handed to it again.
pub(super) fn begin(bank: &Bank) {
    if let Some(bank) = bank.upgrade() {
        bank.change(bank.intend()).segments.queued = false;
    }
}

fn to_disk(bank: &Arc<IndexLock>, index: Intending<'_>, pace: Pace) -> Result<bool> {
    let most = pace.most_graph_rows(true, index.rows());
    let mut segments = index.segments.all.iter();
    if let Some(number) =
        segments.position(|one| one.graph.kind() != pace.method.kind() && one.len() > most)
    {
        // To build another of so many vectors at once would take the memory for which the bank moves.
        let mut index = bank.change(index);
        let Index {
            segments, slots, ..
        } = &mut *index;
        segments.drop_segment(number, slots);
        return Ok(true);
    }
    let file = || segment_file(&index).unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
    if index.vectors.can_seal() {
        let copy = index.vectors.sealed_copy(&file()?)?;
        failpoint::reach("tier.file");
        let freed = bank.change(index).vectors.seal(copy);
        // After readers are back.
        drop(freed);
        failpoint::reach("tier.moved");
        return Ok(true);
    }
    if index.lexical.can_seal_terms() {
        let copy = index.lexical.sealed_terms_copy(&file()?)?;
        let freed = bank.change(index).lexical.seal_terms(copy);
        drop(freed);
        return Ok(true);
    }
    if index.lexical.can_drop() {
        bank.change(index).lexical.drop_some();
        failpoint::reach("tier.dropped");
        return Ok(true);
    }
    Ok(false)
}

fn to_memory(bank: &Arc<IndexLock>, index: Intending<'_>) -> bool {
    if index.vectors.sealed_rows() > 0 {
        let copy = index.vectors.unsealed_copy();
        let freed = bank.change(index).vectors.unseal(copy);
        drop(freed);
        return true;
    }
    if index.lexical.is_on_disk() {
        own_postings(bank, index);
        return true;
    }
    false
}

/// Gives the bank all its postings and the terms of its rows in memory, and drops the inverted indexes.
pub(crate) fn own_postings(bank: &IndexLock, index: Intending<'_>) {
    let rows: Vec<u32> = (0..index.rows()).collect();
    let mut lexical = index.lexical.rebuilt(&rows, None);
    let mut index = bank.change(index);
    std::mem::swap(&mut index.lexical, &mut lexical);
    drop(index);
    drop(lexical);
}
