//! Builds a layered graph (HNSW) of all its vectors at once: vectors are partitioned into overlapping leaves, compared
//! within their leaves, and linked to near ones in different directions (Rubel and others 2026).
//!
//! Insertion one by one searches the graph for each vector and waits for memory at every step; a leaf is compared in
//! the caches. The result depends on the vectors and their order alone, not on the threads.

mod build_threads;
mod candidate_pools;
mod codes;
mod connectivity;
mod leaf;
mod linked;
mod links;
mod page_order;
mod partition;
mod random;

pub(crate) use build_threads::BuildThreads;

use std::fs::File;

use self::build_threads::Stopped;
use self::candidate_pools::CandidatePools;
use self::codes::Codes;
use self::linked::Linked;
use self::links::Linking;
use self::page_order::page_order;
use self::random::Random;
use super::layers::{LOWEST, Layer, Layers, Links};
use super::links::Graph;
use super::segments::Name;
use crate::api::{CoreError, Result};

/// Vectors of a layer of which one is on the next: with as many links there a search takes few steps on each (Malkov
/// and Yashunin 2016, section 4.1).
const LAYER_SHARE: usize = 16;

/// Bytes of a vector's name, in what is planned and in what was read.
const NAMES_BYTES: usize = 2 * size_of::<Name>();

/// Vectors that become a graph; nobody else sees them.
pub(crate) struct Builder {
    dimensions: usize,
    codes: Codes,
}

impl Builder {
    /// An empty one for up to `capacity` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(crate) fn new(dimensions: usize, capacity: usize) -> Result<Self> {
        let codes = Codes::new(dimensions, capacity)?;
        Ok(Self { dimensions, codes })
    }

    /// Adds a vector under the next number.
    pub(crate) fn add(&mut self, vector: &[f32]) {
        self.codes.push(vector);
    }

    /// Resident bytes of one vector.
    pub(crate) fn row_bytes(dimensions: usize) -> usize {
        Codes::row_bytes(dimensions)
            + CandidatePools::row_bytes()
            + size_of::<Links<LOWEST>>()
            + partition::row_bytes()
            + NAMES_BYTES
    }

    /// The graph, or none where nobody wants it any more.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(crate) fn finish(self, threads: &BuildThreads<'_>) -> Result<Option<Graph>> {
        Ok(self.layers((Linking::Quick, threads))?.map(Graph::new))
    }

    /// The same for usearch to search, in the empty `file` where there is one; and the order of its vectors, each by the
    /// number under which it was added.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(crate) fn finish_for_usearch(
        self,
        threads: &BuildThreads<'_>,
        file: Option<File>,
    ) -> Result<Option<(Graph, Vec<u32>)>> {
        let Some(layers) = self.layers((Linking::Thorough, threads))? else {
            return Ok(None);
        };
        let order = page_order(&layers.lowest, layers.entry, &mut threads.turn());
        let Ok(order) = order else {
            return Ok(None);
        };
        let linked = Linked::new((&self.codes, self.dimensions), &layers, &order);
        Ok(Some((linked.write(file)?, order)))
    }

    fn layers(&self, linking: (Linking, &BuildThreads<'_>)) -> Result<Option<Layers>> {
        let count = self.codes.len();
        if count == 0 {
            return Ok(Some(Layers::default()));
        }
        let pools = CandidatePools::new(count)?;
        let mut lowest = Vec::new();
        let reserved = lowest.try_reserve_exact(count);
        reserved.map_err(|error| CoreError::Graph(error.to_string()))?;
        lowest.resize(count, Links::default());
        Ok(self.all_layers(lowest, &pools, linking).ok())
    }

    fn all_layers(
        &self,
        mut lowest: Vec<Links<LOWEST>>,
        pools: &CandidatePools,
        linking: (Linking, &BuildThreads<'_>),
    ) -> std::result::Result<Layers, Stopped> {
        link(&self.codes, pools, &mut lowest, linking)?;
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
            let layer = self.layer(&members, pools, linking)?;
            layers.upper.push(layer);
        }
        connectivity::connect(&mut layers.lowest, layers.entry, &mut linking.1.turn())?;
        Ok(layers)
    }

    fn layer(
        &self,
        members: &[u32],
        pools: &CandidatePools,
        linking: (Linking, &BuildThreads<'_>),
    ) -> std::result::Result<Layer, Stopped> {
        pools.clear(members.len());
        let mut links = vec![Links::default(); members.len()];
        link(&self.codes.of(members), pools, &mut links, linking)?;
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
    pools: &CandidatePools,
    links: &mut [Links<ROOM>],
    linking: (Linking, &BuildThreads<'_>),
) -> std::result::Result<(), Stopped> {
    partition::partition(codes, pools, linking.1)?;
    links::link(codes, pools, links, linking)
}

/// Returns true if a vector of a layer is on the next.
fn is_above(number: u32, layer: usize) -> bool {
    Random(u64::from(number) << 8 | layer as u64).below(LAYER_SHARE) == 0
}

#[cfg(test)]
mod tests;
