//! Arrays in mapped files without names. The system reads the pages that are used, and drops them where memory is short.
#![expect(
    unsafe_code,
    reason = "the bytes of a mapped file are seen as numbers and blocks"
)]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

/// A type of which every sequence of bytes is a value, and that has no bytes beside its value.
///
/// # Safety
/// Both must be so, and its alignment at most that of a page.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: every four bytes are a number.
unsafe impl Plain for u32 {}

/// Values in a mapped file that nobody else has.
#[derive(Debug)]
pub(crate) struct MappedArray<T> {
    /// None without values: nothing cannot be mapped.
    map: Option<MmapMut>,
    of: PhantomData<T>,
}

impl<T: Plain> MappedArray<T> {
    /// Writes the parts one after the other to an empty file and maps it. Every byte is written before, so that a full
    /// disk is an error here and not a signal later.
    ///
    /// # Errors
    /// When the file cannot be written or mapped.
    pub(crate) fn write<'a>(file: &File, parts: impl Iterator<Item = &'a [T]>) -> io::Result<Self>
    where
        T: 'a,
    {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let mut length = 0;
        for part in parts {
            // SAFETY: a plain value is its bytes, and the slice is as long as that.
            let bytes = unsafe {
                std::slice::from_raw_parts(part.as_ptr().cast::<u8>(), size_of_val(part))
            };
            out.write_all(bytes)?;
            length += bytes.len();
        }
        out.flush()?;
        let map = if length == 0 {
            None
        } else {
            // SAFETY: the file has no name, and this array alone writes to it, through the map.
            Some(unsafe { MmapMut::map_mut(file)? })
        };
        Ok(Self {
            map,
            of: PhantomData,
        })
    }

    /// Tells the system that the values from `first` on are read here and there. Where the advice is refused, reads are
    /// only slower.
    pub(crate) fn advise_random(&self, first: usize) {
        let start = first * size_of::<T>();
        if let Some(map) = self.map.as_ref().filter(|map| start < map.len()) {
            _ = map.advise_range(Advice::Random, start, map.len() - start);
        }
    }

    /// Bytes in the file.
    pub(crate) fn bytes(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }
}

impl<T: Plain> Deref for MappedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.map.as_ref().map_or(&[], |map| {
            // SAFETY: the file is as long as the values that were written, and a map begins at a page.
            unsafe {
                std::slice::from_raw_parts(map.as_ptr().cast::<T>(), map.len() / size_of::<T>())
            }
        })
    }
}

impl<T: Plain> DerefMut for MappedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.map.as_mut().map_or(&mut [], |map| {
            let length = map.len() / size_of::<T>();
            // SAFETY: as above; whoever has the array has it alone.
            unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast::<T>(), length) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::temp_file;

    fn array(parts: &[&[u32]]) -> MappedArray<u32> {
        let file = temp_file::create(&std::env::temp_dir()).expect("a file can be made");
        MappedArray::write(&file, parts.iter().copied()).expect("there is room")
    }

    #[test]
    fn values_come_back_and_can_be_overwritten() {
        let mut mapped = array(&[&[1, 2], &[], &[3]]);
        assert_eq!((&*mapped, mapped.bytes()), (&[1, 2, 3][..], 12));
        mapped.advise_random(0);
        mapped[1] = 7;
        assert_eq!(&*mapped, [1, 7, 3]);
    }

    #[test]
    fn nothing_is_an_array_too() {
        let mut none = array(&[]);
        none.advise_random(0);
        assert!(none.is_empty() && none.bytes() == 0);
        none.fill(1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let full = File::open("/dev/null").expect("there is one");
        assert!(MappedArray::write(&full, [&[1u32][..]].into_iter()).is_err());
    }
}
