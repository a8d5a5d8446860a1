//! Selects the next build: the uncovered tail, segments of similar size, or a segment whose rows are mostly dead.

use crate::bitmap::Bitmap;
use crate::graph::{DEAD_SHARE, GraphKind, Segments};

/// Segments of about one size that are merged: each row is built into a graph once per step of size, and a search meets
/// at most this many graphs less one of each size.
const MERGED: usize = 4;
/// Segments to replace, by number, and whether the rows that none covers go in as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) replaced: Vec<usize>,
    pub(super) tail: bool,
}

/// The most useful build, if there is one: of graphs of this kind, from so many rows on and mostly up to so many.
pub(super) fn next(
    segments: &Segments,
    live: &Bitmap,
    tail_rows: u32,
    ((graph_rows, most), kind): ((u32, u32), GraphKind),
) -> Option<Job> {
    let mut kinds = segments.all.iter().map(|segment| segment.graph.kind());
    if let Some(other) = kinds.position(|one| one != kind) {
        // The bank has come from another tier.
        return Some(Job {
            replaced: vec![other],
            tail: false,
        });
    }
    let sizes: Vec<(u32, u32)> = segments
        .all
        .iter()
        .map(|segment| {
            let live = segment
                .live_rows()
                .filter(|&row| live.contains(row))
                .count();
            (segment.len(), live as u32)
        })
        .collect();
    choose(&sizes, tail_rows, (graph_rows, most))
}

/// Selects a build by the segments' sizes: all vectors, and those that are not dead. None is merged beyond `most`.
fn choose(sizes: &[(u32, u32)], tail_rows: u32, (graph_rows, most): (u32, u32)) -> Option<Job> {
    let fits = |numbers: &[usize], more: u32| {
        let rows = numbers.iter().map(|&number| u64::from(sizes[number].1));
        rows.sum::<u64>() + u64::from(more) <= u64::from(most)
    };
    if tail_rows >= graph_rows {
        // A segment no larger than the tail would be merged with it soon.
        let replaced = (0..sizes.len())
            .filter(|&number| sizes[number].1 <= tail_rows)
            .collect::<Vec<_>>();
        let replaced = if replaced.len() + 1 >= MERGED && fits(&replaced, tail_rows) {
            replaced
        } else {
            Vec::new()
        };
        return Some(Job {
            replaced,
            tail: true,
        });
    }
    if let Some(number) = sizes
        .iter()
        .position(|&(all, live)| all - live > all / DEAD_SHARE)
    {
        return Some(Job {
            replaced: vec![number],
            tail: false,
        });
    }
    let tier = |live: u32| (live.max(graph_rows) / graph_rows.max(1)).ilog2() / MERGED.ilog2();
    let mut tiers: Vec<(u32, usize)> = sizes
        .iter()
        .enumerate()
        .map(|(number, &(_, live))| (tier(live), number))
        .collect();
    tiers.sort_unstable();
    let crowded = tiers
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|tier| tier.len() >= MERGED)
        .map(|tier| tier.iter().map(|&(_, number)| number).collect::<Vec<_>>());
    let replaced = crowded.into_iter().find(|numbers| fits(numbers, 0))?;
    Some(Job {
        replaced,
        tail: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a hundred rows on, without an upper limit.
    const ANY: (u32, u32) = (100, u32::MAX);

    #[expect(clippy::unnecessary_wraps, reason = "what `choose` answers")]
    fn job(replaced: &[usize], tail: bool) -> Option<Job> {
        Some(Job {
            replaced: replaced.to_vec(),
            tail,
        })
    }

    #[test]
    fn a_long_tail_is_folded_and_a_short_one_is_left() {
        assert_eq!(choose(&[], 99, ANY), None);
        assert_eq!(choose(&[], 100, ANY), job(&[], true));
        assert_eq!(choose(&[(1000, 1000)], 100, ANY), job(&[], true));
    }

    #[test]
    fn segments_of_one_size_are_merged() {
        let four = [(100, 100), (5000, 5000), (120, 110), (100, 100), (100, 90)];
        assert_eq!(choose(&four, 0, ANY), job(&[0, 2, 3, 4], false));
        assert_eq!(choose(&four[..4], 0, ANY), None);
        // The tail is the fourth.
        assert_eq!(choose(&four[..4], 150, ANY), job(&[0, 2, 3], true));
    }

    #[test]
    fn segments_are_not_merged_beyond_the_limit() {
        let four = [(100, 100), (120, 110), (100, 100), (100, 90)];
        assert_eq!(choose(&four, 0, (100, 400)), job(&[0, 1, 2, 3], false));
        assert_eq!(choose(&four, 0, (100, 399)), None);
        assert_eq!(choose(&four[..3], 150, (100, 400)), job(&[], true));
        // A dead one is built anew whatever its size.
        assert_eq!(choose(&[(1000, 700)], 0, (100, 400)), job(&[0], false));
    }

    #[test]
    fn a_segment_with_a_fifth_dead_is_built_anew() {
        assert_eq!(choose(&[(1000, 800)], 0, ANY), None);
        assert_eq!(choose(&[(500, 500), (1000, 799)], 0, ANY), job(&[1], false));
    }

    #[test]
    fn every_size_stays_few() {
        let mut sizes: Vec<(u32, u32)> = Vec::new();
        let mut built = 0u64;
        for _ in 0..200 {
            let mut tail = 100;
            while let Some(job) = choose(&sizes, tail, ANY) {
                let merged: u32 = job.replaced.iter().map(|&n| sizes[n].1).sum();
                let new = merged
                    + if job.tail {
                        std::mem::take(&mut tail)
                    } else {
                        0
                    };
                let mut number = 0;
                sizes.retain(|_| {
                    number += 1;
                    !job.replaced.contains(&(number - 1))
                });
                sizes.push((new, new));
                built += u64::from(new);
            }
            assert!(sizes.len() <= 3 * MERGED, "{sizes:?}");
        }
        assert!(
            built < 100 * 200 * 6,
            "each row is built a few times: {built}"
        );
    }
}
