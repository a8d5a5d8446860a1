//! One call: its requests on their way in, its responses on their way out, and its end.
//!
//! Two threads meet here: that of the network, which only ever waits as a future, and the one that answers, which never
//! waits: where it finds nothing to read, or no room to write, it hears of it by an [`Event`].
//!
//! Whoever is woken wants the lock at once, and often on the processor of who wakes it. So each lock is released first: a
//! response of a batch waited half a millisecond for its lock's holder to have its turn again.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::drive::Drive;
use super::inbox::{Event, Inbox};
use super::places::Place;
use super::queue::Queue;
use super::tls::Peer;

/// Bytes that are encrypted, or copied, in the time in which another thread is woken.
const MOST_AT_ONCE: usize = 64 << 10;

/// What the answering thread finds when it reads.
pub enum Next {
    /// A request.
    Message(Bytes),
    /// There will be no more.
    End,
    /// Nothing yet; [`Event::Readable`] follows.
    Wait,
}

/// How far the requests of a call have come.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// There was none yet.
    #[default]
    Fresh,
    /// There were some, and may be more.
    Open,
    /// There will be no more.
    Ended,
}

#[derive(Default)]
pub(super) struct Requests {
    pub(super) waiting: Queue,
    pub(super) stage: Stage,
    pub(super) reader_waits: bool,
    // Of who fills the queue, where it is full.
    pub(super) filler: Option<Waker>,
    // Of who waits for the first.
    pub(super) refuser: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Responses {
    pub(super) begun: bool,
    pub(super) waiting: Queue,
    pub(super) end: Option<Status>,
    // Nothing more is sent, whatever comes.
    pub(super) closed: bool,
    pub(super) writer_waits: bool,
    pub(super) sender: Option<Waker>,
    // Among the calls of its kind, until its handler is done: one that nobody waits for still costs the loop, and one that
    // is done costs it nothing, whether its answer is taken or not.
    pub(super) place: Option<Place>,
}

impl Responses {
    /// Whom to wake of it.
    #[must_use]
    fn end(&mut self, status: Status) -> Option<Waker> {
        self.end.get_or_insert(status);
        self.place = None;
        self.sender.take()
    }
}

/// The other end of a connection, as its calls know it.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) peer: Arc<Peer>,
    pub(super) drive: Drive,
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
    /// When it was handed over.
    pub opened: Instant,
    /// Who is at the other end.
    pub peer: Arc<Peer>,
    pub(super) inbox: Arc<Inbox>,
    drive: Drive,
    pub(super) requests: Mutex<Requests>,
    pub(super) responses: Mutex<Responses>,
}

impl Call {
    pub(super) fn new(
        id: u64,
        path: String,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        client: Client,
        inbox: Arc<Inbox>,
        place: Place,
    ) -> Self {
        Self {
            id,
            path,
            metadata,
            deadline,
            opened: Instant::now(),
            peer: client.peer,
            inbox,
            drive: client.drive,
            requests: Mutex::default(),
            responses: Mutex::new(Responses {
                place: Some(place),
                ..Responses::default()
            }),
        }
    }

    /// The next request.
    pub fn read(&self) -> Next {
        let mut requests = self.requests.lock();
        if let Some(message) = requests.waiting.pop() {
            let filler = requests.filler.take();
            drop(requests);
            wake(filler);
            return Next::Message(message);
        }
        if requests.stage == Stage::Ended {
            return Next::End;
        }
        requests.reader_waits = true;
        Next::Wait
    }

    /// Tells the caller that the call is on, before there is a response.
    pub fn begin(&self) {
        let mut responses = self.responses.lock();
        responses.begun = true;
        let sender = responses.sender.take();
        drop(responses);
        wake(sender);
    }

    /// Sends a response. Whether there is room for another one; where there is none, [`Event::Writable`] follows.
    pub fn write(&self, message: Bytes) -> bool {
        let mut responses = self.responses.lock();
        if responses.closed {
            return true;
        }
        responses.waiting.push(message);
        let room = responses.waiting.has_room();
        responses.writer_waits = !room;
        let sender = responses.sender.take();
        drop(responses);
        wake(sender);
        room
    }

    /// Sends the only response, and ends the call well.
    pub fn finish(&self, message: Bytes) {
        let mut responses = self.responses.lock();
        if !responses.closed {
            responses.waiting.push(message);
        }
        let sender = responses.end(Status::new(Code::Ok, ""));
        drop(responses);
        wake(sender);
    }

    /// As [`Self::finish`], but sends it on this thread, which has nothing else to do. What is large is left to the
    /// network's, beside which this one can go on.
    pub fn finish_at_once(&self, message: Bytes) {
        if message.len() > MOST_AT_ONCE {
            return self.finish(message);
        }
        self.drive.at_once(|| self.finish(message));
    }

    /// Ends the call, after the responses that were sent before. Of several ends the first counts.
    pub fn end(&self, status: Status) {
        let sender = self.responses.lock().end(status);
        wake(sender);
    }

    pub(super) fn put(&self, message: Bytes) {
        self.reach(Stage::Open, Some(message));
    }

    pub(super) fn put_end(&self) {
        self.reach(Stage::Ended, None);
    }

    /// Ready when a request can be put without reading too far ahead.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut requests = self.requests.lock();
        if requests.waiting.has_room() {
            return Poll::Ready(());
        }
        requests.filler = Some(context.waker().clone());
        Poll::Pending
    }

    fn reach(&self, stage: Stage, message: Option<Bytes>) {
        let mut requests = self.requests.lock();
        if let Some(message) = message {
            requests.waiting.push(message);
        }
        if requests.stage != Stage::Ended {
            requests.stage = stage;
        }
        let refuser = requests.refuser.take();
        let reader_waits = std::mem::take(&mut requests.reader_waits);
        drop(requests);
        wake(refuser);
        if reader_waits {
            self.inbox.put(Event::Readable(self.id));
        }
    }

    /// Ends the call because of its requests, whatever its handler does.
    pub(super) fn refuse(&self, status: Status) {
        let mut responses = self.responses.lock();
        responses.end.get_or_insert(status);
        let sender = responses.sender.take();
        drop(responses);
        wake(sender);
        // Something came: the refusal need not wait for it.
        self.reach(Stage::Open, None);
        self.cancel();
    }

    /// Nobody waits for what the handler does any more. Its requests do not end: what was cut off must not look whole.
    pub(super) fn cancel(&self) {
        let mut responses = self.responses.lock();
        if std::mem::replace(&mut responses.closed, true) {
            // It was told; a second time would interrupt what its handler does to end.
            return;
        }
        responses.waiting.clear();
        drop(responses);
        self.inbox.put(Event::Cancelled(self.id));
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
