//! Recalls that are asked for one part after the other, and answered by other threads while their caller does something
//! else.
//!
//! Whoever has work between recalls that one thread at a time can do, as under the lock of an interpreter, does it on
//! one thread, which has no other to wait for: helpers answer. Where nothing is answered yet, the caller answers too.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::api::{CoreError, Result};
use crate::api::{RecallRequest, RecallResponse};
use crate::bank::Bank;
use crate::dense::TOGETHER;
use crate::recall::Query;

/// An answer, and how long it took the thread that made it, together with those that were made with it.
pub type Answered = (RecallResponse, Duration);

/// Recalls in parts, which helpers answer in the order in which they were added. Dropped, it leaves what is not begun.
#[derive(Debug)]
pub struct RecallQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<Index>,
    /// Told when a part is answered, or none will be any more.
    changed: Condvar,
    helpers: Helpers,
    /// Most requests of a crew.
    crew: usize,
}

#[derive(Debug, Default)]
struct Index {
    waiting: VecDeque<BuildThreads>,
    parts: Vec<Part>,
    helpers: usize,
    stopped: bool,
}

/// Requests of one bank that a thread answers by one reading of its rows.
#[derive(Debug)]
struct BuildThreads {
    part: usize,
    /// Place of the first in its part.
    start: usize,
    bank: Bank,
    requests: Vec<Arc<RecallRequest>>,
}

/// What is known of a part: for each request its answer, its error, or the panic that stands for one.
struct Part {
    missing: usize,
    /// None once they were taken.
    answers: Option<Vec<Option<thread::Result<Result<Answered>>>>>,
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut part = formatter.debug_struct("Part");
        part.field("missing", &self.missing).finish_non_exhaustive()
    }
}

/// Threads that answer for all queues. They have a pool of their own: in the other one a lone recall that wants a
/// second thread would wait for whole batches.
#[derive(Debug, Clone, Copy)]
struct Helpers(Option<&'static ThreadPool>);

impl Helpers {
    /// One fewer than the process has for recalls, since whoever asks is a thread too; none where they cannot be had.
    fn of_the_process() -> Self {
        static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
        let pool = POOL.get_or_init(|| Self::pool(rayon::current_num_threads() - 1));
        Self(pool.as_ref())
    }

    fn pool(count: usize) -> Option<ThreadPool> {
        let pool = ThreadPoolBuilder::new().num_threads(count);
        let named = pool.thread_name(|number| format!("astro-queue-{number}"));
        // A number of 0 would be taken for that of the processors.
        (count > 0).then(|| named.build().ok()).flatten()
    }

    fn count(self) -> usize {
        self.0.map_or(0, ThreadPool::current_num_threads)
    }

    fn spawn(self, work: impl FnOnce() + Send + 'static) {
        if let Some(pool) = self.0 {
            pool.spawn(work);
        }
    }
}

impl RecallQueue {
    /// An empty queue for about so many requests.
    pub(crate) fn new(requests: usize) -> Self {
        Self::with_helpers(Helpers::of_the_process(), requests)
    }

    fn with_helpers(helpers: Helpers, requests: usize) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            // What one reading of the rows serves, but no more than leaves every thread something to do.
            crew: requests.div_ceil(helpers.count() + 1).clamp(1, TOGETHER),
            helpers,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Adds a part, and returns its number. Threads begin with it once they have begun with all that was added before.
    /// None after [`stop`](Self::stop).
    pub fn add(&self, requests: &[(Bank, Arc<RecallRequest>)]) -> Option<usize> {
        let mut state = self.shared.state.lock();
        if state.stopped {
            return None;
        }
        let part = state.parts.len();
        state.parts.push(Part {
            missing: requests.len(),
            answers: Some(requests.iter().map(|_| None).collect()),
        });
        let mut start = 0;
        for alike in requests.chunk_by(|(one, _), (other, _)| one.shares_index_with(other)) {
            for crew in alike.chunks(self.shared.crew) {
                state.waiting.push_back(BuildThreads {
                    part,
                    start,
                    bank: crew[0].0.clone(),
                    requests: crew.iter().map(|(_, one)| Arc::clone(one)).collect(),
                });
                start += crew.len();
            }
        }
        // Those at work may be so for long; who finds nothing leaves at once.
        let free = self.shared.helpers.count() - state.helpers;
        let called = state.waiting.len().min(free);
        state.helpers += called;
        // They want the lock at once.
        drop(state);
        for _ in 0..called {
            let shared = Arc::clone(&self.shared);
            self.shared.helpers.spawn(move || shared.help());
        }
        Some(part)
    }

    /// The answers to a part, each as [`Bank::recall`] gives it; once. None after [`stop`](Self::stop).
    ///
    /// # Errors
    /// That of the part's first request that has one; [`CoreError::Invalid`] for a part that is not there, or not any
    /// more.
    ///
    /// # Panics
    /// When an answer did.
    pub fn take(&self, part: usize) -> Result<Option<Vec<Answered>>> {
        let mut state = self.shared.state.lock();
        while !state.stopped {
            let wanted = state.parts.get_mut(part);
            let wanted = wanted.filter(|wanted| wanted.answers.is_some());
            let Some(wanted) = wanted else {
                return Err(CoreError::Invalid {
                    field: "part",
                    expected: "one that was added and not taken yet".to_owned(),
                    got: part.to_string(),
                });
            };
            if wanted.missing == 0
                && let Some(answers) = wanted.answers.take()
            {
                drop(state);
                let answers = answers.into_iter().flatten();
                let sound =
                    answers.map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic)));
                return sound.collect::<Result<_>>().map(Some);
            }
            let Some(crew) = state.waiting.pop_front() else {
                self.shared.changed.wait(&mut state);
                continue;
            };
            drop(state);
            self.shared.run(&crew);
            state = self.shared.state.lock();
        }
        Ok(None)
    }

    /// Leaves all that is not begun; nobody waits any more.
    pub fn stop(&self) {
        let mut state = self.shared.state.lock();
        state.stopped = true;
        state.waiting.clear();
        self.shared.changed.notify_all();
    }
}

