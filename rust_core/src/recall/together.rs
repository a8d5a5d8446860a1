//! Many recalls at once: over the cores, and what is the same for several of them once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;

use super::Query;
use crate::bank::Bank;
use crate::error::Result;
use crate::types::{RecallRequest, RecallResponse};

/// What is made of a request for vectors of one length; nothing where it is refused.
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
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(bank, request)) = requests.get(at) else {
                return;
            };
            let query =
                prepared[places[at]].get_or_init(|| Query::new(request, bank.dimensions()).ok());
            _ = answers[at].set(match query {
                Some(query) => bank.answer(request, query),
                // It says why.
                None => bank.recall(request),
            });
        }
    };
    let helpers = rayon::current_num_threads().min(requests.len());
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

/// For each request the place of what is made of it, one for all that are the same object and ask for vectors of the same
/// length.
fn shared(requests: &[(&Bank, &RecallRequest)]) -> (Vec<usize>, Vec<Prepared>) {
    let mut known: HashMap<(*const RecallRequest, usize), usize> = HashMap::new();
    let places = requests
        .iter()
        .map(|&(bank, request)| {
            let next = known.len();
            *known
                .entry((std::ptr::from_ref(request), bank.dimensions()))
                .or_insert(next)
        })
        .collect();
    let prepared = known.iter().map(|_| OnceLock::new()).collect();
    (places, prepared)
}
