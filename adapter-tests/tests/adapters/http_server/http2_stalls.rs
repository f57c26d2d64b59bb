//! HTTP/2 clients that do not read their responses, or that are idle.

use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ServerTimeouts};
use mcp_sansio_handlers::{Call, NoArguments, Server};

use super::adapter::HttpListener;
use super::frames::{
    ACK, DATA, Frame, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, RST_STREAM, STATUS_200,
};
use super::served::{HandlerGate, Served, gated};
use super::wire::{Post, in_time};

/// A timeout that the test waits for.
const SHORT: Duration = Duration::from_millis(300);
/// A timeout that never expires during a test.
const LONG: Duration = Duration::from_secs(3600);

async fn served(tune: impl FnOnce(HttpListener) -> HttpListener) -> Served {
    let server = gated(&HandlerGate::new())
        .tool("large", "Much", |_: Call<NoArguments>| "x".repeat(200_000))
        .tool("short", "Not much", |_: Call<NoArguments>| "x".repeat(15_000));
    serve(server, tune).await
}

async fn serve(server: Server, tune: impl FnOnce(HttpListener) -> HttpListener) -> Served {
    let mut timeouts = ServerTimeouts::default();
    // Tests with a waiting handler expect no event stream.
    timeouts.open_stream = None;
    Served::with(server, HttpServerOptions::new().timeouts(timeouts), tune).await
}

fn kinds(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(|frame| frame.kind).collect()
}

/// Checks that a small request on a connection with open windows is answered.
async fn is_served(frames: &mut Frames, stream: u32) {
    frames.post(stream, &Post::call("plain")).await;
    let answer = frames.until_end_of(stream).await;
    assert_eq!(answer.last().unwrap().kind, DATA, "{answer:?}");
}

#[tokio::test]
async fn a_stream_whose_window_is_closed_is_reset_alone() {
    let served = served(|listener| listener.stall_timeout(SHORT)).await;
    let mut frames = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    for (stream, tool) in [(1, "plain"), (3, "short"), (5, "large")] {
        frames.post(stream, &Post::call(tool)).await;
        let answer = frames.until_end_of(stream).await;
        assert_eq!(kinds(&answer), [HEADERS, RST_STREAM], "{tool}");
    }
    frames.settings(&[(INITIAL_WINDOW_SIZE, 65_535)]).await;
    is_served(&mut frames, 7).await;
}

#[tokio::test]
async fn an_open_stream_of_events_whose_window_is_closed_is_reset_with_its_handler() {
    let gate = HandlerGate::new();
    let served = serve(gated(&gate), |listener| listener.stall_timeout(SHORT)).await;
    let mut frames = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    frames.post(1, &Post::call("progress")).await;
    gate.arrival().await;
    assert_eq!(frames.until_end_of(1).await.last().unwrap().kind, RST_STREAM);
    gate.departure().await;
    assert_eq!(gate.finished(), 0);
}

#[tokio::test]
async fn streams_are_reset_when_the_window_of_their_connection_is_used_up() {
    let served = served(|listener| listener.stall_timeout(SHORT)).await;
    let mut frames = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 1 << 20)]).await;
    let mut streams = vec![1, 3, 5];
    for stream in &streams {
        frames.post(*stream, &Post::call("large")).await;
    }
    let mut bytes = 0;
    while !streams.is_empty() {
        let frame = frames.next().await.unwrap();
        assert!(!frame.ends_stream(), "{frame:?}");
        match frame.kind {
            DATA => bytes += frame.payload.len(),
            RST_STREAM => streams.retain(|stream| *stream != frame.stream),
            _ => {}
        }
    }
    assert_eq!(bytes, 65_535);
    frames.open_window(0, 1 << 20).await;
    is_served(&mut frames, 7).await;
}

#[tokio::test]
async fn a_response_read_byte_by_byte_is_aborted() {
    let served = served(|listener| listener.stall_timeout(SHORT)).await;
    let mut frames = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    // The library holds the whole short response, which ends with its connection.
    for tool in ["large", "short"] {
        let mut frames_of = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 10)]).await;
        frames_of.post(1, &Post::call(tool)).await;
        in_time(async {
            loop {
                let byte = super::frames::frame(super::frames::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
                if frames_of.write(&byte).await.is_err() {
                    return;
                }
                // Without a pause, a fast computer reads the short response before it is aborted.
                tokio::time::sleep(Duration::from_millis(1)).await;
                let next = tokio::time::timeout(Duration::from_millis(20), frames_of.next()).await;
                match next {
                    Ok(None) => return,
                    Ok(Some(frame)) if frame.kind == RST_STREAM => return,
                    Ok(Some(frame)) => assert!(!frame.ends_stream(), "{tool}"),
                    Err(_) => {}
                }
            }
        })
        .await;
    }
    frames.settings(&[(INITIAL_WINDOW_SIZE, 65_535)]).await;
    is_served(&mut frames, 1).await;
}

