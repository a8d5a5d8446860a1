//! Rows and vectors that the laws and benches share.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by test binaries that each use a part"
)]

pub mod commits;
pub mod cores;
pub mod files;
#[cfg(target_os = "linux")]
pub mod tiers;

use astrocyte_core::{MemoryId, Row};

/// A small generator (splitmix64), so that a seed gives the same data everywhere.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Roughly normal: the sum of twelve uniform numbers less six.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    pub fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.normal()).collect()
    }

    /// `words` words, the frequent ones as in a text: the square of a uniform number picks from 5,000.
    pub fn text(&mut self, words: usize) -> String {
        let word = |random: &mut Self| {
            let pick = random.unit();
            format!("w{}", (pick * pick * 5000.0) as u32)
        };
        (0..words).map(|_| word(self)).collect::<Vec<_>>().join(" ")
    }
}

pub fn id(number: u64) -> MemoryId {
    u128::from(number).to_be_bytes()
}

/// A current row whose id, key and content hash all come from `number`.
pub fn row(number: u64, text: String) -> Row {
    Row::new(number, id(number), id(number ^ (1 << 60)), text, 1000)
}

/// Vectors around 64 centres, as sentences are around subjects.
pub fn clustered(random: &mut Random, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    let centres: Vec<_> = (0..64).map(|_| random.vector(dimensions)).collect();
    (0..count)
        .map(|_| {
            let centre = &centres[random.below(64) as usize];
            centre.iter().map(|x| x + random.normal() * 1.2).collect()
        })
        .collect()
}
