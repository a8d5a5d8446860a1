//! Boosts of turns and the evidence about the speaker whom a query names, on conversations small enough to check by hand.

mod common;

use astrocyte_core::{
    Bank, Core, FusionMethod, Hit, RecallRequest, RecallResponse, Row, TurnBoosts,
};
use common::{id, row};

const MARA: &str = "mara";
const OLE: &str = "ole berg";

fn turn(number: u64, speaker: &str, text: &str, kind: Option<&str>) -> Row {
    let mut row = row(number, format!("{speaker} {text}"));
    row.session = Some("s".into());
    row.occurred_at = Some(1_000 * number as i64);
    row.metadata = vec![("speaker".into(), format!("@{speaker}"))];
    if let Some((first, _)) = speaker.split_once(' ') {
        row.metadata.push(("speaker".into(), format!("~{first}")));
    }
    row.metadata
        .extend(kind.map(|kind| ("turn".into(), format!("@{kind}"))));
    row
}

fn bank() -> Bank {
    let bank = Core::new(None)
        .and_then(|core| core.bank(4))
        .expect("a bank");
    let rows = [
        turn(1, MARA, "the harbour was cold", None),
        turn(2, OLE, "did the kayak race go well", Some("question")),
        turn(3, MARA, "second place", None),
        turn(4, OLE, "a kayak of my own", None),
        turn(5, MARA, "the kayak is yours", Some("address")),
        turn(6, OLE, "rain all week", None),
    ];
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    bank
}

fn asked(names: &[&str]) -> RecallRequest {
    RecallRequest {
        text: Some(format!("{} kayak race", names.join(" "))),
        context_windows: false,
        turns: Some(TurnBoosts {
            names: names.iter().map(|&name| name.into()).collect(),
            speaker: 2.0,
            ..TurnBoosts::default()
        }),
        ..RecallRequest::default()
    }
}

fn recalled(request: &RecallRequest) -> RecallResponse {
    bank().recall(request).expect("a valid request")
}

fn boosted<'a>(response: &'a RecallResponse, name: &str) -> Vec<(u64, &'a Hit, f64)> {
    let hits = response.hits.iter();
    let found = hits.flat_map(|hit| {
        let boosts = hit.boosts.iter().filter(|boost| &*boost.name == name);
        boosts.map(move |boost| (hit.key, hit, boost.value))
    });
    found.collect()
}

#[test]
fn what_the_one_named_speaker_said_is_lifted() {
    for (name, keys) in [("ole", [2, 4, 6]), ("mara", [1, 3, 5])] {
        let response = recalled(&asked(&[name]));
        let mut lifted: Vec<u64> = boosted(&response, "speaker")
            .iter()
            .map(|one| one.0)
            .collect();
        lifted.sort_unstable();
        assert_eq!(lifted, keys, "{name}");
        assert!(response.hits.is_sorted_by(|a, b| a.score >= b.score));
        assert!(keys.contains(&response.hits[0].key));
        assert!(
            boosted(&response, "speaker")
                .iter()
                .all(|one| (one.2 - 2.0).abs() < 1e-12)
        );
    }
}

#[test]
fn several_speakers_or_none_are_not_lifted() {
    for names in [&["ole", "mara"][..], &["berg"], &[]] {
        let response = recalled(&asked(names));
        assert!(
            response.hits.iter().all(|hit| hit.boosts.is_empty()),
            "{names:?}"
        );
        assert_eq!(response.subject, None);
    }
}

#[test]
fn evidence_is_of_the_one_who_is_spoken_of() {
    let response = recalled(&asked(&["ole"]));
    let subject = response.subject.expect("ole is known");
    // "did the kayak race go well" has all stems but the name, and was said by Ole.
    assert!((subject.own - 1.0).abs() < 1e-6, "{subject:?}");
    assert!(subject.other < 0.5, "{subject:?}");
    let mara = recalled(&asked(&["mara"])).subject.expect("mara is known");
    assert!((mara.other - 1.0).abs() < 1e-6, "{mara:?}");
    // What Mara tells Ole of himself is not about Mara.
    assert!(mara.own < 0.01, "{mara:?}");
}

