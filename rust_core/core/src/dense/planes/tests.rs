use super::*;

const DIMENSIONS: usize = 20;

/// Two and a half shares of rows, of which every seventh has no vector.
fn index() -> FlatIndex {
    let mut index = FlatIndex::new(DIMENSIONS);
    for row in 0..(SHARE * 5 / 2) as u32 {
        let component = |n: u32| (row * 31 + n).wrapping_mul(2_654_435_761) as f32 / 4e9 - 0.5;
        let vector: Vec<f32> = (0..DIMENSIONS as u32).map(component).collect();
        index.push((row % 7 != 0).then(|| QuantisedRow::new(&vector)).as_ref());
    }
    index
}

#[test]
fn a_second_thread_does_what_is_beside_once_and_changes_no_score() {
    let index = index();
    let query = QuantisedQuery::new(&[0.3; DIMENSIONS]);
    let mut allowed = Bitmap::empty(index.len() as u32);
    (0..index.len() as u32)
        .filter(|row| row % 3 != 0)
        .for_each(|row| _ = allowed.insert(row));
    for how in [ReadOrder::Scan, ReadOrder::Gather]
        .map(|plan| [(plan, false), (plan, true)])
        .concat()
    {
        let (mut alone, mut helped, mut times) = (vec![9.0], Vec::new(), 0);
        index.coarse_scan(&query, &allowed, how, None, &mut alone);
        let mut beside = || times += 1;
        index.coarse_scan(&query, &allowed, how, Some(&mut beside), &mut helped);
        assert_eq!(times, 1);
        assert_eq!(alone, helped);
        assert_eq!(alone.len(), index.len());
    }
}