#[tokio::test]
async fn a_slow_client_that_reads_fast_enough_gets_the_whole_response() {
    let served = served(|listener| listener.stall_timeout(Duration::from_secs(4))).await;
    let mut frames = Frames::connect(&served, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    frames.open_window(0, 1 << 20).await;
    frames.post(1, &Post::call("large")).await;
    let mut bytes = 0;
    // The transfer takes thirteen times the pause, longer than the stall timeout.
    loop {
        frames.open_window(1, 16 * 1024).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        let mut window = 16 * 1024;
        while window > 0 {
            let frame = frames.next().await.unwrap();
            assert_ne!(frame.kind, RST_STREAM, "after {bytes} bytes");
            if frame.kind == DATA {
                window -= frame.payload.len();
                bytes += frame.payload.len();
            }
            if frame.ends_stream() {
                assert!(bytes > 200_000, "{bytes}");
                return;
            }
        }
    }
}

#[tokio::test]
async fn an_idle_connection_gets_a_goaway_and_is_closed() {
    // One client answers the last PING, one answers none, and one keeps sending its own.
    for (answers, asks) in [(true, false), (false, false), (true, true)] {
        let served = served(|listener| listener.idle_timeout(SHORT).stall_timeout(SHORT)).await;
        let mut frames = Frames::connect(&served, &[]).await;
        is_served(&mut frames, 1).await;
        let mut told = false;
        in_time(async {
            loop {
                if asks {
                    let ping = super::frames::frame(PING, 0, 0, &[7; 8]);
                    let _sent = frames.write(&ping).await;
                }
                let next = tokio::time::timeout(Duration::from_millis(20), frames.next()).await;
                let Ok(next) = next else { continue };
                let Some(frame) = next else { return };
                told |= frame.kind == GOAWAY;
                if frame.kind == PING && frame.flags & ACK == 0 && answers {
                    let pong = super::frames::frame(PING, ACK, 0, &frame.payload);
                    let _sent = frames.write(&pong).await;
                }
            }
        })
        .await;
        assert!(told, "{answers} {asks}");
    }
}

#[tokio::test]
async fn a_connection_with_a_stream_is_not_idle() {
    let gate = HandlerGate::new();
    let served =
        serve(gated(&gate), |listener| listener.idle_timeout(SHORT).stall_timeout(SHORT)).await;
    let mut frames = Frames::connect(&served, &[]).await;
    frames.post(1, &Post::call("wait")).await;
    gate.arrival().await;
    tokio::time::sleep(SHORT * 4).await;
    gate.open.add_permits(1);
    let answer = frames.until_end_of(1).await;
    assert_eq!(kinds(&answer), [HEADERS, DATA]);
    assert_eq!(answer[0].payload[0], STATUS_200);
}

/// Returns the status of the response to a call, and the response.
async fn ask(
    client: &mut h2::client::SendRequest<bytes::Bytes>,
    tool: &str,
) -> (u16, h2::RecvStream) {
    let post = Post::call(tool);
    let mut request = http::Request::post("http://localhost/mcp");
    for (name, value) in post.fields.iter().filter(|(name, _)| *name != "Host") {
        request = request.header(*name, value);
    }
    *client = in_time(client.clone().ready()).await.unwrap();
    let (response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    body.send_data(post.body.into(), true).unwrap();
    let response = in_time(response).await.unwrap();
    (response.status().as_u16(), response.into_body())
}

type Client = h2::client::SendRequest<bytes::Bytes>;

/// Connects a client whose windows are closed.
async fn connect_without_reading(served: &Served) -> Client {
    connect_with_window(served, 1, 0).await
}

/// Connects a client at the address `127.0.0.source` with this window for each response.
async fn connect_with_window(served: &Served, source: u8, window: u32) -> Client {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, source], 0).into()).unwrap();
    let socket = socket.connect(served.address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    let (client, connection) = in_time(builder.handshake(socket)).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn unread_bytes_of_a_connection_count_until_their_stream_ends() {
    let served =
        served(|listener| listener.stall_timeout(LONG).connection_bytes_max(100_000)).await;
    let (mut client, mut other) =
        (connect_without_reading(&served).await, connect_without_reading(&served).await);
    let (status, held) = ask(&mut client, "large").await;
    assert_eq!(status, 200);
    // The last response may exceed the limit. No further request is accepted.
    assert_eq!(ask(&mut client, "plain").await.0, 429);
    assert_eq!(ask(&mut other, "plain").await.0, 200);
    drop(held);
    in_time(async { while ask(&mut client, "plain").await.0 != 200 {} }).await;
}

#[tokio::test]
async fn unread_bytes_of_all_connections_share_a_limit() {
    let gate = HandlerGate::new();
    let server = gated(&gate).tool("large", "Much", |_: Call<NoArguments>| "x".repeat(200_000));
    let served =
        serve(server, |listener| listener.stall_timeout(LONG).held_bytes_max(300_000)).await;
    let mut client = connect_with_window(&served, 1, 0).await;
    let mut other = connect_with_window(&served, 2, 0).await;
    let mut third = connect_with_window(&served, 3, 0).await;
    let waiting = tokio::spawn(async move { ask(&mut other, "wait").await.0 });
    gate.arrival().await;
    let held = [ask(&mut client, "large").await, ask(&mut third, "large").await];
    assert_eq!(held.each_ref().map(|(status, _)| *status), [200, 200]);
    let mut fourth = connect_with_window(&served, 4, 0).await;
    assert_eq!(ask(&mut fourth, "plain").await.0, 503);
    // A response beyond the limit is replaced by a 503.
    gate.open.add_permits(1);
    assert_eq!(in_time(waiting).await.unwrap(), 503);
    drop(held);
    in_time(async { while ask(&mut client, "plain").await.0 != 200 {} }).await;
}

/// Returns the whole body of a response.
async fn read(mut body: h2::RecvStream) -> serde_json::Value {
    let mut text = Vec::new();
    while let Some(part) = in_time(body.data()).await {
        let part = part.unwrap();
        body.flow_control().release_capacity(part.len()).unwrap();
        text.extend_from_slice(&part);
    }
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test]
async fn an_address_whose_windows_are_closed_leaves_room_for_another() {
    let tune = |listener: HttpListener| listener.stall_timeout(LONG).held_bytes_max(8_000_000);
    let served = served(tune).await;
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut client = connect_with_window(&served, 1, 0).await;
        for _ in 0..10 {
            held.push(ask(&mut client, "large").await);
        }
        held.push(ask(&mut client, "plain").await);
    }
    let refused = held.iter().filter(|(status, _)| *status == 429).count();
    assert!(refused > 150, "{refused} of {} are refused", held.len());
    let newcomer = async {
        let mut other = connect_with_window(&served, 2, 65_535).await;
        let (status, body) = ask(&mut other, "large").await;
        (status, read(body).await)
    };
    let (status, _) = tokio::time::timeout(Duration::from_secs(1), newcomer).await.unwrap();
    assert_eq!(status, 200);
    // A client at the same address that reads learns why it is refused.
    let mut reading = connect_with_window(&served, 1, 65_535).await;
    let (status, body) = ask(&mut reading, "plain").await;
    let body = read(body).await;
    assert_eq!((status, &body["error"]["code"]), (429, &(-32600).into()), "{body}");
    // One that does not read gets no more than a few of these.
    let mut flood = connect_with_window(&served, 1, 0).await;
    let mut empty = 0;
    for _ in 0..40 {
        let (status, body) = ask(&mut flood, "plain").await;
        assert_eq!(status, 429);
        empty += usize::from(body.is_end_stream());
        held.push((status, body));
    }
    assert_eq!(empty, 40 - 16);
}

#[tokio::test]
async fn a_stalled_client_releases_its_memory() {
    let served =
        served(|listener| listener.stall_timeout(SHORT).connection_bytes_max(100_000)).await;
    let mut client = connect_without_reading(&served).await;
    let (status, mut body) = ask(&mut client, "large").await;
    assert_eq!(status, 200);
    assert!(in_time(body.data()).await.unwrap().is_err());
    in_time(async { while ask(&mut client, "plain").await.0 != 200 {} }).await;
}
