//! Events of calls for the answering thread: a queue, and a descriptor that is readable while the queue is not empty, for
//! an event loop to watch.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::call::Call;
use super::notifier::Notifier;

/// An event of a call.
pub enum Event {
    /// A call came, with its request where that arrived with its headers.
    Opened(Arc<Call>),
    /// The call has a request, or the end of them, for one who found none.
    Readable(u64),
    /// The call takes responses again, for one who found it full.
    Writable(u64),
    /// Nobody waits for the call's answer any more: its caller gave up, or went away, or its time is over.
    Cancelled(u64),
}

/// The queue of events. Any thread puts some in, one takes them out.
pub(super) struct EventQueue {
    events: Mutex<Vec<Event>>,
    /// Readable while there is something to take.
    pub(super) notifier: Notifier,
}

impl EventQueue {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            events: Mutex::default(),
            notifier: Notifier::new()?,
        })
    }

    pub(super) fn put(&self, event: Event) {
        let mut events = self.events.lock();
        let first = events.is_empty();
        events.push(event);
        drop(events);
        if first {
            self.notifier.notify();
        }
    }

    /// All that happened since, in its order.
    pub(super) fn take(&self) -> Vec<Event> {
        // An event that is put in after this and before the lock is taken notifies for nothing.
        self.notifier.clear();
        std::mem::take(&mut *self.events.lock())
    }
}
