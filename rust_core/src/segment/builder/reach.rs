//! Sees that a walk can come to every vector.

use super::crew::{Stopped, Turn};
use crate::rowset::RowSet;
use crate::segment::layers::Links;

/// Adds links to vectors that no way from the `entry` leads to, from some that can be reached and have room.
pub(super) fn reach<const ROOM: usize>(
    links: &mut [Links<ROOM>],
    entry: u32,
    turn: &mut Turn<'_>,
) -> Result<(), Stopped> {
    let mut reached = Reached {
        met: RowSet::empty(links.len() as u32),
        ahead: Vec::new(),
        last: entry,
        next: 0,
    };
    reached.from(entry, links, turn)?;
    for number in 0..links.len() as u32 {
        if reached.met.contains(number) {
            continue;
        }
        let Some(host) = reached.host(number, links) else {
            // All that can be reached have as many links as there is room for.
            break;
        };
        links[host as usize].push(number);
        reached.from(number, links, turn)?;
        reached.last = number;
    }
    Ok(())
}

struct Reached {
    met: RowSet,
    /// Met, and not yet looked around from.
    ahead: Vec<u32>,
    /// The last one that got a link: copies of one vector, which choose the same few, then follow each other.
    last: u32,
    /// Where the search for any that has room goes on.
    next: u32,
}

impl Reached {
    /// Meets all that a way from a vector leads to.
    fn from<const ROOM: usize>(
        &mut self,
        number: u32,
        links: &[Links<ROOM>],
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        self.met.insert(number);
        self.ahead.push(number);
        while let Some(number) = self.ahead.pop() {
            turn.breathe()?;
            for other in links[number as usize].iter() {
                if self.met.insert(other) {
                    self.ahead.push(other);
                }
            }
        }
        Ok(())
    }

    /// Who can be reached and has room: the nearest that the vector itself leads to, the last one, or any.
    fn host<const ROOM: usize>(&mut self, number: u32, links: &[Links<ROOM>]) -> Option<u32> {
        let takes = |&host: &u32| self.met.contains(host) && !links[host as usize].is_full();
        let mut hosts = links[number as usize].iter().chain([self.last]);
        if let Some(host) = hosts.find(takes) {
            return Some(host);
        }
        let mut all = (self.next..links.len() as u32).chain(0..self.next);
        self.next = all.find(takes)?;
        Some(self.next)
    }
}
