//! The body of a request: it must end as its caller ends it, and a message takes memory only with a reservation.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tonic::Status;

use super::limits::{Budget, Reservation};

/// Bytes before each message: a flag, and the length (gRPC over HTTP/2, Length-Prefixed-Message).
const PREFIX: usize = 5;

/// A request's body as it arrives. A message that is not complete in its first frame of data waits for a reservation of
/// its whole length; the bytes after that frame stay in the window of the stream until then.
///
/// tonic takes the reset of a stream for the end of its requests, and hyper one without an error for the end of the body:
/// a request that was cut off would look complete. It is an error here.
pub(super) struct CheckedBody {
    body: tonic::body::Body,
    budget: Arc<Budget>,
    /// Longer messages are refused by their prefix, and need no memory.
    longest: usize,
    message: Message,
    reserving: Option<(Reserving, Bytes)>,
    reservation: Option<Reservation>,
}

type Reserving = Pin<Box<dyn Future<Output = Reservation> + Send>>;

/// The progress of the current message.
#[derive(Default)]
struct Message {
    prefix: [u8; PREFIX],
    have: usize,
    left: usize,
}

impl Message {
    fn length(&self) -> usize {
        let [_, length @ ..] = self.prefix;
        u32::from_be_bytes(length) as usize
    }

    /// Moves over `data`. Returns whether a message ended in it.
    fn advance(&mut self, mut data: &[u8]) -> bool {
        let mut ended = false;
        while !data.is_empty() {
            if self.have < PREFIX {
                self.prefix[self.have] = data[0];
                self.have += 1;
                data = &data[1..];
                if self.have < PREFIX {
                    continue;
                }
                self.left = self.length();
            }
            let taken = self.left.min(data.len());
            self.left -= taken;
            data = &data[taken..];
            if self.left == 0 {
                self.have = 0;
                ended = true;
            }
        }
        ended
    }
}

impl CheckedBody {
    pub(super) fn new(body: tonic::body::Body, budget: Arc<Budget>, longest: usize) -> Self {
        Self {
            body,
            budget,
            longest,
            message: Message::default(),
            reserving: None,
            reservation: None,
        }
    }

    /// Hands `data` on, or begins to wait for memory.
    fn take(&mut self, data: Bytes) -> Option<Bytes> {
        if self.message.advance(&data) {
            self.reservation = None;
        }
        let length = self.message.length();
        if self.message.left == 0 || self.reservation.is_some() || length > self.longest {
            return Some(data);
        }
        let reserved = self.budget.clone().reserve(length as u32);
        self.reserving = Some((Box::pin(reserved), data));
        None
    }
}

impl Body for CheckedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let cut_off = || Status::unavailable("the requests were cut off");
        loop {
            if let Some((reserving, data)) = &mut this.reserving {
                this.reservation = Some(ready!(reserving.as_mut().poll(context)));
                let data = std::mem::take(data);
                this.reserving = None;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                None if this.body.is_end_stream() => return Poll::Ready(None),
                Some(Err(_)) | None => return Poll::Ready(Some(Err(cut_off()))),
            };
            match frame.into_data() {
                Ok(data) => {
                    if let Some(data) = this.take(data) {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(length.to_be_bytes());
        bytes.resize(PREFIX + length as usize, 7);
        bytes
    }

    #[test]
    fn the_end_of_a_message_is_found_however_it_is_cut() {
        let sent = [message(300), message(0), message(1)].concat();
        for piece in [1, 2, 5, 6, 300, 305, sent.len()] {
            let mut at = Message::default();
            let ends = sent.chunks(piece).filter(|part| at.advance(part)).count();
            assert!((1..=3).contains(&ends), "pieces of {piece}");
            assert_eq!((at.have, at.left), (0, 0), "pieces of {piece}");
        }
        let mut at = Message::default();
        assert!(!at.advance(&sent[..304]));
        assert_eq!((at.length(), at.left), (300, 1));
    }
}
