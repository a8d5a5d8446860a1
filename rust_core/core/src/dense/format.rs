//! The checkpoint format of quantised rows: the planes as they are in memory.

use std::ops::Range;

use super::planes::{FlatIndex, PART, Planes};
use super::quantise::{BLOCK, Block, QuantisedRow};
use crate::api::Result;
use crate::system::checked_file::{FileReader, put_array, refused};

impl FlatIndex {
    /// Rows that are saved and read together.
    pub(crate) const TOGETHER: u32 = PART as u32;

    /// Appends the steps and planes of up to [`TOGETHER`](Self::TOGETHER) rows, the first of which is a multiple of it.
    pub(crate) fn save(&self, rows: Range<u32>, out: &mut Vec<u8>) {
        let rows = rows.start as usize..rows.end as usize;
        put_array(&self.scales[rows.clone()], f32::to_le_bytes, out);
        for plane in [self.high(rows.clone()), self.low(rows)] {
            out.reserve(plane.len() * BLOCK);
            for block in plane {
                out.extend_from_slice(&block.0);
            }
        }
    }

    /// Appends `count` rows that were saved.
    pub(crate) fn read(&mut self, count: usize, reader: &mut FileReader) -> Result<()> {
        let first = self.scales.len();
        if count > PART || !first.is_multiple_of(PART) {
            return Err(refused("the planes are not in whole parts"));
        }
        reader.take_array(count, f32::from_le_bytes, &mut self.scales)?;
        if !self.scales[first..]
            .iter()
            .all(|step| step.is_finite() && *step >= 0.0)
        {
            return Err(refused("a row has a step that is not a finite number"));
        }
        let mut planes = Planes::default();
        for plane in [&mut planes.high, &mut planes.low] {
            plane.reserve_exact(count * self.width);
            reader.take_array(count * self.width, Block, plane)?;
        }
        self.parts.push(planes);
        Ok(())
    }
}

/// Appends what a row of this vector would be, to tell one way of quantising from another.
pub(crate) fn quantised_bytes(vector: &[f32], out: &mut Vec<u8>) {
    let row = QuantisedRow::new(vector);
    out.extend_from_slice(&row.scale.to_le_bytes());
    for block in row.high.iter().chain(&row.low) {
        out.extend_from_slice(&block.0);
    }
}
