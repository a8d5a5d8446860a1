//! Restores the graphs of a checkpoint in the background, while scans answer.

use std::sync::Arc;

use super::build::{Bank, publish};
use crate::graph::Saved;

/// Puts back the graphs of the bank's checkpoint, or waits for whoever is at it. What cannot be read is built anew,
/// like what is not in one.
pub(crate) fn restore(bank: &Bank) {
    let Some(putting) = bank
        .upgrade()
        .map(|bank| Arc::clone(&bank.read().segments.putting))
    else {
        return;
    };
    let _putting = putting.lock();
    while let Some(Saved { names, open }) = next(bank) {
        if let Ok(graph) = open() {
            publish(bank, graph, &names, &[]);
        }
    }
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
