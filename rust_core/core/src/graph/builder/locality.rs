//! Groups of near vectors. A graph whose numbers follow the groups has near vectors in the same pages, and a search goes
//! from one to the next: inserting one by one waits less for memory, and a file that memory does not hold is read less.

use super::build_threads::{Stopped, Turn};
use super::codes::Codes;
use super::partition::{Division, leaders};
use super::random::Random;
use crate::api::Result;

/// Vectors of a group, on average: of 256 dimensions they fill two pages. Leaders are drawn at random, and near vectors
/// among which none is drawn are scattered.
const GROUP: usize = 32;
/// Most groups: each vector is compared with the leaders of all, which takes some hundredths of a build then.
const MOST_GROUPS: usize = 8_192;
/// Vectors below which there are no groups: the caches hold the graph while it is built.
const GROUPED: usize = 128 * GROUP;

/// The groups of the vectors of one build.
pub(crate) struct LocalityGroups {
    leaders: Codes,
    batch: Codes,
    division: Division,
}

impl LocalityGroups {
    /// The places, among so many vectors, of those that lead a group, ascending; none where groups would gain nothing.
    pub(crate) fn leaders(count: usize) -> Vec<u32> {
        if count < GROUPED {
            return Vec::new();
        }
        let all: Vec<u32> = (0..count as u32).collect();
        leaders(&all, (count / GROUP).min(MOST_GROUPS), &mut Random(0))
    }

    /// Groups around `leaders`, of which there is one at least.
    ///
    /// # Errors
    /// [`CoreError::Graph`](crate::CoreError::Graph) when there is no memory for them.
    pub(crate) fn new(leaders: &[Vec<f32>]) -> Result<Self> {
        let dimensions = leaders[0].len();
        let mut codes = Codes::new(dimensions, leaders.len())?;
        for leader in leaders {
            codes.push(leader);
        }
        Ok(Self {
            leaders: codes,
            batch: Codes::new(dimensions, 0)?,
            division: Division::default(),
        })
    }

    /// The group of each vector: that of the nearest leader.
    ///
    /// # Errors
    /// [`Stopped`] when the graph is not wanted any more.
    pub(crate) fn of<'a>(
        &mut self,
        vectors: impl Iterator<Item = &'a [f32]>,
        turn: &mut Turn<'_>,
    ) -> std::result::Result<Vec<u32>, Stopped> {
        let Self {
            leaders,
            batch,
            division,
        } = self;
        batch.clear();
        for vector in vectors {
            batch.push(vector);
        }
        let members: Vec<u32> = (0..batch.len() as u32).collect();
        let mut groups = Vec::with_capacity(members.len());
        let choose = |_, leader| groups.push(leader);
        division.choose(batch, &members, (leaders, 1), turn, choose)?;
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BuildThreads, Random};
    use super::*;
    use crate::dense::dot;

    #[test]
    fn leaders_are_spread_over_all_vectors() {
        assert!(LocalityGroups::leaders(GROUPED - 1).is_empty());
        let few = LocalityGroups::leaders(GROUPED);
        let stretches: Vec<usize> = few.iter().map(|&place| place as usize / GROUP).collect();
        assert_eq!(stretches, (0..GROUPED / GROUP).collect::<Vec<_>>());
        assert_eq!(LocalityGroups::leaders(1 << 20).len(), MOST_GROUPS);
    }

    #[test]
    fn each_vector_is_in_the_group_of_the_nearest_leader() {
        let mut random = Random(3);
        let mut vectors = |count| -> Vec<Vec<f32>> {
            let mut one = || {
                let vector: Vec<f32> = (0..24).map(|_| random.below(200) as f32 - 100.0).collect();
                let norm = dot(&vector, &vector).sqrt();
                vector.into_iter().map(|x| x / norm).collect()
            };
            (0..count).map(|_| one()).collect()
        };
        let (leaders, members) = (vectors(20), vectors(300));
        let mut groups = LocalityGroups::new(&leaders).expect("there is memory");
        let threads = BuildThreads {
            share: 1.0,
            wanted: &|| true,
        };
        for some in members.chunks(64) {
            let found = groups.of(some.iter().map(Vec::as_slice), &mut threads.turn());
            let found = found.expect("it is wanted");
            assert_eq!(found.len(), some.len());
            for (member, &group) in some.iter().zip(&found) {
                let own = dot(member, &leaders[group as usize]);
                let best = leaders.iter().map(|leader| dot(member, leader));
                // Rounding may decide between near equals.
                assert!(own > best.fold(f32::NEG_INFINITY, f32::max) - 0.02);
            }
        }
    }
}