impl Drop for RecallQueue {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Answers until nothing is waiting.
    fn help(&self) {
        loop {
            let mut state = self.state.lock();
            let Some(crew) = state.waiting.pop_front() else {
                state.helpers -= 1;
                return;
            };
            drop(state);
            self.run(&crew);
        }
    }

    fn run(&self, crew: &BuildThreads) {
        let start = Instant::now();
        let answers = catch_unwind(AssertUnwindSafe(|| crew.answers()));
        self.note(crew, answers, start.elapsed());
    }

    /// Notes what a crew answered, or the panic that kept it from that.
    fn note(
        &self,
        crew: &BuildThreads,
        answers: thread::Result<Vec<Result<RecallResponse>>>,
        took: Duration,
    ) {
        let mut state = self.state.lock();
        let part = &mut state.parts[crew.part];
        part.missing -= crew.requests.len();
        // Nobody has taken them, since some were missing.
        let Some(places) = &mut part.answers else {
            return;
        };
        let places = &mut places[crew.start..];
        match answers {
            Ok(answers) => {
                for (place, answer) in places.iter_mut().zip(answers) {
                    *place = Some(Ok(answer.map(|response| (response, took))));
                }
            }
            // The others of the crew have no answer either, and nobody will ask for them.
            Err(panic) => places[0] = Some(Err(panic)),
        }
        if part.missing == 0 {
            self.changed.notify_all();
        }
    }
}

