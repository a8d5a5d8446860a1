//! A sealed inverted index of tantivy.
#![expect(
    unsafe_code,
    reason = "a mapped file is a slice only as long as nobody changes it"
)]

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;
use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, IndexBuilder, SingleSegmentIndexWriter, TantivyDocument, Term};

use crate::directory::{self, SealedDirectory};
use crate::{Result, SegmentBytes, SegmentError};

/// The only field.
const FIELD: &str = "words";
/// Memory from which tantivy chooses the size of its hash table; a single segment is never written before its end.
const BUDGET_BYTES: usize = 50_000_000;
/// Characters of a word: 64 bits in sevens, each an ASCII character, because tantivy takes text.
const CHARACTERS: u32 = 10;
const CHARACTER_BITS: u32 = 7;

/// The spelling of a fingerprint in tantivy's dictionary.
fn spelling(word: u64) -> String {
    let mask = (1 << CHARACTER_BITS) - 1;
    let character = |at: u32| char::from((word >> (at * CHARACTER_BITS) & mask) as u8);
    (0..CHARACTERS).map(character).collect()
}

/// Rows that become an index.
pub struct WordIndexBuilder {
    writer: SingleSegmentIndexWriter,
    directory: RamDirectory,
    field: Field,
    rows: u32,
}

impl fmt::Debug for WordIndexBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WordIndexBuilder")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl WordIndexBuilder {
    /// An empty builder.
    ///
    /// # Errors
    /// When tantivy fails.
    pub fn new() -> Result<Self> {
        let mut schema = Schema::builder();
        // Lengths and statistics are the caller's, so tantivy keeps none.
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_index_option(IndexRecordOption::WithFreqs)
            .set_fieldnorms(false);
        let options = TextOptions::default().set_indexing_options(indexing);
        let field = schema.add_text_field(FIELD, options);
        let directory = RamDirectory::create();
        let writer = IndexBuilder::new()
            .schema(schema.build())
            .single_segment_index_writer(directory.clone(), BUDGET_BYTES)?;
        Ok(Self {
            writer,
            directory,
            field,
            rows: 0,
        })
    }

    /// Adds the words of the next row, each with its frequency. A row may have none.
    ///
    /// # Errors
    /// When tantivy fails.
    pub fn add(&mut self, words: impl IntoIterator<Item = (u64, u32)>) -> Result<()> {
        let mut tokens = Vec::new();
        for (word, frequency) in words {
            // The default position is the largest number, from which tantivy counts on.
            let token = Token {
                text: spelling(word),
                position: 0,
                ..Token::default()
            };
            tokens.extend((0..frequency).map(|_| token.clone()));
        }
        let mut document = TantivyDocument::new();
        if !tokens.is_empty() {
            let text = String::new();
            document.add_pre_tokenized_text(self.field, PreTokenizedString { text, tokens });
        }
        self.writer.add_document(document)?;
        self.rows += 1;
        Ok(())
    }

    /// The index of all rows that were added, in the empty `file` or in memory; None without rows.
    ///
    /// # Errors
    /// When tantivy fails, or the file cannot be written.
    pub fn finish(self, file: Option<File>) -> Result<Option<WordIndex>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let index = self.writer.finalize()?;
        let bytes = match file {
            None => {
                let mut bytes = Vec::new();
                directory::write(&index, &self.directory, &mut bytes)?;
                SegmentBytes::Memory(bytes)
            }
            Some(file) => {
                let mut out = BufWriter::new(&file);
                directory::write(&index, &self.directory, &mut out)?;
                out.flush()?;
                drop(out);
                SegmentBytes::File(file)
            }
        };
        WordIndex::open(bytes, self.rows).map(Some)
    }
}

/// An inverted index that nobody changes any more.
pub struct WordIndex {
    words: Arc<InvertedIndexReader>,
    field: Field,
    rows: u32,
    bytes: OwnedBytes,
    mapped: bool,
}

