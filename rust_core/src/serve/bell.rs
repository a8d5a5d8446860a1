//! A descriptor that is readable from when it was rung until it is stilled.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A counter of the system's, where it has such; else a pair of sockets.
pub(super) struct Bell {
    rings: File,
    hears: Option<File>,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        if let Some(counter) = counter()? {
            return Ok(Self {
                rings: counter,
                hears: None,
            });
        }
        let (rings, hears) = std::os::unix::net::UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        hears.set_nonblocking(true)?;
        Ok(Self {
            rings: OwnedFd::from(rings).into(),
            hears: Some(OwnedFd::from(hears).into()),
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.heard().as_raw_fd()
    }

    pub(super) fn ring(&self) {
        // It fails when it is full of rings, any of which is heard.
        let _ = (&self.rings).write(&1u64.to_ne_bytes());
    }

    pub(super) fn still(&self) {
        let _ = self.heard().read(&mut [0; 64]);
    }

    fn heard(&self) -> &File {
        self.hears.as_ref().unwrap_or(&self.rings)
    }
}

/// What costs half of a pair of sockets to ring and to still.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the standard library has no safe form of it")]
fn counter() -> io::Result<Option<File>> {
    use std::os::fd::FromRawFd;

    // SAFETY: the call takes no pointer.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and is nobody else's.
    Ok(Some(unsafe { File::from_raw_fd(descriptor) }))
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn counter() -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bell: &Bell) {
        let is_readable = || {
            let mut heard = bell.heard();
            heard.read(&mut [0; 64]).is_ok_and(|count| count > 0)
        };
        assert!(!is_readable());
        for rings in [1, 3, 100_000] {
            (0..rings).for_each(|_| bell.ring());
            bell.still();
            // Of sockets some bytes may be left: it rings once more for nothing.
            while is_readable() {}
        }
        bell.ring();
        assert!(is_readable());
        assert!(!is_readable());
    }

    #[test]
    fn it_is_readable_once_it_was_rung() {
        check(&Bell::new().expect("a descriptor"));
    }

    #[test]
    fn a_pair_of_sockets_does_the_same() {
        let (rings, hears) = std::os::unix::net::UnixStream::pair().expect("a pair");
        rings.set_nonblocking(true).expect("a socket");
        hears.set_nonblocking(true).expect("a socket");
        check(&Bell {
            rings: OwnedFd::from(rings).into(),
            hears: Some(OwnedFd::from(hears).into()),
        });
    }
}
