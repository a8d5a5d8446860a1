use super::*;
use crate::bitmap::Bitmap;
use crate::dense::{DenseIndex, FlatIndex, QuantisedQuery, QuantisedRow, dot, normalise};
use crate::graph::{Proposed, SearchBuffers, Segment};

const DIMENSIONS: usize = 48;
const EACH: [Linking; 2] = [Linking::Quick, Linking::Thorough];

/// Unit vectors of so many topics, with some noise about each.
fn vectors(count: usize, topics: usize, noise: f32) -> Vec<Vec<f32>> {
    let mut random = Random(11);
    let mut component = move || random.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0;
    let mut vector = move |about: &[f32], noise: f32| -> Vec<f32> {
        let moved: Vec<f32> = about.iter().map(|x| x + noise * component()).collect();
        normalise(0, &moved, DIMENSIONS).expect("it has a direction")
    };
    let topics: Vec<Vec<f32>> = (0..topics)
        .map(|_| vector(&[0.0; DIMENSIONS], 1.0))
        .collect();
    let topic = |number: usize| &topics[number % topics.len()];
    (0..count)
        .map(|number| vector(topic(number), noise))
        .collect()
}

fn builder(vectors: &[Vec<f32>]) -> Builder {
    let mut builder = Builder::new(DIMENSIONS, vectors.len()).expect("there is memory");
    for vector in vectors {
        builder.add(vector);
    }
    builder
}

fn threads(share: f64) -> BuildThreads<'static> {
    BuildThreads {
        share,
        wanted: &|| true,
    }
}

fn layers(vectors: &[Vec<f32>], linking: Linking, share: f64) -> Layers {
    let layers = builder(vectors).layers((linking, &threads(share)));
    layers.expect("there is memory").expect("it is wanted")
}

/// The number of vectors that are reachable from the entry on the lowest layer.
fn reached(layers: &Layers) -> usize {
    let mut met = vec![false; layers.lowest.len()];
    let mut ahead = vec![layers.entry];
    met[layers.entry as usize] = true;
    while let Some(number) = ahead.pop() {
        for other in layers.lowest[number as usize].iter() {
            if !std::mem::replace(&mut met[other as usize], true) {
                ahead.push(other);
            }
        }
    }
    met.into_iter().filter(|&met| met).count()
}

fn all_links(layers: &Layers) -> Vec<u32> {
    let lowest = layers.lowest.iter().flat_map(Links::all);
    let upper = layers.upper.iter();
    let upper = upper.flat_map(|layer| layer.links.iter().flat_map(Links::all));
    let members = layers.upper.iter().flat_map(|layer| &layer.members);
    lowest.chain(upper).chain(members).copied().collect()
}

#[test]
fn every_vector_is_linked_to_and_none_to_itself() {
    let clouds = vectors(9000, 40, 0.5);
    let mut copies = vec![clouds[0].clone(); 3000];
    copies.extend_from_slice(&clouds[..1500]);
    let cases = [
        clouds[..1].to_vec(),
        clouds[..2].to_vec(),
        clouds[..40].to_vec(),
        // Two crowds that are far from each other.
        vectors(3000, 2, 0.01),
        copies,
        clouds,
    ];
    for (vectors, linking) in cases
        .iter()
        .flat_map(|vectors| EACH.map(|one| (vectors, one)))
    {
        let layers = layers(vectors, linking, 1.0);
        assert!(layers.is_closed());
        assert_eq!(reached(&layers), vectors.len());
        for (number, links) in (0..).zip(&layers.lowest) {
            let mut others: Vec<u32> = links.iter().collect();
            others.sort_unstable();
            assert!(others.is_sorted_by(|one, other| one < other), "each once");
            assert!(!others.contains(&number));
        }
    }
}

#[test]
fn without_the_last_step_copies_of_a_vector_are_cut_off() {
    // The control of the test above.
    let vectors = vec![vectors(1, 1, 1.0).remove(0); 3000];
    let builder = builder(&vectors);
    let pools = CandidatePools::new(vectors.len()).expect("there is memory");
    let mut lowest = vec![Links::<LOWEST>::default(); vectors.len()];
    link(
        &builder.codes,
        &pools,
        &mut lowest,
        (Linking::Quick, &threads(1.0)),
    )
    .expect("it is wanted");
    let mut layers = Layers {
        lowest,
        ..Layers::default()
    };
    assert!(reached(&layers) < vectors.len());
    connectivity::connect(&mut layers.lowest, 0, &mut threads(1.0).turn()).expect("it is wanted");
    assert_eq!(reached(&layers), vectors.len());
}

#[test]
fn who_is_chosen_hears_of_it() {
    // One that is far from a crowd, which has enough in itself.
    let mut vectors = vectors(400, 1, 0.3);
    let away: Vec<f32> = vectors[0].iter().map(|x| -x).collect();
    vectors.push(away);
    let builder = builder(&vectors);
    let pools = CandidatePools::new(vectors.len()).expect("there is memory");
    let mut links = vec![Links::<LOWEST>::default(); vectors.len()];
    link(
        &builder.codes,
        &pools,
        &mut links,
        (Linking::Quick, &threads(1.0)),
    )
    .expect("it is wanted");
    let chosen: Vec<u32> = links[400].iter().collect();
    assert!(!chosen.is_empty());
    let hears = |&one: &u32| links[one as usize].iter().any(|other| other == 400);
    assert!(chosen.iter().any(hears), "{chosen:?}");
}

