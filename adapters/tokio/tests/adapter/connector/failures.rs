use std::error::Error;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use mcp_sansio_tokio::{Connector, ConnectorError};
use tokio::io::AsyncWriteExt;

use super::certificate::Certificate;
use super::origin::{builder, closed_port, connector, get, listen, read_request, within};

async fn failure(connector: &Connector, url: impl AsRef<str>) -> ConnectorError {
    within(connector.send(get(url))).await.unwrap_err()
}

/// Sends a request to a server that answers `bytes` and closes, and returns the error.
async fn answered(bytes: &'static [u8]) -> ConnectorError {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(bytes).await.unwrap();
    });
    match within(connector().send(get(format!("http://{address}/")))).await {
        Err(error) => error,
        Ok(response) => {
            let mut body = response.into_body();
            loop {
                match within(body.chunk()).await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return error,
                    None => panic!("the body ended without an error"),
                }
            }
        }
    }
}

#[tokio::test]
async fn connection_refused() {
    let (_held, address) = closed_port();
    let error = failure(&connector(), format!("http://{address}/")).await;
    let ConnectorError::Connect { host, cause } = &error else { panic!("{error:?}") };
    assert_eq!(
        (host.as_str(), cause.kind()),
        (&*address.to_string(), ErrorKind::ConnectionRefused)
    );
    assert!(!error.was_sent());
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn the_name_is_unknown() {
    let error = failure(&connector(), "http://server.invalid/").await;
    assert!(matches!(error, ConnectorError::Connect { .. }), "{error:?}");
}

/// Returns the address of a server whose client refuses its certificate.
async fn refused_server(certificate: &Certificate) -> SocketAddr {
    let (listener, address) = listen().await;
    let acceptor = certificate.acceptor(&[]);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        assert!(acceptor.accept(stream).await.is_err());
    });
    address
}

#[tokio::test]
async fn the_certificate_is_not_trusted() {
    let certificate = Certificate::new();
    let address = refused_server(&certificate).await;
    let error = failure(&connector(), format!("https://{address}/")).await;
    let ConnectorError::Tls { cause, .. } = &error else { panic!("{error:?}") };
    let inner = cause.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    assert!(matches!(inner, Some(rustls::Error::InvalidCertificate(_))), "{error:?}");
    assert!(!error.was_sent());
    let said = error.to_string();
    assert!(said.contains("UnknownIssuer; ") && said.contains("SSL_CERT_FILE"), "{said}");
}

#[tokio::test]
async fn the_certificate_is_that_of_an_authority() {
    let certificate = Certificate::of_an_authority();
    let address = refused_server(&certificate).await;
    let connector = builder().root_certificate(certificate.der).build().unwrap();
    let error = failure(&connector, format!("https://{address}/")).await;
    assert!(
        error.to_string().contains("; the server has the certificate of an authority"),
        "{error}"
    );
}

#[tokio::test]
async fn the_certificate_is_for_another_name() {
    let certificate = Certificate::new();
    let address = refused_server(&certificate).await;
    let connector = builder().root_certificate(certificate.der).build().unwrap();
    let error = failure(&connector, format!("https://localhost:{}/", address.port())).await;
    assert!(matches!(error, ConnectorError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn the_server_does_not_speak_tls() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let error = failure(&connector(), format!("https://{address}/")).await;
    assert!(matches!(error, ConnectorError::Tls { .. }), "{error:?}");
    assert!(error.to_string().ends_with("; does it speak HTTPS?"), "{error}");
}

#[tokio::test]
async fn the_handshake_takes_too_long() {
    let (_listener, address) = listen().await;
    let connector = builder().connect_timeout(Duration::from_millis(50)).build().unwrap();
    let error = failure(&connector, format!("https://{address}/")).await;
    assert!(matches!(error, ConnectorError::Timeout { .. }), "{error:?}");
    assert!(!error.was_sent());
}

#[tokio::test]
async fn the_answer_is_not_http() {
    let error = answered(b"220 mail.example ESMTP\r\n\r\n").await;
    assert!(matches!(error, ConnectorError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn the_head_is_beyond_the_limit() {
    let large = [b"HTTP/1.1 200 OK\r\nx-large: ", &[b'x'; 200 << 10][..], b"\r\n\r\n"].concat();
    let error = answered(large.leak()).await;
    assert!(matches!(error, ConnectorError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn the_connection_ends_before_the_head_does() {
    for part in [&b""[..], b"HTTP/1.1 200 OK\r\nconte"] {
        let error = answered(part).await;
        assert!(matches!(error, ConnectorError::Lost { sent: true, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_connection_ends_before_the_body_does() {
    for part in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let error = answered(part).await;
        assert!(matches!(error, ConnectorError::Lost { sent: true, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_request_cannot_be_sent() {
    for url in ["/relative", "ftp://server.example/", "http://user:secret@server.example/"] {
        let error = failure(&connector(), url).await;
        assert!(matches!(error, ConnectorError::Request { .. }), "{error:?}");
        assert!(!error.was_sent());
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
    let connect = Request::connect("http://server.example/").body(Bytes::new()).unwrap();
    let error = connector().send(connect).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Request { .. }), "{error:?}");
}

#[test]
fn a_root_certificate_is_not_one() {
    let error = Connector::builder().root_certificate(b"not DER").build().unwrap_err();
    assert!(matches!(error, ConnectorError::Configuration { .. }), "{error:?}");
    assert!(error.source().is_none(), "the message is complete");
}
