//! Recalls that are queued are answered as if each were asked alone, by whichever threads.

mod common;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use astrocyte_core::{Bank, Core, CoreError, CoreOptions, RecallRequest, RecallResponse};
use common::{Random, row};

const DIMENSIONS: usize = 16;

fn core() -> Core {
    let options = CoreOptions {
        threads: 3,
        ..CoreOptions::default()
    };
    Core::with_options(None, options).expect("the options are valid")
}

fn bank(core: &Core, seed: u64) -> Bank {
    let mut random = Random(seed);
    let rows: Vec<_> = (0..3_000)
        .map(|number| {
            let mut row = row(number, random.text(8));
            row.vector = Some(random.vector(DIMENSIONS));
            row
        })
        .collect();
    let bank = core.bank(DIMENSIONS).expect("a size that banks have");
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    bank
}

fn request(random: &mut Random, number: usize) -> Arc<RecallRequest> {
    Arc::new(RecallRequest {
        vector: (number % 7 != 3).then(|| random.vector(DIMENSIONS)),
        text: Some(random.text(4)),
        feedback: 0.25,
        k: 1 + number % 5,
        ..RecallRequest::default()
    })
}

/// Everything but times.
fn settled(mut response: RecallResponse) -> RecallResponse {
    response.arm_micros.clear();
    (response.feedback_micros, response.boost_micros) = (0.0, 0.0);
    response
}

#[test]
fn each_answer_is_that_of_the_single_call() {
    let core = core();
    let banks = [bank(&core, 1), bank(&core, 2)];
    let mut random = Random(3);
    let parts: Vec<Vec<_>> = [1, 8, 3, 0, 20, 5]
        .iter()
        .map(|&size| {
            let bank = |number: usize| banks[usize::from(number % 6 == 5)].clone();
            let make = |number| (bank(number), request(&mut random, number));
            (0..size).map(make).collect()
        })
        .collect();
    let queue = core.recall_queue(40);
    let numbers: Vec<_> = parts.iter().map(|part| queue.add(part)).collect();
    // The last first: then the calling thread answers for others too.
    for (part, number) in parts.iter().zip(numbers).rev() {
        let number = number.expect("nobody stopped it");
        let answers = queue.take(number).expect("the requests are valid");
        let answers = answers.expect("nobody stopped it");
        assert_eq!(answers.len(), part.len());
        for ((response, took), (bank, request)) in answers.into_iter().zip(part) {
            let alone = bank.recall(request).expect("the request is valid");
            assert_eq!(settled(response), settled(alone));
            assert!(took > Duration::ZERO);
        }
    }
}

#[test]
fn the_first_error_of_a_part_is_told_and_other_parts_are_whole() {
    let core = core();
    let bank = bank(&core, 1);
    let mut random = Random(4);
    let mut part: Vec<_> = (0..9)
        .map(|number| (bank.clone(), request(&mut random, number)))
        .collect();
    let sound = part.clone();
    let wrong = |length: usize| RecallRequest {
        vector: Some(vec![1.0; length]),
        ..RecallRequest::default()
    };
    part[6].1 = Arc::new(wrong(5));
    part[2].1 = Arc::new(wrong(7));
    let queue = core.recall_queue(40);
    let [refused, whole] = [&part, &sound].map(|part| queue.add(part).expect("not stopped"));
    let error = queue.take(refused).expect_err("two of them are refused");
    assert!(
        matches!(error, CoreError::Dimensions { got: 7, .. }),
        "{error}"
    );
    let answers = queue.take(whole).expect("all are valid");
    assert_eq!(answers.expect("not stopped").len(), sound.len());
}

#[test]
fn what_is_stopped_takes_nothing_in_and_keeps_nobody() {
    let core = core();
    let bank = bank(&core, 1);
    let mut random = Random(5);
    let part: Vec<_> = (0..400)
        .map(|number| (bank.clone(), request(&mut random, number)))
        .collect();
    let queue = core.recall_queue(40);
    let number = queue.add(&part).expect("not stopped yet");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.take(number));
        queue.stop();
        // It may have been taken before.
        let answers = waiting.join().expect("no panic").expect("all are valid");
        assert!(answers.is_none_or(|answers| answers.len() == part.len()));
    });
    assert_eq!(queue.add(&part), None);
    assert!(queue.take(number).expect("nothing failed").is_none());
}
