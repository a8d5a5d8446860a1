//! Dispatch of HTTP requests to calls on the queue, and of the calls' answers to responses.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version, header};
use tokio::sync::{Semaphore, SetOnce};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Status, Streaming};
use tower_service::Service;

use super::answer::{Answer, PATIENCE};
use super::call::{AHEAD, AHEAD_BYTES, Call};
use super::checked_body::CheckedBody;
use super::codec::AsBytes;
use super::connection::Client;
use super::event_queue::Event;
use super::headers::{check_size, encoding, is_grpc, timeout};
use super::limits::Budget;
use super::{Options, Shared};

/// The time that the request of a call may take to arrive: the largest comes in that by half a megabit a second.
const REQUEST: Duration = Duration::from_secs(60);
/// The largest request of a method outside the table of methods, such as reflection's, whose requests are names.
const OTHERS_BYTES: usize = 64 << 10;

/// Answers every path: the service that tonic serves.
#[derive(Clone)]
pub(super) struct Dispatcher(pub(super) Arc<Shared>);

impl Service<Request<Body>> for Dispatcher {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // tonic's own timer starts after this, so that the status of a passed deadline is ours, with its details.
        let came = Instant::now();
        let shared = self.0.clone();
        Box::pin(async move { Ok(dispatch(shared, came, request).await) })
    }
}

async fn dispatch(shared: Arc<Shared>, came: Instant, request: Request<Body>) -> Response<Body> {
    if request.version() < Version::HTTP_2 {
        let text = "This port speaks gRPC, which needs HTTP/2; the request came by HTTP/1.\n";
        let response = Response::builder().status(StatusCode::BAD_REQUEST);
        return response
            .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
            .header(header::CONNECTION, "close")
            .body(Body::new(text.to_owned()))
            .unwrap_or_default();
    }
    let headers = request.headers();
    if request.method() != Method::POST || !is_grpc(headers) {
        let response = Response::builder().status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return response.body(Body::empty()).unwrap_or_default();
    }
    if let Err(status) = check_size(headers) {
        return status.into_http();
    }
    let Some(client) = request.extensions().get::<Arc<Client>>().cloned() else {
        return Status::internal("the connection is unknown").into_http();
    };
    let path = request.uri().path().to_owned();
    let known = shared.options.methods.contains_key(&path);
    let most = if known { usize::MAX } else { OTHERS_BYTES };
    let longest = shared.options.max_message_bytes.min(most);
    let mut grpc = Grpc::new(AsBytes)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
        .max_decoding_message_size(longest);
    if let Some(encoding) = encoding(headers) {
        grpc = grpc.send_compressed(encoding);
    }
    let budget = Arc::new(Budget {
        memory: shared.memory.clone(),
        connection: client.memory.clone(),
        principal: SetOnce::new(),
    });
    let opening = Opening {
        path,
        client,
        shared,
        came,
        budget: budget.clone(),
    };
    let request = request.map(|body| CheckedBody::new(body, budget, longest));
    grpc.streaming(opening, request).await
}

impl Shared {
    /// Waits for the call's turn on its connection, then takes a place among those of its kind.
    async fn admit(&self, call: &Call) -> Result<(), Status> {
        let counted = self.calls.clone();
        let turn = match &call.client.turns[call.kind] {
            None => None,
            // An error of the semaphore tells that it is closed, which it never is.
            Some(turns) => self
                .in_time(call.deadline, turns.clone().acquire_owned())
                .await?
                .ok(),
        };
        let refusals = &self.options.kinds[call.kind].refusals;
        let place = self.places[call.kind].take(refusals)?;
        call.admit((place, turn), counted);
        Ok(())
    }

    /// Refuses a call that would find no place at present, unless others of its connection are before it.
    fn check_room(&self, call: &Call) -> Result<(), Status> {
        let turns = call.client.turns[call.kind].as_ref();
        if turns.is_none_or(|turns| turns.available_permits() > 0) {
            drop(self.places[call.kind].take(&self.options.kinds[call.kind].refusals)?);
        }
        Ok(())
    }

    async fn in_time<T>(
        &self,
        end: Option<Instant>,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Status> {
        match end {
            None => Ok(waiting.await),
            Some(end) => timeout_at(end, waiting)
                .await
                .map_err(|_| self.options.deadline_exceeded.clone()),
        }
    }
}

/// A call before its answer.
#[derive(Clone)]
struct Opening {
    path: String,
    client: Arc<Client>,
    shared: Arc<Shared>,
    came: Instant,
    budget: Arc<Budget>,
}

impl StreamingService<Bytes> for Opening {
    type Response = Bytes;
    type ResponseStream = Answer;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Answer>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let opening = self.clone();
        Box::pin(async move {
            let (metadata, _, requests) = request.into_parts();
            let shared = opening.shared.clone();
            let (call, unary) = opening.call(metadata)?;
            let begun = if unary {
                begin_unary(&shared, &call, requests).await
            } else {
                begin_streaming(&shared, &call, requests).await
            };
            let mut answer = begun.map_err(|status| shared.identified(status, &call.metadata))?;
            shared.events.put(Event::Opened(call));
            poll_fn(|context| answer.poll_begun(context)).await?;
            Ok(tonic::Response::new(answer))
        })
    }
}

