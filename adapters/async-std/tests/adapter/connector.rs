//! HTTP exchanges with hand-written servers on real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use http::Request;
use mcp_sansio_async_std::{Connector, ConnectorError};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// Starts a server that accepts one connection and runs `converse` on it.
fn serve(
    converse: impl FnOnce(std::net::TcpStream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, spawn(move || converse(listener.accept().unwrap().0)))
}

/// Reads the head of a request without a body.
fn read_head(stream: &mut impl Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

async fn get(connector: &Connector, url: &str) -> Result<Vec<u8>, ConnectorError> {
    let mut response = connector.send(Request::get(url).body(bytes::Bytes::new()).unwrap()).await?;
    assert_eq!(response.status(), 200);
    let mut body = Vec::new();
    while let Some(piece) = response.body_mut().chunk().await {
        body.extend_from_slice(&piece?);
    }
    Ok(body)
}

#[test]
fn exchanges_after_one_another_share_a_connection() {
    let (address, server) = serve(|mut socket| {
        for path in ["/one", "/two"] {
            let head = read_head(&mut socket);
            assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{head}");
            socket.write_all(RESPONSE).unwrap();
        }
    });
    smol::block_on(async {
        let connector = Connector::new().unwrap();
        for path in ["one", "two"] {
            let body = get(&connector, &format!("http://{address}/{path}")).await;
            assert_eq!(body.unwrap(), b"hello");
        }
    });
    server.join().unwrap();
}

#[test]
fn a_body_that_is_dropped_closes_the_connection() {
    let (address, server) = serve(|mut socket| {
        read_head(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhello").unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0);
    });
    smol::block_on(async {
        let connector = Connector::new().unwrap();
        let request = Request::get(format!("http://{address}/")).body(bytes::Bytes::new());
        drop(connector.send(request.unwrap()).await.unwrap());
        smol::unblock(move || server.join().unwrap()).await;
    });
}

/// Starts a TLS server with a certificate for `localhost`. The handshake may fail.
fn serve_secure() -> (SocketAddr, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let der = made.cert.der().to_vec();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![der.clone().into()],
            made.signing_key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (address, _server) = serve(move |socket| {
        let tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(tls, socket);
        if stream.conn.complete_io(&mut stream.sock).is_ok() {
            read_head(&mut stream);
            assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
            stream.write_all(RESPONSE).unwrap();
        }
    });
    (address, der)
}

#[test]
fn a_server_is_trusted_by_its_certificate_alone() {
    smol::block_on(async {
        let (address, der) = serve_secure();
        let url = format!("https://localhost:{}/", address.port());
        let connector = Connector::builder().root_certificate(der).build().unwrap();
        assert_eq!(get(&connector, &url).await.unwrap(), b"hello");

        let (address, _) = serve_secure();
        let url = format!("https://localhost:{}/", address.port());
        let error = get(&Connector::new().unwrap(), &url).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Tls { .. }), "{error}");
        assert!(!error.was_sent());
    });
}

#[test]
fn a_failure_says_whether_the_request_can_have_arrived() {
    smol::block_on(async {
        let connector =
            Connector::builder().connect_timeout(Duration::from_millis(300)).build().unwrap();

        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = get(&connector, &format!("http://{closed}/")).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Connect { .. }), "{error}");
        assert!(!error.was_sent());

        // The server accepts the connection but never answers the TLS handshake.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", silent.local_addr().unwrap());
        let error = get(&connector, &url).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Timeout { .. }), "{error}");
        assert!(!error.was_sent());

        let (address, _server) = serve(|mut socket| drop(read_head(&mut socket)));
        let error = get(&connector, &format!("http://{address}/")).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Lost { .. }), "{error}");
        assert!(error.was_sent());

        let (address, _server) = serve(|mut socket| {
            read_head(&mut socket);
            socket.write_all(b"well, hello\r\n\r\n").unwrap();
        });
        let error = get(&connector, &format!("http://{address}/")).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Protocol { .. }), "{error}");
        assert!(error.was_sent());
    });
}
