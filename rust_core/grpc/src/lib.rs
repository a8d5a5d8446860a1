//! A gRPC server whose calls are answered by another thread, which is Python's.
//!
//! One thread runs `tonic::transport::Server` on tokio: HTTP/2, TLS, gRPC's framing, and the refusals that need no answer of
//! Python's. It puts each call on a queue of events. The answering thread takes events from the queue and answers a [`Call`]
//! by plain methods; neither thread waits for the other.
//!
//! tonic lacks some parts, which are here: timeouts before a connection's first request (`connection`), counted
//! connections, several listening sockets (`listener`), the `:authority` that gRPC's C core sends to a Unix socket
//! (`unix`), limits by kind of call and memory for unfinished requests (`limits`), and ages of connections that differ.

mod answer;
mod call;
mod checked_body;
mod codec;
mod connection;
mod dispatch;
mod event_queue;
mod headers;
mod limits;
mod listener;
mod notifier;
mod tls;
mod unix;

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::metadata::MetadataMap;

pub use call::{Call, Next};
use connection::Accepted;
use dispatch::Dispatcher;
pub use event_queue::Event;
use event_queue::EventQueue;
use limits::{Places, RequestMemory};
use listener::Listener;
pub use tls::{Identity, Peer};

/// Calls that a client may reset before the server looked at them. A client whose deadlines pass resets as many as it has
/// under way at once; without an end, resets would be a cheap way to keep the server busy (CVE-2023-44487).
const RESETS: usize = 1_024;
/// h2 answers larger headers with an HTTP status. Below, `headers` refuses with a gRPC status.
const MOST_HEADERS: u32 = 256 << 10;
/// Bytes that a stream, and a connection, may send ahead of who reads them. h2 ends a connection on which too many small
/// frames wait: of each it counts what it lacks of 256 bytes, up to half of the connection's window. So that no stream
/// can get there alone, 128 KiB of the smallest messages, of 5 bytes, have to stay below that: 6.3 MiB.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Connections live from .9 to 1.1 of the largest age, so that those that came together do not leave together. A server of
/// tonic's has one age for all its connections: there is a server for each of so many ages.
const AGES: u32 = 8;
/// The queue of connections for tonic, which takes them at its next turn.
const BACKLOG: usize = 16;

/// Limits, methods and certificates of a server.
pub struct Options {
    /// Largest request in bytes.
    pub max_message_bytes: usize,
    /// Calls at once of methods that are not in `methods`, or have no kind.
    pub max_others: usize,
    /// After which a connection takes no more calls, so that its client connects anew; None: never.
    pub max_connection_age: Option<Duration>,
    /// The interval between pings of a connection.
    pub keepalive: Duration,
    /// The time that a ping may stay unanswered.
    pub keepalive_timeout: Duration,
    /// By path.
    pub methods: HashMap<String, Method>,
    /// Kinds of calls.
    pub kinds: Vec<KindOptions>,
    /// Status of a call whose deadline passed, or whose request did not arrive in time.
    pub deadline_exceeded: Status,
    /// Prefix of the ids of refused calls whose callers gave none.
    pub id_prefix: String,
    /// None: plain text.
    pub identity: Option<Identity>,
}

/// A method, for what precedes its answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Method {
    /// It takes one request; the call is put on the queue with it where it comes at once.
    pub unary: bool,
    /// Index of the kind of its calls; None is a kind of its own, open to anybody.
    pub kind: Option<usize>,
}

/// A kind of calls: its limit, and the refusals that the network thread sends beyond it.
pub struct KindOptions {
    /// Calls that run or wait.
    pub places: usize,
    /// Calls of one connection that run or wait; more of them stay unread in the network's thread until one of these has
    /// ended. None: a call without a place is refused at once.
    pub per_connection: Option<usize>,
    /// Its requests are taken without a check of credentials.
    pub open: bool,
    /// Statuses for refused calls, in turn: their times to retry after differ.
    pub refusals: Vec<Status>,
}

struct Shared {
    /// The last kind is of calls of no kind.
    options: Options,
    /// By kind.
    places: Vec<Places>,
    memory: Arc<RequestMemory>,
    acceptor: Option<TlsAcceptor>,
    events: Arc<EventQueue>,
    /// Cloned by each call for which something may have to be sent, and by each connection.
    calls: Arc<()>,
    connections: Arc<()>,
    ids: AtomicU64,
}

impl Shared {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// `status` with the id of the call: the caller's, which is in `metadata`, or a new one.
    fn identified(&self, status: Status, metadata: &MetadataMap) -> Status {
        let made = format!("{}-r{:x}", self.options.id_prefix, self.next_id());
        headers::identified(status, metadata.as_ref(), &made)
    }
}

