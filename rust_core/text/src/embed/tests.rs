use super::*;

/// A table of two dimensions: "a" along x, "b" along y at half its size, "c" without weight.
fn table(version: u32) -> Vec<u8> {
    let (id, words) = ("tiny-v1", "a\nb\nc");
    let mut body = Vec::new();
    for number in [version, 2, 3, id.len() as u32, words.len() as u32] {
        body.extend(number.to_le_bytes());
    }
    body.extend(id.as_bytes());
    body.extend(words.as_bytes());
    for scale in [1.0_f32, 0.5, 0.0] {
        body.extend(scale.to_le_bytes());
    }
    body.extend([2_i8, 0, 0, 2, 3, 3].map(i8::cast_unsigned));
    seal(&body)
}

fn seal(body: &[u8]) -> Vec<u8> {
    [MAGIC.as_slice(), &xxh3_64(body).to_le_bytes(), body].concat()
}

fn problem(bytes: &[u8]) -> String {
    StaticEmbedder::from_bytes(bytes)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn tiny() -> StaticEmbedder {
    StaticEmbedder::from_bytes(&table(1)).expect("a whole table")
}

fn embed(text: &str) -> (bool, [f32; 2]) {
    let mut out = [7.0; 2];
    let signal = tiny().embed(text, &mut out);
    (signal, out)
}

#[test]
fn a_table_tells_its_name_and_length() {
    let embedder = tiny();
    assert_eq!((embedder.model_id(), embedder.dimensions()), ("tiny-v1", 2));
}

#[test]
fn rows_are_summed_by_scale_and_brought_to_length_one() {
    assert_eq!(embed("A"), (true, [1.0, 0.0]));
    let (signal, out) = embed("a, b zzz");
    // Rows (2, 0) and (0, 1): length sqrt 5.
    assert!(
        signal
            && (out[0] - 2.0 / 5.0_f32.sqrt()).abs() < 1e-6
            && (out[1] - 1.0 / 5.0_f32.sqrt()).abs() < 1e-6
    );
}

#[test]
fn a_text_that_says_nothing_gets_the_even_vector() {
    for text in ["", "zzz", "c", "!?"] {
        let (signal, out) = embed(text);
        assert!(
            !signal
                && out
                    .iter()
                    .all(|value| (value - 0.5_f32.sqrt()).abs() < 1e-6),
            "{text}"
        );
    }
}

#[test]
fn an_out_of_another_length_stays_untouched() {
    let mut out = [7.0; 3];
    assert!(!tiny().embed("a", &mut out));
    assert!(out.iter().all(|value| value.to_bits() == 7.0_f32.to_bits()));
}

#[test]
fn damaged_tables_are_refused() {
    let good = table(1);
    assert!(problem(b"").contains("magic"));
    assert!(problem(b"NOTATABLE.......").contains("magic"));
    assert!(problem(&table(2)).contains("format version"));
    let mut changed = good.clone();
    if let Some(last) = changed.last_mut() {
        *last ^= 1;
    }
    assert!(problem(&changed).contains("checksum"));
    assert!(problem(&seal(&good[16..good.len() - 1])).contains("rows: expected 6 bytes, got 5"));
    assert!(problem(&seal(&[&good[16..], &[0]].concat())).contains("too many"));
    for cut in 0..good.len() {
        assert!(!problem(&good[..cut]).is_empty());
    }
}
