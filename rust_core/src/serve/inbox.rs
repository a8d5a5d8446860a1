//! What happened to calls, for the thread that answers them: a queue, and a descriptor that is readable when it is not
//! empty, which an event loop can wait for beside all else that it waits for.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bell::Bell;
use super::call::Call;

/// Something that the answering thread has to know.
pub enum Event {
    /// A call came, with its request where its method takes one.
    Opened(Arc<Call>),
    /// The call has a request, or the end of them, for one who found none.
    Readable(u64),
    /// The call takes responses again, for one who found it full.
    Writable(u64),
    /// Nobody waits for the call's answer any more: its caller gave up, or went away, or its time is over.
    Cancelled(u64),
}

/// The queue of events. Any thread puts some in, one takes them out.
pub(super) struct Inbox {
    events: Mutex<Vec<Event>>,
    bell: Bell,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            events: Mutex::default(),
            bell: Bell::new()?,
        })
    }

    /// Becomes readable when there is something to take.
    pub(super) fn descriptor(&self) -> RawFd {
        self.bell.descriptor()
    }

    pub(super) fn put(&self, event: Event) {
        let mut events = self.events.lock();
        let first = events.is_empty();
        events.push(event);
        drop(events);
        if first {
            self.bell.ring();
        }
    }

    /// All that happened since, in its order.
    pub(super) fn take(&self) -> Vec<Event> {
        // What is put in after this and before the lock is taken rings for nothing: a look in vain.
        self.bell.still();
        std::mem::take(&mut *self.events.lock())
    }
}
