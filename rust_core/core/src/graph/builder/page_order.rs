//! An order of the vectors of a graph in which linked ones share pages of a file. A search goes from one to the next, and so
//! waits less for memory, and reads less of a file that memory does not hold (Coleman and others, Graph reordering for
//! cache-efficient near neighbor search, 2021).

use super::build_threads::{Stopped, Turn};
use crate::bitmap::Bitmap;
use crate::graph::layers::Links;

/// All numbers in the order of a walk from the `entry`: those that one is linked to follow each other, the nearest first,
/// and the walk goes on at the nearest.
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
    let mut ahead: Vec<u32> = Vec::new();
    for start in std::iter::once(entry).chain(0..count) {
        if start >= count || !met.insert(start) {
            continue;
        }
        order.push(start);
        ahead.push(start);
        while let Some(number) = ahead.pop() {
            turn.breathe()?;
            let first = order.len();
            order.extend(
                links[number as usize]
                    .iter()
                    .filter(|&other| met.insert(other)),
            );
            ahead.extend(order[first..].iter().rev());
        }
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
        assert_eq!(order(0), Ok(vec![0, 2, 4, 5, 1, 3]));
        assert_eq!(order(5), Ok(vec![5, 4, 1, 0, 2, 3]));
        assert_eq!(page_order::<16>(&[], 0, &mut threads.turn()), Ok(vec![]));
    }
}
