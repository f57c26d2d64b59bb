//! Malformed HTTP/2 requests.

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Frames, HEADERS, RST_STREAM, STATUS_200,
    STATUS_400, block, fields,
};
use super::served::{HandlerGate, Served, gated};
use super::wire::Post;

async fn served() -> Served {
    Served::new(gated(&HandlerGate::new())).await
}

/// Returns the first byte of the response's header block, or 0 if the stream was reset instead.
fn beginning(answer: &[Frame]) -> u8 {
    let first = answer.iter().find(|frame| matches!(frame.kind, HEADERS | RST_STREAM)).unwrap();
    if first.kind == HEADERS { first.payload[0] } else { 0 }
}

#[tokio::test]
async fn all_trailers_are_refused() {
    let served = served().await;
    let mut frames = Frames::connect(&served, &[]).await;
    let post = Post::call("plain");
    let cases: [(&[(&str, &str)], u8); 5] = [
        // The library silently drops these,
        (&[(":path", "/other")], STATUS_400),
        (&[(":method", "GET"), ("x", "y")], STATUS_400),
        // so they look the same as these.
        (&[], STATUS_400),
        (&[("x", "y")], STATUS_400),
        (&[("connection", "close")], 0),
    ];
    for (stream, (trailers, expected)) in (1..).step_by(2).zip(cases) {
        frames.send(HEADERS, END_HEADERS, stream, &block(&fields(&post))).await;
        frames.send(DATA, 0, stream, post.body.as_bytes()).await;
        frames.send(HEADERS, END_HEADERS | END_STREAM, stream, &block(trailers)).await;
        let answer = frames.until_end_of(stream).await;
        assert_eq!(beginning(&answer), expected, "{trailers:?} {answer:?}");
    }
    frames.post(11, &post).await;
    assert_eq!(beginning(&frames.until_end_of(11).await), STATUS_200);
}

#[tokio::test]
async fn a_value_that_starts_or_ends_with_a_blank_is_refused() {
    let served = served().await;
    let mut frames = Frames::connect(&served, &[]).await;
    let cases = [
        ("y", STATUS_200),
        ("", STATUS_200),
        ("y y", STATUS_200),
        (" y", STATUS_400),
        ("y ", STATUS_400),
        ("\ty", STATUS_400),
        ("y\t", STATUS_400),
        (" ", STATUS_400),
    ];
    for (stream, (value, expected)) in (1..).step_by(2).zip(cases) {
        let post = Post::call("plain").with("X", value);
        frames.post(stream, &post).await;
        let answer = frames.until_end_of(stream).await;
        assert_eq!(beginning(&answer), expected, "{value:?} {answer:?}");
    }
}

#[tokio::test]
async fn a_malformed_head_ends_its_stream_or_its_connection_without_a_response() {
    let served = served().await;
    for (name, value) in [
        (":path", "/other"),
        (":status", "200"),
        (":unknown", "x"),
        ("Upper", "x"),
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("content-length", "1"),
        ("x", "y\n"),
        ("x", "y\r\nz: a"),
        ("x", "y\0"),
    ] {
        let mut frames = Frames::connect(&served, &[]).await;
        let post = Post::call("plain");
        let mut fields = fields(&post);
        fields.push((name.to_owned(), value.to_owned()));
        frames.send(HEADERS, END_HEADERS, 1, &block(&fields)).await;
        frames.send(DATA, END_STREAM, 1, post.body.as_bytes()).await;
        while let Some(frame) = frames.next().await {
            assert_ne!(frame.kind, HEADERS, "{name}: {value}");
            if frame.kind == RST_STREAM {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_head_may_be_split_into_frames() {
    let served = served().await;
    let mut frames = Frames::connect(&served, &[]).await;
    let post = Post::call("plain");
    let head = block(&fields(&post));
    let (first, rest) = head.split_at(head.len() / 2);
    frames.send(HEADERS, 0, 1, first).await;
    frames.send(CONTINUATION, END_HEADERS, 1, rest).await;
    frames.send(DATA, END_STREAM, 1, post.body.as_bytes()).await;
    assert_eq!(beginning(&frames.until_end_of(1).await), STATUS_200);
}
