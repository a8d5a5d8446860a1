//! Reads the vectors of a build, and looks up the rows to which they belong.

use super::build::Bank;
use crate::api::Result;
use crate::dense::exact_vectors::NO_SLOT;
use crate::graph::Name;
use crate::index::Index;

/// Vectors read under one lock.
const TOGETHER: usize = 64;

/// Reads the vectors of these names and hands them to `take`, some at a time, until it returns false; false then,
/// and where the bank is gone.
pub(super) fn each_batch(
    bank: &Bank,
    names: &[Name],
    mut take: impl FnMut(Vec<(Name, Vec<f32>)>) -> Result<bool>,
) -> Result<bool> {
    for batch in names.chunks(TOGETHER) {
        let Some(index) = bank.upgrade() else {
            return Ok(false);
        };
        let read = read(&index.read(), batch)?;
        drop(index);
        if !take(read)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read(index: &Index, names: &[Name]) -> Result<Vec<(Name, Vec<f32>)>> {
    let mut bytes = Vec::new();
    let mut found = Vec::with_capacity(names.len());
    for &name in names {
        // What was removed meanwhile is left out.
        if let Some(row) = find(index, name) {
            let (slot, mut vector) = (index.slots[row as usize], Vec::new());
            index.exact_vectors.read(slot, &mut bytes, &mut vector)?;
            found.push((name, vector));
        }
    }
    Ok(found)
}

/// The row of this name, if it is there with a vector.
pub(super) fn find(index: &Index, (key, part): Name) -> Option<u32> {
    let version = index.columns.find_key(key)?;
    let rows = index.rows_of(version);
    let row = rows.start.checked_add(part)?;
    (row < rows.end && index.slots[row as usize] != NO_SLOT).then_some(row)
}
