//! The sets of versions for each tag, fact type and metadata pair, by which filters select.

mod format;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use crate::api::Row;
use crate::system::arrays::reserve_tight;

/// The subject of a set of versions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Label<'a> {
    Tag(&'a str),
    FactType(&'a str),
    Metadata(&'a str, &'a str),
}

impl Label<'_> {
    /// One string per label; the length in front keeps ("a", "bc") and ("ab", "c") apart.
    fn text(self) -> String {
        match self {
            Label::Tag(tag) => format!("t{tag}"),
            Label::FactType(fact_type) => format!("f{fact_type}"),
            Label::Metadata(key, value) => format!("m{}:{key}{value}", key.len()),
        }
    }
}

/// A label's posting set. The name is kept to free the dictionary's entry with the last version.
#[derive(Debug, Default)]
struct Posting {
    name: Box<str>,
    versions: RoaringBitmap,
}

/// Labels of versions, both ways: versions of a label, and labels of a version.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    names: HashMap<Box<str>, u32>,
    postings: Vec<Posting>,
    free: Vec<u32>,
    /// Posting numbers of all versions, one after the other.
    forward: Vec<u32>,
    /// The start of each version's numbers; they end where the next version's begin.
    starts: Vec<u32>,
}

impl Labels {
    /// Appends the labels of the next version.
    pub(crate) fn push(&mut self, row: &Row) {
        let version = self.starts.len() as u32;
        reserve_tight(&mut self.starts, 1);
        self.starts.push(self.forward.len() as u32);
        let start = self.forward.len();
        let labels = std::iter::once(Label::FactType(&row.fact_type))
            .filter(|_| !row.fact_type.is_empty())
            .chain(row.tags.iter().map(|tag| Label::Tag(tag)))
            .chain(
                row.metadata
                    .iter()
                    .map(|(key, value)| Label::Metadata(key, value)),
            );
        for label in labels {
            let posting = self.posting_of(label);
            // A tag given twice is one label.
            if !self.forward[start..].contains(&posting) {
                self.postings[posting as usize].versions.insert(version);
                reserve_tight(&mut self.forward, 1);
                self.forward.push(posting);
            }
        }
    }

    fn posting_of(&mut self, label: Label<'_>) -> u32 {
        let name = label.text();
        if let Some(&posting) = self.names.get(name.as_str()) {
            return posting;
        }
        let name = name.into_boxed_str();
        let posting = self.free.pop().unwrap_or_else(|| {
            self.postings.push(Posting::default());
            self.postings.len() as u32 - 1
        });
        self.postings[posting as usize].name = name.clone();
        self.names.insert(name, posting);
        posting
    }

    /// Versions with the label, ended ones included.
    pub(crate) fn versions(&self, label: Label<'_>) -> Option<&RoaringBitmap> {
        self.names
            .get(label.text().as_str())
            .map(|&posting| &self.postings[posting as usize].versions)
    }

    /// The number of the label of a version that has this metadata key and a value that begins with `mark`.
    pub(crate) fn marked(&self, version: u32, key: &str, mark: char) -> Option<u32> {
        let start = Label::Metadata(key, mark.encode_utf8(&mut [0; 4])).text();
        let numbers = self.forward[self.labels_of(version)].iter().copied();
        let mut marked =
            numbers.filter(|&number| self.postings[number as usize].name.starts_with(&start));
        marked.next()
    }

    /// Takes a version out of its posting sets; a label without versions is forgotten.
    pub(crate) fn remove(&mut self, version: u32) {
        for at in self.labels_of(version) {
            let number = self.forward[at];
            let posting = &mut self.postings[number as usize];
            posting.versions.remove(version);
            if posting.versions.is_empty() {
                self.names.remove(&posting.name);
                *posting = Posting::default();
                self.free.push(number);
            }
        }
    }

    fn labels_of(&self, version: u32) -> std::ops::Range<usize> {
        let end = self
            .starts
            .get(version as usize + 1)
            .map_or(self.forward.len(), |&start| start as usize);
        self.starts[version as usize] as usize..end
    }

    /// A copy without dead versions, which were removed before.
    pub(crate) fn compacted(&self, new_versions: &[u32]) -> Self {
        let mut forward = Vec::with_capacity(self.forward.len());
        let mut starts = Vec::with_capacity(self.starts.len());
        for (version, _) in new_versions
            .iter()
            .enumerate()
            .filter(|&(_, &new)| new != u32::MAX)
        {
            starts.push(forward.len() as u32);
            forward.extend_from_slice(&self.forward[self.labels_of(version as u32)]);
        }
        forward.shrink_to_fit();
        starts.shrink_to_fit();
        let postings = self.postings.iter().map(|posting| {
            let versions = posting.versions.iter();
            Posting {
                name: posting.name.clone(),
                versions: versions
                    .map(|version| new_versions[version as usize])
                    .collect(),
            }
        });
        Self {
            names: self.names.clone(),
            postings: postings.collect(),
            free: self.free.clone(),
            forward,
            starts,
        }
    }

    /// Resident bytes; a posting set counts as its serialised form, which is close to what it holds.
    pub(crate) fn bytes(&self) -> usize {
        let sets: usize = self
            .postings
            .iter()
            .map(|posting| {
                posting.versions.serialized_size() + 2 * posting.name.len() + size_of::<Posting>()
            })
            .sum();
        sets + self.names.allocation_size() + (self.forward.capacity() + self.starts.capacity()) * 4
    }
}
