//! Answers many recalls at once: spreads them over the cores and shares what several have in common.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;

use crate::api::BankOptions;
use crate::api::{RecallRequest, RecallResponse, Result};
use crate::bank::Bank;
use crate::dense::TOGETHER;
use crate::recall::Query;

/// A request prepared for vectors of one length; None where it is refused.
type Prepared = OnceLock<Option<Query>>;

/// Answers each request as [`Bank::recall`] does.
///
/// The calling thread takes part: it begins at once, while others are still to be woken, and a lone request changes no
/// thread at all.
pub(crate) fn recall(requests: &[(&Bank, &RecallRequest)]) -> Result<Vec<RecallResponse>> {
    // With others beside it no recall takes a second thread.
    let _running = (requests.len() > 1).then(|| requests[0].0.enter());
    let (places, prepared) = shared(requests);
    let answers: Vec<OnceLock<_>> = requests.iter().map(|_| OnceLock::new()).collect();
    let threads = rayon::current_num_threads();
    let groups = groups(requests, threads);
    let next = AtomicUsize::new(0);
    let prepare = |at: usize| {
        let (bank, request) = requests[at];
        prepared[places[at]]
            .get_or_init(|| Query::new(request, bank.options()).ok())
            .as_ref()
            .map(|query| (request, query))
    };
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bank = requests[group.start].0;
            let results = match group.clone().map(prepare).collect::<Option<Vec<_>>>() {
                Some(asked) => bank.answer_together(&asked),
                // It says why.
                None => group
                    .clone()
                    .map(|at| bank.recall(requests[at].1))
                    .collect(),
            };
            for (at, result) in group.clone().zip(results) {
                _ = answers[at].set(result);
            }
        }
    };
    let helpers = threads.min(groups.len());
    rayon::in_place_scope(|scope| {
        for _ in 1..helpers {
            scope.spawn(|_| work());
        }
        work();
    });
    answers
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

/// Groups of consecutive requests for one bank that one thread takes: as many as one reading of its rows serves, but
/// no more than leaves every thread its part.
fn groups(requests: &[(&Bank, &RecallRequest)], threads: usize) -> Vec<Range<usize>> {
    let most = requests.len().div_ceil(threads).clamp(1, TOGETHER);
    let mut groups = Vec::with_capacity(requests.len());
    let mut start = 0;
    for alike in requests.chunk_by(|(one, _), (other, _)| std::ptr::eq(*one, *other)) {
        let end = start + alike.len();
        groups.extend((start..end).step_by(most).map(|at| at..end.min(at + most)));
        start = end;
    }
    groups
}

/// For each request the place of its prepared form, shared by all that are the same object and ask for vectors of the
/// same length.
fn shared(requests: &[(&Bank, &RecallRequest)]) -> (Vec<usize>, Vec<Prepared>) {
    let mut known: HashMap<(*const RecallRequest, BankOptions), usize> = HashMap::new();
    let places = requests
        .iter()
        .map(|&(bank, request)| {
            let next = known.len();
            *known
                .entry((std::ptr::from_ref(request), bank.options()))
                .or_insert(next)
        })
        .collect();
    let prepared = known.iter().map(|_| OnceLock::new()).collect();
    (places, prepared)
}
