//! Where connections come in: addresses of TCP and paths of Unix sockets.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket that listens.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a socket, which goes with it.
pub(super) struct SocketFile(pub(super) PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens at `host:port` (every address of the host) or `unix:path`; tells the port too, which is 0 for a path.
pub(super) fn bind(target: &str) -> io::Result<(Vec<Listener>, u16)> {
    if let Some(path) = target.strip_prefix("unix:") {
        let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
        clear(&path)?;
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
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
        match listen(address) {
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

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes a socket that a server left behind; not one where a server answers, and nothing else than a socket.
fn clear(path: &Path) -> io::Result<()> {
    let left = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    if left && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
