use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::ConnectorError;

/// The protocols offered in a TLS connection, preferred first.
const HTTP_2_OR_1: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Returns a configuration that trusts the system's root certificates and `additional`.
///
/// It uses the system's roots instead of a built-in list, so that it includes an organisation's own
/// authority, such as that of a TLS-inspecting proxy, and excludes roots that were withdrawn.
pub(super) fn system_config(
    additional: Vec<CertificateDer<'static>>,
) -> Result<ClientConfig, ConnectorError> {
    let mut roots = RootCertStore::empty();
    // Some systems have unreadable roots. Without any root, each TLS connection fails as untrusted,
    // and plain HTTP still works.
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

/// Makes `config` offer the protocols that the connector speaks, unless it sets its own ALPN
/// protocols, which may include HTTP/2.
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
