//! The checkpoint format of labels: their names, and the numbers of each version's labels.

use std::ops::Range;

use hashbrown::HashMap;

use super::{Labels, Posting};
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::system::checked_file::{FileReader, put_array, put_text, refused};

impl Labels {
    /// Numbers of labels, free ones included.
    pub(crate) fn names_count(&self) -> u32 {
        self.postings.len() as u32
    }

    /// Appends the names of some labels; a free number has none.
    pub(crate) fn save_names(&self, labels: Range<u32>, out: &mut Vec<u8>) {
        for posting in &self.postings[labels.start as usize..labels.end as usize] {
            put_text(&posting.name, out);
        }
    }

    /// Appends the labels of some versions: how many each has, then all of them. A dead version has none.
    pub(crate) fn save(&self, versions: Range<u32>, live: &Bitmap, out: &mut Vec<u8>) {
        let labels = |version: u32| {
            let range = self.labels_of(version);
            &self.forward[if live.contains(version) { range } else { 0..0 }]
        };
        for version in versions.clone() {
            out.extend_from_slice(&(labels(version).len() as u32).to_le_bytes());
        }
        for version in versions {
            put_array(labels(version), u32::to_le_bytes, out);
        }
    }

    /// A labels of these names, to which versions are then [`read`](Self::read).
    pub(crate) fn named(names: Vec<String>) -> Self {
        let posting = |name: String| Posting {
            name: name.into_boxed_str(),
            ..Posting::default()
        };
        Self {
            postings: names.into_iter().map(posting).collect(),
            ..Self::default()
        }
    }

    /// Appends the labels of `count` versions that were saved; [`settle`](Self::settle) must follow.
    pub(crate) fn read(&mut self, count: usize, reader: &mut FileReader) -> Result<()> {
        let mut counts = Vec::new();
        reader.take_array(count, u32::from_le_bytes, &mut counts)?;
        let total = counts.iter().map(|&count| count as usize).sum();
        let first = self.starts.len() as u32;
        let mut start = self.forward.len();
        reader.take_array(total, u32::from_le_bytes, &mut self.forward)?;
        for (version, count) in (first..).zip(counts) {
            self.starts.push(start as u32);
            let labels = start..start + count as usize;
            start = labels.end;
            for &label in &self.forward[labels] {
                let posting = self.postings.get_mut(label as usize);
                // Ascending within a label, so that a label given twice would not be.
                if posting.is_none_or(|posting| posting.versions.try_push(version).is_err()) {
                    return Err(refused("a version has an unknown or a repeated label"));
                }
            }
        }
        Ok(())
    }

    /// Checks what was read against the versions that are live, and makes the dictionary. A label that none has is
    /// free.
    pub(crate) fn settle(&mut self, live: &Bitmap) -> Result<()> {
        self.names = HashMap::with_capacity(self.postings.len());
        for (posting, number) in self.postings.iter_mut().zip(0..) {
            if posting
                .versions
                .iter()
                .any(|version| !live.contains(version))
            {
                return Err(refused("a removed version has a label"));
            }
            if posting.versions.is_empty() {
                *posting = Posting::default();
                self.free.push(number);
            } else if !posting.name.is_empty() {
                self.names.insert(posting.name.clone(), number);
            }
        }
        Ok(())
    }
}
