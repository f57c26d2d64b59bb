use bytes::Bytes;
use http::{Request, StatusCode, Version, header};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use super::certificate::Certificate;
use super::origin::{builder, closed, connector, get, listen, read_all, read_request, within};

#[tokio::test]
async fn a_connection_is_reused() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Waits for the second request on the same connection.
        for _ in 0..2 {
            let head = read_request(&mut stream).await.unwrap();
            assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
            assert!(head.ends_with("\r\n\r\nhello"), "{head}");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        }
    });
    let connector = connector();
    within(async {
        for _ in 0..2 {
            let request = Request::post(format!("http://{address}/mcp"));
            let request = request.body(Bytes::from_static(b"hello")).unwrap();
            let response = connector.send(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.version(), Version::HTTP_11);
            assert_eq!(read_all(response.into_body()).await, "ok");
            // A separate task returns the connection to the pool.
            tokio::task::yield_now().await;
        }
        server.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_connection_idle_for_too_long_is_closed() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        closed(stream).await;
    });
    let connector = builder().idle_timeout(std::time::Duration::from_millis(50)).build().unwrap();
    within(async {
        connector.send(get(format!("http://{address}/"))).await.unwrap();
        server.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn exchanges_do_not_wait_for_one_another() {
    const COUNT: usize = 8;
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let mut waiting = Vec::new();
        while waiting.len() < COUNT {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_request(&mut stream).await.unwrap();
            waiting.push((stream, head));
        }
        // All requests arrive before the first response is sent. The last one is answered first.
        while let Some((mut stream, head)) = waiting.pop() {
            let path = head.split(' ').nth(1).unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{path}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let connector = connector();
    within(async {
        let exchanges: Vec<_> = (0..COUNT)
            .map(|i| tokio::spawn(connector.send(get(format!("http://{address}/{i}")))))
            .collect();
        for (i, exchange) in exchanges.into_iter().enumerate() {
            let response = exchange.await.unwrap().unwrap();
            assert_eq!(read_all(response.into_body()).await, format!("/{i}"));
        }
        server.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_body_is_streamed_chunk_by_chunk() {
    let (listener, address) = listen().await;
    let (seen, first_seen) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).await.unwrap();
        stream.write_all(b"5\r\nfirst\r\n").await.unwrap();
        // The second chunk is not written until the first has been read.
        first_seen.await.unwrap();
        stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").await.unwrap();
        closed(stream).await;
    });
    within(async {
        let response = connector().send(get(format!("http://{address}/"))).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "first");
        seen.send(()).unwrap();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "second");
        assert!(body.chunk().await.is_none());
        assert!(body.chunk().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn dropping_a_body_closes_the_connection() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        stream.write_all(answer).await.unwrap();
        closed(stream).await;
    });
    let connector = connector();
    within(async {
        let response = connector.send(get(format!("http://{address}/"))).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "first");
        drop(body);
        server.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn dropping_an_exchange_before_the_head_closes_the_connection() {
    let (listener, address) = listen().await;
    let (arrived, request_arrived) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        arrived.send(()).unwrap();
        closed(stream).await;
    });
    let connector = connector();
    within(async {
        tokio::select! {
            _ = connector.send(get(format!("http://{address}/"))) => panic!("the server does not answer"),
            arrived = request_arrived => arrived.unwrap(),
        }
        server.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /there\r\n\
                       content-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        assert_eq!(read_request(&mut stream).await, None);
    });
    within(async {
        let response = connector().send(get(format!("http://{address}/here"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(response.headers()[header::LOCATION], "/there");
    })
    .await;
}

#[tokio::test]
async fn a_tls_server_without_http_2_is_used_with_http_1() {
    let certificate = Certificate::new();
    let (listener, address) = listen().await;
    let acceptor = certificate.acceptor(&[]);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let head = read_request(&mut stream).await.unwrap();
        assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        closed(stream).await;
    });
    let connector = builder().root_certificate(certificate.der).build().unwrap();
    within(async {
        let response = connector.send(get(format!("https://{address}/"))).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_11);
        assert_eq!(read_all(response.into_body()).await, "ok");
    })
    .await;
}
