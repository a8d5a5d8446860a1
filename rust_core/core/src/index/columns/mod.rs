//! The columns: one array for each property of a version besides text and vector.

mod format;
mod times;

use hashbrown::HashTable;

use crate::api::{ContentHash, MemoryId, Row};
use crate::bitmap::Bitmap;
use crate::system::arrays::{copied, kept, larger, reserve_tight};
pub(crate) use times::{STRETCH, Times};

/// `occurred_at` of a version that has none.
pub(crate) const NO_TIME: i64 = i64::MIN;
/// `known_until` of a current version.
pub(crate) const OPEN: i64 = i64::MAX;

/// One entry per version, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) key: Vec<u64>,
    pub(crate) memory_id: Vec<MemoryId>,
    pub(crate) content_hash: Vec<ContentHash>,
    pub(crate) known_from: Vec<i64>,
    pub(crate) known_until: Vec<i64>,
    pub(crate) occurred_at: Times,
    /// Row of the whole; the rows of its chunks follow it.
    pub(crate) first_row: Vec<u32>,
    pub(crate) layer: Vec<u16>,
    /// When the memory was first stored, of versions that came later: few, so not an array.
    retained_at: hashbrown::HashMap<u32, i64>,
    /// Versions with a bounded validity: few, so not an array.
    pub(crate) validity: hashbrown::HashMap<u32, (i64, i64)>,
    pub(crate) live: Bitmap,
    pub(crate) current: Bitmap,
    by_key: HashTable<u32>,
    by_memory: HashTable<u32>,
    by_hash: HashTable<u32>,
}

/// Tables by key, by memory and by hash.
pub(crate) type Tables = [HashTable<u32>; 3];

impl Columns {
    pub(crate) fn len(&self) -> u32 {
        self.key.len() as u32
    }

    /// Appends a version whose whole is at `first_row`.
    pub(crate) fn push(&mut self, row: &Row, first_row: u32, layer: u16) -> u32 {
        let version = self.len();
        push(&mut self.key, row.key);
        push(&mut self.memory_id, row.memory_id);
        push(&mut self.content_hash, row.content_hash);
        push(&mut self.known_from, row.known_from);
        push(&mut self.known_until, row.known_until.unwrap_or(OPEN));
        self.occurred_at.push(row.occurred_at.unwrap_or(NO_TIME));
        push(&mut self.first_row, first_row);
        push(&mut self.layer, layer);
        if let Some(retained_at) = row.retained_at.filter(|&at| at != row.known_from) {
            self.retained_at.insert(version, retained_at);
        }
        if row.valid_from.is_some() || row.valid_until.is_some() {
            let bounds = (
                row.valid_from.unwrap_or(i64::MIN),
                row.valid_until.unwrap_or(i64::MAX),
            );
            self.validity.insert(version, bounds);
        }
        self.live.grow(version + 1);
        self.current.grow(version + 1);
        self.live.insert(version);
        if row.known_until.is_none() {
            self.current.insert(version);
        }
        self.index(version);
        version
    }

    /// Tables with room for `more` versions, where those that there are would have to grow.
    pub(crate) fn larger_tables(&self, more: usize) -> Option<Tables> {
        let by_key = larger(&self.by_key, more, |&v| hash_key(self.key[v as usize]))?;
        let by_memory = |&v: &u32| hash_bytes(&self.memory_id[v as usize]);
        let by_hash = |&v: &u32| hash_bytes(&self.content_hash[v as usize]);
        Some([
            by_key,
            copied(&self.by_memory, more, by_memory),
            copied(&self.by_hash, more, by_hash),
        ])
    }

    /// Takes larger tables and leaves those that were there before.
    pub(crate) fn swap_tables(&mut self, [by_key, by_memory, by_hash]: &mut Tables) {
        std::mem::swap(&mut self.by_key, by_key);
        std::mem::swap(&mut self.by_memory, by_memory);
        std::mem::swap(&mut self.by_hash, by_hash);
    }

    /// When the memory was first stored.
    pub(crate) fn retained_at(&self, version: u32) -> i64 {
        let first = self.retained_at.get(&version);
        first.copied().unwrap_or(self.known_from[version as usize])
    }

    fn index(&mut self, version: u32) {
        let at = version as usize;
        let (keys, ids, hashes) = (&self.key, &self.memory_id, &self.content_hash);
        self.by_key
            .insert_unique(hash_key(keys[at]), version, |&v| hash_key(keys[v as usize]));
        self.by_memory
            .insert_unique(hash_bytes(&ids[at]), version, |&v| {
                hash_bytes(&ids[v as usize])
            });
        self.by_hash
            .insert_unique(hash_bytes(&hashes[at]), version, |&v| {
                hash_bytes(&hashes[v as usize])
            });
    }

    /// The live version with this key.
    pub(crate) fn find_key(&self, key: u64) -> Option<u32> {
        self.by_key
            .find(hash_key(key), |&v| self.key[v as usize] == key)
            .copied()
    }

