//! The memories of a chain that are held, one after the other.
//!
//! Versions of one memory that are next to each other are one step. What was forgotten is passed over wherever it still
//! has a place, so that a chain reads the same before and after its places are dropped.

use crate::chains::Place;
use crate::columns::Columns;
use crate::rowset::RowSet;

/// A walk along a chain.
#[derive(Clone)]
pub(super) struct Memories<'a> {
    places: &'a [Place],
    /// The next place: that before this number when the walk goes back.
    at: usize,
    forward: bool,
    /// Outside conversations each instant is for itself.
    timeline: bool,
    live: &'a RowSet,
}

/// Versions of one memory, with places of forgotten ones among them.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    /// Of the version that the walk came to first.
    pub(super) time: i64,
    places: &'a [Place],
}

impl<'a> Memories<'a> {
    /// All of them, from the first on.
    pub(super) fn of(places: &'a [Place], timeline: bool, columns: &'a Columns) -> Self {
        Self {
            places,
            at: 0,
            forward: true,
            timeline,
            live: &columns.live,
        }
    }

    /// Back from the memory that the place `at` belongs to, and on from it.
    pub(super) fn around(
        places: &'a [Place],
        at: usize,
        timeline: bool,
        columns: &'a Columns,
    ) -> [Self; 2] {
        let [mut back, mut forth] = [false, true].map(|forward| Self {
            at,
            forward,
            ..Self::of(places, timeline, columns)
        });
        back.at -= back.reach(places[at], places[..at].iter().rev());
        forth.at += forth.reach(places[at], places[at..].iter());
        [back, forth]
    }

    /// How many places from here on belong to the memory of `own`, or to none.
    fn reach<'b>(&self, own: Place, places: impl Iterator<Item = &'b Place>) -> usize {
        let belongs = |place: &&Place| {
            let same = place.arrival == own.arrival && (!self.timeline || place.time == own.time);
            same || !self.live.contains(place.version)
        };
        places.take_while(belongs).count()
    }
}

impl<'a> Iterator for Memories<'a> {
    type Item = Memory<'a>;

    fn next(&mut self) -> Option<Memory<'a>> {
        let held = |place: &&Place| self.live.contains(place.version);
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
        Some(Memory {
            time: own.time,
            places,
        })
    }
}

impl Memory<'_> {
    /// The latest version that passes.
    pub(super) fn passing(self, passes: &RowSet) -> Option<u32> {
        let mut versions = self.places.iter().rev().map(|place| place.version);
        versions.find(|&version| passes.contains(version))
    }
}