impl fmt::Debug for WordIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WordIndex")
            .field("rows", &self.rows)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl WordIndex {
    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The index of `rows` rows that was [saved](Self::as_bytes). The caller has verified the bytes.
    ///
    /// # Errors
    /// When the file cannot be mapped, or the bytes are of another index.
    pub fn open(bytes: SegmentBytes, rows: u32) -> Result<Self> {
        let (bytes, mapped) = match bytes {
            SegmentBytes::Memory(bytes) => (OwnedBytes::new(bytes), false),
            SegmentBytes::File(file) => {
                // SAFETY: nobody but this process has the file, and nothing in it writes to a file once it is mapped.
                let map = unsafe { Mmap::map(&file)? };
                (OwnedBytes::new(map), true)
            }
        };
        let index = Index::open(SealedDirectory::open(&bytes)?)?;
        let another = || SegmentError::Another("holds another index than expected");
        let field = index.schema().get_field(FIELD).map_err(|_| another())?;
        let segments = index.searchable_segments()?;
        let [segment] = segments.as_slice() else {
            return Err(another());
        };
        let reader = SegmentReader::open(segment)?;
        if reader.max_doc() != rows {
            return Err(another());
        }
        Ok(Self {
            words: reader.inverted_index(field)?,
            field,
            rows,
            bytes,
            mapped,
        })
    }

    /// All bytes, from which the index can be [opened](Self::open) again.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes in memory that the system cannot drop.
    pub fn bytes(&self) -> usize {
        if self.mapped { 0 } else { self.bytes.len() }
    }

    /// Bytes in a mapped file.
    pub fn mapped_bytes(&self) -> usize {
        self.bytes.len() - self.bytes()
    }

    /// The rows that hold a word; None where no row does.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn postings(&self, word: u64) -> Result<Option<WordPostings>> {
        let term = Term::from_field_text(self.field, &spelling(word));
        let blocks = self
            .words
            .read_block_postings(&term, IndexRecordOption::WithFreqs)?;
        Ok(blocks.map(|blocks| WordPostings { blocks, at: 0 }))
    }
}

/// The rows that hold one word, ascending, and those of them that are still to be read.
pub struct WordPostings {
    blocks: BlockSegmentPostings,
    /// Rows of the block that are read.
    at: usize,
}

impl fmt::Debug for WordPostings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WordPostings")
            .field("rows", &self.blocks.doc_freq())
            .finish_non_exhaustive()
    }
}

impl WordPostings {
    /// Passes over the rows below `row`, which may not be below one that was passed over before.
    pub fn seek(&mut self, row: u32) {
        self.at = self.blocks.seek(row);
    }

    /// The next row and its frequency, without taking it; None at the end.
    pub fn peek(&self) -> Option<(u32, u32)> {
        let row = *self.blocks.docs().get(self.at)?;
        Some((row, *self.blocks.freqs().get(self.at)?))
    }

