//! A graph of the builder as one of usearch.

use std::fs::File;

use astrocyte_segments::{LinkedGraph, VectorGraph};

use super::codes::Codes;
use crate::api::{CoreError, Result};
use crate::graph::layers::Layers;
use crate::graph::links::{Graph, GraphLinks};

/// The graph of these layers and vectors, in the empty `file` where there is one.
///
/// # Errors
/// [`CoreError::Graph`] when there is no memory for it.
pub(super) fn graph(
    codes: &Codes,
    dimensions: usize,
    layers: &Layers,
    file: Option<File>,
) -> Result<Graph> {
    let mut highest = vec![0; layers.lowest.len()];
    for (layer, number) in layers.upper.iter().zip(1..) {
        for &member in &layer.members {
            highest[member as usize] = number;
        }
    }
    let linked = Linked {
        codes,
        dimensions,
        layers,
        highest,
    };
    let graph = VectorGraph::linked(&linked, dimensions, file);
    let graph = graph.map_err(|error| CoreError::Graph(error.to_string()))?;
    Ok(Graph::of(GraphLinks::Usearch(graph)))
}

struct Linked<'a> {
    codes: &'a Codes,
    dimensions: usize,
    layers: &'a Layers,
    /// The highest layer by number.
    highest: Vec<u16>,
}

impl LinkedGraph for Linked<'_> {
    fn count(&self) -> u32 {
        self.highest.len() as u32
    }

    fn entry(&self) -> u32 {
        self.layers.entry
    }

    fn highest_layer(&self, number: u32) -> u16 {
        self.highest[number as usize]
    }

    fn components(&self, number: u32) -> &[i8] {
        &self.codes.bytes(number)[..self.dimensions]
    }

    fn links(&self, number: u32, layer: u16) -> impl Iterator<Item = u32> {
        let upper = usize::from(layer).checked_sub(1);
        let (lowest, upper) = match upper {
            None => (Some(self.layers.lowest[number as usize].iter()), None),
            Some(place) => (None, Some(self.layers.upper[place].of(number))),
        };
        lowest
            .into_iter()
            .flatten()
            .chain(upper.into_iter().flatten())
    }
}