/// A server: bound, then started, then stopped, then closed.
pub struct Server {
    shared: Arc<Shared>,
    /// Until the server starts.
    runtime: Option<Runtime>,
    listeners: Vec<Listener>,
    stop: watch::Sender<bool>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    /// A server that does not listen yet.
    pub fn new(mut options: Options) -> io::Result<Self> {
        let acceptor = options.identity.as_ref().map(Identity::acceptor);
        options.kinds.push(KindOptions {
            places: options.max_others,
            per_connection: None,
            open: true,
            refusals: Vec::new(),
        });
        let shared = Shared {
            acceptor: acceptor.transpose()?,
            places: options.kinds.iter().map(Places::new).collect(),
            memory: Arc::new(RequestMemory::new(options.max_message_bytes)),
            events: Arc::new(EventQueue::new()?),
            calls: Arc::default(),
            connections: Arc::default(),
            ids: AtomicU64::new(1),
            options,
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Ok(Self {
            shared: Arc::new(shared),
            runtime: Some(runtime.enable_all().build()?),
            listeners: Vec::new(),
            stop: watch::channel(false).0,
            running: None,
        })
    }

    /// Binds `host:port` or `unix:path`; returns the port, which the system chooses where it is 0. With `shared`, other
    /// processes may listen at the same port.
    pub fn bind(&mut self, target: &str, shared: bool) -> io::Result<u16> {
        let _inside = self.runtime.as_ref().map(Runtime::enter);
        let (listeners, port) = listener::bind(target, shared)?;
        self.listeners.extend(listeners);
        Ok(port)
    }

    /// Accepts connections, on a thread of its own.
    pub fn start(&mut self) -> io::Result<()> {
        let Some(runtime) = self.runtime.take() else {
            return Ok(());
        };
        let (shared, stop) = (self.shared.clone(), self.stop.subscribe());
        let listeners = std::mem::take(&mut self.listeners);
        let (close, closed) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("astrocyte-grpc".to_owned())
            .spawn(move || {
                let _inside = runtime.enter();
                let servers = serve(&shared, &stop);
                for listener in listeners {
                    tokio::spawn(listener.serve(shared.clone(), servers.clone(), stop.clone()));
                }
                // Sent, or dropped with the server: either ends it.
                let _ = runtime.block_on(closed);
            })?;
        self.running = Some((close, thread));
        Ok(())
    }

    /// A descriptor that is readable while there are events.
    pub fn descriptor(&self) -> RawFd {
        self.shared.events.notifier.descriptor()
    }

    /// The events since the last call of this method.
    pub fn take(&self) -> Vec<Event> {
        self.shared.events.take()
    }

    /// Numbers of calls and connections.
    pub fn busy(&self) -> (usize, usize) {
        let others = |counted| Arc::strong_count(counted) - 1;
        (others(&self.shared.calls), others(&self.shared.connections))
    }

    /// Closes the listening sockets and sends GOAWAY on every connection. Calls that run go on.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends everything; waits for the thread.
    pub fn close(&mut self) {
        if let Some((close, thread)) = self.running.take() {
            let _ = close.send(());
            let _ = thread.join();
            // A call that nobody took would keep the queue that it is in.
            drop(self.shared.events.take());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Starts tonic's servers, one for each age, on the current runtime.
fn serve(shared: &Arc<Shared>, stop: &watch::Receiver<bool>) -> Vec<Accepted> {
    let options = &shared.options;
    // A connection can use all places there are; its client keeps further calls back.
    let streams = options.kinds.iter().map(|kind| kind.places).sum::<usize>();
    let ages = options.max_connection_age.map_or(1, |_| AGES);
    (0..ages)
        .map(|number| {
            let mut server = tonic::transport::Server::builder()
                // So that a client of HTTP/1.1 is told what is wrong.
                .accept_http1(true)
                .max_concurrent_streams(streams as u32)
                .http2_max_pending_accept_reset_streams(Some(RESETS.max(streams)))
                .http2_max_header_list_size(MOST_HEADERS)
                .http2_keepalive_interval(Some(options.keepalive))
                .http2_keepalive_timeout(Some(options.keepalive_timeout))
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            if let Some(age) = options.max_connection_age {
                let spread = 0.9 + 0.2 * f64::from(number) / f64::from(AGES - 1);
                server = server.max_connection_age(age.mul_f64(spread));
            }
            let (accepted, connections) = mpsc::channel(BACKLOG);
            let mut stop = stop.clone();
            tokio::spawn(server.serve_with_incoming_shutdown(
                Dispatcher(shared.clone()),
                ReceiverStream::new(connections),
                async move {
                    // An error tells that the server is gone.
                    let _ = stop.wait_for(|stopped| *stopped).await;
                },
            ));
            accepted
        })
        .collect()
}
