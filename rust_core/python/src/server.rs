//! The gRPC server for Python: `GrpcServer`, and a `GrpcCall` for each call on its queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use astrocyte_grpc::{Call, Event, Identity, KindOptions, Method, Next, Options, Server};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use tokio::time::Instant;
use tonic::metadata::{KeyAndValueRef, MetadataMap, MetadataValue};
use tonic::{Code, Status};

use super::errors::detached;

/// Headers that gRPC and HTTP reserve.
const RESERVED: [&str; 4] = ["te", "content-type", "content-length", "host"];
const RESERVED_PREFIX: &str = "grpc-";
const BINARY_SUFFIX: &str = "-bin";
/// Where a status of several parts is.
const DETAILS: &str = "grpc-status-details-bin";

type Trailer<'py> = (String, Bound<'py, PyAny>);
/// Code, message and trailers.
type Ending<'py> = (i32, String, Vec<Trailer<'py>>);
/// Places, places of one connection, whether it is open, and refusals.
type Kind<'py> = (usize, Option<usize>, bool, Vec<Ending<'py>>);

/// A server whose calls are taken from it by one thread.
#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct GrpcServer {
    server: Mutex<Server>,
}

#[pymethods]
impl GrpcServer {
    #[new]
    #[pyo3(signature = (*, methods, kinds, deadline_exceeded, id_prefix, max_message_bytes, max_others,
                        max_connection_age, keepalive, keepalive_timeout, certificates=None, key=None, client_roots=None))]
    #[expect(clippy::too_many_arguments, reason = "all by name")]
    fn new(
        methods: HashMap<String, (bool, Option<usize>)>,
        kinds: Vec<Kind<'_>>,
        deadline_exceeded: Ending<'_>,
        id_prefix: String,
        max_message_bytes: usize,
        max_others: usize,
        max_connection_age: Option<f64>,
        keepalive: f64,
        keepalive_timeout: f64,
        certificates: Option<Vec<u8>>,
        key: Option<Vec<u8>>,
        client_roots: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let identity = certificates.zip(key).map(|(certificates, key)| Identity {
            certificates,
            key,
            client_roots,
        });
        let options = Options {
            max_message_bytes,
            max_others,
            max_connection_age: max_connection_age.map(seconds).transpose()?,
            keepalive: seconds(keepalive)?,
            keepalive_timeout: seconds(keepalive_timeout)?,
            methods: methods
                .into_iter()
                .map(|(path, (unary, kind))| (path, Method { unary, kind }))
                .collect(),
            kinds: kinds.into_iter().map(kind).collect::<PyResult<_>>()?,
            deadline_exceeded: status(&deadline_exceeded)?,
            id_prefix,
            identity,
        };
        let server = Server::new(options).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
            _ => PyOSError::new_err(error.to_string()),
        })?;
        Ok(Self {
            server: Mutex::new(server),
        })
    }

    #[pyo3(signature = (target, *, shared = false))]
    fn bind(&self, py: Python<'_>, target: &str, shared: bool) -> PyResult<u16> {
        Ok(detached(py, || {
            Ok(self.server.lock().bind(target, shared))
        })??)
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        Ok(detached(py, || Ok(self.server.lock().start()))??)
    }

    fn fileno(&self) -> i32 {
        self.server.lock().descriptor()
    }

    /// The events since the last call of this method: the id of a call, and the new call itself or the name of an event.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.server.lock().take();
        let found = PyList::empty(py);
        for event in events {
            match event {
                Event::Opened(call) => found.append((call.id, GrpcCall { call }))?,
                Event::Readable(id) => found.append((id, "readable"))?,
                Event::Writable(id) => found.append((id, "writable"))?,
                Event::Cancelled(id) => found.append((id, "cancelled"))?,
            }
        }
        Ok(found)
    }

    fn busy(&self) -> (usize, usize) {
        self.server.lock().busy()
    }

    fn stop(&self) {
        self.server.lock().stop();
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.server.lock().close();
            Ok(())
        })
    }
}

