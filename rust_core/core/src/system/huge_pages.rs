//! Huge pages for arrays that a graph search reads at random: with small pages it waits for page tables as much as for
//! vectors.
#![expect(
    unsafe_code,
    reason = "one call of the C library, which has no safe form"
)]

use std::thread;
use std::time::Instant;

use hashbrown::HashMap;

/// Bytes of a huge page where others have 4 KiB: of x86-64, and mostly of ARM.
const HUGE: usize = 2 << 20;
/// A page becomes huge where arrays fill this share of it, in percent: all of it is resident then.
const FILLED_PERCENT: usize = 75;

/// The address ranges of arrays: for each page of the size of a huge page the bytes that belong to them.
#[derive(Debug, Default)]
pub(crate) struct MemoryRanges(HashMap<usize, usize>);

impl MemoryRanges {
    /// Notes where an array lies.
    pub(crate) fn note<T>(&mut self, array: &[T]) {
        let start = array.as_ptr().addr();
        let end = start + size_of_val(array);
        for page in start / HUGE..end.div_ceil(HUGE) {
            let bytes = end.min((page + 1) * HUGE) - start.max(page * HUGE);
            *self.0.entry(page).or_default() += bytes;
        }
    }

    /// The pages that arrays fill, ascending.
    fn filled(&self) -> Vec<usize> {
        let enough = |bytes: usize| bytes * 100 >= HUGE * FILLED_PERCENT;
        let filled = self.0.iter().filter(|&(_, &bytes)| enough(bytes));
        let mut pages: Vec<usize> = filled.map(|(&page, _)| page).collect();
        pages.sort_unstable();
        pages
    }

    /// Has the system make these pages huge, as long as they are `wanted`: some three milliseconds each, and as long a
    /// rest after it. The arrays may have gone meanwhile. Does nothing where the system has no huge pages, or its
    /// operator wants none.
    pub(crate) fn make_huge(&self, wanted: impl Fn() -> bool) {
        if !system_has_them() {
            return;
        }
        for page in self.filled() {
            if !wanted() {
                return;
            }
            let start = Instant::now();
            collapse(page * HUGE);
            thread::sleep(start.elapsed());
        }
    }
}

/// Moves what lies in one page's range into a huge page, if the system can; nothing that reads or writes there notices.
fn collapse(address: usize) {
    #[cfg(target_os = "linux")]
    {
        /// Since Linux 6.1; the libc crate has no name for it everywhere.
        const MADV_COLLAPSE: i32 = 25;
        // SAFETY: the advice changes no content, wherever it is given, and what it cannot be followed for is an error.
        unsafe {
            libc::madvise(
                std::ptr::without_provenance_mut(address),
                HUGE,
                MADV_COLLAPSE,
            );
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = address;
}

/// Returns true if transparent huge pages are present and not switched off, which the advice itself does not check.
fn system_has_them() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|said| !said.contains("[never]"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn pages_that_arrays_fill_are_found_and_made_huge_with_what_they_hold() {
        let array: Vec<u64> = (0..(HUGE as u64)).collect();
        let mut ranges = MemoryRanges::default();
        // Halves of a page together fill it.
        let (first, second) = array.split_at(array.len() / 2);
        ranges.note(first);
        ranges.note(second);
        let noted: usize = ranges.0.values().sum();
        assert_eq!(noted, size_of_val(&*array));
        let filled = ranges.filled();
        // All but the ends.
        assert!((6..=8).contains(&filled.len()), "{filled:?}");
        assert!(filled.is_sorted_by(|one, next| one + 1 == *next));
        ranges.make_huge(|| true);
        assert!(array.iter().copied().eq(0..HUGE as u64));
        // Nobody wants them any more: no page is looked at but the first, and none where the system has no huge pages.
        drop(array);
        let asked = Cell::new(0);
        ranges.make_huge(|| {
            asked.set(asked.get() + 1);
            false
        });
        assert_eq!(asked.get(), u32::from(system_has_them()));
    }

    #[test]
    fn a_page_with_little_in_it_stays_as_it_is() {
        let mut ranges = MemoryRanges::default();
        ranges.note(&[0u8; 100]);
        ranges.note::<u8>(&[]);
        assert!(ranges.filled().is_empty());
    }
}
