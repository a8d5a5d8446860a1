//! A connection and its options.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::error::Error;

/// Longer than the deadlines that the server sets by itself, so that its own error comes first.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that a server can be set to send.
pub(crate) const MAX_RECEIVE_BYTES: usize = 64 * 1024 * 1024;

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// API key or token, sent with every call. Use it with TLS, except to this machine.
    pub api_key: Option<String>,
    /// Use TLS; `ca` and `certificate` imply it.
    pub tls: bool,
    /// PEM file of the roots to trust; `None` trusts those of the system.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate, with its chain.
    pub certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    pub key: Option<PathBuf>,
    /// Time until a call fails that is no stream; `None` leaves it to the server.
    pub timeout: Option<Duration>,
    /// Repeat calls that the server could not take.
    pub retries: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            api_key: None,
            tls: false,
            ca: None,
            certificate: None,
            key: None,
            timeout: Some(DEFAULT_TIMEOUT),
            retries: true,
        }
    }
}

/// Calls a server. A clone shares the connection.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    pub(crate) api_key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) retries: bool,
}

/// Connects to a server at `host:port` in plain text, without a credential. Nothing is sent before the first call. Needs
/// a runtime of tokio.
pub fn connect(address: &str) -> Result<Client, Error> {
    Client::connect(address, ConnectOptions::default())
}

impl Client {
    /// Connects to a server at `host:port`. Nothing is sent before the first call. Needs a runtime of tokio.
    ///
    /// # Errors
    ///
    /// The address is none, a file cannot be read, or only one of certificate and key is given.
    pub fn connect(address: &str, options: ConnectOptions) -> Result<Self, Error> {
        let tls = tls(&options)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let invalid = |error: tonic::transport::Error| Error::configuration(format!("address {address:?}: {error}"));
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(invalid)?;
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls).map_err(invalid)?;
        }
        Ok(Self {
            channel: endpoint.connect_lazy(),
            api_key: options.api_key,
            timeout: options.timeout,
            deadline: None,
            headers: HashMap::new(),
            retries: options.retries,
        })
    }

    /// A client on the same connection whose calls have this deadline instead of the timeout, streams too.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline: Some(deadline),
            ..self.clone()
        }
    }

    /// A client on the same connection whose calls send this metadata too.
    #[must_use]
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.insert(name.to_owned(), value.to_owned());
        client
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }
}

fn tls(options: &ConnectOptions) -> Result<Option<ClientTlsConfig>, Error> {
    if options.certificate.is_some() != options.key.is_some() {
        let message = "a client certificate needs two files: pass both certificate and key";
        return Err(Error::configuration(message.to_owned()));
    }
    if !options.tls && options.ca.is_none() && options.certificate.is_none() {
        return Ok(None);
    }
    let mut config = ClientTlsConfig::new();
    config = match &options.ca {
        Some(file) => config.ca_certificate(Certificate::from_pem(read(file)?)),
        None => config.with_native_roots(),
    };
    if let (Some(certificate), Some(key)) = (&options.certificate, &options.key) {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(Some(config))
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|error| Error::configuration(format!("cannot read {}: {error}", file.display())))
}
