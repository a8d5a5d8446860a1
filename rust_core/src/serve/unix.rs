//! Clients of gRPC's C core name a Unix socket by its path, as `:authority: tmp%2Fastrocyte.sock`. A host may be written
//! so (RFC 3986, section 3.2.2), but h2 takes the request for malformed. What nobody reads is therefore spelt without
//! the sign, in as many bytes: in frames of headers, where it stands as the client knows it, and nowhere else.

use std::io::{self, IoSlice};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// HTTP/2 (RFC 9113): what a client says first, the head of a frame, and the types of frames that hold headers.
const PREFACE: usize = 24;
const HEAD: usize = 9;
const HEADERS: [u8; 2] = [1, 9];
/// The largest frame that we take, as HTTP/2 has it where nothing else was agreed on.
const MOST_HEADERS: usize = 16_384;
const REPLACEMENT: u8 = b'-';

/// A stream whose client may write its server's path as a host.
pub(super) struct Authorities {
    stream: UnixStream,
    // The path as such a client writes it.
    host: Vec<u8>,
    // Bytes of the preface, or of a frame that is none of headers, that are still to be handed on as they are.
    passing: usize,
    // The head of a frame, and a frame of headers, as far as they came.
    held: Vec<u8>,
    // Bytes of `held` that were handed on already, of those that are whole.
    ready: usize,
}

impl Authorities {
    pub(super) fn new(stream: UnixStream, path: &Path) -> Self {
        let path = path.to_string_lossy();
        let mut host = Vec::with_capacity(path.len() + 16);
        for &byte in path.trim_start_matches('/').as_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                host.push(byte);
            } else {
                host.extend(format!("%{byte:02X}").bytes());
            }
        }
        Self {
            stream,
            host,
            passing: PREFACE,
            held: Vec::new(),
            ready: 0,
        }
    }

    /// How many bytes are missing of what is held; 0 when it can be handed on.
    fn missing(&self) -> usize {
        if self.held.len() < HEAD {
            return HEAD - self.held.len();
        }
        if !self.holds_headers() {
            return 0;
        }
        (HEAD + self.length()).saturating_sub(self.held.len())
    }

    /// A larger frame is refused by whoever reads it.
    fn holds_headers(&self) -> bool {
        HEADERS.contains(&self.held[3]) && self.length() <= MOST_HEADERS
    }

    fn length(&self) -> usize {
        usize::from(self.held[0]) << 16 | usize::from(self.held[1]) << 8 | usize::from(self.held[2])
    }

    fn hand_on(&mut self, into: &mut ReadBuf<'_>) {
        if self.ready == 0 {
            self.spell();
        }
        let count = into.remaining().min(self.held.len() - self.ready);
        into.put_slice(&self.held[self.ready..self.ready + count]);
        self.ready += count;
        if self.ready == self.held.len() {
            self.held.clear();
            self.ready = 0;
        }
    }

    /// Spells the path as a host of which nothing is quoted.
    fn spell(&mut self) {
        if !self.holds_headers() {
            self.passing = self.length();
            return;
        }
        let at = self
            .held
            .windows(self.host.len().max(1))
            .position(|part| part == self.host);
        if let Some(at) = at {
            for byte in &mut self.held[at..at + self.host.len()] {
                if *byte == b'%' {
                    *byte = REPLACEMENT;
                }
            }
        }
    }
}

impl AsyncRead for Authorities {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut bytes = [0; 4_096];
        loop {
            if this.missing() == 0 {
                this.hand_on(into);
                return Poll::Ready(Ok(()));
            }
            let wanted = match this.passing {
                0 => this.missing(),
                passing => passing.min(into.remaining()),
            };
            let mut part = ReadBuf::new(&mut bytes[..wanted.min(4_096)]);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
            let came = part.filled();
            if came.is_empty() {
                // The end. What is held is no frame, and nothing without its rest.
                return Poll::Ready(Ok(()));
            }
            if this.passing > 0 {
                this.passing -= came.len();
                into.put_slice(came);
                return Poll::Ready(Ok(()));
            }
            this.held.extend_from_slice(came);
        }
    }
}

impl AsyncWrite for Authorities {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.extend(payload);
        frame
    }

    /// What is read of `sent`, which comes in pieces of `piece` bytes.
    fn read(path: &str, sent: &[u8], piece: usize) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let (mut client, server) = UnixStream::pair().expect("a pair");
            let mut server = Authorities::new(server, Path::new(path));
            let reading = async {
                let mut found = Vec::new();
                server.read_to_end(&mut found).await.expect("bytes");
                found
            };
            let writing = async {
                for part in sent.chunks(piece) {
                    client.write_all(part).await.expect("room");
                    tokio::task::yield_now().await;
                }
                drop(client);
            };
            tokio::join!(reading, writing).0
        })
    }

    #[test]
    fn the_path_is_spelt_as_a_host_in_headers_alone() {
        let host = b"x run%2Fa%20b.sock y%2F";
        let mut sent = vec![b'P'; PREFACE];
        let mut expected = sent.clone();
        for kind in [4, 1, 0, 9, 0] {
            let payload = [&host[..], &vec![kind; 9_000]].concat();
            sent.extend(frame(kind, &payload));
            let spelt = b"x run-2Fa-20b.sock y%2F";
            let seen = if HEADERS.contains(&kind) { spelt } else { host };
            expected.extend(frame(kind, &[&seen[..], &vec![kind; 9_000]].concat()));
        }
        for piece in [1, 7, 4_096, sent.len()] {
            assert_eq!(
                read("/run/a b.sock", &sent, piece),
                expected,
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_frame_of_headers_that_is_too_large_goes_on_as_it_is() {
        let mut sent = vec![b'P'; PREFACE];
        sent.extend(frame(1, &b"a%2Fb".repeat(4_000)));
        sent.extend(frame(1, b"a%2Fb"));
        let mut expected = sent.clone();
        let end = expected.len();
        expected[end - 5..].copy_from_slice(b"a-2Fb");
        assert_eq!(read("/a/b", &sent, 1_000), expected);
    }
}
