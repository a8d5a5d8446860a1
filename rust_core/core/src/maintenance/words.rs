//! Builds of inverted indexes of tantivy: words are read in batches, indexed aside and published by one assignment.

use std::sync::Arc;

use super::build::{Bank, LOOKED_UP, Pace, optional_file};
use crate::api::{CoreError, Result};
use crate::graph::BuildThreads;
use crate::lexical::{Generation, SealPlan, SealedPart, SealedPartBuilder};
use crate::system::allocator;
use astrocyte_segments::SegmentError;

fn failed(error: &SegmentError) -> CoreError {
    CoreError::Lexical(error.to_string())
}

/// Indexes the rows of the bank that wait for it; returns whether there were enough.
///
/// # Errors
/// When tantivy fails.
pub(super) fn step(bank: &Bank, pace: Pace) -> Result<bool> {
    let Some((plan, generation)) = bank.upgrade().and_then(|bank| {
        let mut index = bank.change(bank.intend());
        index.segments.queued = false;
        if index.segments.restoring() {
            return None;
        }
        let disk = index.disk;
        let plan = index.lexical.seal_plan(pace.word_rows, disk)?;
        Some((plan, index.lexical.generation()))
    }) else {
        return Ok(false);
    };
    build(bank, pace.share, &plan, generation)
}

/// Builds the indexes anew that have words of removed rows, with the share of the processor that a build may take.
///
/// # Errors
/// When tantivy fails.
pub(crate) fn renew(bank: &Bank, share: f64) -> Result<()> {
    let next = || {
        let bank = bank.upgrade()?;
        let index = bank.read();
        Some((index.lexical.stale_plan()?, index.lexical.generation()))
    };
    let mut last = None;
    while let Some((plan, generation)) = next() {
        // One that is stale again at once is left to the next time.
        if last.as_ref() == Some(&plan) || !build(bank, share, &plan, generation)? {
            break;
        }
        last = Some(plan);
    }
    Ok(())
}

/// Builds these indexes anew, without the words of rows that are removed by now. One that is gone meanwhile is passed
/// over.
///
/// # Errors
/// When tantivy fails, or a file cannot be written.
pub(crate) fn replace(bank: &Bank, parts: &[Arc<SealedPart>], share: f64) -> Result<()> {
    for part in parts {
        let next = bank.upgrade().and_then(|bank| {
            let index = bank.read();
            Some((index.lexical.plan_of(part)?, index.lexical.generation()))
        });
        if let Some((plan, generation)) = next {
            build(bank, share, &plan, generation)?;
        }
    }
    Ok(())
}

/// Builds what is planned, and shows it; false where nobody wants it any more.
fn build(bank: &Bank, share: f64, plan: &SealPlan, generation: Generation) -> Result<bool> {
    let wanted = || bank.strong_count() > 0;
    let threads = BuildThreads {
        share,
        wanted: &wanted,
    };
    let mut turn = threads.turn();
    let mut builder = SealedPartBuilder::new(&plan.rows).map_err(|error| failed(&error))?;
    for first in plan.rows.clone().step_by(LOOKED_UP as usize) {
        let end = plan.rows.end.min(first + LOOKED_UP);
        let Some(index) = bank.upgrade() else {
            return Ok(false);
        };
        let words = {
            let index = index.read();
            if index.lexical.generation() != generation {
                // The rows have other numbers, or some were erased: the next step plans anew.
                return Ok(true);
            }
            index.lexical.words_of(first..end)
        };
        drop(index);
        for words in words {
            builder.add(words).map_err(|error| failed(&error))?;
            if turn.breathe().is_err() {
                return Ok(false);
            }
        }
    }
    let part = builder.finish(optional_file(bank));
    let part = part.map_err(|error| failed(&error))?;
    if let Some(part) = part {
        publish(bank, plan, part, generation);
    }
    allocator::release();
    Ok(true)
}

/// Shows an index in the place of the planned ones, if they are still there and nothing was erased meanwhile that it
/// has.
pub(super) fn publish(bank: &Bank, plan: &SealPlan, part: SealedPart, generation: Generation) {
    let Some(bank) = bank.upgrade() else {
        return;
    };
    let (index, part) = (bank.intend(), Arc::new(part));
    let lexical = &index.lexical;
    if lexical.generation() != generation || !lexical.admits(plan, &part) {
        return;
    }
    let mut index = bank.change(index);
    let replaced = index.lexical.seal(plan, part);
    drop(index);
    // Freed after readers are back.
    drop(replaced);
}
