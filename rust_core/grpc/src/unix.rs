//! The `:authority` of requests by a Unix socket. Clients of gRPC's C core send the path of the socket, as
//! `tmp%2Fastrocyte.sock`. RFC 3986 (section 3.2.2) allows that in a host, but h2 refuses the request as malformed. Nobody
//! reads the authority, so its percent signs are replaced, byte for byte, in frames of headers and nowhere else.

use std::path::Path;

/// The head of a frame of HTTP/2, and the types of frames that hold headers (RFC 9113, sections 4.1 and 6).
const HEAD: usize = 9;
const HEADERS: [u8; 2] = [1, 9];
/// The largest frame of headers that is looked at, as HTTP/2 has it where nothing else was agreed on.
const MOST_HEADERS: usize = 16_384;
const REPLACEMENT: u8 = b'-';

/// Rewrites the bytes of a connection after its preface.
pub(super) struct AuthorityRewriter {
    /// The path of the socket as such a client writes it.
    host: Vec<u8>,
    /// Bytes of the current frame that are still to be handed on as they are.
    passing: usize,
    /// The head of a frame, and a frame of headers, as far as they came.
    held: Vec<u8>,
}

impl AuthorityRewriter {
    pub(super) fn new(path: &Path) -> Self {
        let mut host = Vec::new();
        for &byte in path.to_string_lossy().trim_start_matches('/').as_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                host.push(byte);
            } else {
                host.extend(format!("%{byte:02X}").bytes());
            }
        }
        Self {
            host,
            passing: 0,
            held: Vec::new(),
        }
    }

    /// Appends to `into` what can be handed on after the bytes that `came`.
    pub(super) fn rewrite(&mut self, mut came: &[u8], into: &mut Vec<u8>) {
        while let [first, rest @ ..] = came {
            if self.passing > 0 {
                let (part, rest) = came.split_at(self.passing.min(came.len()));
                into.extend(part);
                self.passing -= part.len();
                came = rest;
                continue;
            }
            self.held.push(*first);
            came = rest;
            let [a, b, c, kind, ..] = self.held[..] else {
                continue;
            };
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if self.held.len() == HEAD && (!HEADERS.contains(&kind) || length > MOST_HEADERS) {
                into.append(&mut self.held);
                self.passing = length;
            } else if self.held.len() == HEAD + length {
                self.replace();
                into.append(&mut self.held);
            }
        }
    }

    fn replace(&mut self) {
        let length = self.host.len().max(1);
        let mut windows = self.held.windows(length);
        if let Some(at) = windows.position(|part| part == self.host) {
            let host = self.held[at..at + length].iter_mut();
            host.filter(|byte| **byte == b'%')
                .for_each(|byte| *byte = REPLACEMENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, 0, 0, 0, 0, 1]);
        frame.extend(payload);
        frame
    }

    /// The bytes that are handed on of `sent`, which comes in pieces of `piece` bytes.
    fn rewritten(path: &str, sent: &[u8], piece: usize) -> Vec<u8> {
        let mut rewriter = AuthorityRewriter::new(Path::new(path));
        let mut found = Vec::new();
        for part in sent.chunks(piece) {
            rewriter.rewrite(part, &mut found);
        }
        found
    }

    #[test]
    fn the_path_is_spelt_as_a_host_in_headers_alone() {
        let host = b"x run%2Fa%20b.sock y%2F";
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for kind in [4, 1, 0, 9, 0] {
            let payload = [&host[..], &vec![kind; 9_000]].concat();
            sent.extend(frame(kind, &payload));
            let spelt = b"x run-2Fa-20b.sock y%2F";
            let seen = if HEADERS.contains(&kind) { spelt } else { host };
            expected.extend(frame(kind, &[&seen[..], &vec![kind; 9_000]].concat()));
        }
        for piece in [1, 7, 4_096, sent.len()] {
            let found = rewritten("/run/a b.sock", &sent, piece);
            assert!(found == expected, "pieces of {piece}");
        }
    }

    #[test]
    fn a_frame_of_headers_that_is_too_large_or_empty_goes_on_as_it_is() {
        let mut sent = frame(1, &b"a%2Fb".repeat(4_000));
        sent.extend(frame(1, b""));
        sent.extend(frame(1, b"a%2Fb"));
        let mut expected = sent.clone();
        let end = expected.len();
        expected[end - 5..].copy_from_slice(b"a-2Fb");
        assert_eq!(rewritten("/a/b", &sent, 1_000), expected);
    }
}
