//! A connection before its first request: TLS, and the first bytes of HTTP.
//!
//! Both are read here because tonic waits for them without end: it has no timeout for the preface of HTTP/2, with or
//! without TLS before it, and a silent connection would keep a stopping server from its end.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tonic::transport::server::Connected;

use super::Shared;
use super::tls::Peer;
use super::unix::AuthorityRewriter;

/// For the TLS handshake and the preface: a slow mobile client needs a few seconds.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// The preface that a client of HTTP/2 sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The PING that h2 sends after its first GOAWAY. Its answer is the sign for h2 that the client knows: h2 ignores streams
/// that begin later, and ends the connection by an error where such a stream has a window. But the C core sends the answer
/// before calls that it began earlier, and would lose those and all that run. So a stopping server does not ask.
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0\x0b\x7b\xa2\xf0\x8b\x9b\xfe\x54";

/// The other end of a connection, for its calls.
pub(super) struct Client {
    pub(super) peer: Peer,
    /// Bytes of its unfinished requests.
    pub(super) memory: Arc<Semaphore>,
    /// By kind of calls: those that may run or wait at once, where the kind has such a limit.
    pub(super) turns: Vec<Option<Arc<Semaphore>>>,
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection after its first bytes, for tonic.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were read from the stream and not yet by tonic.
    first: Vec<u8>,
    /// Of a Unix socket.
    rewriter: Option<AuthorityRewriter>,
    client: Arc<Client>,
    stop: watch::Receiver<bool>,
    _counted: Arc<()>,
}

/// Receives connections after their first bytes.
pub(super) type Accepted = mpsc::Sender<io::Result<Connection>>;

/// Hands a new connection to tonic once its client has sent its first bytes, unless the server stops before.
pub(super) async fn open(
    shared: Arc<Shared>,
    stream: Box<dyn Stream>,
    rewriter: Option<AuthorityRewriter>,
    accepted: Accepted,
    mut stop: watch::Receiver<bool>,
) {
    let counted = shared.connections.clone();
    let opened = tokio::select! {
        opened = timeout(HANDSHAKE, handshake(&shared, stream)) => opened,
        _ = stop.wait_for(|stopped| *stopped) => return,
    };
    if let Ok(Ok((stream, first, peer))) = opened {
        let kinds = shared.options.kinds.iter();
        let turns = kinds.map(|kind| Some(Arc::new(Semaphore::new(kind.per_connection?))));
        let client = Client {
            peer,
            memory: shared.memory.connection(),
            turns: turns.collect(),
        };
        let connection = Connection {
            stream,
            // Only HTTP/2 has frames.
            rewriter: rewriter.filter(|_| first == PREFACE),
            first,
            client: Arc::new(client),
            stop,
            _counted: counted,
        };
        // An error tells that the server has stopped.
        let _ = accepted.send(Ok(connection)).await;
    }
}

async fn handshake(
    shared: &Shared,
    mut stream: Box<dyn Stream>,
) -> io::Result<(Box<dyn Stream>, Vec<u8>, Peer)> {
    let mut peer = Peer::default();
    if let Some(acceptor) = &shared.acceptor {
        let secured = acceptor.accept(stream).await?;
        let shown = secured.get_ref().1.peer_certificates();
        peer = shown.and_then(<[_]>::first).map_or(peer, Peer::of);
        stream = Box::new(secured);
    }
    let first = read_first(&mut stream).await?;
    Ok((stream, first, peer))
}

/// Reads the preface of HTTP/2, or other first bytes.
async fn read_first(stream: &mut Box<dyn Stream>) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(PREFACE.len());
    while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
        let left = (PREFACE.len() - first.len()) as u64;
        if (&mut *stream).take(left).read_buf(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(first)
}

impl Connected for Connection {
    type ConnectInfo = Arc<Client>;

    fn connect_info(&self) -> Arc<Client> {
        self.client.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.first.is_empty() {
            let stream = Pin::new(&mut this.stream);
            let Some(rewriter) = &mut this.rewriter else {
                return stream.poll_read(context, into);
            };
            let mut bytes = [0; 4_096];
            let mut part = ReadBuf::new(&mut bytes);
            ready!(stream.poll_read(context, &mut part))?;
            if part.filled().is_empty() {
                // The end. What the rewriter holds is no frame, and nothing without its rest.
                return Poll::Ready(Ok(()));
            }
            rewriter.rewrite(part.filled(), &mut this.first);
        }
        let count = this.first.len().min(into.remaining());
        into.put_slice(&this.first[..count]);
        this.first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if *self.stop.borrow() {
            match bytes.windows(PING.len()).position(|part| part == PING) {
                Some(0) => return Poll::Ready(Ok(PING.len())),
                Some(at) => bytes = &bytes[..at],
                None => (),
            }
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if *self.stop.borrow() {
            let first = parts.iter().find(|part| !part.is_empty());
            return self.poll_write(context, first.map_or(&[], |part| part));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
