//! An order of the vectors of a graph in which linked ones share pages of a file. A search goes from one to the next, and so
//! waits less for memory, and reads less of a file that memory does not hold (Coleman and others, Graph reordering for
//! cache-efficient near neighbor search, 2021).

use super::build_threads::{Stopped, Turn};
use crate::bitmap::Bitmap;
use crate::graph::layers::Links;

/// All numbers in the order of a walk from the `entry`, which goes on at the nearest that it has not met. Links of one
/// vector lead in different directions, so that they are not near to each other.
///
/// # Errors
/// [`Stopped`] when the graph is not wanted any more.
pub(super) fn page_order<const ROOM: usize>(
    links: &[Links<ROOM>],
    entry: u32,
    turn: &mut Turn<'_>,
) -> Result<Vec<u32>, Stopped> {
    let count = links.len() as u32;
    let (mut met, mut order) = (Bitmap::empty(count), Vec::with_capacity(links.len()));
    let mut ahead: Vec<u32> = (0..count).rev().collect();
    ahead.extend((count > 0).then_some(entry));
    while let Some(number) = ahead.pop() {
        if !met.insert(number) {
            continue;
        }
        turn.breathe()?;
        order.push(number);
        let first = ahead.len();
        let others = links[number as usize].iter();
        ahead.extend(others.filter(|&other| !met.contains(other)));
        // The nearest is the first of the links, and the last that is pushed comes next.
        ahead[first..].reverse();
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::builder::BuildThreads;

    #[test]
    fn the_walk_goes_on_at_the_nearest() {
        let links = [&[2, 4][..], &[], &[5, 0], &[3], &[1], &[4]].map(|links: &[u32]| {
            let links = links.iter().copied();
            Links::<16>::new(links)
        });
        let threads = BuildThreads {
            share: 1.0,
            wanted: &|| true,
        };
        let order = |entry| page_order(&links, entry, &mut threads.turn());
        assert_eq!(order(0), Ok(vec![0, 2, 5, 4, 1, 3]));
        assert_eq!(order(5), Ok(vec![5, 4, 1, 0, 2, 3]));
        assert_eq!(page_order::<16>(&[], 0, &mut threads.turn()), Ok(vec![]));
    }
}
