//! A graph of the builder as one of usearch.

use std::fs::File;

use astrocyte_segments::{LinkedGraph, VectorGraph};

use super::codes::Codes;
use crate::api::{CoreError, Result};
use crate::graph::layers::Layers;
use crate::graph::links::{Graph, GraphLinks};

/// A graph whose vectors have other numbers than in the builder.
pub(super) struct Linked<'a> {
    codes: &'a Codes,
    dimensions: usize,
    layers: &'a Layers,
    /// The builder's number by number.
    order: &'a [u32],
    /// The number by the builder's number.
    places: Vec<u32>,
    /// The highest layer by the builder's number.
    highest: Vec<u16>,
}

impl<'a> Linked<'a> {
    /// The graph of these layers and vectors, in this order.
    pub(super) fn new(
        (codes, dimensions): (&'a Codes, usize),
        layers: &'a Layers,
        order: &'a [u32],
    ) -> Self {
        let mut highest = vec![0; order.len()];
        for (layer, number) in layers.upper.iter().zip(1..) {
            for &member in &layer.members {
                highest[member as usize] = number;
            }
        }
        let mut places = vec![0; order.len()];
        for (place, &number) in (0..).zip(order) {
            places[number as usize] = place;
        }
        Self {
            codes,
            dimensions,
            layers,
            order,
            places,
            highest,
        }
    }

    /// The same for usearch to search, in the empty `file` where there is one.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn write(&self, file: Option<File>) -> Result<Graph> {
        let graph = VectorGraph::linked(self, self.dimensions, file);
        let graph = graph.map_err(|error| CoreError::Graph(error.to_string()))?;
        Ok(Graph::of(GraphLinks::Usearch(graph)))
    }
}

impl LinkedGraph for Linked<'_> {
    fn count(&self) -> u32 {
        self.order.len() as u32
    }

    fn entry(&self) -> u32 {
        self.places
            .get(self.layers.entry as usize)
            .map_or(0, |&place| place)
    }

    fn highest_layer(&self, number: u32) -> u16 {
        self.highest[self.order[number as usize] as usize]
    }

    fn components(&self, number: u32) -> &[i8] {
        let own = self.order[number as usize];
        &self.codes.bytes(own)[..self.dimensions]
    }

    fn links(&self, number: u32, layer: u16) -> impl Iterator<Item = u32> {
        let own = self.order[number as usize];
        let upper = usize::from(layer).checked_sub(1);
        let (lowest, upper) = match upper {
            None => (Some(self.layers.lowest[own as usize].iter()), None),
            Some(place) => (None, Some(self.layers.upper[place].of(own))),
        };
        let links = lowest
            .into_iter()
            .flatten()
            .chain(upper.into_iter().flatten());
        links.map(|other| self.places[other as usize])
    }
}