/// A call to be answered.
#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct GrpcCall {
    call: Arc<Call>,
}

#[pymethods]
impl GrpcCall {
    #[getter]
    fn path(&self) -> &str {
        &self.call.path
    }

    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut found = Vec::with_capacity(self.call.metadata.len());
        for item in self.call.metadata.iter() {
            let item = match item {
                KeyAndValueRef::Ascii(name, value) => {
                    let name = name.as_str();
                    if RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX) {
                        continue;
                    }
                    let value = String::from_utf8_lossy(value.as_encoded_bytes());
                    (name, PyString::new(py, &value).into_any())
                }
                KeyAndValueRef::Binary(name, value) => {
                    // What is not in base 64 says nothing.
                    let Ok(bytes) = value.to_bytes() else {
                        continue;
                    };
                    (name.as_str(), PyBytes::new(py, &bytes).into_any())
                }
            };
            found.push(item.into_pyobject(py)?);
        }
        PyTuple::new(py, found)
    }

    fn seconds_left(&self) -> Option<f64> {
        let deadline = self.call.deadline?;
        Some(
            deadline
                .saturating_duration_since(Instant::now())
                .as_secs_f64(),
        )
    }

    fn alternative_names(&self) -> Vec<String> {
        self.call.peer().alternative_names.clone()
    }

    fn common_names(&self) -> Vec<String> {
        self.call.peer().common_names.clone()
    }

    fn is_unverified(&self) -> bool {
        self.call.is_unverified()
    }

    fn accept(&self, principal: &str) {
        self.call.accept(principal);
    }

    /// The next request, None at their end, False where there is none yet.
    fn read<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self.call.read() {
            Next::Message(message) => PyBytes::new(py, &message).into_any(),
            Next::End => py.None().into_bound(py),
            Next::Wait => pyo3::types::PyBool::new(py, false).to_owned().into_any(),
        }
    }

    fn begin(&self) {
        self.call.begin();
    }

    fn write(&self, message: &Bound<'_, PyBytes>) -> bool {
        self.call.write(Bytes::copy_from_slice(message.as_bytes()))
    }

    fn end(&self, code: i32, message: String, trailers: Vec<Trailer<'_>>) -> PyResult<()> {
        self.call.end(status(&(code, message, trailers))?);
        Ok(())
    }

    /// Sends the only response, and ends the call.
    fn finish(&self, message: &Bound<'_, PyBytes>) {
        self.call.finish(Bytes::copy_from_slice(message.as_bytes()));
    }
}

fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn kind((places, per_connection, open, refusals): Kind<'_>) -> PyResult<KindOptions> {
    Ok(KindOptions {
        places,
        per_connection,
        open,
        refusals: refusals.iter().map(status).collect::<PyResult<_>>()?,
    })
}

/// A status with its trailers; its details, which gRPC writes itself, are one of them.
fn status((code, message, given): &Ending<'_>) -> PyResult<Status> {
    let mut details = Bytes::new();
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        if name == DETAILS {
            details = Bytes::copy_from_slice(value.extract::<&[u8]>()?);
            continue;
        }
        let key: HeaderName = name.parse().map_err(|_| {
            PyValueError::new_err(format!(
                "the name of the trailer {name:?} has characters that HTTP does not allow"
            ))
        })?;
        let value = if name.ends_with(BINARY_SUFFIX) {
            let value = MetadataValue::from_bytes(value.extract::<&[u8]>()?);
            HeaderValue::from_bytes(value.as_encoded_bytes())
        } else {
            HeaderValue::from_str(&value.extract::<String>()?)
        };
        let value = value.map_err(|_| {
            PyValueError::new_err(format!(
                "the value of the trailer {name} has characters that HTTP does not allow"
            ))
        })?;
        headers.append(key, value);
    }
    let metadata = MetadataMap::from_headers(headers);
    let code = Code::from_i32(*code);
    Ok(Status::with_details_and_metadata(
        code, message, details, metadata,
    ))
}
