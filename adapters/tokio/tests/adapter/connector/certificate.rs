//! A self-signed certificate that only the test trusts.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::TlsAcceptor;

/// A certificate for 127.0.0.1 and `origin.test`.
pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        Self::with(IsCa::NoCa)
    }

    /// Creates the certificate of an authority itself, which a server must not use.
    pub(crate) fn of_an_authority() -> Self {
        Self::with(IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn with(is_ca: IsCa) -> Self {
        let names = ["127.0.0.1".to_owned(), "origin.test".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        Self { der: made.der().to_vec(), key: key.serialize_der() }
    }

    /// Returns a TLS acceptor that negotiates one of `protocols`.
    pub(crate) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![self.der.clone().into()],
                PrivatePkcs8KeyDer::from(self.key.clone()).into(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config).into()
    }
}
