use super::*;

#[test]
fn every_kernel_gives_the_same_products_of_signed_bytes() {
    const LENGTH: usize = 3 * BYTES;
    let row = |seed: usize| -> Vec<i8> {
        let byte = |n: usize| ((n * 37 + seed * 101) % 255) as i32 - 127;
        (0..LENGTH).map(|n| byte(n) as i8).collect()
    };
    let product = |left: &[i8], right: &[i8], added: i32| -> i32 {
        let pairs = left.iter().zip(right);
        pairs
            .map(|(&a, &b)| (i32::from(a) + added) * i32::from(b))
            .sum()
    };
    let mut lefts: [Vec<i8>; 4] = std::array::from_fn(row);
    lefts[2].fill(-127);
    // A group of four, and a rest.
    let mut rights: Vec<Vec<i8>> = (4..11).map(row).collect();
    rights[1].fill(127);
    rights[6].fill(-127);
    for kernel in Kernel::available() {
        let mut out = vec![[0; 4]; rights.len()];
        kernel.signed_four(
            lefts.each_ref().map(Vec::as_slice),
            &rights.concat(),
            &mut out,
        );
        for (out, right) in out.iter().zip(&rights) {
            for (out, left) in out.iter().zip(&lefts) {
                assert_eq!(*out, product(left, right, 128), "{}", kernel.name());
                let signed = kernel.signed(left, right);
                assert_eq!(signed, product(left, right, 0), "{}", kernel.name());
            }
        }
    }
}

#[test]
fn every_kernel_picks_what_is_wanted_and_leaves_the_rest() {
    const WORDS: usize = 15;
    let words: [u64; WORDS] = std::array::from_fn(|at| match at % 7 {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 63 | 1,
        3 => 1 << 5,
        4 => 0b1111 << 20,
        5 => 0b1_1111 << 50,
        _ => 0x9e37_79b9_7f4a_7c15_u64.rotate_left(at as u32),
    });
    let is_wanted = |at: usize| words[at / 64] >> (at % 64) & 1 == 1;
    let value = |at: usize| at as f32 + 0.5;
    for kernel in Kernel::available() {
        let mut wanted = words;
        let all = (0..WORDS * 64).map(|at| if is_wanted(at) { value(at) } else { 0.0 });
        let mut values: Vec<f32> = all.collect();
        // What is there stays.
        let (mut numbers, mut picked) = (vec![7], vec![7.0]);
        let before = 1_000;
        kernel.pick(
            before,
            &mut wanted,
            &mut values,
            (&mut numbers, &mut picked),
        );
        let expected = || (0..WORDS * 64).filter(|&at| is_wanted(at));
        assert!(
            numbers[1..]
                .iter()
                .copied()
                .eq(expected().map(|at| before + at as u32))
        );
        assert!(picked[1..].iter().copied().eq(expected().map(value)));
        assert_eq!((numbers[0], wanted), (7, [0; WORDS]));
        assert_eq!(values, [0.0; WORDS * 64], "{}", kernel.name());
    }
}
