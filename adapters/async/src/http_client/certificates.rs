use std::fmt;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use super::ConnectorError;

/// The certificates of a client over HTTP: those that it trusts, and its own.
#[derive(Clone)]
pub struct Certificates {
    system_roots: bool,
    roots: Vec<CertificateDer<'static>>,
    client: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Trusts the system's root certificates, and has no certificate of its own.
    #[must_use]
    pub const fn new() -> Self {
        Self { system_roots: true, roots: Vec::new(), client: None }
    }

    /// Sets whether the system's root certificates are trusted.
    pub const fn set_system_roots(&mut self, trusted: bool) {
        self.system_roots = trusted;
    }

    /// Trusts a root certificate, in DER.
    pub fn add_root(&mut self, der: Vec<u8>) {
        self.roots.push(CertificateDer::from(der));
    }

    /// Sets the client certificate with its intermediates, in DER, and its private key, in the DER
    /// form of PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: the key is invalid, or of another certificate.
    pub fn set_client(
        &mut self,
        chain: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        key: Vec<u8>,
    ) -> Result<(), ConnectorError> {
        let invalid = |error: &dyn fmt::Display| ConnectorError::Configuration {
            reason: format!("not a client certificate and its private key: {error}"),
        };
        let chain: Vec<_> = chain.into_iter().map(|der| CertificateDer::from(der.into())).collect();
        if chain.is_empty() {
            return Err(invalid(&"the certificate is missing"));
        }
        let key = PrivateKeyDer::try_from(key).map_err(|error| invalid(&error))?;
        let provider = rustls::crypto::ring::default_provider();
        let client = CertifiedKey::from_der(chain, key, &provider);
        self.client = Some(Arc::new(client.map_err(|error| invalid(&error))?));
        Ok(())
    }

    /// Returns the TLS configuration. Reads the system's root certificates, if they are trusted.
    ///
    /// It uses the system's roots instead of a built-in list, so that it includes an organisation's
    /// own authority, such as that of a TLS-inspecting proxy, and excludes roots that were
    /// withdrawn.
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: a root certificate is invalid.
    pub fn config(self) -> Result<ClientConfig, ConnectorError> {
        let mut roots = RootCertStore::empty();
        if self.system_roots {
            // Some systems have unreadable roots. Without any root, each TLS connection fails as
            // untrusted, and plain HTTP still works.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for certificate in self.roots {
            roots.add(certificate).map_err(|error| ConnectorError::Configuration {
                reason: format!("not a root certificate: {error}"),
            })?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectorError::Configuration { reason: error.to_string() })?
            .with_root_certificates(roots);
        Ok(match self.client {
            Some(client) => {
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(client)))
            }
            None => config.with_no_client_auth(),
        })
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the private key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("system_roots", &self.system_roots)
            .field("roots", &self.roots.len())
            .field("client", &self.client.is_some())
            .finish()
    }
}
