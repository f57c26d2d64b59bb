use std::future::Future;

use mcp_sansio_tokio::adapter::http_client::FetchError;
use tokio::io::AsyncWriteExt;

use super::origin::{connector, listen, read_request, within};

/// Fetches a document from a server that sends this response.
async fn fetch(answer: impl Into<Vec<u8>>) -> Result<Vec<u8>, FetchError> {
    let (listener, address) = listen().await;
    let answer = answer.into();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_request(&mut stream).await.unwrap();
        assert!(head.starts_with("GET /keys?of=1 HTTP/1.1\r\n"), "{head}");
        let accept = "accept: application/mcp-server-card+json, */*;q=0.9\r\n";
        assert!(head.to_ascii_lowercase().contains(accept), "{head}");
        // The client closes the connection once it has read enough.
        let _hung_up = stream.write_all(&answer).await;
    });
    within(sent(connector().fetch(format!("http://{address}/keys?of=1")))).await
}

/// Asserts that the future is `Send`, which a verifier requires.
fn sent<F: Future + Send + 'static>(future: F) -> F {
    future
}

#[tokio::test]
async fn the_document_is_the_body_of_a_200_response() {
    // Rule: [CARD-027].
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{\"\r\n4\r\na\":1\r\n1\r\n}\r\n0\r\n\r\n";
    assert_eq!(fetch(answer).await.unwrap(), br#"{"a":1}"#);
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let answer = "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    let error = fetch(answer).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 302 }), "{error:?}");
    assert_eq!(error.to_string(), "the server answers with HTTP status 302");
}

#[tokio::test]
async fn an_endless_document_is_rejected() {
    let limit = 256 * 1024;
    for (length, fits) in [(limit, true), (limit + 1, false)] {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b' ');
        match fetch(answer).await {
            Ok(document) => assert!(fits && document.len() == length),
            Err(error) => assert!(!fits && matches!(error, FetchError::TooLong), "{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_truncated_document_is_rejected() {
    let error = fetch("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").await.unwrap_err();
    assert!(matches!(error, FetchError::Exchange(_)), "{error:?}");
}
