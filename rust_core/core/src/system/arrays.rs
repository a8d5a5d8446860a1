//! Growth and compaction of arrays and hash tables of numbers.

use hashbrown::HashTable;

/// Appends with room for an eighth more instead of twice as much: index memory counts for more than a copy.
pub(crate) fn reserve_tight<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.len() / 8).max(16));
    }
}

/// The entries that have a new number, in order.
pub(crate) fn kept<T: Copy>(column: &[T], new_numbers: &[u32]) -> Vec<T> {
    let pairs = column.iter().zip(new_numbers);
    let mut left = Vec::with_capacity(new_numbers.iter().filter(|&&new| new != u32::MAX).count());
    left.extend(
        pairs
            .filter(|&(_, &new)| new != u32::MAX)
            .map(|(&entry, _)| entry),
    );
    left
}

/// A table of the same numbers with room for `more`, where this one would have to grow: that takes long, and others
/// cannot read meanwhile.
pub(crate) fn larger(
    table: &HashTable<u32>,
    more: usize,
    hash: impl Fn(&u32) -> u64,
) -> Option<HashTable<u32>> {
    (table.capacity() - table.len() < more).then(|| copied(table, more, hash))
}

/// A copy of a table with room for `more`.
pub(crate) fn copied(
    table: &HashTable<u32>,
    more: usize,
    hash: impl Fn(&u32) -> u64,
) -> HashTable<u32> {
    let mut copy = HashTable::with_capacity(table.len() + more);
    for number in table {
        copy.insert_unique(hash(number), *number, &hash);
    }
    copy
}
