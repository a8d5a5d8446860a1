//! Restores the graphs and inverted indexes of a checkpoint in the background, while scans answer.

use std::sync::Arc;

use super::build::{Bank, publish};
use super::words;
use crate::graph::Saved;
use crate::lexical::{Generation, SavedWords, SealPlan};

/// Puts back the graphs and inverted indexes of the bank's checkpoint, or waits for whoever is at it. What cannot be
/// read is built anew, like what is not in one.
pub(crate) fn restore(bank: &Bank) {
    let Some(putting) = bank
        .upgrade()
        .map(|bank| Arc::clone(&bank.read().segments.putting))
    else {
        return;
    };
    let _putting = putting.lock();
    let mut number = 0;
    while let Some(SavedWords { open }) = next_words(bank) {
        if let Ok(part) = open() {
            let plan = SealPlan {
                rows: part.rows(),
                replaced: number..number,
            };
            // The numbers of a bank that was loaded hold until its first compaction.
            words::publish(bank, &plan, part, Generation::default());
            number += 1;
        }
    }
    while let Some(Saved { names, open, .. }) = next(bank) {
        if let Ok(graph) = open() {
            publish(bank, graph, &names, &[]);
        }
    }
}

fn next_words(bank: &Bank) -> Option<SavedWords> {
    let bank = bank.upgrade()?;
    let index = bank.intend();
    if index.saved_words.is_empty() {
        return None;
    }
    bank.change(index).saved_words.pop()
}

fn next(bank: &Bank) -> Option<Saved> {
    let bank = bank.upgrade()?;
    let index = bank.intend();
    if !index.segments.restoring {
        return None;
    }
    let segments = &mut bank.change(index).segments;
    let saved = segments.saved.pop();
    segments.restoring = saved.is_some();
    saved
}
