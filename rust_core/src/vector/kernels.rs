//! Dot products of signed query bytes with offset row bytes: one meaning, four instruction sets.
//!
//! Every path gives the same integers, so which machine answers never changes which candidates are found. This is the
//! one file of the crate with `unsafe`: intrinsics that read through pointers, and the calls into functions that need
//! an instruction set that was detected first.
#![expect(
    unsafe_code,
    reason = "SIMD intrinsics; each block states why it is sound"
)]

use std::sync::OnceLock;

use super::quantise::Block;

/// An instruction set to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// AVX-512 with byte products (VNNI): 64 components an instruction.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    /// AVX2: bytes widened to 16 bits, so that no sum saturates.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON, on every 64-bit ARM.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Plain Rust.
    Scalar,
}

impl Kernel {
    /// The fastest kernel of this machine, detected once.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// All kernels that this machine can run, fastest first.
    pub fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                kernels.push(Self::Avx512Vnni);
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        kernels.push(Self::Neon);
        kernels.push(Self::Scalar);
        kernels
    }

    /// The kernel's name, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            Self::Scalar => "scalar",
        }
    }

    /// `out[i]` = product of `query` with row `i` of `rows`, offset included.
    ///
    /// # Panics
    /// When `rows` does not hold `out.len()` rows of the query's length, or the kernel is not of this machine.
    pub fn scan(self, query: &[Block], rows: &[Block], out: &mut [i32]) {
        assert_eq!(
            rows.len(),
            query.len() * out.len(),
            "rows and results differ in number"
        );
        self.products(query, rows, out, |index| index);
    }

    /// `out[i]` = product of `query` with row `which[i]` of `rows`, offset included.
    ///
    /// # Panics
    /// When the lengths differ or a row is out of range, or the kernel is not of this machine.
    pub fn gather(self, query: &[Block], rows: &[Block], which: &[u32], out: &mut [i32]) {
        assert_eq!(which.len(), out.len(), "rows and results differ in number");
        self.products(query, rows, out, |index| which[index] as usize);
    }

    fn products(
        self,
        query: &[Block],
        rows: &[Block],
        out: &mut [i32],
        row_of: impl Fn(usize) -> usize,
    ) {
        assert!(
            Self::available_now(self),
            "{} is not available on this machine",
            self.name()
        );
        match self {
            // SAFETY: the instruction set was detected on this machine by the assertion above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::products_avx512(query, rows, out, row_of) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::products_avx2(query, rows, out, row_of) },
            // SAFETY: NEON is part of the base instruction set of aarch64.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => unsafe { arm::products_neon(query, rows, out, row_of) },
            Self::Scalar => products_scalar(query, rows, out, row_of),
        }
    }

    /// The standard library caches what it detected, so that asking costs a load.
    fn available_now(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            Self::Scalar => true,
        }
    }
}

fn products_scalar(
    query: &[Block],
    rows: &[Block],
    out: &mut [i32],
    row_of: impl Fn(usize) -> usize,
) {
    let width = query.len();
    for (index, product) in out.iter_mut().enumerate() {
        let start = row_of(index) * width;
        *product = query
            .iter()
            .zip(&rows[start..start + width])
            .map(|(q, r)| block_product(q, r))
            .sum();
    }
}

fn block_product(query: &Block, row: &Block) -> i32 {
    query
        .0
        .iter()
        .zip(&row.0)
        .map(|(q, r)| i32::from(q.cast_signed()) * i32::from(*r))
        .sum()
}

/// Rows that are asked for ahead of their use: about as many as arrive while one cache miss is served.
const AHEAD: usize = 8;

