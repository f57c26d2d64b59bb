use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// A configuration that trusts whom the system trusts, and `additional`.
///
/// The system's roots, not a list built in: an organisation's own authority is there, such as that
/// of a proxy that looks into connections, and a root that was withdrawn is not.
pub(super) fn system_config(additional: Vec<Certificate<'static>>) -> TlsConfig {
    // Systems have roots that nobody can read; without any, each connection says that it trusts
    // nobody, and plain HTTP still works.
    let system = rustls_native_certs::load_native_certs().certs;
    let system = system.iter().map(|root| Certificate::from_der(root).to_owned());
    let roots: Vec<_> = system.chain(additional).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
