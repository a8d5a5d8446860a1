//! The bundled table gives the vectors that the reference tokeniser and a float64 sum over the table gave.

use astrocyte_text::embed::StaticEmbedder;

/// Text, first four values and the last. From the `tokenizers` package's BERT tokeniser; rows summed, then normalised.
const GOLDEN: [(&str, [f32; 5]); 4] = [
    (
        "Ann: I went to the pottery class yesterday!",
        [-0.08712, -0.08919, 0.05214, -0.03063, -0.0062],
    ),
    (
        "When did Ann take up ceramics?",
        [-0.12358, 0.03054, 0.03086, 0.15217, -0.00638],
    ),
    (
        "naïve café 東京",
        [0.18945, -0.18441, -0.16738, -0.1828, -0.01917],
    ),
    // Greedy pieces: una ##ff ##ord ##able, anti ##dis ##est ##ab ##lish ##ment ##arian ##ism.
    (
        "unaffordable antidisestablishmentarianism 3.14 it's",
        [0.27903, 0.15553, -0.06316, 0.03516, -0.00891],
    ),
];
/// The golden values have five decimals, and the sums here are f32.
const TOLERANCE: f32 = 2e-5;

fn bundled() -> StaticEmbedder {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/astrocyte/models/static-minilm-256.bin"
    );
    StaticEmbedder::from_bytes(&std::fs::read(path).expect("the table is committed"))
        .expect("the table is whole")
}

fn embed(embedder: &StaticEmbedder, text: &str) -> Vec<f32> {
    let mut out = vec![0.0; embedder.dimensions()];
    assert!(embedder.embed(text, &mut out), "{text}");
    out
}

#[test]
fn golden_vectors() {
    let embedder = bundled();
    assert_eq!(
        (embedder.model_id(), embedder.dimensions()),
        ("static-minilm-256-v1", 256)
    );
    for (text, expected) in GOLDEN {
        let vector = embed(&embedder, text);
        let got = [vector[0], vector[1], vector[2], vector[3], vector[255]];
        for (value, expected) in got.iter().zip(expected) {
            assert!(
                (value - expected).abs() < TOLERANCE,
                "{text}: expected {expected}, got {value}"
            );
        }
    }
}

#[test]
fn a_question_is_nearest_to_what_answers_it() {
    let embedder = bundled();
    let question = embed(&embedder, "When did Ann take up ceramics?");
    let cosine = |text| -> f32 {
        question
            .iter()
            .zip(embed(&embedder, text))
            .map(|(a, b)| a * b)
            .sum()
    };
    let answer = cosine("Ann: I went to the pottery class yesterday!");
    assert!(answer > cosine("Bob: the train to Berlin was late again"));
    assert!(answer > cosine("Bob: quarterly revenue grew by eight percent"));
}

#[test]
fn a_damaged_table_is_refused() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/astrocyte/models/static-minilm-256.bin"
    );
    let mut table = std::fs::read(path).expect("the table is committed");
    let middle = table.len() / 2;
    table[middle] ^= 1;
    assert!(StaticEmbedder::from_bytes(&table).is_err());
}