/// Splits `out` into groups of four rows, whose loads and sums overlap, and single rows at the end.
macro_rules! in_groups_of_four {
    ($query:expr, $rows:expr, $out:expr, $row_of:expr, $four:ident, $one:ident) => {{
        let width = $query.len();
        let row = |index: usize| {
            let start = $row_of(index) * width;
            &$rows[start..start + width]
        };
        let (groups, rest) = $out.as_chunks_mut::<4>();
        let grouped = groups.len() * 4;
        for (group, products) in groups.iter_mut().enumerate() {
            let first = group * 4;
            if first + AHEAD + 4 <= grouped {
                for ahead in first + AHEAD..first + AHEAD + 4 {
                    prefetch(row(ahead));
                }
            }
            *products = $four(
                $query,
                [row(first), row(first + 1), row(first + 2), row(first + 3)],
            );
        }
        for (index, product) in rest.iter_mut().enumerate() {
            *product = $one($query, row(grouped + index));
        }
    }};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_add_epi32, _mm_load_si128, _mm_prefetch,
        _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
        _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16,
        _mm256_setzero_si256, _mm512_add_epi32, _mm512_castsi512_si256, _mm512_dpbusd_epi32,
        _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_reduce_add_epi32,
        _mm512_setzero_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
        _mm512_unpacklo_epi64,
    };

    use super::{AHEAD, Block};

    /// Asks for a row's cache lines.
    #[inline]
    fn prefetch(row: &[Block]) {
        for block in row {
            // SAFETY: a prefetch reads nothing that the program sees, and the address is that of a live block.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(block.0.as_ptr().cast()) };
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn products_avx512(
        query: &[Block],
        rows: &[Block],
        out: &mut [i32],
        row_of: impl Fn(usize) -> usize,
    ) {
        in_groups_of_four!(query, rows, out, row_of, four_avx512, one_avx512);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn load512(block: &Block) -> __m512i {
        // SAFETY: a block is 64 bytes on a 64-byte boundary.
        unsafe { _mm512_load_si512(block.0.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn one_avx512(query: &[Block], row: &[Block]) -> i32 {
        let mut sum = _mm512_setzero_si512();
        for (q, r) in query.iter().zip(row) {
            sum = _mm512_dpbusd_epi32(sum, load512(r), load512(q));
        }
        _mm512_reduce_add_epi32(sum)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn four_avx512(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
        let [a, b, c, d] = rows;
        let mut sums = [_mm512_setzero_si512(); 4];
        for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
            let part = load512(part);
            sums[0] = _mm512_dpbusd_epi32(sums[0], load512(a), part);
            sums[1] = _mm512_dpbusd_epi32(sums[1], load512(b), part);
            sums[2] = _mm512_dpbusd_epi32(sums[2], load512(c), part);
            sums[3] = _mm512_dpbusd_epi32(sums[3], load512(d), part);
        }
        // Transposes as it adds: each 128-bit lane ends as one partial sum of every row.
        let ab = _mm512_add_epi32(
            _mm512_unpacklo_epi32(sums[0], sums[1]),
            _mm512_unpackhi_epi32(sums[0], sums[1]),
        );
        let cd = _mm512_add_epi32(
            _mm512_unpacklo_epi32(sums[2], sums[3]),
            _mm512_unpackhi_epi32(sums[2], sums[3]),
        );
        let lanes = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let half = _mm256_add_epi32(
            _mm512_castsi512_si256(lanes),
            _mm512_extracti64x4_epi64::<1>(lanes),
        );
        store128(_mm_add_epi32(
            _mm256_castsi256_si128(half),
            _mm256_extracti128_si256::<1>(half),
        ))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn store128(sums: __m128i) -> [i32; 4] {
        let mut out = [0; 4];
        // SAFETY: `out` has room for 16 bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
        out
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn products_avx2(
        query: &[Block],
        rows: &[Block],
        out: &mut [i32],
        row_of: impl Fn(usize) -> usize,
    ) {
        in_groups_of_four!(query, rows, out, row_of, four_avx2, one_avx2);
    }

    /// The sixteen bytes from `at` on, sign-extended for the query.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn query16(block: &Block, at: usize) -> __m256i {
        // SAFETY: `at` is 0, 16, 32 or 48, so sixteen bytes follow it within the 64-byte aligned block.
        unsafe { _mm256_cvtepi8_epi16(_mm_load_si128(block.0.as_ptr().add(at).cast())) }
    }

    /// The sixteen bytes from `at` on, zero-extended for a row.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn row16(block: &Block, at: usize) -> __m256i {
        // SAFETY: as in `query16`.
        unsafe { _mm256_cvtepu8_epi16(_mm_load_si128(block.0.as_ptr().add(at).cast())) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn one_avx2(query: &[Block], row: &[Block]) -> i32 {
        four_avx2(query, [row; 4])[0]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn four_avx2(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
        let [a, b, c, d] = rows;
        let mut sums = [_mm256_setzero_si256(); 4];
        for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
            for at in [0, 16, 32, 48] {
                let part = query16(part, at);
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(row16(a, at), part));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(row16(b, at), part));
                sums[2] = _mm256_add_epi32(sums[2], _mm256_madd_epi16(row16(c, at), part));
                sums[3] = _mm256_add_epi32(sums[3], _mm256_madd_epi16(row16(d, at), part));
            }
        }
        let lanes = _mm256_hadd_epi32(
            _mm256_hadd_epi32(sums[0], sums[1]),
            _mm256_hadd_epi32(sums[2], sums[3]),
        );
        store128(_mm_add_epi32(
            _mm256_castsi256_si128(lanes),
            _mm256_extracti128_si256::<1>(lanes),
        ))
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::{
        int16x8_t, int32x4_t, uint8x16_t, vaddvq_s32, vdupq_n_s32, vget_low_s8, vget_low_s16,
        vget_low_u8, vld1q_u8, vmlal_high_s16, vmlal_s16, vmovl_high_s8, vmovl_high_u8, vmovl_s8,
        vmovl_u8, vreinterpretq_s8_u8, vreinterpretq_s16_u16,
    };

    use super::{AHEAD, Block};

    /// Asks for a row's cache lines: the portable way is to do nothing, the processor reads ahead by itself.
    #[inline]
    fn prefetch(_row: &[Block]) {}

    #[target_feature(enable = "neon")]
    pub(super) fn products_neon(
        query: &[Block],
        rows: &[Block],
        out: &mut [i32],
        row_of: impl Fn(usize) -> usize,
    ) {
        in_groups_of_four!(query, rows, out, row_of, four_neon, one_neon);
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn load16(block: &Block, at: usize) -> uint8x16_t {
        // SAFETY: `at` is 0, 16, 32 or 48, so sixteen bytes follow it within the block.
        unsafe { vld1q_u8(block.0.as_ptr().add(at)) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn add_products(sum: int32x4_t, row: uint8x16_t, low: int16x8_t, high: int16x8_t) -> int32x4_t {
        let row_low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(row)));
        let row_high = vreinterpretq_s16_u16(vmovl_high_u8(row));
        let sum = vmlal_s16(sum, vget_low_s16(row_low), vget_low_s16(low));
        let sum = vmlal_high_s16(sum, row_low, low);
        let sum = vmlal_s16(sum, vget_low_s16(row_high), vget_low_s16(high));
        vmlal_high_s16(sum, row_high, high)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn one_neon(query: &[Block], row: &[Block]) -> i32 {
        four_neon(query, [row; 4])[0]
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn four_neon(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
        let [a, b, c, d] = rows;
        let mut sums = [vdupq_n_s32(0); 4];
        for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
            for at in [0, 16, 32, 48] {
                let q = vreinterpretq_s8_u8(load16(part, at));
                let (low, high) = (vmovl_s8(vget_low_s8(q)), vmovl_high_s8(q));
                sums[0] = add_products(sums[0], load16(a, at), low, high);
                sums[1] = add_products(sums[1], load16(b, at), low, high);
                sums[2] = add_products(sums[2], load16(c, at), low, high);
                sums[3] = add_products(sums[3], load16(d, at), low, high);
            }
        }
        [
            vaddvq_s32(sums[0]),
            vaddvq_s32(sums[1]),
            vaddvq_s32(sums[2]),
            vaddvq_s32(sums[3]),
        ]
    }
}