#[test]
fn confidence_is_lower_where_the_other_one_did_it() {
    let of = |name: &str| recalled(&asked(&[name])).confidence.expect("hits");
    assert!(of("ole") > of("mara"), "{} {}", of("ole"), of("mara"));
}

#[test]
fn a_question_falls_and_its_reply_rises_half_way() {
    let mut request = asked(&[]);
    let plain = recalled(&request);
    let score = |response: &RecallResponse, key: u64| {
        let found = response.hits.iter().find(|hit| hit.key == key);
        found.map(|hit| hit.score)
    };
    request.text = Some("kayak race second".into());
    let before = recalled(&request);
    request.turns.as_mut().expect("turns").question = 1.0;
    let after = recalled(&request);
    let (top, reply) = (score(&before, 2), score(&before, 3));
    let (top, reply) = (top.expect("found"), reply.expect("found"));
    assert!(top > reply);
    assert!((score(&after, 2).expect("found") - (top - 1.0)).abs() < 1e-9);
    assert!((score(&after, 3).expect("found") - f64::midpoint(top, reply)).abs() < 1e-9);
    // The reply is not found for words that it lacks, and the question falls all the same.
    assert_eq!(score(&plain, 3), None);
    assert_eq!(boosted(&after, "question").len(), 1);
    assert_eq!(boosted(&after, "reply").len(), 1);
}

#[test]
fn a_question_that_nobody_else_answers_stays() {
    let bank = Core::new(None)
        .and_then(|core| core.bank(4))
        .expect("a bank");
    let rows = [
        turn(1, MARA, "is the kayak ready", Some("question")),
        turn(2, MARA, "or the tent", None),
        turn(3, OLE, "where is the kayak", Some("question")),
    ];
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    let mut request = asked(&[]);
    request.turns.as_mut().expect("turns").question = 1.0;
    let response = bank.recall(&request).expect("a valid request");
    assert_eq!(response.hits.len(), 2);
    assert!(response.hits.iter().all(|hit| hit.boosts.is_empty()));
}

#[test]
fn memories_inside_a_window_are_lifted() {
    let mut request = asked(&[]);
    let turns = request.turns.as_mut().expect("turns");
    (turns.date, turns.date_windows) = (1.0, vec![(4_000, 4_500)]);
    let response = recalled(&request);
    assert_eq!(
        boosted(&response, "date")
            .iter()
            .map(|one| one.0)
            .collect::<Vec<_>>(),
        [4]
    );
}

#[test]
fn amounts_are_in_the_unit_of_the_fusion_and_banks_compare_deviations() {
    let mut request = asked(&["ole"]);
    request.fusion = FusionMethod::ReciprocalRank;
    request.turns.as_mut().expect("turns").unit = 1.0 / 61.0;
    let response = recalled(&request);
    let boosts = boosted(&response, "speaker");
    assert!(!boosts.is_empty());
    for (_, hit, value) in boosts {
        assert!((value - 2.0 / 61.0).abs() < 1e-12);
        assert!((hit.turn_lift - 2.0).abs() < 1e-9);
    }
}

#[test]
fn explain_names_the_boosts() {
    let explained = bank()
        .explain(&asked(&["ole"]), &[id(4), id(5)])
        .expect("a valid request");
    let [own, other] = &explained.fates[..] else {
        panic!("two fates: {:?}", explained.fates)
    };
    assert_eq!(&*own.boosts[0].name, "speaker");
    assert!(other.boosts.is_empty());
}

#[test]
fn amounts_that_are_no_numbers_are_refused() {
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut request = asked(&["ole"]);
        request.turns.as_mut().expect("turns").speaker = wrong;
        assert!(bank().recall(&request).is_err());
    }
    let mut request = asked(&["ole"]);
    request.turns.as_mut().expect("turns").unit = 0.0;
    assert!(bank().recall(&request).is_err());
}
