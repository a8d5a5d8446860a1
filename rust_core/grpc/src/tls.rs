//! TLS, and the names in a client's certificate.

use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A setting, for messages.
const CLIENT_ROOTS: &str = "server.tls_client_ca_file";

/// The contents of PEM files.
#[derive(Clone)]
pub struct Identity {
    /// The server's certificate, and those between it and a root.
    pub certificates: Vec<u8>,
    /// The key of the first.
    pub key: Vec<u8>,
    /// The roots that must have signed a client's certificate; None requests no certificate.
    pub client_roots: Option<Vec<u8>>,
}

/// The names in a client's verified certificate; empty without one.
#[derive(Default)]
pub struct Peer {
    /// The alternative names: of hosts, addresses of mail, URIs, and IP addresses.
    pub alternative_names: Vec<String>,
    /// The common names of the subject.
    pub common_names: Vec<String>,
}

impl Identity {
    /// The acceptor of TLS connections; an error names the setting of the file that is wrong.
    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(invalid("TLS"))?;
        let builder = match &self.client_roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let mut store = RootCertStore::empty();
                for root in parse(roots, CLIENT_ROOTS)? {
                    store.add(root).map_err(invalid(CLIENT_ROOTS))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
                let verifier = verifier.build().map_err(invalid(CLIENT_ROOTS))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = parse(&self.certificates, "server.tls_cert_file")?;
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(invalid("server.tls_key_file"))?;
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(invalid("server.tls_cert_file, server.tls_key_file"))?;
        // gRPC is HTTP/2, and its clients insist on hearing so.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn invalid<E: Display>(name: &'static str) -> impl Fn(E) -> io::Error {
    move |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: {error}"))
}

fn parse(pem: &[u8], name: &'static str) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(invalid(name))?;
    if found.is_empty() {
        return Err(invalid(name)("there is no certificate in it"));
    }
    Ok(found)
}

impl Peer {
    /// The names of a verified certificate; none of one that cannot be read.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
            return Self::default();
        };
        let alternative = certificate.subject_alternative_name().ok().flatten();
        Self {
            alternative_names: alternative
                .iter()
                .flat_map(|names| &names.value.general_names)
                .filter_map(text)
                .collect(),
            common_names: certificate
                .subject()
                .iter_common_name()
                .filter_map(|name| name.as_str().ok().map(str::to_owned))
                .collect(),
        }
    }
}

fn text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).to_owned())
        }
        GeneralName::IPAddress(bytes) => {
            let short = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let long = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            Some(short.or_else(|_| long()).ok()?.to_string())
        }
        _ => None,
    }
}
