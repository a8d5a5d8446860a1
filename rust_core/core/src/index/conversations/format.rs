//! The checkpoint format of conversations: their names, and the number of each version's conversation. Entries follow
//! from these and the columns.

use std::ops::Range;

use super::{Conversation, Conversations, Entry, NONE};
use crate::api::Result;
use crate::index::columns::{Columns, NO_TIME};
use crate::system::checked_file::{FileReader, put_array, refused};

impl Conversations {
    /// Appends the conversation numbers of some versions, and notes in `used` those of live ones.
    pub(crate) fn save(
        &self,
        versions: Range<u32>,
        columns: &Columns,
        used: &mut Vec<bool>,
        out: &mut Vec<u8>,
    ) {
        let numbers = &self.conversation_of[versions.start as usize..versions.end as usize];
        put_array(numbers, u32::to_le_bytes, out);
        used.resize(used.len().max(self.all.len()), false);
        for (version, &number) in versions.zip(numbers) {
            if number != NONE && columns.live.contains(version) {
                used[number as usize] = true;
            }
        }
    }

    /// Per conversation its name; None for one of which nothing that was saved is left.
    pub(crate) fn saved_names(&self, used: &[bool]) -> Vec<Option<&str>> {
        let mut names = vec![None; used.len()];
        for (name, &number) in &self.names {
            if used.get(number as usize) == Some(&true) {
                names[number as usize] = Some(&**name);
            }
        }
        names
    }

    /// Conversations of these names, to which versions are then [`read`](Self::read).
    pub(crate) fn named(names: Vec<Option<String>>) -> Self {
        let mut conversations = Self::default();
        for (name, number) in names.into_iter().zip(0..) {
            conversations.all.push(Conversation::default());
            if let Some(name) = name {
                conversations.names.insert(name.into_boxed_str(), number);
            }
        }
        conversations
    }

    /// Appends the numbers of `count` versions that were saved; [`arrange`](Self::arrange) must follow.
    pub(crate) fn read(&mut self, count: usize, reader: &mut FileReader) -> Result<()> {
        let first = self.conversation_of.len();
        reader.take_array(count, u32::from_le_bytes, &mut self.conversation_of)?;
        let known = |&number: &u32| number == NONE || (number as usize) < self.all.len();
        if !self.conversation_of[first..].iter().all(known) {
            return Err(refused("a version is in an unknown conversation"));
        }
        Ok(())
    }

    /// Puts all live versions in their places. To be called when the columns are complete.
    pub(crate) fn arrange(&mut self, columns: &Columns) {
        for version in columns.live.iter() {
            let number = self.conversation_of[version as usize];
            if number != NONE {
                let chain = &mut self.all[number as usize];
                let key = columns.key[version as usize];
                chain.newest = chain.newest.max(key);
                // Only the version counts here.
                chain.places.push(Entry {
                    time: NO_TIME,
                    arrival: key,
                    version,
                });
            }
        }
        for number in 0..self.all.len() as u32 {
            self.order_again(number, columns);
        }
    }
}
