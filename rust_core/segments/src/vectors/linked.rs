//! Writes graphs that were linked elsewhere as usearch writes its own.
//!
//! Vectors come first, row by row, behind their numbers of rows and bytes; then the head of usearch, whose fields lie
//! packed; then the header of the graph, the highest layer of each vector, and their keys and links. Numbers are
//! little-endian. A test compares the bytes with those that usearch saves of the same graph.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::builder::{CONNECTIVITY, LOWEST_LINKS, reserved};
use super::{HEAD_BYTES, VectorGraph, failed};
use crate::{LinkedGraph, Result, SegmentBytes};

/// Bytes of the graph before the first highest layer: 64 of the head of usearch, and the five numbers of the header.
const GRAPH_HEAD_BYTES: usize = 64 + 5 * 8;
/// Where the head counts the vectors: after the magic, the release and the kinds of numbers.
const PRESENT: usize = HEAD_BYTES + 17;
/// Where the header counts the vectors.
const SIZE: usize = HEAD_BYTES + 64;
/// Where the header has the highest layer.
const HIGHEST: usize = SIZE + 3 * 8;
/// Where the header has the number at which searches begin.
const ENTRY: usize = HIGHEST + 8;
/// Bytes that are written at once.
const TOGETHER: usize = 1 << 20;

impl VectorGraph {
    /// The same graph, of vectors of `dimensions`, for usearch to search: in the empty `file`, or in memory where there is
    /// none or it cannot be written.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn linked(graph: &impl LinkedGraph, dimensions: usize, file: Option<File>) -> Result<Self> {
        let heads = heads(graph, dimensions)?;
        let written = file.filter(|file| {
            let mut out = BufWriter::with_capacity(TOGETHER, file);
            write(graph, &heads, &mut out)
                .and_then(|()| out.flush())
                .is_ok()
        });
        let bytes = if let Some(file) = written {
            SegmentBytes::File(file)
        } else {
            let mut bytes = Vec::new();
            write(graph, &heads, &mut bytes)?;
            SegmentBytes::Memory(bytes)
        };
        Self::open(bytes, dimensions, graph.count() as usize)
    }
}

/// The bytes before the vectors and before the highest layers: as usearch writes them of an empty graph, with other counts.
fn heads(graph: &impl LinkedGraph, dimensions: usize) -> Result<Vec<u8>> {
    let (empty, _) = reserved(dimensions, 1)?;
    let mut heads = vec![0; HEAD_BYTES + GRAPH_HEAD_BYTES];
    let saved = empty.save_to_buffer(&mut heads);
    saved.map_err(|error| failed(&error))?;
    let (count, entry) = (graph.count(), graph.entry());
    let highest = if count > 0 {
        graph.highest_layer(entry)
    } else {
        0
    };
    let rows = [count, dimensions as u32].map(u32::to_le_bytes);
    heads[..HEAD_BYTES].copy_from_slice(rows.as_flattened());
    for (place, number) in [
        (PRESENT, u64::from(count)),
        (SIZE, u64::from(count)),
        (HIGHEST, u64::from(highest)),
        (ENTRY, u64::from(entry)),
    ] {
        heads[place..place + 8].copy_from_slice(&number.to_le_bytes());
    }
    Ok(heads)
}

fn write(graph: &impl LinkedGraph, heads: &[u8], out: &mut impl Write) -> io::Result<()> {
    let (rows, head) = heads.split_at(HEAD_BYTES);
    out.write_all(rows)?;
    let mut bytes = Vec::new();
    for number in 0..graph.count() {
        let components = graph.components(number).iter();
        bytes.clear();
        bytes.extend(components.map(|component| component.cast_unsigned()));
        out.write_all(&bytes)?;
    }
    out.write_all(head)?;
    for number in 0..graph.count() {
        out.write_all(&graph.highest_layer(number).to_le_bytes())?;
    }
    for number in 0..graph.count() {
        let highest = graph.highest_layer(number);
        bytes.clear();
        bytes.extend(u64::from(number).to_le_bytes());
        bytes.extend(highest.to_le_bytes());
        for layer in 0..=highest {
            let room = if layer == 0 {
                LOWEST_LINKS
            } else {
                CONNECTIVITY
            };
            let start = bytes.len();
            bytes.extend([0; 4]);
            let links = graph.links(number, layer).take(room);
            bytes.extend(links.flat_map(u32::to_le_bytes));
            let count = (bytes.len() - start) / 4 - 1;
            bytes[start..start + 4].copy_from_slice(&(count as u32).to_le_bytes());
            bytes.resize(start + 4 * (1 + room), 0);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}
