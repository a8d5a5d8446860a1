//! A connection's stream, which sends at once what its tasks have to send in one turn.
//!
//! h2 writes every large frame by itself: an answer would leave as headers and data, and then as ten bytes of trailers, without
//! which its caller can do nothing. Each such write is a packet, a way through all of TCP, and may wake the caller. So what
//! is written is held here, as by `TCP_CORK`, until the tasks have nothing more to do for now ([`Line::send`]).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::drive::Line;

/// Bytes that are held: an answer of some kilobytes, or several small ones. A frame of data of the largest size that HTTP/2
/// has by default, 16 KiB and its head, is not copied.
const MOST_HELD: usize = 16 << 10;
/// Room that an idle connection keeps.
const KEPT: usize = 4 << 10;

/// A stream whose writes are held. Its clones are the same stream.
pub(super) struct Corked<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    stream: S,
    /// What was read before, until it is read again.
    first: Vec<u8>,
    held: Vec<u8>,
    /// How many bytes of `held` have left.
    sent: usize,
    /// The stream may hold something itself, as one of TLS does.
    unflushed: bool,
    /// Of who finds no room: the stream knows only who asked it last.
    writer: Option<Waker>,
    /// Why nothing can be sent any more.
    broken: Option<io::ErrorKind>,
}

impl<S> Corked<S> {
    /// A stream from which `first` was read already.
    pub(super) fn new(stream: S, first: &[u8]) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            stream,
            first: first.to_vec(),
            held: Vec::new(),
            sent: 0,
            unflushed: false,
            writer: None,
            broken: None,
        })))
    }
}

impl<S> Clone for Corked<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncWrite + Unpin + Send> Line for Corked<S> {
    fn send(&self, context: &mut Context<'_>) {
        let mut inner = self.0.lock();
        // Who waits for the stream itself must not be woken to find it as full as before.
        if inner.broken.is_some() || inner.is_sent() {
            return;
        }
        let Poll::Ready(sent) = inner.poll_send(context) else {
            return;
        };
        // Who writes next is told; who reads learns it by itself.
        inner.broken = sent.err().map(|error| error.kind());
        let writer = inner.writer.take();
        drop(inner);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

impl<S> Inner<S> {
    /// Whether nothing is left to be sent.
    fn is_sent(&self) -> bool {
        self.held.is_empty() && !self.unflushed
    }
}

impl<S: AsyncWrite + Unpin> Inner<S> {
    /// Ready when nothing is held any more.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(context, &self.held[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        self.sent = 0;
        self.held.clear();
        self.held.shrink_to(KEPT);
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_hold(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if self.held.len() + length > MOST_HELD {
            ready!(self.poll_send(context))?;
        }
        let taken = if length > MOST_HELD {
            ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts))?
        } else {
            for part in parts {
                self.held.extend_from_slice(part);
            }
            length
        };
        self.unflushed = true;
        Poll::Ready(Ok(taken))
    }

    /// What `poll` finds, unless nothing can be sent any more. Who has to wait is woken when what is held has left.
    fn poll_by<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Self, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Some(kind) = self.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let found = poll(self, context);
        if found.is_pending() {
            self.writer = Some(context.waker().clone());
        }
        found
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Corked<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let inner = &mut *self.0.lock();
        if inner.first.is_empty() {
            return Pin::new(&mut inner.stream).poll_read(context, into);
        }
        let count = inner.first.len().min(into.remaining());
        into.put_slice(&inner.first[..count]);
        inner.first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.lock();
        inner.poll_by(context, |inner, context| inner.poll_hold(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is sent yet: the turn ends with that.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock();
        inner.poll_by(context, |_, _| Poll::Ready(Ok(())))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock();
        inner.poll_by(context, |inner, context| {
            ready!(inner.poll_send(context))?;
            Pin::new(&mut inner.stream).poll_shutdown(context)
        })
    }
}

#[cfg(test)]
mod tests;
