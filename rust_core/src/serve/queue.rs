//! Messages that wait to be taken: few, and not large together.

use std::collections::VecDeque;

use bytes::Bytes;

/// Requests that are read ahead of who handles them, and responses that wait for the network. Enough that neither side
/// waits for each of the other's turns; what more a caller sends stays in its own buffers.
const AHEAD: usize = 32;
/// Together they may be this large, or one larger: as much as a stream may send unread. A count alone would let a caller
/// fill the memory by few kilobytes that are large once unpacked.
const AHEAD_BYTES: usize = 128 << 10;

/// A queue that tells whether there is room for another message.
#[derive(Default)]
pub(super) struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.messages.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < AHEAD && self.bytes < AHEAD_BYTES
    }
}
