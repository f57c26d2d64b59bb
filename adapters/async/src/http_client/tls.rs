use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::ConnectorError;

/// What we offer to speak in a TLS connection, the best first.
const HTTP_2_OR_1: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A configuration that trusts whom the system trusts, and `additional`.
///
/// The system's roots, not a list built in: an organisation's own authority is there, such as that
/// of a proxy that looks into connections, and a root that was withdrawn is not.
pub(super) fn system_config(
    additional: Vec<CertificateDer<'static>>,
) -> Result<ClientConfig, ConnectorError> {
    let mut roots = RootCertStore::empty();
    // Systems have roots that nobody can read; without any, each connection says that it trusts
    // nobody, and plain HTTP still works.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in additional {
        roots.add(certificate).map_err(|error| ConnectorError::Configuration {
            reason: format!("not a root certificate: {error}"),
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectorError::Configuration { reason: error.to_string() })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Makes `config` offer the protocols that we speak, unless it has an offer of its own that may have
/// HTTP/2 in it.
pub(super) fn offer_protocols(config: &mut ClientConfig, http2: bool, http2_only: bool) {
    if !(http2 && cfg!(feature = "http2")) {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
    } else if http2_only {
        config.alpn_protocols = vec![b"h2".to_vec()];
    } else if config.alpn_protocols.is_empty() {
        config.alpn_protocols = HTTP_2_OR_1.map(<[u8]>::to_vec).to_vec();
    }
}

pub(super) fn is_secure(server: &Uri) -> bool {
    server.scheme() == Some(&Scheme::HTTPS)
}
