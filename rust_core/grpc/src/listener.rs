//! Listening sockets: TCP addresses and Unix socket paths.
//!
//! tonic has an accept loop of its own, but not one for several addresses and paths, and none that waits while the system
//! has no descriptor left.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Shared;
use super::connection::{Accepted, Stream, open};
use super::unix::AuthorityRewriter;

/// The wait after a failed accept, mostly for want of descriptors, until some may have been closed.
const PAUSE: Duration = Duration::from_millis(50);
/// Connections that wait to be accepted; the system takes fewer where its own limit is lower.
const BACKLOG: u32 = 4096;

/// A socket that listens.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket; dropping it removes the file.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens at `host:port` (every address of the host) or `unix:path`. Returns the port too, which is 0 for a path.
/// With `shared`, other processes may listen at the same port, and the system divides the connections over them.
pub(super) fn bind(target: &str, shared: bool) -> io::Result<(Vec<Listener>, u16)> {
    if let Some(path) = target.strip_prefix("unix:") {
        let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
        remove_stale(&path)?;
        let listener = UnixListener::bind(&path)?;
        return Ok((vec![Listener::Unix(listener, SocketFile(path))], 0));
    }
    let mut port = 0;
    let mut listeners = Vec::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for mut address in target.to_socket_addrs()? {
        // One port for all addresses, where the system chooses it.
        if address.port() == 0 {
            address.set_port(port);
        }
        match listen(address, shared) {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(Listener::Tcp(listener));
            }
            // Another's port on one of the addresses would get part of the calls.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // One of the machine's protocols may be switched off.
            Err(error) => failure = error,
        }
    }
    if listeners.is_empty() {
        return Err(failure);
    }
    Ok((listeners, port))
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    if !shared {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        return TcpListener::from_std(listener);
    }
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Removes the socket of a dead server, but no other file, and no socket where a server answers.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

impl Listener {
    /// Accepts connections until the server stops, for each of the `servers` in turn; then closes the socket.
    pub(super) async fn serve(
        self,
        shared: Arc<Shared>,
        servers: Vec<Accepted>,
        mut stop: watch::Receiver<bool>,
    ) {
        for server in servers.iter().cycle() {
            let stream = tokio::select! {
                stream = self.accept() => stream,
                _ = stop.wait_for(|stopped| *stopped) => return,
            };
            match stream {
                Ok((stream, rewriter)) => {
                    let (shared, server) = (shared.clone(), server.clone());
                    tokio::spawn(open(shared, stream, rewriter, server, stop.clone()));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn accept(&self) -> io::Result<(Box<dyn Stream>, Option<AuthorityRewriter>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An answer is one write, which must not wait for the acknowledgement of another.
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), None))
            }
            Self::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), Some(AuthorityRewriter::new(&file.0))))
            }
        }
    }
}
