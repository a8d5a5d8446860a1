//! The checkpoint format of graphs: links only, since the dense index holds the vectors; of usearch what it saves itself,
//! with the vectors of the dead zeroed.

use std::io;

use astrocyte_segments::{SegmentBytes, VectorGraph};

use super::layers::{LOWEST, Layer, Layers, Links};
use super::links::{Graph, GraphLinks};
use crate::api::Result;
use crate::system::checked_file::{FileReader, put_array, refused};

/// Vectors whose links are handed on together.
const TOGETHER: usize = 4096;

impl Graph {
    /// Hands the graph's file to `put`, part by part; vectors of the numbers that are `dead` are left out.
    ///
    /// # Errors
    /// Those of `put`, and when the graph's own file cannot be read.
    pub(crate) fn save(
        &self,
        dead: impl Fn(u32) -> bool,
        mut put: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Layers {
            lowest,
            upper,
            entry,
        } = match &self.links {
            GraphLinks::Own(layers) => layers,
            GraphLinks::Usearch(graph) => return graph.save(dead, put),
        };
        let shape = [lowest.len() as u32, upper.len() as u32, *entry];
        put(shape.map(u32::to_le_bytes).as_flattened())?;
        put_links(lowest, &mut put)?;
        for layer in upper {
            let mut members = Vec::new();
            put_array(
                &[layer.members.len() as u32],
                u32::to_le_bytes,
                &mut members,
            );
            put_array(&layer.members, u32::to_le_bytes, &mut members);
            put(&members)?;
            put_links(&layer.links, &mut put)?;
        }
        Ok(())
    }

    /// Opens a graph of usearch, of `count` vectors, whose bytes were verified.
    ///
    /// # Errors
    /// When it is of another number of vectors or dimensions, or there is no memory.
    pub(crate) fn open(bytes: SegmentBytes, dimensions: usize, count: usize) -> Result<Self> {
        let graph = VectorGraph::open(bytes, dimensions, count);
        let graph = graph.map_err(|error| refused(error.to_string()))?;
        let graph = Self::of(GraphLinks::Usearch(graph));
        graph.note_saved(true);
        Ok(graph)
    }

    /// Reads a graph of `count` vectors.
    ///
    /// # Errors
    /// When it is not one that [`save`](Self::save) has handed out.
    pub(crate) fn read(reader: &mut FileReader, count: usize) -> Result<Self> {
        let another = || {
            refused(
                "a graph has the wrong number of vectors, or links to vectors that it does not hold",
            )
        };
        let (vectors, upper) = (reader.take_u32()?, reader.take_u32()?);
        if vectors as usize != count {
            return Err(another());
        }
        let mut layers = Layers {
            entry: reader.take_u32()?,
            ..Layers::default()
        };
        take_links::<LOWEST>(reader, count, &mut layers.lowest)?;
        for _ in 0..upper {
            let mut layer = Layer::default();
            let members = reader.take_u32()? as usize;
            reader.take_array(members, u32::from_le_bytes, &mut layer.members)?;
            take_links(reader, members, &mut layer.links)?;
            layers.upper.push(layer);
        }
        reader.end()?;
        if !layers.is_closed() {
            return Err(another());
        }
        let graph = Self::new(layers);
        graph.note_saved(true);
        Ok(graph)
    }
}

fn put_links<const ROOM: usize>(
    links: &[Links<ROOM>],
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = Vec::new();
    for links in links.chunks(TOGETHER) {
        out.clear();
        let numbers = links.iter().flat_map(Links::all);
        out.extend(numbers.flat_map(|number| number.to_le_bytes()));
        put(&out)?;
    }
    Ok(())
}

fn take_links<const ROOM: usize>(
    reader: &mut FileReader,
    count: usize,
    into: &mut Vec<Links<ROOM>>,
) -> Result<()> {
    let mut numbers = Vec::new();
    for first in (0..count).step_by(TOGETHER) {
        let some = TOGETHER.min(count - first);
        numbers.clear();
        reader.take_array(some * ROOM, u32::from_le_bytes, &mut numbers)?;
        into.reserve_exact(if first == 0 { count } else { 0 });
        let links = numbers.as_chunks::<ROOM>().0;
        into.extend(links.iter().map(|links| Links::new(links.iter().copied())));
    }
    Ok(())
}
