//! The body of a request, which ends well only where its caller says that it is whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tonic::Status;

/// A body as it comes. tonic takes the reset of a stream for the end of its requests, and hyper one without an error for
/// the end of the body: what was cut off would look whole to who reads it.
pub(super) struct Whole(pub(super) Incoming);

impl Body for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let cut_off = || Status::unavailable("the requests were cut off");
        Pin::new(&mut self.0)
            .poll_frame(context)
            .map(|frame| match frame {
                Some(frame) => Some(frame.map_err(|_| cut_off())),
                None if self.0.is_end_stream() => None,
                None => Some(Err(cut_off())),
            })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
