//! Metadata, deadlines and retries of calls.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::client::Client;
use crate::error::Error;
use crate::responses::Responses;
use crate::retry_policy::{BACKOFF_MULTIPLIER, INITIAL_BACKOFF, MAX_ATTEMPTS, MAX_BACKOFF, RETRYABLE_CODES};

const BANK_HEADER: &str = "x-astrocyte-bank";
/// The time in which the server asks to be called again; negative if it asks not to be.
const PUSHBACK_HEADER: &str = "grpc-retry-pushback-ms";

/// The properties of a call.
#[derive(Default)]
pub(crate) struct Facts {
    /// The bank that it names.
    pub bank: String,
    /// The time that the server is asked to wait.
    pub wait: Option<prost_types::Duration>,
    /// Added to the default timeout.
    pub extra_seconds: u64,
}

/// Fills an empty request id, so that a repeated call takes effect once.
pub(crate) fn fill_request_id(request_id: &mut String) {
    if request_id.is_empty() {
        *request_id = uuid::Uuid::new_v4().to_string();
    }
}

impl Client {
    pub(crate) async fn unary<Q, R, F>(
        &self,
        message: Q,
        facts: Facts,
        call: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<R, Error>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let limit = self
            .deadline
            .or_else(|| self.timeout.map(|timeout| timeout + facts.wait()));
        Ok(self.repeated(message, &facts, limit, call).await?.into_inner())
    }

    pub(crate) async fn server_stream<Q, R, F>(
        &self,
        message: Q,
        facts: Facts,
        call: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<Responses<R>, Error>
    where
        Q: Clone,
        F: Future<Output = Result<Response<Streaming<R>>, Status>>,
    {
        Ok(Responses::new(
            self.repeated(message, &facts, self.deadline, call).await?,
        ))
    }

    /// Makes a call until it succeeds, by the retry policy; the tries share one deadline.
    async fn repeated<Q, R, F>(
        &self,
        message: Q,
        facts: &Facts,
        limit: Option<Duration>,
        call: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<Response<R>, Error>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut backoff = INITIAL_BACKOFF;
        let mut attempt = 1;
        loop {
            let mut request = self.request(message.clone(), Some(&facts.bank))?;
            if let Some(end) = end {
                request.set_timeout(end.saturating_duration_since(Instant::now()));
            }
            let status = match within(end, call(self.channel(), request)).await {
                Ok(response) => return Ok(response),
                Err(status) => status,
            };
            let retried = self.retries && attempt < MAX_ATTEMPTS && RETRYABLE_CODES.contains(&status.code());
            let Some(pause) = retried.then(|| pause(&status, backoff)).flatten() else {
                return Err(status.into());
            };
            if end.is_some_and(|end| Instant::now() + pause >= end) {
                return Err(status.into());
            }
            sleep(pause).await;
            backoff = (backoff * BACKOFF_MULTIPLIER).min(MAX_BACKOFF);
            attempt += 1;
        }
    }

    /// A request with the metadata of the call.
    pub(crate) fn request<T>(&self, message: T, bank: Option<&str>) -> Result<Request<T>, Error> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        if let Some(key) = &self.api_key {
            metadata.insert("authorization", value("the API key", &format!("Bearer {key}"))?);
        }
        if let Some(bank) = bank.filter(|bank| is_bank_id(bank)) {
            metadata.insert(BANK_HEADER, value("the bank", bank)?);
        }
        for (name, text) in &self.headers {
            let key = AsciiMetadataKey::from_bytes(name.as_bytes())
                .map_err(|_| Error::configuration(format!("{name:?} is no name of metadata")))?;
            metadata.insert(key, value(name, text)?);
        }
        Ok(request)
    }
}

impl Facts {
    /// The time that the server takes for the call beyond the default timeout.
    fn wait(&self) -> Duration {
        match &self.wait {
            Some(wait) => Duration::try_from(*wait).unwrap_or_default(),
            None => Duration::from_secs(self.extra_seconds),
        }
    }
}