impl BuildThreads {
    fn answers(&self) -> Vec<Result<RecallResponse>> {
        // Beside others no recall takes a second thread.
        let _running = self.bank.enter();
        let requests = self.requests.iter().map(AsRef::as_ref);
        let prepare = |request| Query::new(request, self.bank.dimensions()).ok();
        let queries: Option<Vec<Query>> = requests.clone().map(prepare).collect();
        match queries {
            Some(queries) => {
                let asked: Vec<_> = requests.zip(&queries).collect();
                self.bank.answer_together(&asked)
            }
            // It says why.
            None => requests.map(|request| self.bank.recall(request)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Row;
    use crate::registry::Core;

    #[test]
    fn a_panic_is_raised_again_where_the_part_is_taken() {
        let bank = Core::new(None).and_then(|core| core.bank(4));
        let bank = bank.expect("no scratch file");
        let queue = RecallQueue::new(2);
        let request = Arc::new(RecallRequest::default());
        let parts = [(); 2].map(|()| queue.add(&[(bank.clone(), Arc::clone(&request))]));
        let [failed, sound] = parts.map(|part| part.expect("nobody stopped it"));
        // As if a helper had panicked.
        let crew = |part| BuildThreads {
            part,
            start: 0,
            bank: bank.clone(),
            requests: vec![Arc::clone(&request)],
        };
        queue.take(failed).expect("an empty bank answers");
        queue.shared.state.lock().parts[failed] = Part {
            missing: 1,
            answers: Some(vec![None]),
        };
        queue
            .shared
            .note(&crew(failed), Err(Box::new("a bug")), Duration::ZERO);
        let raised = catch_unwind(AssertUnwindSafe(|| queue.take(failed)));
        let panic = raised.expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        let answers = queue.take(sound).expect("the request is valid");
        assert_eq!(answers.map(|answers| answers.len()), Some(1));
    }
    fn bank(core: &Core) -> Bank {
        let bank = core.bank(4).expect("a size that banks have");
        let rows: Vec<Row> = (1..3_000)
            .map(|number: u32| {
                let id = u128::from(number).to_be_bytes();
                let mut row = Row::new(u64::from(number), id, id, format!("tea {number}"), 1);
                row.vector = Some(vec![number as f32, 1.0, 2.0, 3.0]);
                row
            })
            .collect();
        bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
        bank
    }

    fn part(bank: &Bank, count: usize) -> Vec<(Bank, Arc<RecallRequest>)> {
        let request = |number: usize| RecallRequest {
            text: Some(format!("tea {number}")),
            vector: Some(vec![1.0, number as f32, 0.0, 0.0]),
            ..RecallRequest::default()
        };
        let asked = (0..count).map(|number| (bank.clone(), Arc::new(request(number))));
        asked.collect()
    }

    #[test]
    fn all_is_answered_with_helpers_and_without() {
        // A pool lives as long as the process; one that nothing leads to would be reported as a leak.
        static POOLS: [OnceLock<Option<ThreadPool>>; 3] = [const { OnceLock::new() }; 3];
        let core = Core::new(None).expect("no scratch file");
        let bank = bank(&core);
        for (helpers, pool) in [0, 1, 5].into_iter().zip(&POOLS) {
            let pool = pool.get_or_init(|| Helpers::pool(helpers)).as_ref();
            let queue = RecallQueue::with_helpers(Helpers(pool), 30);
            assert_eq!(queue.shared.helpers.count(), helpers);
            let asked = part(&bank, 30);
            let number = queue.add(&asked).expect("nobody stopped it");
            assert!(queue.shared.state.lock().helpers <= helpers);
            let answers = queue.take(number).expect("all are valid");
            let answers = answers.expect("nobody stopped it");
            for ((response, _), (bank, request)) in answers.iter().zip(&asked) {
                let alone = bank.recall(request).expect("it is valid");
                assert_eq!(response.hits, alone.hits);
            }
            assert!(queue.take(number).is_err(), "they were taken");
            assert!(queue.take(number + 1).is_err(), "there is no such part");
        }
    }

    #[test]
    fn whoever_else_wants_the_threads_has_a_turn() {
        let core = Core::new(None).expect("no scratch file");
        let bank = bank(&core);
        let queues = [(); 2].map(|()| RecallQueue::new(9));
        let asked = part(&bank, 4_000);
        for queue in &queues {
            queue.add(&asked).expect("nobody stopped it");
        }
        let few = asked[..2].iter();
        let few: Vec<_> = few.map(|(bank, request)| (bank, &**request)).collect();
        core.recall_many(&few).expect("both are valid");
        let left = queues.map(|queue| queue.shared.state.lock().waiting.len());
        assert!(left.iter().all(|&left| left > 0), "{left:?}");
    }
}
