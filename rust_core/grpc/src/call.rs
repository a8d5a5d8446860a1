//! One call: its queued requests and responses, and its end.
//!
//! Two threads meet here: that of the network, which only ever waits as a future, and the answering one, which never
//! waits: where it finds nothing to read, or no room to write, an [`Event`] follows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::connection::Client;
use super::event_queue::{Event, EventQueue};
use super::limits::{Admission, Budget};
use super::tls::Peer;

/// The messages of a call queued in each direction: enough that neither thread waits for each turn of the other.
pub(super) const AHEAD: usize = 32;
/// Together they may be this large, or one larger: as much as a stream may send unread. A count alone would let a caller
/// fill the memory by few kilobytes that are large once unpacked.
pub(super) const AHEAD_BYTES: usize = 128 << 10;

/// The result of a read.
pub enum Next {
    /// A request.
    Message(Bytes),
    /// There will be no more.
    End,
    /// Nothing yet; [`Event::Readable`] follows.
    Wait,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "of two sides and both directions"
)]
pub(super) struct State {
    /// Requests, each with its part of the room for them.
    requests: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    /// Something of the requests came, be it that they failed.
    pub(super) came: bool,
    /// No request follows those that wait.
    whole: bool,
    reader_waits: bool,
    /// The caller is told that the call is on, at the latest by a response.
    pub(super) begun: bool,
    responses: VecDeque<Bytes>,
    response_bytes: usize,
    writer_waits: bool,
    /// The status that follows the responses.
    pub(super) end: Option<Status>,
    /// Nobody waits for the answer.
    cancelled: bool,
    /// The handler is done.
    done: bool,
    /// Until the handler is done: a call that nobody waits for still costs the loop, and one that is done costs it nothing,
    /// whether its answer is taken or not.
    admission: Option<Admission>,
    /// Counts the call until the last of its answer is sent.
    pub(super) counted: Option<Arc<()>>,
    /// Of the answer.
    pub(super) waker: Option<Waker>,
}

impl State {
    fn has_room(&self) -> bool {
        self.responses.len() < AHEAD && self.response_bytes < AHEAD_BYTES
    }

    fn respond(&mut self, message: Bytes) {
        if !self.cancelled {
            self.begun = true;
            self.response_bytes += message.len();
            self.responses.push_back(message);
        }
    }

    fn end(&mut self, status: Status) {
        self.end.get_or_insert(status);
        self.done = true;
        self.admission = None;
    }

    /// The next response, and whether the writer has to hear of the room.
    pub(super) fn next_response(&mut self) -> Option<(Bytes, bool)> {
        let message = self.responses.pop_front()?;
        self.response_bytes -= message.len();
        let room = self.has_room() && std::mem::take(&mut self.writer_waits);
        Some((message, room))
    }
}

/// A call of a method.
pub struct Call {
    /// Unique in this server.
    pub id: u64,
    /// `/package.Service/Method`.
    pub path: String,
    /// As it came, with what HTTP and gRPC keep for themselves.
    pub metadata: MetadataMap,
    /// When its caller stops to wait.
    pub deadline: Option<Instant>,
    pub(super) kind: usize,
    pub(super) client: Arc<Client>,
    pub(super) budget: Arc<Budget>,
    pub(super) events: Arc<EventQueue>,
    pub(super) state: Mutex<State>,
}

impl Call {
    /// The names in the client's certificate.
    pub fn peer(&self) -> &Peer {
        &self.client.peer
    }

    /// Returns true if the rest of its requests waits for [`Self::accept`].
    pub fn is_unverified(&self) -> bool {
        !self.budget.is_accepted() && !self.state.lock().whole
    }

    /// Takes the rest of the requests, on account of a principal whose credentials were checked.
    pub fn accept(&self, principal: &str) {
        self.budget.accept(principal);
    }

    /// The next request.
    pub fn read(&self) -> Next {
        let mut state = self.state.lock();
        let next = state.requests.pop_front();
        state.reader_waits = next.is_none() && !state.whole;
        let waits = state.reader_waits;
        // Before the room is given back, which wakes a thread that takes the lock.
        drop(state);
        match next {
            Some((message, _)) => Next::Message(message),
            None if waits => Next::Wait,
            None => Next::End,
        }
    }

    /// Tells the caller that the call is on, before there is a response.
    pub fn begin(&self) {
        self.change(|state| state.begun = true);
    }

    /// Sends a response. Whether there is room for another one; where there is none, [`Event::Writable`] follows.
    pub fn write(&self, message: Bytes) -> bool {
        self.change(|state| {
            state.respond(message);
            state.writer_waits = !state.has_room();
            !state.writer_waits
        })
    }

    /// Sends the only response, and ends the call well.
    pub fn finish(&self, message: Bytes) {
        self.change(|state| {
            state.respond(message);
            state.end(Status::new(Code::Ok, ""));
        });
    }

    /// Ends the call, after the responses that were sent before. Of several ends the first counts.
    pub fn end(&self, status: Status) {
        self.change(|state| state.end(status));
    }

    /// Gives the call its place, unless its handler is done.
    pub(super) fn admit(&self, admission: Admission, counted: Arc<()>) {
        let mut state = self.state.lock();
        if !state.done {
            state.admission = Some(admission);
            state.counted = Some(counted);
        }
    }

    pub(super) fn put(&self, message: Bytes, room: Option<OwnedSemaphorePermit>) {
        self.reach(|state| state.requests.push_back((message, room)));
    }

    pub(super) fn put_end(&self) {
        self.reach(|state| state.whole = true);
    }

    fn reach(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        state.came = true;
        change(&mut state);
        let reader_waits = std::mem::take(&mut state.reader_waits);
        drop(state);
        if reader_waits {
            self.events.put(Event::Readable(self.id));
        }
    }

    /// Ends the call because of its requests, whatever its handler does.
    pub(super) fn refuse(&self, status: Status) {
        self.change(|state| {
            state.came = true;
            state.end.get_or_insert(status);
        });
        self.cancel();
    }

    /// Nobody waits for what the handler does any more. Its requests do not end: what was cut off must not look whole.
    pub(super) fn cancel(&self) {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.cancelled, true) {
            // It was told; a second time would interrupt what its handler does to end.
            return;
        }
        state.responses.clear();
        state.response_bytes = 0;
        drop(state);
        self.events.put(Event::Cancelled(self.id));
    }

    /// Changes the state, then wakes the answer: a woken thread takes the lock at once, so it is released first.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let found = change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        found
    }
}
