//! One build of an inverted index of tantivy: words are read in batches, indexed aside and published by one assignment.

use super::build::{Bank, LOOKED_UP, Pace};
use crate::api::{CoreError, Result};
use crate::graph::BuildThreads;
use crate::lexical::SealedPartBuilder;
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
    let Some((plan, renumberings)) = bank.upgrade().and_then(|bank| {
        let mut index = bank.change(bank.intend());
        index.segments.queued = false;
        let plan = index.lexical.seal_plan(pace.word_rows)?;
        Some((plan, index.lexical.renumberings()))
    }) else {
        return Ok(false);
    };
    let wanted = || bank.strong_count() > 0;
    let threads = BuildThreads {
        share: pace.share,
        wanted: &wanted,
    };
    let mut turn = threads.turn();
    let mut builder = SealedPartBuilder::new(plan.rows.start).map_err(|error| failed(&error))?;
    for first in plan.rows.clone().step_by(LOOKED_UP as usize) {
        let end = plan.rows.end.min(first + LOOKED_UP);
        let Some(index) = bank.upgrade() else {
            return Ok(false);
        };
        let words = {
            let index = index.read();
            if index.lexical.renumberings() != renumberings {
                // The rows have other numbers: the next step plans anew.
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
    let part = builder.finish().map_err(|error| failed(&error))?;
    if let (Some(part), Some(bank)) = (part, bank.upgrade()) {
        let mut index = bank.change(bank.intend());
        let replaced = (index.lexical.renumberings() == renumberings)
            .then(|| index.lexical.seal(plan.kept, part));
        drop(index);
        // Freed after readers are back.
        drop(replaced);
    }
    allocator::release();
    Ok(true)
}