    /// Calls `found` with each row of the range and its frequency, ascending. Rows below the range that were not read
    /// are passed over.
    pub fn read(&mut self, rows: Range<u32>, mut found: impl FnMut(u32, u32)) {
        if self.peek().is_some_and(|(row, _)| row < rows.start) {
            self.seek(rows.start);
        }
        loop {
            let (docs, freqs) = (self.blocks.docs(), self.blocks.freqs());
            if docs.is_empty() {
                return;
            }
            while let (Some(&row), Some(&frequency)) = (docs.get(self.at), freqs.get(self.at)) {
                if row >= rows.end {
                    return;
                }
                found(row, frequency);
                self.at += 1;
            }
            self.blocks.advance();
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::tests::unnamed_file;

    const ROWS: u32 = 1000;

    /// Words 3, 5 and 7 are in the rows that they divide, as often as they divide them; the last is in none.
    fn words(row: u32) -> Vec<(u64, u32)> {
        let often = |word: u64| {
            let mut times = 0;
            let mut left = u64::from(row);
            while left > 0 && left.is_multiple_of(word) {
                left /= word;
                times += 1;
            }
            times
        };
        let all = [3, 5, 7].map(|word| (fingerprint(word), often(word)));
        all.into_iter().filter(|&(_, times)| times > 0).collect()
    }

    /// Bits of all places, the highest included.
    fn fingerprint(word: u64) -> u64 {
        word.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
    }

    fn index() -> WordIndex {
        let mut builder = WordIndexBuilder::new().expect("memory");
        for row in 0..ROWS {
            builder.add(words(row)).expect("memory");
        }
        let built = builder.finish(None).expect("memory");
        built.expect("there are rows")
    }

    fn expected(word: u64, rows: Range<u32>) -> Vec<(u32, u32)> {
        let of = |row| {
            let mut all = words(row).into_iter();
            let (_, times) = all.find(|&(one, _)| one == fingerprint(word))?;
            Some((row, times))
        };
        rows.filter_map(of).collect()
    }

    #[test]
    fn every_row_comes_back_with_its_frequency_in_any_stretches() {
        let index = index();
        assert_eq!(index.rows(), ROWS);
        for word in [3, 5, 7] {
            for step in [1, 64, 100, 999, 1000, 5000] {
                let postings = index.postings(fingerprint(word)).expect("memory");
                let (mut postings, mut read) = (postings.expect("rows hold it"), Vec::new());
                for first in (0..ROWS).step_by(step as usize) {
                    postings.read(first..first + step, |row, times| read.push((row, times)));
                }
                assert_eq!(read, expected(word, 0..ROWS), "{word} {step}");
                assert_eq!(postings.peek(), None);
            }
        }
        assert!(index.postings(fingerprint(11)).expect("memory").is_none());
    }

    #[test]
    fn a_read_may_begin_anywhere() {
        let index = index();
        for first in [0, 1, 383, 384, 385, 900, 999, 1000, 2000] {
            let postings = index.postings(fingerprint(3)).expect("memory");
            let (mut postings, mut read) = (postings.expect("rows hold it"), Vec::new());
            postings.read(first..2000, |row, times| read.push((row, times)));
            assert_eq!(read, expected(3, first..ROWS), "{first}");
            let postings = index.postings(fingerprint(3)).expect("memory");
            let mut postings = postings.expect("rows hold it");
            postings.seek(first);
            assert_eq!(postings.peek(), expected(3, first..ROWS).first().copied());
        }
    }

    #[test]
    fn rows_without_words_keep_their_numbers_and_no_rows_make_no_index() {
        let mut builder = WordIndexBuilder::new().expect("memory");
        for row in 0..10 {
            let held = (row == 6).then_some((fingerprint(3), 40));
            builder.add(held).expect("memory");
        }
        let index = builder.finish(None).expect("memory");
        let index = index.expect("there are rows");
        let postings = index.postings(fingerprint(3)).expect("memory");
        assert_eq!(postings.and_then(|all| all.peek()), Some((6, 40)));
        let none = WordIndexBuilder::new().expect("memory").finish(None);
        assert!(none.expect("memory").is_none());
    }

    #[test]
    fn an_index_in_a_file_reads_as_one_in_memory_and_is_opened_again() {
        let memory = index();
        let mut builder = WordIndexBuilder::new().expect("memory");
        for row in 0..ROWS {
            builder.add(words(row)).expect("memory");
        }
        let file = builder.finish(Some(unnamed_file())).expect("room");
        let file = file.expect("there are rows");
        assert_eq!((file.bytes(), memory.mapped_bytes()), (0, 0));
        assert_eq!(file.mapped_bytes(), file.as_bytes().len());
        let again = SegmentBytes::Memory(file.as_bytes().to_vec());
        let again = WordIndex::open(again, ROWS).expect("it is whole");
        for index in [&memory, &file, &again] {
            for word in [3, 5, 7] {
                let postings = index.postings(fingerprint(word)).expect("memory");
                let (mut postings, mut read) = (postings.expect("rows hold it"), Vec::new());
                postings.read(0..ROWS, |row, times| read.push((row, times)));
                assert_eq!(read, expected(word, 0..ROWS));
            }
        }
        let bytes = || SegmentBytes::Memory(file.as_bytes().to_vec());
        assert!(WordIndex::open(bytes(), ROWS + 1).is_err());
        let cut = file.as_bytes().len() - 1;
        let cut = SegmentBytes::Memory(file.as_bytes()[..cut].to_vec());
        assert!(WordIndex::open(cut, ROWS).is_err());
    }
}
