//! What of a request's headers is ours to read: its size, the caller's deadline, and the name of the call.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tonic::Status;
use tonic::metadata::MetadataValue;

const TIMEOUT: &str = "grpc-timeout";
/// Bytes of headers, counted as HTTP/2 does (RFC 9113, section 10.5.1): with 32 for each.
const MOST_HEADERS: usize = 16 << 10;
const HEADER_OVERHEAD: usize = 32;
/// What calls are known by, and how long such a name may be; as the services have it.
const REQUEST_ID: &str = "x-request-id";
const LONGEST_ID: usize = 128;

/// Refuses more than [`MOST_HEADERS`] bytes.
pub(super) fn check_size(headers: &HeaderMap) -> Result<(), Status> {
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD);
    let size: usize = sizes.sum();
    if size > MOST_HEADERS {
        return Err(Status::resource_exhausted(format!(
            "the metadata takes {size} bytes, with {HEADER_OVERHEAD} for each item; the limit is {MOST_HEADERS}"
        )));
    }
    Ok(())
}

/// How long the caller waits, as gRPC over HTTP/2 writes it: up to eight digits and a unit.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(TIMEOUT) else {
        return Ok(None);
    };
    let wrong = || Status::invalid_argument("grpc-timeout is not up to eight digits and a unit");
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

/// A refusal with the id of the call, which is its caller's, or what `make` makes.
pub(super) fn identified(
    mut status: Status,
    headers: &HeaderMap,
    make: impl FnOnce() -> String,
) -> Status {
    let given = headers.get(REQUEST_ID).filter(|id| {
        let bytes = id.as_bytes();
        (1..=LONGEST_ID).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    let id = given
        .cloned()
        .or_else(|| HeaderValue::try_from(make()).ok());
    if let Some(id) = id.and_then(|id| MetadataValue::try_from(id.as_bytes()).ok()) {
        status.metadata_mut().insert(REQUEST_ID, id);
    }
    status
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

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
