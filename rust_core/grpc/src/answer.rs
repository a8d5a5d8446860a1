//! The stream of responses that is sent for a call.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep_until};
use tokio_stream::Stream;
use tonic::{Code, Status};

use super::Shared;
use super::call::Call;
use super::event_queue::Event;

/// The time that the refusal of a stream waits for its first request. grpc.aio's clients report a stream
/// that ends while they write as an internal error, not with its status.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);

/// The responses of a call as the network reads them. A drop before their end cancels the call.
pub(super) struct Answer {
    call: Arc<Call>,
    shared: Arc<Shared>,
    /// Until the call's deadline.
    timer: Option<Pin<Box<Sleep>>>,
    ended: bool,
    /// Reads the requests.
    pub(super) reading: Option<AbortHandle>,
    /// Until a refusal of a stream is sent.
    pub(super) patience: Option<Pin<Box<Sleep>>>,
}

impl Answer {
    pub(super) fn new(call: &Arc<Call>, shared: &Arc<Shared>) -> Self {
        Self {
            timer: call.deadline.map(|end| Box::pin(sleep_until(end))),
            call: call.clone(),
            shared: shared.clone(),
            ended: false,
            reading: None,
            patience: None,
        }
    }

    /// Ready when there is something to send; an end without a response is an error, which needs no more than headers.
    pub(super) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let mut state = self.call.state.lock();
        if state.begun {
            return Poll::Ready(Ok(()));
        }
        match &state.end {
            Some(status) if status.code() == Code::Ok => Poll::Ready(Ok(())),
            Some(status) => {
                let status = status.clone();
                if let (Some(patience), false) = (&mut self.patience, state.came) {
                    ready!(patience.as_mut().poll(context));
                }
                self.ended = true;
                Poll::Ready(Err(status))
            }
            None => {
                state.waker = Some(context.waker().clone());
                drop(state);
                self.poll_timer(context).map(Err)
            }
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let Some(timer) = &mut self.timer else {
            return Poll::Pending;
        };
        let late = &self.shared.options.deadline_exceeded;
        timer.as_mut().poll(context).map(|()| late.clone())
    }
}

impl Stream for Answer {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut state = this.call.state.lock();
        if let Some((message, room)) = state.next_response() {
            drop(state);
            if room {
                this.call.events.put(Event::Writable(this.call.id));
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(status) = state.end.take() {
            this.ended = true;
            let plain = status.code() == Code::Ok && status.metadata().is_empty();
            // Trailers beside a good end go the same way as those beside a bad one.
            return Poll::Ready((!plain).then_some(Err(status)));
        }
        state.waker = Some(context.waker().clone());
        drop(state);
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
        self.call.state.lock().counted = None;
    }
}
