//! The headers of a request that are read here: content type, size, timeout, encoding, and the id of the call.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;

const GRPC: &[u8] = b"application/grpc";
const ENCODING: &str = "grpc-encoding";

const TIMEOUT: &str = "grpc-timeout";
/// Bytes of headers, counted as HTTP/2 does (RFC 9113, section 10.5.1): with 32 for each.
const MOST_HEADERS: usize = 16 << 10;
const HEADER_OVERHEAD: usize = 32;
/// The header of a call's id, and the longest id; as the services have it.
const REQUEST_ID: &str = "x-request-id";
const LONGEST_ID: usize = 128;

/// Returns true if the content type is gRPC's. That of gRPC-Web, which frames otherwise, begins with the same words.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = content_type.and_then(|value| value.strip_prefix(GRPC));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The encoding of the request, which is that of the answer too. Nearly every client says that it takes compressed
/// answers (`grpc-accept-encoding`); one that compresses its requests wants them.
pub(super) fn encoding(headers: &HeaderMap) -> Option<CompressionEncoding> {
    match headers.get(ENCODING)?.as_bytes() {
        b"gzip" => Some(CompressionEncoding::Gzip),
        b"deflate" => Some(CompressionEncoding::Deflate),
        _ => None,
    }
}

/// Refuses more than [`MOST_HEADERS`] bytes.
pub(super) fn check_size(headers: &HeaderMap) -> Result<(), Status> {
    let one = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    let size = headers.iter().map(one).sum::<usize>() + headers.len() * HEADER_OVERHEAD;
    if size > MOST_HEADERS {
        return Err(Status::resource_exhausted(format!(
            "the metadata takes {size} bytes, with {HEADER_OVERHEAD} for each item; the limit is {MOST_HEADERS}"
        )));
    }
    Ok(())
}

/// The caller's timeout, as gRPC over HTTP/2 writes it: up to eight digits and a unit.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(TIMEOUT) else {
        return Ok(None);
    };
    let wrong = || {
        Status::invalid_argument(
            "grpc-timeout must be one to eight digits and a unit, one of H, M, S, m, u and n",
        )
    };
    let text = value.to_str().map_err(|_| wrong())?;
    let (digits, unit) = text
        .split_at_checked(text.len().wrapping_sub(1))
        .ok_or_else(wrong)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    Ok(Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return Err(wrong()),
    }))
}

/// A refusal with the id of the call: its caller's, or the one that was `made`.
pub(super) fn identified(mut status: Status, headers: &HeaderMap, made: &str) -> Status {
    let given = headers.get(REQUEST_ID).map(HeaderValue::as_bytes);
    let given = given
        .filter(|id| (1..=LONGEST_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic));
    if let Ok(id) = MetadataValue::try_from(given.unwrap_or(made.as_bytes())) {
        status.metadata_mut().insert(REQUEST_ID, id);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &'static str) -> Result<Option<Duration>, Status> {
        timeout(&HeaderMap::from_iter([(
            HeaderName::from_static(TIMEOUT),
            HeaderValue::from_static(value),
        )]))
    }

    #[test]
    fn a_timeout_is_read_in_every_unit() {
        let cases = [
            ("2H", Duration::from_secs(7_200)),
            ("3M", Duration::from_secs(180)),
            ("4S", Duration::from_secs(4)),
            ("5m", Duration::from_millis(5)),
            ("6u", Duration::from_micros(6)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ];
        for (text, expected) in cases {
            assert_eq!(parsed(text).expect("a time"), Some(expected), "{text}");
        }
        assert_eq!(timeout(&HeaderMap::new()).expect("none"), None);
    }

    #[test]
    fn the_content_type_of_grpc_web_is_none_of_grpc() {
        let cases = [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc; charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpc-web+proto", false),
            ("application/grpcx", false),
            ("application/json", false),
        ];
        for (text, expected) in cases {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
            assert_eq!(is_grpc(&headers), expected, "{text}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn what_is_no_timeout_is_refused() {
        for text in [
            "",
            "S",
            "5",
            "-1S",
            "+1S",
            "1s",
            "123456789S",
            "1.5S",
            "5 S",
        ] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }
}
