//! A gRPC server whose methods are answered by another thread, which is Python's.
//!
//! gRPC's own server for Python spends more on a call than a recall takes: a thread that polls, a lock that it shares with
//! the one that answers, and an object for every step. Here one thread does all that is HTTP/2, TLS and gRPC's framing
//! (hyper, h2, rustls and tonic, on tokio), and hands over a call once there is something to do about it. What it hands
//! over, and how it is told of answers, are plain methods of [`Call`]; neither thread waits for the other. A thread that has
//! nothing else to do sends its answer itself, and the connection's other calls are its own for as long (`drive`).

mod answer;
mod bell;
mod call;
mod codec;
mod connection;
mod corked;
mod drive;
mod exchange;
mod headers;
mod inbox;
mod listen;
mod places;
mod queue;
mod tls;
mod unix;
mod whole;

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tonic::Status;

pub use call::{Call, Next};
pub use inbox::Event;
use inbox::Inbox;
use listen::Listener;
use places::{Places, Room};
pub use tls::{Identity, Peer};

/// What a server allows, and whom it trusts.
pub struct Options {
    /// Of one request.
    pub max_message_bytes: usize,
    /// Calls at once of methods that are of no kind.
    pub max_others: usize,
    /// After which a connection takes no more calls, so that its client looks for a server anew.
    pub max_connection_age: Option<Duration>,
    /// How often a connection is asked whether it is alive.
    pub keepalive: Duration,
    /// How long it may take to say so.
    pub keepalive_timeout: Duration,
    /// By path.
    pub methods: HashMap<String, Method>,
    /// Kinds of calls.
    pub rooms: Vec<RoomOptions>,
    /// What ids of refused calls begin with, whose callers gave none.
    pub id_prefix: String,
    /// None: plain text.
    pub identity: Option<Identity>,
}

/// What is known of a method before it is answered.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// It takes one request, which is waited for before the call is handed over.
    pub unary: bool,
    /// Of which kind its calls are, by its place among the rooms.
    pub room: Option<usize>,
}

/// How many calls of a kind there may be, and what the others are told: at once, by the thread of the network, since what
/// refusing them costs the one that answers is missing there.
pub struct RoomOptions {
    /// Calls that run or wait.
    pub most: usize,
    /// Answers to take turns with, such as times to come again that differ.
    pub refusals: Vec<Status>,
}

struct Shared {
    options: Options,
    rooms: Vec<Room>,
    acceptor: Option<TlsAcceptor>,
    inbox: Arc<Inbox>,
    // Of methods of no kind.
    others: Places,
    // Of which something may have to be sent.
    calls: Places,
    connections: Places,
    ids: AtomicU64,
}

impl Shared {
    /// From 0.9 to 1.1, another number for each connection: those that came together do not leave together. Multiples of
    /// the golden ratio fall evenly.
    fn spread(&self) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        0.9 + 0.2 * (self.next_id() as f64 * GOLDEN).fract()
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

/// A server: bound, then started, then stopped, then closed.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    stop: watch::Sender<bool>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    /// A server that does not listen yet.
    pub fn new(options: Options) -> io::Result<Self> {
        let acceptor = match &options.identity {
            None => None,
            Some(identity) => Some(
                identity
                    .acceptor()
                    .map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))?,
            ),
        };
        let shared = Shared {
            acceptor,
            rooms: options.rooms.iter().map(Room::new).collect(),
            inbox: Arc::new(Inbox::new()?),
            others: Places::new(options.max_others),
            calls: Places::new(usize::MAX),
            connections: Places::new(usize::MAX),
            ids: AtomicU64::new(1),
            options,
        };
        Ok(Self {
            shared: Arc::new(shared),
            listeners: Vec::new(),
            stop: watch::channel(false).0,
            running: None,
        })
    }

    /// Binds `host:port` or `unix:path`; returns the port, which the system chooses where it is 0.
    pub fn bind(&mut self, target: &str) -> io::Result<u16> {
        let (listeners, port) = listen::bind(target)?;
        self.listeners.extend(listeners);
        Ok(port)
    }

    /// Takes connections in, on a thread of its own.
    pub fn start(&mut self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (shared, stop) = (self.shared.clone(), self.stop.subscribe());
        let listeners = std::mem::take(&mut self.listeners);
        let (close, closed) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("astrocyte-grpc".to_owned())
            .spawn(move || {
                for listener in listeners {
                    runtime.spawn(connection::listen(shared.clone(), listener, stop.clone()));
                }
                // Sent, or dropped with the server: either ends it.
                let _ = runtime.block_on(closed);
            })?;
        self.running = Some((close, thread));
        Ok(())
    }

    /// Readable when there are events.
    pub fn descriptor(&self) -> RawFd {
        self.shared.inbox.descriptor()
    }

    /// What happened since this was asked last.
    pub fn take(&self) -> Vec<Event> {
        self.shared.inbox.take()
    }

    /// Calls and connections there are.
    pub fn busy(&self) -> (usize, usize) {
        (self.shared.calls.taken(), self.shared.connections.taken())
    }

    /// Takes no more connections in, and asks clients to begin no more calls; those that run go on.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends everything; waits for the thread.
    pub fn close(&mut self) {
        if let Some((close, thread)) = self.running.take() {
            let _ = close.send(());
            let _ = thread.join();
            // A call that nobody took would keep the queue that it is in.
            drop(self.shared.inbox.take());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}
