//! A request of HTTP as a call of gRPC, and the call's answer as the response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Status, Streaming};

use super::Shared;
use super::answer::{Answer, PATIENCE};
use super::call::{Call, Client};
use super::codec::AsBytes;
use super::headers::{check_size, identified, timeout};
use super::inbox::Event;
use super::places::Place;
use super::whole::Whole;

/// Content types of gRPC begin so.
const CONTENT_TYPE: &[u8] = b"application/grpc";
/// How long the one request of a call may take to arrive: the largest comes in that by half a megabit a second.
const REQUEST: Duration = Duration::from_secs(60);
/// The largest request of a method that is answered to anybody.
const OTHERS_BYTES: usize = 64 << 10;

/// Answers a request. What is no call of gRPC is told so in HTTP's words.
pub(super) async fn exchange(
    shared: Arc<Shared>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let fitting = content_type.is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE));
    if request.method() != Method::POST || !fitting {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Ok(response);
    }
    if let Err(status) = check_size(request.headers()) {
        return Ok(status.into_http());
    }
    let path = request.uri().path().to_owned();
    let mut grpc = Grpc::new(AsBytes)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
        .max_decoding_message_size(shared.most_bytes(&path));
    let handing = Handing {
        opening: Some(Opening {
            path,
            client,
            shared,
        }),
    };
    Ok(grpc.streaming(handing, request.map(Whole)).await)
}

impl Shared {
    /// How large a request may be: of a method that is not known here, such as reflection's, as names are.
    fn most_bytes(&self, path: &str) -> usize {
        if self.options.methods.contains_key(path) {
            self.options.max_message_bytes
        } else {
            OTHERS_BYTES.min(self.options.max_message_bytes)
        }
    }

    /// A place for a call among those of its kind, or of none; or what it is told.
    fn admit(&self, room: Option<usize>) -> Result<Place, Status> {
        match room.and_then(|room| self.rooms.get(room)) {
            Some(room) => room.take(),
            None => self
                .others
                .take()
                .ok_or_else(|| Status::resource_exhausted("the server has no room for more calls")),
        }
    }

    fn refusal(&self, status: Status, metadata: &MetadataMap) -> Status {
        identified(status, metadata.as_ref(), || {
            format!("{}-r{:x}", self.options.id_prefix, self.next_id())
        })
    }
}

struct Opening {
    path: String,
    client: Client,
    shared: Arc<Shared>,
}

/// Hands one call over to who answers.
struct Handing {
    opening: Option<Opening>,
}

impl StreamingService<Bytes> for Handing {
    type Response = Bytes;
    type ResponseStream = Answer;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<tonic::Response<Answer>, Status>> + Send + 'static>,
    >;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let opening = self.opening.take();
        Box::pin(async move {
            let opening = opening.ok_or_else(|| Status::internal("the call was answered"))?;
            let (metadata, _, requests) = request.into_parts();
            opening.answer(metadata, requests).await
        })
    }
}

impl Opening {
    async fn answer(
        self,
        metadata: MetadataMap,
        mut requests: Streaming<Bytes>,
    ) -> Result<tonic::Response<Answer>, Status> {
        let deadline = timeout(metadata.as_ref())?.map(|left| Instant::now() + left);
        let method = self.shared.options.methods.get(&self.path);
        let message = match method {
            Some(method) if method.unary => Some(in_time(deadline, only(&mut requests)).await?),
            _ => None,
        };
        // Only now: a request that never comes whole would keep its place from others.
        let place = match self.shared.admit(method.and_then(|method| method.room)) {
            Ok(place) => place,
            Err(status) => {
                if message.is_none() {
                    sleep(PATIENCE).await;
                }
                return Err(self.shared.refusal(status, &metadata));
            }
        };
        let counted = self.shared.calls.count();
        let call = Arc::new(Call::new(
            self.shared.next_id(),
            self.path,
            metadata,
            deadline,
            self.client,
            self.shared.inbox.clone(),
            place,
        ));
        let reading = match message {
            Some(message) => {
                call.put(message);
                call.put_end();
                None
            }
            None => Some(tokio::spawn(read_on(call.clone(), requests)).abort_handle()),
        };
        let mut answer = Answer::new(call.clone(), reading, counted);
        self.shared.inbox.put(Event::Opened(call));
        poll_fn(|context| answer.poll_begun(context)).await?;
        Ok(tonic::Response::new(answer))
    }
}

/// What `reading` finds before the deadline, or within [`REQUEST`].
async fn in_time(
    deadline: Option<Instant>,
    reading: impl Future<Output = Result<Bytes, Status>>,
) -> Result<Bytes, Status> {
    let latest = Instant::now() + REQUEST;
    timeout_at(deadline.map_or(latest, |end| end.min(latest)), reading)
        .await
        .unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(
                "the request did not come in time",
            ))
        })
}

/// The request of a method that takes one.
async fn only(requests: &mut Streaming<Bytes>) -> Result<Bytes, Status> {
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

/// Takes the requests of a stream in as they are read.
async fn read_on(call: Arc<Call>, mut requests: Streaming<Bytes>) {
    loop {
        poll_fn(|context| call.poll_room(context)).await;
        match requests.message().await {
            Ok(Some(message)) => call.put(message),
            Ok(None) => return call.put_end(),
            Err(status) => return call.refuse(known(status)),
        }
    }
}

/// The codes, and the first words, that gRPC's other servers answer with: clients know a large message by them.
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