impl Opening {
    /// The call, and whether its method takes one request.
    fn call(self, metadata: MetadataMap) -> Result<(Arc<Call>, bool), Status> {
        let Options { methods, kinds, .. } = &self.shared.options;
        let method = methods.get(&self.path).copied().unwrap_or_default();
        let others = kinds.len() - 1;
        let kind = method.kind.map_or(others, |kind| kind.min(others));
        if kinds[kind].open {
            self.budget.accept("");
        }
        let call = Call {
            id: self.shared.next_id(),
            path: self.path,
            deadline: timeout(metadata.as_ref())?.map(|left| self.came + left),
            metadata,
            kind,
            client: self.client,
            budget: self.budget,
            events: self.shared.events.clone(),
            state: parking_lot::Mutex::default(),
        };
        Ok((Arc::new(call), method.unary))
    }
}

/// A request that arrives with its headers takes a place before its call is put on the queue. The rest of any other one
/// is read after the check of its caller's credentials, and takes a place only then: a request that never arrives
/// completely keeps no place from others.
async fn begin_unary(
    shared: &Arc<Shared>,
    call: &Arc<Call>,
    requests: Streaming<Bytes>,
) -> Result<Answer, Status> {
    let mut reading = Box::pin(only(requests));
    if let Poll::Ready(message) =
        poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await
    {
        let message = message?;
        shared.admit(call).await?;
        call.put(message, None);
        call.put_end();
        return Ok(Answer::new(call, shared));
    }
    shared.check_room(call)?;
    let mut answer = Answer::new(call, shared);
    let (shared, call) = (shared.clone(), call.clone());
    let rest = tokio::spawn(async move {
        let latest = Instant::now() + REQUEST;
        let end = call.deadline.map_or(latest, |end| end.min(latest));
        let admitted = async {
            let message = shared.in_time(Some(end), reading).await??;
            shared.admit(&call).await?;
            Ok(message)
        };
        match admitted.await {
            Ok(message) => {
                call.put(message, None);
                call.put_end();
            }
            Err(status) => call.refuse(shared.identified(status, &call.metadata)),
        }
    });
    answer.reading = Some(rest.abort_handle());
    Ok(answer)
}

async fn begin_streaming(
    shared: &Arc<Shared>,
    call: &Arc<Call>,
    requests: Streaming<Bytes>,
) -> Result<Answer, Status> {
    if let Err(status) = shared.admit(call).await {
        sleep(PATIENCE).await;
        return Err(status);
    }
    let mut answer = Answer::new(call, shared);
    answer.patience = Some(Box::pin(sleep(PATIENCE)));
    answer.reading = Some(tokio::spawn(read_on(call.clone(), requests)).abort_handle());
    Ok(answer)
}

/// The request of a method that takes one.
async fn only(mut requests: Streaming<Bytes>) -> Result<Bytes, Status> {
    let message = requests.message().await.map_err(known)?;
    let more = requests.message().await.map_err(known)?;
    match (message, more) {
        (Some(message), None) => Ok(message),
        // The code that gRPC's table of status codes has for it.
        (None, _) => Err(Status::unimplemented(
            "the method takes one request, none came",
        )),
        (_, Some(_)) => Err(Status::unimplemented(
            "the method takes one request, more came",
        )),
    }
}

/// Takes the requests of a stream as they are read.
async fn read_on(call: Arc<Call>, mut requests: Streaming<Bytes>) {
    let room = Arc::new(Semaphore::new(AHEAD_BYTES));
    loop {
        match requests.message().await {
            Ok(Some(message)) => {
                let weight = message.len().clamp(AHEAD_BYTES / AHEAD, AHEAD_BYTES);
                let share = room.clone().acquire_many_owned(weight as u32).await;
                call.put(message, share.ok());
            }
            Ok(None) => return call.put_end(),
            Err(status) => return call.refuse(known(status)),
        }
    }
}

/// The codes and first words of other gRPC servers, by which clients recognise a message that is too large.
fn known(status: Status) -> Status {
    match status.code() {
        // Of one that is too large once it is unpacked: the second.
        Code::OutOfRange | Code::ResourceExhausted => Status::resource_exhausted(format!(
            "Received message larger than max: {}",
            status.message()
        )),
        // A message cut off, or flagged as compressed without saying how.
        Code::Internal | Code::Unknown => Status::invalid_argument(status.message()),
        _ => status,
    }
}
