//! A descriptor that is readable from a notification until it is cleared.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// A pair of connected sockets.
pub(super) struct Notifier {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Notifier {
    pub(super) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.receiver.as_raw_fd()
    }

    pub(super) fn notify(&self) {
        // It fails when it is full, and is readable then.
        let _ = (&self.sender).write(&[0]);
    }

    pub(super) fn clear(&self) {
        let _ = (&self.receiver).read(&mut [0; 64]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_readable_once_it_was_notified() {
        let notifier = Notifier::new().expect("a pair");
        let is_readable = || (&notifier.receiver).read(&mut [0; 1]).is_ok();
        assert!(!is_readable());
        for count in [1, 3, 100_000] {
            (0..count).for_each(|_| notifier.notify());
            assert!(is_readable());
            while is_readable() {}
        }
        notifier.notify();
        notifier.clear();
        assert!(!is_readable());
    }
}