#[test]
fn however_many_build_it_the_graph_is_the_same() {
    let vectors = vectors(12_000, 40, 0.7);
    for linking in EACH {
        let alone = layers(&vectors, linking, 1.0);
        let together = layers(&vectors, linking, 3.0);
        assert_eq!(alone.entry, together.entry);
        assert!(all_links(&alone) == all_links(&together));
    }
}

#[test]
fn what_nobody_wants_is_not_built() {
    let builder = builder(&vectors(9000, 40, 0.5));
    let threads = BuildThreads {
        share: 1.0,
        wanted: &|| false,
    };
    let graph = builder.finish(&threads).expect("there is memory");
    assert!(graph.is_none());
}

#[test]
fn layers_shrink_by_their_share() {
    let on_next = (0..160_000).filter(|&number| is_above(number, 0)).count();
    assert!((9_500..10_500).contains(&on_next), "{on_next}");
    let both = (0..160_000).filter(|&number| is_above(number, 0) && is_above(number, 1));
    let both = both.count();
    assert!((500..750).contains(&both), "{both}");
}

/// The share of the ten nearest that searches with so many candidates find, of some of the vectors as questions.
fn recall(vectors: &[Vec<f32>], layers: Layers, candidates: usize) -> f64 {
    let mut flat = FlatIndex::new(DIMENSIONS);
    for vector in vectors {
        flat.push(Some(&QuantisedRow::new(vector)));
    }
    let count = vectors.len() as u32;
    let segment = Segment::new(Graph::new(layers), (0..count).collect());
    let mut all = Bitmap::empty(count);
    (0..count).for_each(|row| _ = all.insert(row));
    let (mut room, mut met) = (SearchBuffers::default(), 0);
    let questions = vectors.iter().step_by(vectors.len() / 50);
    for question in questions.clone() {
        let mut cosines: Vec<(f32, u32)> = (0..)
            .zip(vectors)
            .map(|(row, vector)| (dot(question, vector), row))
            .collect();
        cosines.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        let (query, mut found) = (QuantisedQuery::new(question), Proposed::default());
        segment.search(
            (&flat, &query),
            candidates,
            (&all, true),
            &mut room,
            &mut found,
        );
        let nearest = cosines[..10].iter();
        met += nearest.filter(|&(_, row)| found.rows.contains(row)).count();
    }
    met as f64 / 10.0 / questions.count() as f64
}

#[test]
fn walks_find_the_nearest_of_few_and_of_many() {
    // Whole, divided by one thread, and divided by all.
    for count in [900, 1_100, 3_000, 12_000] {
        let vectors = vectors(count, 40, 0.7);
        for linking in EACH {
            let found = recall(&vectors, layers(&vectors, linking, 1.0), 100);
            assert!(found > 0.97, "{count}, {linking:?}: {found}");
        }
    }
}

#[test]
fn links_of_links_lead_to_more_of_the_nearest_in_small_clusters() {
    let vectors = vectors(12_000, 1_200, 0.7);
    let found = EACH.map(|linking| recall(&vectors, layers(&vectors, linking, 1.0), 20));
    assert!(found[1] > found[0] + 0.02, "{found:?}");
}

#[test]
fn a_crowd_of_copies_does_not_keep_a_walk() {
    let mut vectors = vectors(3_000, 40, 0.7);
    let copy = vectors[7].clone();
    vectors.splice(1_000..1_000, vec![copy.clone(); 400]);
    let graph = Graph::new(layers(&vectors, Linking::Quick, 1.0));
    let mut flat = FlatIndex::new(DIMENSIONS);
    let (mut others, mut all) = (Bitmap::empty(3_400), Bitmap::empty(3_400));
    for (row, vector) in (0..).zip(&vectors) {
        flat.push(Some(&QuantisedRow::new(vector)));
        all.insert(row);
        if *vector != copy {
            others.insert(row);
        }
    }
    let segment = Segment::new(graph, (0..3_400).collect());
    let (query, mut room) = (QuantisedQuery::new(&copy), SearchBuffers::default());
    for (allowed, most_pass) in [(&all, true), (&others, false)] {
        let mut found = Proposed::default();
        segment.search(
            (&flat, &query),
            600,
            (allowed, most_pass),
            &mut room,
            &mut found,
        );
        assert_eq!(found.rows.len(), 600);
        let among = found
            .rows
            .iter()
            .filter(|&&row| others.contains(row))
            .count();
        assert!(among >= 199, "{among} of 600 are not of the crowd");
    }
}

#[cfg(feature = "usearch")]
#[test]
fn near_vectors_follow_each_other_in_a_file() {
    let topics = 200;
    let vectors = vectors(12_000, topics, 0.3);
    let built = builder(&vectors).finish_for_usearch(&threads(1.0), None);
    let (graph, mut order) = built.expect("there is memory").expect("it is wanted");
    // Of the order in which they were added each is of another topic than the one before.
    let of_another = |two: &&[u32]| two[0] as usize % topics != two[1] as usize % topics;
    let changes = order.windows(2).filter(of_another).count();
    assert!(changes < vectors.len() / 3, "{changes}");
    let segment = Segment::new(graph, order.clone());
    let (mut room, flat) = (SearchBuffers::default(), FlatIndex::new(DIMENSIONS));
    let mut all = Bitmap::empty(12_000);
    (0..12_000).for_each(|row| _ = all.insert(row));
    for (row, vector) in (0..).zip(&vectors).step_by(97) {
        let (query, mut found) = (QuantisedQuery::new(vector), Proposed::default());
        let (vectors, passing) = ((&flat, &query), (&all, true));
        segment.search(vectors, 20, passing, &mut room, &mut found);
        assert_eq!(found.scored[0].1, row);
    }
    order.sort_unstable();
    assert!(order.into_iter().eq(0..12_000), "each vector is there once");
}
