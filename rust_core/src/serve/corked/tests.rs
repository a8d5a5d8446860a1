//! What leaves when, and who is woken, by a stream whose room is given by hand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Takes as many bytes as it is given room for, notes each write, and wakes who asked last when there is more room.
#[derive(Default)]
struct Pipe {
    room: usize,
    writes: Vec<Vec<u8>>,
    flushes: usize,
    shut: bool,
    fails: bool,
    waker: Option<Waker>,
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.fails {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = self.room.min(bytes.len());
        if count == 0 {
            self.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.room -= count;
        self.writes.push(bytes[..count].to_vec());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        into.put_slice(b"behind");
        Poll::Ready(Ok(()))
    }
}

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A corked stream with some room, and those who write to it and who end its turns.
struct Bench {
    stream: Corked<Pipe>,
    writer: Arc<Woken>,
    turns: Arc<Woken>,
}

fn bench(room: usize) -> Bench {
    let pipe = Pipe {
        room,
        ..Pipe::default()
    };
    Bench {
        stream: Corked::new(pipe, b"first"),
        writer: Arc::default(),
        turns: Arc::default(),
    }
}

impl Bench {
    fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let waker = Waker::from(self.writer.clone());
        Pin::new(&mut self.stream).poll_write(&mut Context::from_waker(&waker), bytes)
    }

    fn flush(&mut self) -> Poll<io::Result<()>> {
        let waker = Waker::from(self.writer.clone());
        Pin::new(&mut self.stream).poll_flush(&mut Context::from_waker(&waker))
    }

    fn shut(&mut self) -> Poll<io::Result<()>> {
        let waker = Waker::from(self.writer.clone());
        Pin::new(&mut self.stream).poll_shutdown(&mut Context::from_waker(&waker))
    }

    fn end_turn(&self) {
        let waker = Waker::from(self.turns.clone());
        self.stream.send(&mut Context::from_waker(&waker));
    }

    /// Gives more room; whoever the stream knows is woken.
    fn give(&self, room: usize) {
        let mut inner = self.stream.0.lock();
        inner.stream.room += room;
        let waker = inner.stream.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn writes(&self) -> Vec<Vec<u8>> {
        self.stream.0.lock().stream.writes.clone()
    }
}

fn took(written: Poll<io::Result<usize>>) -> usize {
    match written {
        Poll::Ready(Ok(count)) => count,
        other => panic!("expected some bytes to be taken, got {other:?}"),
    }
}

#[test]
fn what_is_written_in_a_turn_leaves_in_one_piece() {
    let mut bench = bench(1_000);
    for part in [&b"headers and data"[..], b" and trailers"] {
        assert_eq!(took(bench.write(part)), part.len());
        assert!(matches!(bench.flush(), Poll::Ready(Ok(()))));
    }
    assert!(bench.writes().is_empty());
    bench.end_turn();
    assert_eq!(bench.writes(), [b"headers and data and trailers"]);
    assert_eq!(bench.stream.0.lock().stream.flushes, 1);
    // Another turn that writes nothing does nothing.
    bench.end_turn();
    assert_eq!(bench.writes().len(), 1);
    assert_eq!(bench.stream.0.lock().stream.flushes, 1);
}

#[test]
fn what_is_large_goes_through_behind_what_is_held() {
    let mut bench = bench(1 << 20);
    let large = vec![7; MOST_HELD + 1];
    took(bench.write(b"held"));
    assert_eq!(took(bench.write(&large)), large.len());
    assert_eq!(bench.writes(), [b"held".to_vec(), large]);
    took(bench.write(b"behind"));
    bench.end_turn();
    assert_eq!(bench.writes()[2], b"behind");
}

#[test]
fn no_more_is_held_than_it_may_be() {
    let mut bench = bench(usize::MAX);
    let part = vec![1; MOST_HELD / 2];
    for _ in 0..5 {
        took(bench.write(&part));
    }
    assert_eq!(bench.writes().len(), 2);
    bench.end_turn();
    assert_eq!(bench.writes().concat().len(), 5 * part.len());
    assert!(bench.stream.0.lock().held.capacity() <= KEPT);
}

#[test]
fn who_waits_for_what_is_held_is_woken_when_it_has_left() {
    let mut bench = bench(10);
    let part = vec![1; MOST_HELD];
    took(bench.write(&part));
    assert!(bench.write(b"more").is_pending());
    // The stream forgets the writer here, and knows only who ends the turn.
    bench.end_turn();
    bench.give(10);
    assert_eq!((bench.writer.count(), bench.turns.count()), (0, 1));
    bench.end_turn();
    assert_eq!(bench.writer.count(), 0);
    bench.give(MOST_HELD);
    assert_eq!(bench.turns.count(), 2);
    bench.end_turn();
    assert_eq!(bench.writer.count(), 1);
    assert_eq!(took(bench.write(b"more")), 4);
    bench.end_turn();
    assert_eq!(bench.writes().concat(), [&part[..], b"more"].concat());
}

#[test]
fn who_waits_for_the_stream_itself_is_woken_by_it_alone() {
    let mut bench = bench(0);
    let large = vec![1; MOST_HELD + 1];
    assert!(bench.write(&large).is_pending());
    for _ in 0..3 {
        // Each time it would find it as full, and ask again.
        bench.end_turn();
    }
    assert_eq!((bench.writer.count(), bench.turns.count()), (0, 0));
    bench.give(large.len());
    assert_eq!((bench.writer.count(), bench.turns.count()), (1, 0));
    assert_eq!(took(bench.write(&large)), large.len());
}

#[test]
fn who_writes_to_what_is_broken_is_told() {
    let mut bench = bench(10);
    took(bench.write(&[1; MOST_HELD]));
    assert!(bench.write(b"more").is_pending());
    bench.stream.0.lock().stream.fails = true;
    bench.end_turn();
    assert_eq!(bench.writer.count(), 1);
    let kind = io::ErrorKind::BrokenPipe;
    assert!(matches!(bench.write(b"more"), Poll::Ready(Err(error)) if error.kind() == kind));
    assert!(matches!(bench.flush(), Poll::Ready(Err(error)) if error.kind() == kind));
    assert!(matches!(bench.shut(), Poll::Ready(Err(error)) if error.kind() == kind));
    bench.end_turn();
    assert_eq!(bench.writer.count(), 1);
}

#[test]
fn what_is_held_leaves_before_the_end() {
    let mut bench = bench(2);
    took(bench.write(b"last"));
    assert!(bench.shut().is_pending());
    assert!(!bench.stream.0.lock().stream.shut);
    bench.give(2);
    assert!(matches!(bench.shut(), Poll::Ready(Ok(()))));
    assert_eq!(bench.writes().concat(), b"last");
    assert!(bench.stream.0.lock().stream.shut);
}

#[test]
fn what_was_read_before_is_read_first() {
    let mut stream = Corked::new(Pipe::default(), b"first");
    let mut read = |room: usize| {
        let mut bytes = vec![0; room];
        let mut into = ReadBuf::new(&mut bytes);
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            Pin::new(&mut stream)
                .poll_read(&mut context, &mut into)
                .is_ready()
        );
        into.filled().to_vec()
    };
    assert_eq!(
        [read(3), read(10), read(10)],
        [&b"fir"[..], b"st", b"behind"]
    );
}
