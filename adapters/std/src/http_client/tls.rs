use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Returns a configuration that trusts the system's root certificates and `additional`.
///
/// It uses the system's roots instead of a built-in list, so that it includes an organisation's own
/// authority, such as that of a TLS-inspecting proxy, and excludes roots that were withdrawn.
pub(super) fn system_config(additional: Vec<Certificate<'static>>) -> TlsConfig {
    // Some systems have unreadable roots. Without any root, each TLS connection fails as untrusted,
    // and plain HTTP still works.
    let system = rustls_native_certs::load_native_certs().certs;
    let system = system.iter().map(|root| Certificate::from_der(root).to_owned());
    let roots: Vec<_> = system.chain(additional).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
