//! What is sent back for a call.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep, sleep_until};
use tokio_stream::Stream;
use tonic::{Code, Status};

use super::call::{Call, Stage};
use super::inbox::Event;
use super::places::Place;

/// How long the refusal of a stream waits for its first request. grpc.aio's clients tell of a stream that ends while they
/// write it as an internal error, not as what it ended with.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);

/// The responses of a call as the network reads them. Dropped before their end, it cancels the call.
pub(super) struct Answer {
    call: Arc<Call>,
    // Until the call's deadline.
    timer: Option<Pin<Box<Sleep>>>,
    // Until a refusal need not wait for a request any more.
    patience: Option<Pin<Box<Sleep>>>,
    ended: bool,
    // Reads the requests of a stream.
    reading: Option<AbortHandle>,
    // Counts it until the last of it is handed on.
    _counted: Place,
}

impl Answer {
    pub(super) fn new(call: Arc<Call>, reading: Option<AbortHandle>, counted: Place) -> Self {
        Self {
            timer: call.deadline.map(|end| Box::pin(sleep_until(end))),
            call,
            patience: None,
            ended: false,
            reading,
            _counted: counted,
        }
    }

    /// Ready when there is something to send; an end without a response is an error, which needs no more than headers.
    pub(super) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let call = self.call.clone();
        let mut responses = call.responses.lock();
        if responses.begun || !responses.waiting.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if let Some(status) = &responses.end {
            if status.code() == Code::Ok {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_patience(context));
            self.ended = true;
            return Poll::Ready(Err(status.clone()));
        }
        responses.sender = Some(context.waker().clone());
        drop(responses);
        self.poll_timer(context).map(Err)
    }

    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut requests = self.call.requests.lock();
        if self.reading.is_none() || requests.stage != Stage::Fresh {
            return Poll::Ready(());
        }
        requests.refuser = Some(context.waker().clone());
        let patience = self
            .patience
            .get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        patience.as_mut().poll(context)
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        match &mut self.timer {
            Some(timer) => timer
                .as_mut()
                .poll(context)
                .map(|()| Status::deadline_exceeded("the deadline of the call has passed")),
            None => Poll::Pending,
        }
    }
}

impl Stream for Answer {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut responses = this.call.responses.lock();
        if let Some(message) = responses.waiting.pop() {
            let room = responses.waiting.has_room() && std::mem::take(&mut responses.writer_waits);
            drop(responses);
            if room {
                this.call.inbox.put(Event::Writable(this.call.id));
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(status) = responses.end.take() {
            this.ended = true;
            let plain = status.code() == Code::Ok && status.metadata().is_empty();
            // Trailers beside a good end go the same way as those beside a bad one.
            return Poll::Ready((!plain).then_some(Err(status)));
        }
        responses.sender = Some(context.waker().clone());
        drop(responses);
        this.poll_timer(context).map(|status| Some(Err(status)))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.ended {
            self.call.cancel();
        }
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}
