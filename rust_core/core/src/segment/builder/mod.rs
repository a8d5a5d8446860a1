//! A graph in the making, of all its vectors at once: they are divided into overlapping leaves, compared with all others of
//! their leaves, and linked to those of the nearest that lead in different directions (Rubel and others 2026).
//!
//! A graph that takes one vector after the other walks itself for each of them and waits for memory at every step; a leaf is
//! compared from the caches. What is built depends on the vectors and their order alone, not on who builds.

mod carve;
mod codes;
mod crew;
mod leaf;
mod links;
mod pools;
mod random;
mod reach;

pub(super) use crew::{Crew, Stopped};

use self::codes::Codes;
use self::pools::Pools;
use self::random::Random;
use super::build::Name;
use super::graph::Graph;
use super::layers::{LOWEST, Layer, Layers, Links};
use crate::error::{CoreError, Result};

/// Vectors of a layer of which one is on the next: with as many links there a walk takes few steps on each (Malkov and
/// Yashunin 2016, section 4.1).
const LAYER_SHARE: usize = 16;

/// Bytes of a vector's name, in what is planned and in what was read.
const NAMES_BYTES: usize = 2 * size_of::<Name>();

/// Vectors that become a graph; nobody else sees them.
pub(super) struct Builder {
    codes: Codes,
}

impl Builder {
    /// An empty one for up to `capacity` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn new(dimensions: usize, capacity: usize) -> Result<Self> {
        let codes = Codes::new(dimensions, capacity)?;
        Ok(Self { codes })
    }

    /// Adds a vector under the next number.
    pub(super) fn add(&mut self, vector: &[f32]) {
        self.codes.push(vector);
    }

    /// Resident bytes of one vector.
    pub(super) fn row_bytes(dimensions: usize) -> usize {
        Codes::row_bytes(dimensions)
            + Pools::row_bytes()
            + size_of::<Links<LOWEST>>()
            + carve::row_bytes()
            + NAMES_BYTES
    }

    /// The graph, or none where nobody wants it any more.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn finish(self, crew: &Crew<'_>) -> Result<Option<Graph>> {
        let count = self.codes.len();
        if count == 0 {
            return Ok(Some(Graph::new(Layers::default())));
        }
        let pools = Pools::new(count)?;
        let mut lowest = Vec::new();
        let reserved = lowest.try_reserve_exact(count);
        reserved.map_err(|error| CoreError::Graph(error.to_string()))?;
        lowest.resize(count, Links::default());
        let layers = self.layers(lowest, &pools, crew);
        Ok(layers.ok().map(Graph::new))
    }

    fn layers(
        &self,
        mut lowest: Vec<Links<LOWEST>>,
        pools: &Pools,
        crew: &Crew<'_>,
    ) -> std::result::Result<Layers, Stopped> {
        link(&self.codes, pools, &mut lowest, crew)?;
        let mut layers = Layers {
            lowest,
            ..Layers::default()
        };
        let mut members: Vec<u32> = (0..self.codes.len() as u32).collect();
        loop {
            members.retain(|&number| is_above(number, layers.upper.len()));
            let Some(&first) = members.first() else {
                break;
            };
            layers.entry = first;
            let layer = self.layer(&members, pools, crew)?;
            layers.upper.push(layer);
        }
        reach::reach(&mut layers.lowest, layers.entry, &mut crew.turn())?;
        Ok(layers)
    }

    fn layer(
        &self,
        members: &[u32],
        pools: &Pools,
        crew: &Crew<'_>,
    ) -> std::result::Result<Layer, Stopped> {
        pools.clear(members.len());
        let mut links = vec![Links::default(); members.len()];
        link(&self.codes.of(members), pools, &mut links, crew)?;
        for links in &mut links {
            *links = Links::new(links.iter().map(|place| members[place as usize]));
        }
        Ok(Layer {
            members: members.to_vec(),
            links,
        })
    }
}

/// The links of all vectors, from empty pools.
fn link<const ROOM: usize>(
    codes: &Codes,
    pools: &Pools,
    links: &mut [Links<ROOM>],
    crew: &Crew<'_>,
) -> std::result::Result<(), Stopped> {
    carve::carve(codes, pools, crew)?;
    links::link(codes, pools, links, crew)
}

/// Whether one of a layer is on the next.
fn is_above(number: u32, layer: usize) -> bool {
    Random(u64::from(number) << 8 | layer as u64).below(LAYER_SHARE) == 0
}

#[cfg(test)]
mod tests;