    /// All live versions of a memory.
    pub(crate) fn versions_of<'a>(&'a self, id: &'a MemoryId) -> impl Iterator<Item = u32> + 'a {
        self.by_memory
            .iter_hash(hash_bytes(id))
            .copied()
            .filter(move |&v| self.memory_id[v as usize] == *id)
    }

    /// The oldest current version with this content.
    pub(crate) fn current_with_hash(&self, hash: &ContentHash) -> Option<u32> {
        self.by_hash
            .iter_hash(hash_bytes(hash))
            .copied()
            .filter(|&v| self.content_hash[v as usize] == *hash && self.current.contains(v))
            .min()
    }

    /// Sets the end of a version.
    pub(crate) fn end(&mut self, version: u32, known_until: i64) {
        self.known_until[version as usize] = known_until;
        self.current.remove(version);
    }

    /// Forgets a version: it is in no map any more, and its identity is wiped.
    pub(crate) fn remove(&mut self, version: u32) {
        let at = version as usize;
        let tables = [
            (&mut self.by_key, hash_key(self.key[at])),
            (&mut self.by_memory, hash_bytes(&self.memory_id[at])),
            (&mut self.by_hash, hash_bytes(&self.content_hash[at])),
        ];
        for (table, hash) in tables {
            if let Ok(entry) = table.find_entry(hash, |&v| v == version) {
                entry.remove();
            }
        }
        self.live.remove(version);
        self.current.remove(version);
        self.retained_at.remove(&version);
        self.validity.remove(&version);
        self.content_hash[at] = [0; 16];
        self.memory_id[at] = [0; 16];
        self.occurred_at.remove(at);
    }

    /// Rows of a version: the whole, then its chunks. `rows` is the bank's number of rows.
    #[inline]
    pub(crate) fn rows_of(&self, version: u32, rows: u32) -> std::ops::Range<u32> {
        let end = self
            .first_row
            .get(version as usize + 1)
            .copied()
            .unwrap_or(rows);
        self.first_row[version as usize]..end
    }

    /// A copy without dead versions; `new_versions[old]` and `new_rows[old]` are the new numbers, or `u32::MAX`.
    pub(crate) fn compacted(&self, new_versions: &[u32], new_rows: &[u32]) -> Self {
        let first_row = kept(&self.first_row, new_versions).into_iter();
        let first_row: Vec<u32> = first_row.map(|row| new_rows[row as usize]).collect();
        let count = first_row.len();
        let mut left = Self {
            key: kept(&self.key, new_versions),
            memory_id: kept(&self.memory_id, new_versions),
            content_hash: kept(&self.content_hash, new_versions),
            known_from: kept(&self.known_from, new_versions),
            known_until: kept(&self.known_until, new_versions),
            occurred_at: kept(&self.occurred_at, new_versions).into(),
            first_row,
            layer: kept(&self.layer, new_versions),
            retained_at: renumbered(&self.retained_at, new_versions),
            validity: renumbered(&self.validity, new_versions),
            live: Bitmap::empty(count as u32),
            current: Bitmap::empty(count as u32),
            by_key: HashTable::with_capacity(count),
            by_memory: HashTable::with_capacity(count),
            by_hash: HashTable::with_capacity(count),
        };
        for version in 0..count as u32 {
            left.live.insert(version);
            if left.known_until[version as usize] == OPEN {
                left.current.insert(version);
            }
            left.index(version);
        }
        left
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let table = |table: &HashTable<u32>| table.allocation_size();
        self.key.capacity() * 8
            + (self.memory_id.capacity() + self.content_hash.capacity()) * 16
            + (self.known_from.capacity() + self.known_until.capacity()) * 8
            + self.occurred_at.bytes()
            + self.first_row.capacity() * 4
            + self.layer.capacity() * 2
            + self.retained_at.allocation_size()
            + self.validity.allocation_size()
            + self.live.bytes()
            + self.current.bytes()
            + table(&self.by_key)
            + table(&self.by_memory)
            + table(&self.by_hash)
    }
}

fn push<T>(column: &mut Vec<T>, value: T) {
    reserve_tight(column, 1);
    column.push(value);
}

/// The entries of a map by version, all of which have a new number.
fn renumbered<T: Copy>(
    entries: &hashbrown::HashMap<u32, T>,
    new_versions: &[u32],
) -> hashbrown::HashMap<u32, T> {
    let entries = entries.iter();
    entries
        .map(|(&version, &entry)| (new_versions[version as usize], entry))
        .collect()
}

/// Spreads a key over 64 bits (the finaliser of splitmix64).
fn hash_key(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

fn hash_bytes(bytes: &[u8; 16]) -> u64 {
    let value = u128::from_le_bytes(*bytes);
    hash_key((value as u64) ^ hash_key((value >> 64) as u64))
}
