use std::net::SocketAddr;
use std::process::Command;

use http::Version;
use mcp_sansio_tokio::{ConnectorError, Proxy};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use super::certificate::Certificate;
use super::origin::{builder, closed, closed_port, get, listen, read_all, read_request, within};

/// Accepts one connection, answers its requests with `ok`, and returns the head of the first.
async fn origin(certificate: Option<&Certificate>) -> (SocketAddr, Head) {
    let (listener, address) = listen().await;
    let acceptor = certificate.map(|certificate| certificate.acceptor(&[]));
    let head = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match acceptor {
            Some(acceptor) => answer(acceptor.accept(stream).await.unwrap()).await,
            None => answer(stream).await,
        }
    });
    (address, head)
}

type Head = tokio::task::JoinHandle<String>;

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> String {
    let head = read_request(&mut stream).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    tokio::spawn(closed(stream));
    head
}

/// Starts a proxy for one connection. It tunnels to `origin`, whichever host the client names, or
/// answers plain requests without forwarding them. Returns the head that it received.
async fn proxy(origin: SocketAddr, certificate: Option<&Certificate>) -> (SocketAddr, Head) {
    let (listener, address) = listen().await;
    let acceptor = certificate.map(|certificate| certificate.acceptor(&[]));
    let head = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match acceptor {
            Some(acceptor) => forward(acceptor.accept(stream).await.unwrap(), origin).await,
            None => forward(stream, origin).await,
        }
    });
    (address, head)
}

async fn forward(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: SocketAddr,
) -> String {
    let head = read_request(&mut stream).await.unwrap();
    if !head.starts_with("CONNECT ") {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nby proxy!").await.unwrap();
        tokio::spawn(closed(stream));
        return head;
    }
    let mut onward = TcpStream::connect(origin).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    tokio::spawn(async move { copy_bidirectional(&mut stream, &mut onward).await });
    head
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let certificate = Certificate::new();
    // Over a plain proxy, and over a proxy that is reached over TLS.
    for (scheme, secure) in [("http", None), ("https", Some(&certificate))] {
        let (origin, origin_head) = origin(Some(&certificate)).await;
        let (proxy, proxy_head) = proxy(origin, secure).await;
        let connector = builder()
            .root_certificate(certificate.der.clone())
            .proxy(Proxy::all(&format!("{scheme}://Aladdin:open%20sesame@{proxy}")).unwrap())
            .build()
            .unwrap();
        within(async {
            let response = connector.send(get("https://origin.test/path")).await.unwrap();
            assert_eq!(read_all(response.into_body()).await, "ok");
            let head = proxy_head.await.unwrap();
            assert!(head.starts_with("CONNECT origin.test:443 HTTP/1.1\r\n"), "{head}");
            // `Aladdin:open sesame`, as in RFC 7617.
            let authorization = "proxy-authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==\r\n";
            assert!(head.to_ascii_lowercase().contains(authorization), "{head}");
            let head = origin_head.await.unwrap();
            assert!(head.starts_with("GET /path HTTP/1.1\r\n"), "{head}");
            assert!(!head.to_ascii_lowercase().contains("proxy-authorization"), "{head}");
        })
        .await;
    }
}

#[tokio::test]
async fn plain_http_is_forwarded() {
    let (proxy, head) = proxy(SocketAddr::from(([127, 0, 0, 1], 1)), None).await;
    let proxy = Proxy::all(&format!("http://Aladdin:open%20sesame@{proxy}")).unwrap();
    let connector = builder().proxy(proxy).build().unwrap();
    within(async {
        let response = connector.send(get("http://origin.test:8080/path?query")).await.unwrap();
        assert_eq!(read_all(response.into_body()).await, "by proxy!");
        let head = head.await.unwrap();
        assert!(head.starts_with("GET http://origin.test:8080/path?query HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("host: origin.test:8080\r\n"), "{head}");
        let authorization = "proxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        assert!(head.contains(authorization), "{head}");
    })
    .await;
}

#[tokio::test]
async fn http_2_without_tls_goes_through_a_tunnel() {
    let (listener, origin) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            respond.send_response(http::Response::new(()), true).unwrap();
        }
    });
    let (proxy, head) = proxy(origin, None).await;
    let proxy = Proxy::all(&format!("http://{proxy}")).unwrap();
    let connector = builder().proxy(proxy).http2_only(true).build().unwrap();
    within(async {
        let response = connector.send(get("http://origin.test/")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        assert!(head.await.unwrap().starts_with("CONNECT origin.test:80 HTTP/1.1\r\n"));
    })
    .await;
}

