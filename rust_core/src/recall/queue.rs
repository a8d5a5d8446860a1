//! Recalls that are asked for one part after the other, and answered by other threads while their caller does something else.
//!
//! Whoever has work between recalls that one thread at a time can do, as under the lock of an interpreter, does all of it on one
//! thread and waits for no lock: the others answer. Where nothing is answered yet, the caller answers too.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Query;
use crate::bank::Bank;
use crate::error::Result;
use crate::types::{RecallRequest, RecallResponse};
use crate::vector::TOGETHER;

/// An answer, and how long it took the thread that made it, together with those that were made with it.
pub type Answered = (RecallResponse, Duration);

/// Recalls in parts, which the pool's threads but one answer in the order in which they were added. Dropped, it leaves what is
/// not begun.
#[derive(Debug)]
pub struct RecallQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told when a part is answered, or none will be any more.
    changed: Condvar,
    most_helpers: usize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Crew>,
    parts: Vec<Part>,
    helpers: usize,
    stopped: bool,
}

/// Requests of one bank that a thread answers by one reading of its rows.
#[derive(Debug)]
struct Crew {
    part: usize,
    /// Place of the first in its part.
    start: usize,
    bank: Bank,
    requests: Vec<Arc<RecallRequest>>,
}

/// What is known of a part: for each request its answer, its error, or the panic that stands for one.
struct Part {
    missing: usize,
    answers: Vec<Option<thread::Result<Result<Answered>>>>,
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut part = formatter.debug_struct("Part");
        part.field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl RecallQueue {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        let shared = Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            // The caller is a thread too.
            most_helpers: rayon::current_num_threads() - 1,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Adds a part, and returns its number. Threads begin with it once they have begun with all that was added before. None
    /// after [`stop`](Self::stop).
    pub fn add(&self, requests: &[(Bank, Arc<RecallRequest>)]) -> Option<usize> {
        let mut state = self.shared.state.lock();
        if state.stopped {
            return None;
        }
        let part = state.parts.len();
        state.parts.push(Part {
            missing: requests.len(),
            answers: requests.iter().map(|_| None).collect(),
        });
        let mut start = 0;
        for alike in requests.chunk_by(|(one, _), (other, _)| one.is(other)) {
            for crew in alike.chunks(TOGETHER) {
                state.waiting.push_back(Crew {
                    part,
                    start,
                    bank: crew[0].0.clone(),
                    requests: crew.iter().map(|(_, one)| Arc::clone(one)).collect(),
                });
                start += crew.len();
            }
        }
        let wanted = state.waiting.len().min(self.shared.most_helpers);
        for _ in state.helpers..wanted {
            state.helpers += 1;
            let shared = Arc::clone(&self.shared);
            rayon::spawn(move || shared.help());
        }
        Some(part)
    }

    /// The answers to a part, each as [`Bank::recall`] gives it; once. None after [`stop`](Self::stop).
    ///
    /// # Errors
    /// That of the part's first request that has one.
    ///
    /// # Panics
    /// When an answer did.
    pub fn take(&self, part: usize) -> Result<Option<Vec<Answered>>> {
        let mut state = self.shared.state.lock();
        while !state.stopped {
            if state.parts[part].missing == 0 {
                let answers = std::mem::take(&mut state.parts[part].answers);
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

    fn run(&self, crew: &Crew) {
        let start = Instant::now();
        let answers = catch_unwind(AssertUnwindSafe(|| crew.answers()));
        self.note(crew, answers, start.elapsed());
    }

    /// Notes what a crew answered, or the panic that kept it from that.
    fn note(
        &self,
        crew: &Crew,
        answers: thread::Result<Vec<Result<RecallResponse>>>,
        took: Duration,
    ) {
        let mut state = self.state.lock();
        let part = &mut state.parts[crew.part];
        part.missing -= crew.requests.len();
        let places = &mut part.answers[crew.start..];
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

impl Crew {
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
    use crate::registry::Core;

    #[test]
    fn a_panic_is_raised_again_where_the_part_is_taken() {
        let bank = Core::new(None).and_then(|core| core.bank(4));
        let bank = bank.expect("no scratch file");
        let queue = RecallQueue::new();
        let request = Arc::new(RecallRequest::default());
        let parts = [(); 2].map(|()| queue.add(&[(bank.clone(), Arc::clone(&request))]));
        let [failed, sound] = parts.map(|part| part.expect("nobody stopped it"));
        // As if a helper had panicked.
        let crew = |part| Crew {
            part,
            start: 0,
            bank: bank.clone(),
            requests: vec![Arc::clone(&request)],
        };
        queue.take(failed).expect("an empty bank answers");
        queue.shared.state.lock().parts[failed].missing = 1;
        queue.shared.state.lock().parts[failed].answers = vec![None];
        queue
            .shared
            .note(&crew(failed), Err(Box::new("a bug")), Duration::ZERO);
        let raised = catch_unwind(AssertUnwindSafe(|| queue.take(failed)));
        let panic = raised.expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        let answers = queue.take(sound).expect("the request is valid");
        assert_eq!(answers.map(|answers| answers.len()), Some(1));
    }
}
