//! What a connection has to do, done by whichever thread has something for it.
//!
//! To wake a thread that sleeps takes a good part of what a small call lasts. So a thread that has an answer, and nothing
//! else to do, brings it as far as the socket itself ([`Drive::at_once`]); for all else the network's thread is woken.
//! Either does all that is ready, one at a time: who finds the other at it has it look once more. What the tasks have to
//! send by then goes in one piece.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How often one look follows the other before the network's thread goes on with it, after others of its tasks. An answer
/// takes two.
const LOOKS: usize = 4;
/// Tasks that may end in a look, for each of which another may have begun: a client that sends calls faster than they are
/// refused must not have the thread to itself. What is read and written is bounded by tokio's budget.
const ENDS: usize = 32;

/// Nobody is at it; a task that is woken wakes the network's thread.
const IDLE: u8 = 0;
/// A thread is at it.
const BUSY: u8 = 1;
/// A thread is at it, and has to look once more.
const AGAIN: u8 = 2;
/// There is nothing to do any more.
const DONE: u8 = 3;

/// The tasks of a connection.
#[derive(Clone)]
pub(super) struct Drive(Arc<Tasks>);

/// Where the tasks leave what is to be sent.
pub(super) trait Line: Send + Sync {
    /// Sends what was left there, as far as there is room; where there is too little, `context` is woken when there is more.
    fn send(&self, context: &mut Context<'_>);
}

struct Tasks {
    state: AtomicU8,
    // Locked by who is at it.
    running: Mutex<FuturesUnordered<Task>>,
    begun: Mutex<Vec<Task>>,
    // Of the network's thread.
    waker: Mutex<Option<Waker>>,
    line: Box<dyn Line>,
    runtime: Handle,
}

impl Drive {
    /// For the runtime that it is called in; the tasks leave at the `line` what they send.
    pub(super) fn new(line: impl Line + 'static) -> Self {
        Self(Arc::new(Tasks {
            state: AtomicU8::new(IDLE),
            running: Mutex::default(),
            begun: Mutex::default(),
            waker: Mutex::default(),
            line: Box::new(line),
            runtime: Handle::current(),
        }))
    }

    /// Ready when `task`, and all that it began here, is done. Dropped before, it ends them.
    pub(super) fn run(&self, task: impl Future<Output = ()> + Send + 'static) -> Run {
        self.0.begin(Box::pin(task));
        Run(self.0.clone())
    }

    /// Does what wakes a task, then what the task has to do; the latter is left to a thread that is at it already.
    ///
    /// # Panics
    /// On a thread of a runtime of tokio's.
    pub(super) fn at_once(&self, wakes: impl FnOnce()) {
        let free = self.0.step(IDLE, BUSY);
        let woken = catch_unwind(AssertUnwindSafe(wakes));
        if free {
            // As a task, for only those have a budget: without one a flood would be read without end.
            self.0.runtime.block_on(async { self.0.advance() });
        }
        woken.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// hyper begins a task for each call.
impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Drive {
    fn execute(&self, task: F) {
        self.0.begin(Box::pin(Contained(Box::pin(task))));
    }
}

/// A call, whose panic is the end of it and of nothing else.
struct Contained(Task);

impl Future for Contained {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))).unwrap_or(Poll::Ready(()))
    }
}

impl Tasks {
    fn begin(&self, task: Task) {
        self.begun.lock().push(task);
    }

    /// Whether the state was `from`, and is `to` now.
    fn step(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Looks until nothing is ready. For who made the state [`BUSY`].
    fn advance(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        for _ in 0..LOOKS {
            // A connection that panics ends, as a task of tokio's does; nobody would be at it again.
            match catch_unwind(AssertUnwindSafe(|| self.look(&mut context))) {
                Ok(Poll::Pending) => (),
                Ok(Poll::Ready(())) | Err(_) => return self.end(),
            }
            if self.step(AGAIN, BUSY) {
                // What that brings is sent along.
                continue;
            }
            self.line.send(&mut context);
            if self.step(BUSY, IDLE) {
                return;
            }
            if !self.step(AGAIN, BUSY) {
                return self.end();
            }
        }
        self.line.send(&mut context);
        // Whoever woke a task meanwhile found somebody at it.
        if self.state.swap(IDLE, Ordering::AcqRel) == DONE {
            return self.end();
        }
        self.wake_network();
    }

    fn look(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut running = self.running.lock();
        for _ in 0..ENDS {
            running.extend(self.begun.lock().drain(..));
            let found = running.poll_next_unpin(context);
            // One that began while the others were looked at has not been looked at.
            let more = !self.begun.lock().is_empty();
            match found {
                Poll::Pending if !more => return Poll::Pending,
                Poll::Ready(None) if !more => return Poll::Ready(()),
                _ => (),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn wake_network(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Drops what is left.
    fn end(&self) {
        self.state.store(DONE, Ordering::Release);
        let running = std::mem::take(&mut *self.running.lock());
        let begun = std::mem::take(&mut *self.begun.lock());
        for task in running.into_iter().chain(begun) {
            // After a panic another may follow from what it left; the rest must go all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        }
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// For the tasks: somebody looks at them.
impl Wake for Tasks {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        loop {
            match self.state.load(Ordering::Acquire) {
                IDLE => return self.wake_network(),
                BUSY if self.step(BUSY, AGAIN) => return,
                BUSY => (),
                _ => return,
            }
        }
    }
}

/// The tasks, as one of the network's thread.
pub(super) struct Run(Arc<Tasks>);

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let tasks = &self.0;
        *tasks.waker.lock() = Some(context.waker().clone());
        loop {
            match tasks.state.load(Ordering::Acquire) {
                DONE => return Poll::Ready(()),
                AGAIN => return Poll::Pending,
                IDLE if tasks.step(IDLE, BUSY) => {
                    tasks.advance();
                    let done = tasks.state.load(Ordering::Acquire) == DONE;
                    return if done { Poll::Ready(()) } else { Poll::Pending };
                }
                BUSY if tasks.step(BUSY, AGAIN) => return Poll::Pending,
                _ => (),
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests;
