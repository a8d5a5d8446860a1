//! Failures of calls.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::reason::Reason;

const DOMAIN: &str = "astrocyte.dev";
const REQUEST_ID_HEADER: &str = "x-request-id";

/// A failed call, or a connection that cannot be configured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Error {
    /// Code of gRPC.
    pub code: Code,
    /// Reason; `Reason::Other` with an empty name if there is none.
    pub reason: Reason,
    /// Message of the server.
    pub message: String,
    /// Each variable part of the message.
    pub metadata: HashMap<String, String>,
    /// Path of the invalid field of the request; empty if it is not about a field.
    pub field: String,
    /// Time to wait before another try; `None` if the server does not say.
    pub retry_after: Option<Duration>,
    /// Id of the call in the log of the server; empty if it has none.
    pub request_id: String,
}

impl Error {
    /// The error of a status, such as that of an item of a stream.
    pub fn from_status(status: tonic_types::Status) -> Self {
        let details = prost::Message::encode_to_vec(&status);
        Status::with_details(Code::from_i32(status.code), status.message, details.into()).into()
    }

    pub(crate) fn configuration(message: String) -> Self {
        Status::invalid_argument(message).into()
    }
}

/// The reason of a status without details: it comes from gRPC, a proxy or the limits below the server's code.
fn bare_reason(code: Code) -> Reason {
    match code {
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        Code::ResourceExhausted => Reason::MessageTooLarge,
        Code::Unauthenticated => Reason::Unauthenticated,
        Code::Unavailable => Reason::Unavailable,
        Code::Unimplemented => Reason::NotSupported,
        _ => Reason::Other(String::new()),
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        let request_id = status
            .metadata()
            .get(REQUEST_ID_HEADER)
            .and_then(|value| value.to_str().ok());
        Self {
            code: status.code(),
            reason: info.map_or_else(|| bare_reason(status.code()), |info| Reason::from_name(&info.reason)),
            message: status.message().to_owned(),
            metadata: info.map(|info| info.metadata.clone()).unwrap_or_default(),
            field: details
                .bad_request()
                .and_then(|request| request.field_violations.first())
                .map(|violation| violation.field.clone())
                .unwrap_or_default(),
            retry_after: details.retry_info().and_then(|retry| retry.retry_delay),
            request_id: request_id.unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.name() {
            "" => write!(formatter, "{:?}: {}", self.code, self.message),
            reason => write!(formatter, "{reason}: {}", self.message),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt};

    use super::Error;
    use crate::reason::Reason;

    #[test]
    fn details_become_fields() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info(
                "LIMIT_REACHED",
                "astrocyte.dev",
                HashMap::from([("kind".to_owned(), "minute".to_owned())]),
            )
            .set_retry_info(Some(Duration::from_millis(1_500)))
            .add_bad_request_violation("items[3].content", "too long");
        let error = Error::from(Status::with_error_details(Code::ResourceExhausted, "later", details));
        assert_eq!(error.reason, Reason::LimitReached);
        assert_eq!(error.metadata["kind"], "minute");
        assert_eq!(error.retry_after, Some(Duration::from_millis(1_500)));
        assert_eq!(error.field, "items[3].content");
        assert_eq!(error.to_string(), "LIMIT_REACHED: later");
    }

    #[test]
    fn another_domain_has_no_reason_here() {
        let mut details = ErrorDetails::new();
        details.set_error_info("BANK_NOT_FOUND", "example.com", HashMap::new());
        let error = Error::from(Status::with_error_details(Code::NotFound, "no", details));
        assert_eq!(error.reason, Reason::Other(String::new()));
        assert_eq!(error.to_string(), "NotFound: no");
    }

    #[test]
    fn a_code_without_details_has_a_reason() {
        assert_eq!(Error::from(Status::unavailable("down")).reason, Reason::Unavailable);
        assert_eq!(
            Error::from(Status::resource_exhausted("big")).reason,
            Reason::MessageTooLarge
        );
    }

    #[test]
    fn a_new_reason_keeps_its_name() {
        assert_eq!(Reason::from_name("NEW_REASON").name(), "NEW_REASON");
        assert_eq!(Reason::from_name("DISK_FULL").name(), "DISK_FULL");
    }
}
