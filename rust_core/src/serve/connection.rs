//! One connection from its first byte to its last, and the loop that takes new ones in.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Shared;
use super::call::Client;
use super::corked::Corked;
use super::drive::Drive;
use super::exchange::exchange;
use super::listen::Listener;
use super::tls::Peer;
use super::unix::Authorities;

/// A handshake that takes longer is given up: nobody is known yet who could be told.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// When the system takes no connection, mostly for want of descriptors: until some may have been closed.
const REST: Duration = Duration::from_millis(50);
/// Calls that a client may reset before they were looked at. A crowd whose deadlines pass resets as many as it has
/// under way at once; without an end, resets would be a cheap way to keep the server busy (CVE-2023-44487).
const RESETS: usize = 1_024;
/// Beyond so many bytes of headers h2 answers in HTTP's words. Below, we do in gRPC's.
const MOST_HEADERS: u32 = 256 << 10;
/// Calls at once on one connection; a client keeps more of them back. Answers that it does not take stay in memory.
const STREAMS: u32 = 1_024;
/// Bytes of what a client says first (RFC 9113, section 3.4).
const PREFACE: usize = 24;
/// Bytes that a stream, and a connection, may send ahead of who reads them. h2 ends a connection on which too many small
/// frames wait: of each it counts what it lacks of 256 bytes, up to half of the connection's window. So that no stream
/// can get there alone, 128 KiB of the smallest messages, of 5 bytes, have to stay below that: 6.3 MiB.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Takes connections in until the server stops.
pub(super) async fn listen(shared: Arc<Shared>, listener: Listener, stop: watch::Receiver<bool>) {
    match listener {
        Listener::Tcp(listener) => {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            accept(&shared, stop, || async {
                let (stream, _) = listener.accept().await?;
                // An answer is one write, which must not wait for the acknowledgement of another.
                stream.set_nodelay(true)?;
                Ok(stream)
            })
            .await;
        }
        Listener::Unix(listener, file) => {
            let Ok(listener) = UnixListener::from_std(listener) else {
                return;
            };
            accept(&shared, stop, || async {
                let (stream, _) = listener.accept().await?;
                Ok(Authorities::new(stream, &file.0))
            })
            .await;
        }
    }
}

async fn accept<S, F>(shared: &Arc<Shared>, mut stop: watch::Receiver<bool>, next: impl Fn() -> F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = std::io::Result<S>>,
{
    loop {
        let stream = tokio::select! {
            stream = next() => stream,
            _ = stop.changed() => return,
        };
        match stream {
            Ok(stream) => {
                tokio::spawn(secure(shared.clone(), stream, stop.clone()));
            }
            Err(_) => sleep(REST).await,
        }
    }
}

/// Shakes hands where the server has a certificate, then serves.
async fn secure<S>(shared: Arc<Shared>, stream: S, stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(_place) = shared.connections.take() else {
        return;
    };
    let Some(acceptor) = shared.acceptor.clone() else {
        return serve(shared, stream, Peer::default(), stop).await;
    };
    if let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await {
        let shown = stream.get_ref().1.peer_certificates();
        let peer = shown
            .and_then(<[_]>::first)
            .map(Peer::of)
            .unwrap_or_default();
        serve(shared, stream, peer, stop).await;
    }
}

/// The connection of a client that speaks HTTP/2, as it was before that was known. hyper would wait for the first words
/// without end, and for the end of it too where the server stops.
async fn greeted<S>(mut stream: S, stop: &mut watch::Receiver<bool>) -> Option<Corked<S>>
where
    S: AsyncRead + Unpin,
{
    let mut first = [0; PREFACE];
    let heard = tokio::select! {
        heard = timeout(HANDSHAKE, stream.read_exact(&mut first)) => heard,
        _ = stop.wait_for(|stopped| *stopped) => return None,
    };
    // What speaks another protocol is for hyper to answer.
    heard.ok()?.ok()?;
    Some(Corked::new(stream, &first))
}

async fn serve<S>(shared: Arc<Shared>, stream: S, peer: Peer, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(stream) = greeted(stream, &mut stop).await else {
        return;
    };
    let drive = Drive::new(stream.clone());
    drive
        .run(converse(shared, stream, peer, stop, drive.clone()))
        .await;
}

/// Answers the requests of a connection until its end.
async fn converse<S>(
    shared: Arc<Shared>,
    stream: S,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
    drive: Drive,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = &shared.options;
    let client = Client {
        peer: Arc::new(peer),
        drive: drive.clone(),
    };
    let service = service_fn({
        let shared = shared.clone();
        move |request| exchange(shared.clone(), client.clone(), request)
    });
    let mut builder = Builder::new(drive);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(options.keepalive)
        .keep_alive_timeout(options.keepalive_timeout)
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_header_list_size(MOST_HEADERS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let old = async {
        match options.max_connection_age {
            Some(age) => sleep(age.mul_f64(shared.spread())).await,
            None => std::future::pending().await,
        }
    };
    let leaves = async {
        tokio::select! {
            () = old => (),
            // An error tells that the server is gone.
            _ = stop.wait_for(|stopped| *stopped) => (),
        }
    };
    tokio::select! {
        // A connection that broke has nobody to tell; its calls are cancelled.
        _ = connection.as_mut() => return,
        () = leaves => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
