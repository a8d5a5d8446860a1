//! TLS, and what it tells of who is at the other end.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Files in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The server's certificate, and those between it and a root.
    pub certificates: Vec<u8>,
    /// The key of the first.
    pub key: Vec<u8>,
    /// Who must have signed a client's certificate; None asks for none.
    pub client_roots: Option<Vec<u8>>,
}

/// Who is at the other end of a connection, by its verified certificate; empty without one.
#[derive(Default)]
pub struct Peer {
    /// The alternative names: of hosts, addresses of mail, URIs, and IP addresses.
    pub alternative_names: Vec<String>,
    /// The common names of the subject.
    pub common_names: Vec<String>,
}

impl Identity {
    /// What makes a connection safe; the message tells which file is no good.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let chain = parse(&self.certificates, "server.tls_cert_file")?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("server.tls_key_file: {error}"))?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.client_roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let mut store = RootCertStore::empty();
                for root in parse(roots, "server.tls_client_ca_file")? {
                    store
                        .add(root)
                        .map_err(|error| format!("server.tls_client_ca_file: {error}"))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider)
                        .build()
                        .map_err(|error| format!("server.tls_client_ca_file: {error}"))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| format!("server.tls_cert_file, server.tls_key_file: {error}"))?;
        // gRPC is HTTP/2, and its clients insist on hearing so.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn parse(pem: &[u8], name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{name}: there is no certificate in it")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

impl Peer {
    /// Of a certificate that was verified; one that cannot be read names nobody.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
            return Self::default();
        };
        let alternative = certificate.subject_alternative_name().ok().flatten();
        Self {
            alternative_names: alternative
                .iter()
                .flat_map(|names| &names.value.general_names)
                .filter_map(shown)
                .collect(),
            common_names: certificate
                .subject()
                .iter_common_name()
                .filter_map(|name| name.as_str().ok().map(str::to_owned))
                .collect(),
        }
    }
}

fn shown(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).to_owned())
        }
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes)
                .ok()
                .map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        },
        _ => None,
    }
}
