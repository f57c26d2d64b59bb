//! HTTP/2 clients that flood the server with frames that are cheap to send.

use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;

use super::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, Frames, GOAWAY,
    HEADERS, MAX_CONCURRENT_STREAMS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, block, fields,
    frame,
};
use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, Wire, in_time, text};

async fn served(gate: &std::sync::Arc<HandlerGate>) -> Served {
    Served::with(gated(gate), HttpServerOptions::new(), |listener| {
        listener.stall_timeout(Duration::from_millis(300))
    })
    .await
}

/// Checks that another client is still served.
async fn is_served(served: &Served) {
    let mut wire = Wire::connect(served.address).await;
    assert_eq!(text(&wire.ask(&Post::call("plain")).await.1), "plain");
}

/// Whether the last frame is a GOAWAY with this code. If the server had more to read, the
/// connection may be reset before the GOAWAY is read, so a missing GOAWAY is accepted.
fn is_goaway(frames: &[Frame], code: u32) -> bool {
    frames.last().is_none_or(|last| last.kind != GOAWAY || last.goaway_code() == code)
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/mcp"), (":authority", "localhost")];

#[tokio::test]
async fn streams_that_are_reset_at_once_end_their_connection() {
    let served = served(&HandlerGate::new()).await;
    let mut frames = Frames::connect(&served, &[]).await;
    let mut flood = Vec::new();
    for stream in (1..2001).step_by(2) {
        flood.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&GET)));
        flood.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    let _broken_off = frames.write(&flood).await;
    let came = frames.rest().await;
    assert!(is_goaway(&came, ENHANCE_YOUR_CALM), "{came:?}");
    is_served(&served).await;
}

#[tokio::test]
async fn calls_that_are_reset_one_by_one_leave_no_handler() {
    let gate = HandlerGate::new();
    let served = served(&gate).await;
    let mut frames = Frames::connect(&served, &[]).await;
    for stream in (1..201).step_by(2) {
        frames.post(stream, &Post::call("wait")).await;
        gate.arrival().await;
        frames.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes()).await;
        gate.departure().await;
    }
    assert_eq!(gate.finished(), 0);
    is_served(&served).await;
    in_time(served.service.close()).await;
}

#[tokio::test]
async fn a_head_that_is_continued_without_end_ends_its_connection() {
    let served = served(&HandlerGate::new()).await;
    for size in [0, 1, 1000, 16_384] {
        let mut frames = Frames::connect(&served, &[]).await;
        frames.send(HEADERS, END_STREAM, 1, &block(&GET)).await;
        // An incomplete field, so that no field is decoded: it claims a length of a megabyte.
        let mut piece = vec![b'x'; size];
        let begun = [0, 127, 129, 255, 63];
        let length = size.min(begun.len());
        piece[..length].copy_from_slice(&begun[..length]);
        let came = frames.flood(&frame(CONTINUATION, 0, 1, &piece)).await;
        assert!(came.iter().all(|frame| frame.stream == 0), "{size} {came:?}");
    }
    is_served(&served).await;
}

#[tokio::test]
async fn a_flood_of_control_frames_does_not_block_other_clients() {
    let gate = HandlerGate::new();
    let served = Served::with(gated(&gate), HttpServerOptions::new(), |listener| {
        listener.head_timeout(Duration::from_millis(500)).stall_timeout(Duration::from_millis(500))
    })
    .await;
    let floods = [
        frame(SETTINGS, 0, 0, &[]),
        frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1].repeat(100)),
        frame(PING, 0, 0, &[7; 8]),
        frame(PING, ACK, 0, &[7; 8]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        // An unknown frame type.
        frame(99, 0, 0, &[0; 100]),
    ];
    for flood in floods {
        let flood = flood.repeat(100);
        let mut frames = Frames::connect(&served, &[]).await;
        frames.flood(&flood).await;
        is_served(&served).await;
        // The unread responses to these frames fill the client's quota.
        let mut frames = Frames::connect(&served, &[]).await;
        frames.flood_unread(&flood).await;
        is_served(&served).await;
    }
}

#[tokio::test]
async fn empty_data_ends_its_connection() {
    let served = served(&HandlerGate::new()).await;
    for padding in [&[][..], &[1, 0]] {
        let mut frames = Frames::connect(&served, &[]).await;
        frames.send(HEADERS, END_HEADERS, 1, &block(&fields(&Post::call("plain")))).await;
        let flags = if padding.is_empty() { 0 } else { 8 };
        let came = frames.flood(&frame(DATA, flags, 1, padding).repeat(100)).await;
        assert!(is_goaway(&came, ENHANCE_YOUR_CALM), "{came:?}");
    }
    is_served(&served).await;
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused_and_end_their_connection() {
    let gate = HandlerGate::new();
    let served = served(&gate).await;
    let mut frames = Frames::connect(&served, &[]).await;
    let streams = frames.settings.iter().find(|(id, _)| *id == MAX_CONCURRENT_STREAMS).unwrap().1;
    assert_eq!(streams, 128);
    let (call, mut flood) = (Post::call("wait"), Vec::new());
    for stream in (1..10_001).step_by(2) {
        flood.extend(frame(HEADERS, END_HEADERS, stream, &block(&fields(&call))));
        flood.extend(frame(DATA, END_STREAM, stream, call.body.as_bytes()));
    }
    let _broken_off = frames.write(&flood).await;
    frames.rest().await;
    // All handlers that were started end with their connection.
    in_time(served.service.close()).await;
    let arrived = gate.arrived.available_permits();
    assert!(arrived <= 128, "{arrived}");
    assert_eq!(gate.finished(), 0);
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_refused_and_one_far_beyond_it_ends_the_connection() {
    let served = served(&HandlerGate::new()).await;
    let long = |bytes: usize| block(&fields(&Post::call("plain").with("X", "y".repeat(bytes))));
    let mut frames = Frames::connect(&served, &[]).await;
    for stream in [1, 3] {
        let head = long(16 * 1024);
        let (first, rest) = head.split_at(16_384);
        frames.send(HEADERS, END_STREAM, stream, first).await;
        frames.send(CONTINUATION, END_HEADERS, stream, rest).await;
        let answer = frames.until_end_of(stream).await;
        let answer: Vec<u8> = answer.iter().map(|frame| frame.kind).collect();
        assert_eq!(answer, [HEADERS], "431");
    }
    frames.post(5, &Post::call("plain")).await;
    assert_eq!(frames.until_end_of(5).await.last().unwrap().kind, DATA);
    let head = long(80 * 1024);
    let mut pieces = head.chunks(16_384);
    let mut flood = frame(HEADERS, END_STREAM, 7, pieces.next().unwrap());
    for piece in pieces {
        flood.extend(frame(CONTINUATION, 0, 7, piece));
    }
    flood.extend(frame(CONTINUATION, END_HEADERS, 7, &[]));
    let _broken_off = frames.write(&flood).await;
    assert!(frames.rest().await.iter().all(|frame| frame.stream == 0));
    is_served(&served).await;
}
