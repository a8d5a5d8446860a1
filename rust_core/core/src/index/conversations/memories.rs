//! Iterates over the memories of a conversation that are held.
//!
//! Adjacent versions of one memory are one step. Forgotten memories are skipped, so that a conversation reads the same
//! before and after their entries are dropped.

use crate::bitmap::Bitmap;
use crate::index::columns::Columns;
use crate::index::conversations::Entry;

/// Calls `each` for the memories of a conversation, in order, with the version that passes; whatever passes is held. An
/// entry of another memory takes one look where it passes: this is done for all places of a bank at a time, and
/// [`Memories`] for a few.
#[inline]
pub(crate) fn for_each(
    places: &[Entry],
    live: &Bitmap,
    passes: &Bitmap,
    mut each: impl FnMut(Option<u32>),
) {
    let mut places = places.iter();
    let mut next = places.find(|place| live.contains(place.version));
    while let Some(first) = next {
        let mut passing = passes.contains(first.version).then_some(first.version);
        next = places.find(|place| {
            let is_next = place.arrival != first.arrival;
            if passes.contains(place.version) {
                passing = if is_next {
                    passing
                } else {
                    Some(place.version)
                };
                return is_next;
            }
            is_next && live.contains(place.version)
        });
        each(passing);
    }
}

/// Iterates over the memories of a conversation, forwards or backwards.
#[derive(Clone)]
pub(crate) struct Memories<'a> {
    places: &'a [Entry],
    /// The next place: that before this number when the walk goes back.
    at: usize,
    forward: bool,
    live: &'a Bitmap,
}

/// Versions of one memory, with places of forgotten ones among them.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    places: &'a [Entry],
}

impl<'a> Memories<'a> {
    /// Back from the memory that the place `at` belongs to, and on from it.
    pub(crate) fn around(places: &'a [Entry], at: usize, columns: &'a Columns) -> [Self; 2] {
        let [mut back, mut forth] = [false, true].map(|forward| Self {
            places,
            at,
            forward,
            live: &columns.live,
        });
        back.at -= back.reach(places[at], places[..at].iter().rev());
        forth.at += forth.reach(places[at], places[at..].iter());
        [back, forth]
    }

    /// The number of entries from here on that belong to the memory of `own`, or to none.
    fn reach<'b>(&self, own: Entry, places: impl Iterator<Item = &'b Entry>) -> usize {
        let belongs =
            |place: &&Entry| place.arrival == own.arrival || !self.live.contains(place.version);
        places.take_while(belongs).count()
    }
}

impl<'a> Iterator for Memories<'a> {
    type Item = Memory<'a>;

    fn next(&mut self) -> Option<Memory<'a>> {
        let held = |place: &&Entry| self.live.contains(place.version);
        let (ahead, behind) = (self.places.get(self.at..)?, self.places.get(..self.at)?);
        let own = *if self.forward {
            ahead.iter().find(held)?
        } else {
            behind.iter().rev().find(held)?
        };
        let from = self.at;
        let places = if self.forward {
            self.at += self.reach(own, ahead.iter());
            &self.places[from..self.at]
        } else {
            self.at -= self.reach(own, behind.iter().rev());
            &self.places[self.at..from]
        };
        Some(Memory { places })
    }
}

impl Memory<'_> {
    /// The latest version that passes.
    pub(crate) fn passing(self, passes: &Bitmap) -> Option<u32> {
        let mut versions = self.places.iter().rev().map(|place| place.version);
        versions.find(|&version| passes.contains(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_at_all_finds_what_a_walk_finds() {
        // Up to three versions of a memory side by side; a third of all is forgotten, and half of the rest passes.
        let mut columns = Columns::default();
        let mut passes = Bitmap::empty(600);
        columns.live = Bitmap::empty(600);
        let mix = |version: u32| version.wrapping_mul(2_654_435_761) >> 13;
        let mut arrival = 0;
        let places: Vec<Entry> = (0..600)
            .map(|version| {
                arrival += u64::from(mix(version) % 3 > 0);
                if mix(version) % 7 > 2 {
                    columns.live.insert(version);
                    if mix(version) % 2 == 0 {
                        passes.insert(version);
                    }
                }
                // Of the same memory again after another one.
                let back = u64::from(mix(version) % 11 == 0);
                Entry {
                    time: 0,
                    arrival: arrival.saturating_sub(back),
                    version,
                }
            })
            .collect();
        let mut found = Vec::new();
        for_each(&places, &columns.live, &passes, |passing| {
            found.push(passing);
        });
        let [_, walk] = Memories::around(&places, 0, &columns);
        let first = found.len() - walk.clone().count();
        assert!(first <= 1, "the first memory is where the walk begins");
        let walked: Vec<_> = walk.map(|memory| memory.passing(&passes)).collect();
        assert_eq!(found[first..], walked);
        assert!(walked.len() > 100 && walked.contains(&None));
        let [back, _] = Memories::around(&places, places.len() - 1, &columns);
        let mut backwards: Vec<_> = back.map(|memory| memory.passing(&passes)).collect();
        backwards.reverse();
        assert_eq!(found[..backwards.len()], backwards);
        assert!(backwards.len() + 1 >= found.len());
    }
}
