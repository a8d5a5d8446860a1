//! Makes every vector reachable from the entry point.

use super::build_threads::{Stopped, Turn};
use crate::bitmap::Bitmap;
use crate::graph::layers::Links;

/// Adds links to vectors that no way from the `entry` leads to, from some that can be reached. Each of these has room.
pub(super) fn connect<const ROOM: usize>(
    links: &mut [Links<ROOM>],
    entry: u32,
    turn: &mut Turn<'_>,
) -> Result<(), Stopped> {
    let mut reached = Reached {
        met: Bitmap::empty(links.len() as u32),
        ahead: Vec::new(),
        last: entry,
    };
    reached.from(entry, links, turn)?;
    for number in 0..links.len() as u32 {
        if reached.met.contains(number) {
            continue;
        }
        let host = reached.host(number, links);
        links[host as usize].push(number);
        reached.from(number, links, turn)?;
        reached.last = number;
    }
    Ok(())
}

struct Reached {
    met: Bitmap,
    /// Met, and not yet looked around from.
    ahead: Vec<u32>,
    /// The last one that a link was added to: copies of one vector, which choose the same few, then follow each other.
    last: u32,
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

    /// A reachable vector with an unused place: the nearest that the vector links to, or the last one added.
    fn host<const ROOM: usize>(&self, number: u32, links: &[Links<ROOM>]) -> u32 {
        let takes = |&host: &u32| self.met.contains(host) && !links[host as usize].is_full();
        let mut near = links[number as usize].iter();
        near.find(takes).unwrap_or(self.last)
    }
}
