//! Streams of responses.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tonic::{Response, Streaming};

use crate::calls::lost_connection;
use crate::error::Error;

/// The responses of a stream, as they come; the call ends when it is dropped.
#[derive(Debug)]
pub struct Responses<T> {
    stream: Streaming<T>,
}

impl<T> Responses<T> {
    pub(crate) fn new(response: Response<Streaming<T>>) -> Self {
        Self {
            stream: response.into_inner(),
        }
    }

    /// The next response; `None` at the end.
    ///
    /// # Errors
    ///
    /// The call failed.
    pub async fn message(&mut self) -> Result<Option<T>, Error> {
        self.stream
            .message()
            .await
            .map_err(|status| lost_connection(status).into())
    }
}

impl<T> Stream for Responses<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.stream)
            .poll_next(context)
            .map(|next| next.map(|outcome| outcome.map_err(|status| lost_connection(status).into())))
    }
}