/// The outcome of a call, or `DEADLINE_EXCEEDED` if it does not end in time.
async fn within<R>(end: Option<Instant>, call: impl Future<Output = Result<R, Status>>) -> Result<R, Status> {
    let outcome = match end {
        None => call.await,
        Some(end) => timeout_at(end, call)
            .await
            .unwrap_or_else(|_| Err(Status::deadline_exceeded("the deadline passed"))),
    };
    outcome.map_err(|status| match end {
        // The deadline of tonic itself ends calls as CANCELLED.
        Some(end) if status.code() == Code::Cancelled && Instant::now() >= end => {
            Status::deadline_exceeded("the deadline passed")
        }
        _ => lost_connection(status),
    })
}

/// The status of a call whose connection ended: UNAVAILABLE, for which tonic has CANCELLED or UNKNOWN, with its cause as
/// source. A status of the server has no source.
pub(crate) fn lost_connection(status: Status) -> Status {
    match status.source() {
        Some(cause) if matches!(status.code(), Code::Cancelled | Code::Unknown) => {
            Status::unavailable(format!("the connection ended: {}: {cause}", status.message()))
        }
        _ => status,
    }
}

/// The pause before the next try; `None` if there shall be none.
fn pause(status: &Status, backoff: Duration) -> Option<Duration> {
    match status.metadata().get(PUSHBACK_HEADER) {
        None => Some(backoff.mul_f64(jitter())),
        // A value that is no number of milliseconds, such as -1, asks for no other try.
        Some(value) => Some(Duration::from_millis(value.to_str().ok()?.parse().ok()?)),
    }
}

/// A factor from 0 to 1, so that clients that failed together do not come back together.
fn jitter() -> f64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    f64::from((high >> 32) as u32) / f64::from(u32::MAX)
}

/// True for ids as the protocol describes them. Others are left to the server, whose error names the field.
fn is_bank_id(bank: &str) -> bool {
    let bytes = bank.as_bytes();
    bytes.len() <= 255
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:@-".contains(byte))
}

fn value(name: &str, text: &str) -> Result<AsciiMetadataValue, Error> {
    text.parse()
        .map_err(|_| Error::configuration(format!("{name} is not printable ASCII")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::Status;

    use super::{Facts, fill_request_id, is_bank_id, pause};

    #[test]
    fn only_ids_of_banks_go_into_metadata() {
        assert!(is_bank_id("family"));
        assert!(is_bank_id("a.b_c:d@e-f"));
        assert!(!is_bank_id(""));
        assert!(!is_bank_id("-family"));
        assert!(!is_bank_id("fam\nily"));
        assert!(!is_bank_id(&"x".repeat(256)));
    }

    #[test]
    fn a_request_id_is_kept_or_filled() {
        let mut given = "mine".to_owned();
        fill_request_id(&mut given);
        assert_eq!(given, "mine");
        let mut empty = String::new();
        fill_request_id(&mut empty);
        assert_eq!(empty.len(), 36);
    }

    #[test]
    fn the_pause_is_that_of_the_server() {
        let mut status = Status::resource_exhausted("later");
        let backoff = Duration::from_secs(1);
        assert!(pause(&status, backoff).unwrap() <= backoff);
        status
            .metadata_mut()
            .insert("grpc-retry-pushback-ms", "70".parse().unwrap());
        assert_eq!(pause(&status, backoff), Some(Duration::from_millis(70)));
        status
            .metadata_mut()
            .insert("grpc-retry-pushback-ms", "-1".parse().unwrap());
        assert_eq!(pause(&status, backoff), None);
    }

    #[test]
    fn a_wait_is_added_to_the_timeout() {
        let asked = prost_types::Duration {
            seconds: 2,
            nanos: 500_000_000,
        };
        let facts = Facts {
            wait: Some(asked),
            extra_seconds: 30,
            ..Facts::default()
        };
        assert_eq!(facts.wait(), Duration::from_millis(2_500));
        assert_eq!(
            Facts {
                extra_seconds: 30,
                ..Facts::default()
            }
            .wait(),
            Duration::from_secs(30)
        );
    }
}
