//! The checkpoint format of columns: written a range of versions at a time, indexed again when read.

use std::ops::Range;

use hashbrown::HashTable;

use super::{Columns, OPEN, hash_bytes, hash_key};
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::system::checked_file::{FileReader, put_array, refused};

/// Bytes of an id or a hash.
const ID: usize = 16;

impl Columns {
    /// Appends what is known of some versions.
    pub(crate) fn save(&self, versions: Range<u32>, out: &mut Vec<u8>) {
        let range = versions.start as usize..versions.end as usize;
        put_array(&self.key[range.clone()], u64::to_le_bytes, out);
        put_array(&self.memory_id[range.clone()], |id| id, out);
        put_array(&self.content_hash[range.clone()], |hash| hash, out);
        put_array(&self.known_from[range.clone()], i64::to_le_bytes, out);
        put_array(&self.known_until[range.clone()], i64::to_le_bytes, out);
        put_array(&self.occurred_at[range.clone()], i64::to_le_bytes, out);
        put_array(&self.first_row[range.clone()], u32::to_le_bytes, out);
        put_array(&self.layer[range], u16::to_le_bytes, out);
        out.extend(
            versions
                .clone()
                .map(|version| u8::from(self.live.contains(version))),
        );
        let at = |version: u32| (version - versions.start).to_le_bytes();
        let some: Vec<_> = versions
            .clone()
            .filter_map(|version| Some((version, *self.retained_at.get(&version)?)))
            .collect();
        out.extend_from_slice(&(some.len() as u32).to_le_bytes());
        for (version, time) in some {
            out.extend_from_slice(&at(version));
            out.extend_from_slice(&time.to_le_bytes());
        }
        let some: Vec<_> = versions
            .clone()
            .filter_map(|version| Some((version, *self.validity.get(&version)?)))
            .collect();
        out.extend_from_slice(&(some.len() as u32).to_le_bytes());
        for (version, (from, until)) in some {
            out.extend_from_slice(&at(version));
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&until.to_le_bytes());
        }
    }

    /// Appends `count` versions that were saved; [`settle`](Self::settle) must follow.
    pub(crate) fn read(&mut self, count: usize, reader: &mut FileReader) -> Result<()> {
        let first = self.len();
        reader.take_array(count, u64::from_le_bytes, &mut self.key)?;
        reader.take_array::<ID, _>(count, |id| id, &mut self.memory_id)?;
        reader.take_array::<ID, _>(count, |hash| hash, &mut self.content_hash)?;
        reader.take_array(count, i64::from_le_bytes, &mut self.known_from)?;
        reader.take_array(count, i64::from_le_bytes, &mut self.known_until)?;
        let mut times = Vec::with_capacity(count);
        reader.take_array(count, i64::from_le_bytes, &mut times)?;
        for time in times {
            self.occurred_at.push(time);
        }
        reader.take_array(count, u32::from_le_bytes, &mut self.first_row)?;
        reader.take_array(count, u16::from_le_bytes, &mut self.layer)?;
        self.live.grow(self.len());
        for (&flag, version) in reader.take(count, 1)?.iter().zip(first..) {
            if flag != 0 {
                self.live.insert(version);
            }
        }
        for _ in 0..reader.take_u32()? {
            let version = self.place(first, reader.take_u32()?)?;
            self.retained_at.insert(version, reader.take_i64()?);
        }
        for _ in 0..reader.take_u32()? {
            let version = self.place(first, reader.take_u32()?)?;
            let bounds = (reader.take_i64()?, reader.take_i64()?);
            self.validity.insert(version, bounds);
        }
        Ok(())
    }

    fn place(&self, first: u32, at: u32) -> Result<u32> {
        let version = first
            .checked_add(at)
            .filter(|&version| version < self.len());
        version.ok_or_else(|| refused("a time belongs to no version"))
    }

    /// Checks what was read against the number of rows and of layers, and makes the look-up tables.
    pub(crate) fn settle(&mut self, rows: u32, layers: usize) -> Result<()> {
        let begins = self.first_row.first().copied().unwrap_or(rows) == 0;
        let ends = self.first_row.last().is_none_or(|&last| last < rows);
        let ascends = self.first_row.is_sorted_by(|a, b| a < b);
        if !(ends && ascends && (begins || rows == 0)) {
            return Err(refused("versions and rows do not match"));
        }
        if self.layer.iter().any(|&layer| usize::from(layer) >= layers) {
            return Err(refused("a version has an unknown layer"));
        }
        let mut timed = self.retained_at.keys().chain(self.validity.keys());
        if timed.any(|&version| !self.live.contains(version)) {
            return Err(refused("a removed version has a time"));
        }
        self.current = Bitmap::empty(self.len());
        for version in self.live.iter() {
            if self.known_until[version as usize] == OPEN {
                self.current.insert(version);
            }
        }
        let (keys, ids, hashes) = (&self.key, &self.memory_id, &self.content_hash);
        let live = &self.live;
        self.by_key = table(live, |version| hash_key(keys[version as usize]));
        self.by_memory = table(live, |version| hash_bytes(&ids[version as usize]));
        self.by_hash = table(live, |version| hash_bytes(&hashes[version as usize]));
        Ok(())
    }
}

fn table(live: &Bitmap, hash: impl Fn(u32) -> u64) -> HashTable<u32> {
    let mut table = HashTable::with_capacity(live.len() as usize);
    for version in live.iter() {
        table.insert_unique(hash(version), version, |&other| hash(other));
    }
    table
}
