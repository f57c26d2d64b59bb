use std::future::poll_fn;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Request, Response, Version};
use mcp_sansio_tokio::ConnectorError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::certificate::Certificate;
use super::origin::{builder, get, listen, read_all, within};

type Respond = SendResponse<Bytes>;

/// Serves a connection with a separate task for each request.
async fn serve<F: Future<Output = ()> + Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: impl Fn(Request<h2::RecvStream>, Respond) -> F,
) {
    let mut connection: Connection<_, Bytes> = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(handler(request, respond));
    }
}

fn answer(mut respond: Respond, body: impl Into<Bytes>) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(body.into(), true).unwrap();
}

#[tokio::test]
async fn http2_is_negotiated_by_alpn() {
    let certificate = Certificate::new();
    let (listener, address) = listen().await;
    let acceptor = certificate.acceptor(&[b"h2", b"http/1.1"]);
    tokio::spawn(async move {
        // Accepts a single connection.
        let (stream, _) = listener.accept().await.unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        serve(stream, async |request, respond| {
            answer(respond, request.uri().path().to_owned());
        })
        .await;
    });
    let connector = builder().root_certificate(certificate.der).build().unwrap();
    within(async {
        for path in ["/first", "/second"] {
            let response = connector.send(get(format!("https://{address}{path}"))).await.unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            assert_eq!(read_all(response.into_body()).await, path);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges_started_during_negotiation_all_succeed() {
    let certificate = Certificate::new();
    let (listener, address) = listen().await;
    let acceptor = certificate.acceptor(&[b"h2"]);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // The client may close the connection when it finds that it needs only one.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, respond))) = connection.accept().await {
                    answer(respond, request.uri().path().to_owned());
                }
            });
        }
    });
    let connector = builder().root_certificate(certificate.der).build().unwrap();
    within(async {
        let exchanges: Vec<_> = (0..20)
            .map(|i| tokio::spawn(connector.send(get(format!("https://{address}/{i}")))))
            .collect();
        for (i, exchange) in exchanges.into_iter().enumerate() {
            let response = exchange.await.unwrap().unwrap();
            assert_eq!(read_all(response.into_body()).await, format!("/{i}"));
        }
    })
    .await;
}

#[tokio::test]
async fn exchanges_share_a_connection_and_do_not_wait_for_one_another() {
    const COUNT: usize = 50;
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection: Connection<_, Bytes> = h2::server::handshake(stream).await.unwrap();
        let mut waiting = Vec::new();
        while let Some(Ok((request, respond))) = connection.accept().await {
            waiting.push((request.uri().path().to_owned(), respond));
            // All requests arrive before the first response is sent. The last one is answered
            // first.
            if waiting.len() == COUNT {
                while let Some((path, respond)) = waiting.pop() {
                    answer(respond, path);
                }
            }
        }
    });
    let connector = builder().http2_only(true).build().unwrap();
    within(async {
        let exchanges: Vec<_> = (0..COUNT)
            .map(|i| tokio::spawn(connector.send(get(format!("http://{address}/{i}")))))
            .collect();
        for (i, exchange) in exchanges.into_iter().enumerate() {
            let response = exchange.await.unwrap().unwrap();
            assert_eq!(read_all(response.into_body()).await, format!("/{i}"));
        }
    })
    .await;
}

#[tokio::test]
async fn unread_streams_do_not_block_the_others() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, async |request, mut respond| {
            if request.uri().path() == "/small" {
                return answer(respond, "here");
            }
            // More bytes than the client accepts while it does not read.
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            stream.send_data(vec![b'x'; 8 << 20].into(), false).unwrap();
            let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
        })
        .await;
    });
    let connector = builder().http2_only(true).build().unwrap();
    within(async {
        let mut unread = Vec::new();
        for _ in 0..40 {
            unread.push(connector.send(get(format!("http://{address}/large"))).await.unwrap());
        }
        // These responses show that all bytes within the windows have arrived.
        for _ in 0..3 {
            let response = connector.send(get(format!("http://{address}/small"))).await.unwrap();
            assert_eq!(read_all(response.into_body()).await, "here");
        }
        drop(unread);
    })
    .await;
}

#[tokio::test]
async fn dropping_a_body_resets_only_its_stream() {
    let (listener, address) = listen().await;
    let (reset, mut resets) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, move |request, mut respond| {
            let reset = reset.clone();
            async move {
                if request.uri().path() == "/other" {
                    return answer(respond, "here");
                }
                let mut stream = respond.send_response(Response::new(()), false).unwrap();
                stream.send_data("first".into(), false).unwrap();
                let reason = poll_fn(|cx| stream.poll_reset(cx)).await.unwrap();
                reset.send(reason).unwrap();
            }
        })
        .await;
    });
    let connector = builder().http2_only(true).build().unwrap();
    within(async {
        let response = connector.send(get(format!("http://{address}/"))).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "first");
        drop(body);
        assert_eq!(resets.recv().await, Some(Reason::CANCEL));
        let response = connector.send(get(format!("http://{address}/other"))).await.unwrap();
        assert_eq!(read_all(response.into_body()).await, "here");
    })
    .await;
}

#[tokio::test]
async fn dropping_an_exchange_before_the_head_resets_its_stream() {
    let (listener, address) = listen().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, move |_, mut respond| {
            let tell = tell.clone();
            async move {
                tell.send(None).unwrap();
                tell.send(Some(poll_fn(|cx| respond.poll_reset(cx)).await.unwrap())).unwrap();
            }
        })
        .await;
    });
    let connector = builder().http2_only(true).build().unwrap();
    within(async {
        tokio::select! {
            _ = connector.send(get(format!("http://{address}/"))) => panic!("the server does not answer"),
            arrived = told.recv() => assert_eq!(arrived, Some(None)),
        }
        assert_eq!(told.recv().await, Some(Some(Reason::CANCEL)));
    })
    .await;
}

#[tokio::test]
async fn a_refused_stream_counts_as_not_sent() {
    for (reason, sent) in [(Reason::REFUSED_STREAM, false), (Reason::INTERNAL_ERROR, true)] {
        let (listener, address) = listen().await;
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, move |_, mut respond| async move { respond.send_reset(reason) }).await;
        });
        let connector = builder().http2_only(true).build().unwrap();
        let error = within(connector.send(get(format!("http://{address}/")))).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Lost { .. }), "{error:?}");
        assert_eq!(error.was_sent(), sent, "{error}");
    }
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_refused() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, async |_, mut respond| {
            let large = Response::builder().header("x-large", "x".repeat(70 << 10));
            let _ = respond.send_response(large.body(()).unwrap(), true);
        })
        .await;
    });
    let connector = builder().http2_only(true).build().unwrap();
    let error = within(connector.send(get(format!("http://{address}/")))).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Protocol { .. }), "{error:?}");
    assert!(error.was_sent());
}
