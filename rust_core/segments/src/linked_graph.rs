//! The source of a graph that is written as one of usearch.

/// A layered graph with its vectors, which have the numbers from 0 on.
pub trait LinkedGraph {
    /// Number of vectors.
    fn count(&self) -> u32;

    /// The vector at which searches begin: of the highest layer.
    fn entry(&self) -> u32;

    /// The highest layer of a vector: 0 is the lowest, of all vectors.
    fn highest_layer(&self, number: u32) -> u16;

    /// The components of a vector, which are scaled by the largest one to 127.
    fn components(&self, number: u32) -> &[i8];

    /// The vectors to which one has links on a layer: up to 32 on the lowest, up to 16 on each above.
    fn links(&self, number: u32, layer: u16) -> impl Iterator<Item = u32>;
}