#[tokio::test]
async fn a_socks_proxy_looks_names_up() {
    let (origin, _) = origin(None).await;
    let (listener, proxy) = listen().await;
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // RFC 1928 and RFC 1929: the client offers one method, user name and password.
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting, [5, 1, 2]);
        stream.write_all(&[5, 2]).await.unwrap();
        let mut login = [0; 15];
        stream.read_exact(&mut login).await.unwrap();
        assert_eq!(&login, b"\x01\x04user\x08password");
        stream.write_all(&[1, 0]).await.unwrap();
        let mut request = [0; 18];
        stream.read_exact(&mut request).await.unwrap();
        let mut onward = TcpStream::connect(origin).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]).await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut stream, &mut onward).await });
        request
    });
    let proxy = Proxy::all(&format!("socks5://user:password@{proxy}")).unwrap();
    let connector = builder().proxy(proxy).build().unwrap();
    within(async {
        let response = connector.send(get("http://origin.test/")).await.unwrap();
        assert_eq!(read_all(response.into_body()).await, "ok");
        assert_eq!(&asked.await.unwrap(), b"\x05\x01\x00\x03\x0borigin.test\x00\x50");
    })
    .await;
}

#[tokio::test]
async fn excluded_hosts_are_reached_directly() {
    let (origin, head) = origin(None).await;
    let (_held, gone) = closed_port();
    let proxy = Proxy::all(&format!("http://{gone}")).unwrap().except("example.com, 127.0.0.0/8");
    let connector = builder().proxy(proxy).build().unwrap();
    within(async {
        let response = connector.send(get(format!("http://{origin}/"))).await.unwrap();
        assert_eq!(read_all(response.into_body()).await, "ok");
        assert!(head.await.unwrap().starts_with("GET / HTTP/1.1\r\n"));
        // Other hosts still go through the proxy.
        let error = connector.send(get("http://origin.test/")).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Proxy { .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_failed_proxy_is_named_without_its_password() {
    let (listener, refusing) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        closed(stream).await;
    });
    let (_held, gone) = closed_port();
    for (address, reason) in [(refusing, "authorization"), (gone, "refused")] {
        let proxy = Proxy::all(&format!("http://user:secret@{address}")).unwrap();
        let builder = builder().proxy(proxy);
        assert!(!format!("{builder:?}").contains("secret"));
        let connector = builder.build().unwrap();
        assert!(!format!("{connector:?}").contains("secret"));
        let error = within(connector.send(get("https://origin.test/"))).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Proxy { .. }), "{error:?}");
        assert!(!error.was_sent());
        let text = format!("{error} {error:?}");
        assert!(text.contains(reason) && text.contains(&address.to_string()), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

/// Helper of [`proxy_variables_of_the_environment_are_used`], which runs it in a child process
/// because all tests of a process share one environment.
#[tokio::test]
async fn probe_of_the_environment() {
    let Ok(url) = std::env::var("CONNECTOR_TEST_URL") else { return };
    let connector = mcp_sansio_tokio::Connector::new().unwrap();
    let response = within(connector.send(get(url))).await.unwrap();
    let body = read_all(response.into_body()).await;
    assert_eq!(body, std::env::var("CONNECTOR_TEST_BODY").unwrap());
}

#[tokio::test]
async fn proxy_variables_of_the_environment_are_used() {
    async fn probe(proxy: &str, except: &str, url: &str, body: &str) {
        let mut probe = Command::new(std::env::current_exe().unwrap());
        probe.args(["--exact", "proxies::probe_of_the_environment"]);
        for name in ["ALL_PROXY", "HTTPS_PROXY", "https_proxy", "http_proxy", "REQUEST_METHOD"] {
            probe.env_remove(name);
        }
        probe.env("HTTP_PROXY", proxy).env("NO_PROXY", except);
        probe.env("CONNECTOR_TEST_URL", url).env("CONNECTOR_TEST_BODY", body);
        let output = tokio::task::spawn_blocking(move || probe.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let (_held, gone) = closed_port();
    let gone = format!("http://{gone}");

    let (proxy, _) = proxy(SocketAddr::from(([127, 0, 0, 1], 1)), None).await;
    probe(&format!("http://{proxy}"), "", "http://origin.test/", "by proxy!").await;
    // Loopback addresses are reached directly, even if a proxy is set.
    let (direct, _) = origin(None).await;
    probe(&gone, "", &format!("http://{direct}/"), "ok").await;
}
