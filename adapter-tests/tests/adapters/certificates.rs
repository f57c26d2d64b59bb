//! TLS of the clients over HTTP: private roots, and client certificates.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use adapter_tests::{block_on_async_std, block_on_smol};
use mcp_sansio_async::http_client::Connect;
use mcp_sansio_async::names::ConnectorError;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An authority, and certificates that it issued.
struct Authority {
    root: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its private key.
struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).unwrap().der().to_vec();
        Self { root, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        Identity { certificate, key: key.serialize_der() }
    }

    /// Serves connections that present a certificate of this authority, until the process ends.
    fn serve(&self) -> SocketAddr {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone().into()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let Identity { certificate, key } = self.issue("127.0.0.1");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate.into()], key.try_into().unwrap())
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = BufReader::new(StreamOwned::new(session, socket.unwrap()));
                let (mut line, mut head) = (String::new(), String::new());
                // Fails if the handshake does.
                while stream.read_line(&mut line).is_ok_and(|count| count > 2) {
                    head.push_str(&line);
                    line.clear();
                }
                if line == "\r\n" {
                    let response = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                    let stream = stream.get_mut();
                    // The client may have closed the connection.
                    let _ = stream.write_all(response.as_bytes());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        address
    }
}

/// Sends a request and returns the status of the response.
async fn ask(connector: impl Connect, address: SocketAddr) -> Result<u16, ConnectorError> {
    let request = http::Request::get(format!("https://{address}/")).body(bytes::Bytes::new());
    Ok(connector.send(request.unwrap()).await?.status().as_u16())
}

macro_rules! tests {
    ($adapter:ident, $run:expr, $builder:expr, $build:expr) => {
        mod $adapter {
            use super::*;

            fn run<T>(future: impl Future<Output = T>) -> T {
                $run(future)
            }

            #[test]
            fn a_server_with_a_private_root_accepts_a_client_certificate() {
                let authority = Authority::new();
                let (address, ann) = (authority.serve(), authority.issue("ann"));
                let builder = $builder.root_certificate(&*authority.root);
                let builder = builder.client_certificate([ann.certificate], ann.key).unwrap();
                for builder in [builder.clone(), builder.system_roots(false)] {
                    assert_eq!(run(async { ask($build(builder), address).await }).unwrap(), 204);
                }
            }

            #[test]
            fn a_client_without_a_certificate_of_the_authority_is_refused() {
                let (authority, other) = (Authority::new(), Authority::new());
                let (address, eve) = (authority.serve(), other.issue("eve"));
                let builder = $builder.root_certificate(&*authority.root);
                let another = builder.clone().client_certificate([eve.certificate], eve.key);
                for builder in [builder, another.unwrap()] {
                    let error = run(async { ask($build(builder), address).await }).unwrap_err();
                    let is_refused =
                        matches!(error, ConnectorError::Lost { .. } | ConnectorError::Tls { .. });
                    assert!(is_refused, "{error:?}");
                }
            }

            #[test]
            fn a_server_with_an_unknown_root_is_not_trusted() {
                let (authority, other) = (Authority::new(), Authority::new());
                let (address, ann) = (authority.serve(), authority.issue("ann"));
                let builder = $builder.root_certificate(&*other.root);
                let builder = builder.client_certificate([ann.certificate], ann.key).unwrap();
                for builder in [builder.clone(), builder.system_roots(false)] {
                    let error = run(async { ask($build(builder), address).await }).unwrap_err();
                    assert!(matches!(error, ConnectorError::Tls { .. }), "{error:?}");
                }
            }

            #[test]
            fn a_key_of_another_certificate_is_reported() {
                let authority = Authority::new();
                let (ann, bob) = (authority.issue("ann"), authority.issue("bob"));
                let cases = [
                    (vec![ann.certificate.clone()], bob.key),
                    (vec![ann.certificate], b"no key".to_vec()),
                    (vec![], ann.key),
                ];
                for (chain, key) in cases {
                    let error = $builder.client_certificate(chain, key).err().unwrap();
                    assert!(matches!(error, ConnectorError::Configuration { .. }), "{error:?}");
                    assert!(error.to_string().contains("client certificate"), "{error}");
                }
            }
        }
    };
}

tests!(
    on_tokio,
    |future| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    },
    mcp_sansio_tokio::Connector::builder().proxy(mcp_sansio_tokio::Proxy::none()),
    |builder: mcp_sansio_tokio::runtime::ConnectorBuilder| builder.build().unwrap()
);
tests!(
    on_smol,
    block_on_smol,
    mcp_sansio_async_std::Connector::builder().proxy(mcp_sansio_async_std::Proxy::none()),
    |builder: mcp_sansio_async_std::runtime::ConnectorBuilder| builder.build().unwrap()
);
tests!(
    on_async_std,
    block_on_async_std,
    mcp_sansio_async_std::Connector::builder().proxy(mcp_sansio_async_std::Proxy::none()),
    |builder: mcp_sansio_async_std::runtime::ConnectorBuilder| builder.build().unwrap()
);
tests!(
    without_a_runtime,
    mcp_sansio_std::block_on,
    mcp_sansio_std::Connector::builder().proxy(mcp_sansio_std::Proxy::none()),
    |builder: mcp_sansio_std::runtime::ConnectorBuilder| builder.build().unwrap()
);
