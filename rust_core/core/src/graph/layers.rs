//! The links of a graph: of all vectors on the lowest layer, of ever fewer on the layers above (Malkov and Yashunin,
//! Efficient and robust approximate nearest neighbor search using hierarchical navigable small world graphs, 2016).

/// Links of a vector on the upper layers; twice as many on the lowest.
pub(super) const CONNECTIVITY: usize = 16;
/// Links of a vector on the lowest layer.
pub(super) const LOWEST: usize = 2 * CONNECTIVITY;
/// Fills the unused places of a vector's links.
const NONE: u32 = u32::MAX;

/// Numbers of up to `ROOM` vectors, then [`NONE`]; whole cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Links<const ROOM: usize>([u32; ROOM]);

impl<const ROOM: usize> Default for Links<ROOM> {
    fn default() -> Self {
        Self([NONE; ROOM])
    }
}

impl<const ROOM: usize> Links<ROOM> {
    /// The first of these that there is room for.
    pub(super) fn new(links: impl Iterator<Item = u32>) -> Self {
        let mut all = Self::default();
        for (slot, link) in all.0.iter_mut().zip(links) {
            *slot = link;
        }
        all
    }

    /// Returns true if there is no room left.
    pub(super) fn is_full(&self) -> bool {
        self.0[ROOM - 1] != NONE
    }

    /// Adds one, where there is room.
    pub(super) fn push(&mut self, link: u32) {
        if let Some(slot) = self.0.iter_mut().find(|slot| **slot == NONE) {
            *slot = link;
        }
    }

    /// The links, without unused places.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied().take_while(|&link| link != NONE)
    }

    /// The links and the unused places.
    pub(super) fn all(&self) -> &[u32; ROOM] {
        &self.0
    }
}

/// Links between some of the vectors.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// Their numbers, ascending.
    pub(super) members: Vec<u32>,
    pub(super) links: Vec<Links<CONNECTIVITY>>,
}

impl Layer {
    /// The links of a vector; of one that is not in the layer none.
    pub(super) fn of(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let place = self.members.binary_search(&number).ok();
        place.into_iter().flat_map(|place| self.links[place].iter())
    }
}

/// A graph without its vectors.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// By number.
    pub(super) lowest: Vec<Links<LOWEST>>,
    /// Upwards.
    pub(super) upper: Vec<Layer>,
    /// The vector at which a search begins.
    pub(super) entry: u32,
}

impl Layers {
    /// Bytes of what is allocated.
    pub(super) fn bytes(&self) -> usize {
        let upper = self.upper.iter().map(|layer| {
            layer.members.capacity() * size_of::<u32>()
                + layer.links.capacity() * size_of::<Links<CONNECTIVITY>>()
        });
        self.lowest.capacity() * size_of::<Links<LOWEST>>() + upper.sum::<usize>()
    }

    /// Returns true if every link leads to an existing vector, so that no search can leave the graph.
    pub(super) fn is_closed(&self) -> bool {
        let count = self.lowest.len() as u32;
        let inside = |number: u32| number < count;
        let mut lowest = self.lowest.iter().flat_map(Links::iter);
        let begins = inside(self.entry) || (count == 0 && self.upper.is_empty());
        begins
            && lowest.all(inside)
            && self.upper.iter().all(|layer| {
                layer.links.iter().flat_map(Links::iter).all(inside)
                    && layer.members.is_sorted()
                    && layer.members.iter().copied().all(inside)
                    && layer.members.len() == layer.links.len()
            })
    }
}
