//! The HTTP driver on scripted exchanges and a manual clock.

mod scripted;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::http::{ClientLimits, ExchangeFailure, HttpClientOptions, Location};
use mcp_sansio::peer::{CloseReason, Failure, Limits, OpeningFailure, TransportFailure};
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_async::http_client::HttpDriver;
use mcp_sansio_handlers::endpoint::HttpClientEndpoint;
use mcp_sansio_handlers::{Client, ClientError, Host};
use scripted::{ManualClock, Network, Piece, WakeCounter, answer, fail, head, id, piece};

/// A driver with the client, the network, the clock and the wake counter that a test inspects.
struct DriverTest {
    driver: HttpDriver<HttpClientEndpoint, Network, ManualClock>,
    client: Client,
    network: Network,
    clock: ManualClock,
    wakes: Arc<WakeCounter>,
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
const SAID: &str = r#"{"resultType":"complete","content":[]}"#;
const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;

impl DriverTest {
    fn new(host: &Host, change: impl FnOnce(&mut ClientLimits)) -> Self {
        let mut limits = ClientLimits::DEFAULT;
        // Calls do not read the list of tools.
        limits.refresh_pages_max = 0;
        change(&mut limits);
        let url = Location::parse("http://localhost/mcp").unwrap();
        let options = HttpClientOptions::new(url).limits(limits).listen(false);
        let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
        let (network, clock) = (Network::default(), ManualClock::default());
        let driver = HttpDriver::new(endpoint, network.clone(), clock.clone());
        Self { driver, client, network, clock, wakes: Arc::default() }
    }

    /// Returns a test that is connected to a modern server.
    fn modern() -> Self {
        let mut bench = Self::new(&Host::new("host", "1"), |_| ());
        assert!(bench.poll().is_pending());
        answer(&bench.network.exchange(0), DISCOVERED);
        assert!(bench.poll().is_pending());
        assert!(bench.client.session().is_some());
        bench
    }

    fn poll(&mut self) -> Poll<()> {
        let waker = Arc::clone(&self.wakes).into();
        self.wakes.take();
        Pin::new(&mut self.driver).poll(&mut Context::from_waker(&waker))
    }

    fn call(&self, tool: &str) -> Pin<Box<dyn Future<Output = Result<(), ClientError>>>> {
        let arguments = std::collections::BTreeMap::<String, String>::new();
        let call = self.client.call_tool(tool, &arguments).into_future();
        Box::pin(async move { call.await.map(drop) })
    }
}

/// Polls a future once and returns its output if it is ready.
fn now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match Pin::new(future).poll(&mut cx) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn exchanges_run_side_by_side_and_wake_the_driver() {
    let mut bench = DriverTest::modern();
    let mut calls = ["a", "b", "c"].map(|tool| bench.call(tool));
    assert!(bench.wakes.take() > 0);
    assert!(bench.poll().is_pending());
    assert_eq!(bench.network.count(), 4);
    // The last call is answered first.
    for number in [2, 0, 1] {
        assert_eq!(bench.wakes.take(), 0);
        answer(&bench.network.exchange(1 + number), SAID);
        assert!(bench.wakes.take() > 0);
        assert!(bench.poll().is_pending());
        now(&mut calls[number]).unwrap().unwrap();
        assert!(bench.network.exchange(1 + number).borrow().is_dropped);
    }
}

#[test]
fn an_endless_exchange_starves_neither_the_task_nor_other_exchanges() {
    let mut bench = DriverTest::modern();
    let mut calls = ["endless", "other"].map(|tool| bench.call(tool));
    assert!(bench.poll().is_pending());
    let endless = bench.network.exchange(1);
    head(&endless, 200, "text/event-stream");
    piece(&endless, Piece::Endless(":\n"));
    assert!(bench.poll().is_pending());
    assert!(bench.wakes.take() > 0, "there is more to do");
    let taken = endless.borrow().taken;
    assert!((1..=1000).contains(&taken), "{taken} pieces in one poll");
    answer(&bench.network.exchange(2), SAID);
    assert!(bench.poll().is_pending());
    now(&mut calls[1]).unwrap().unwrap();
    assert!(now(&mut calls[0]).is_none());
}

#[test]
fn a_dropped_call_aborts_its_exchange() {
    // Rule: [CANC-017].
    let mut bench = DriverTest::modern();
    let mut call = bench.call("a");
    assert!(now(&mut call).is_none());
    assert!(bench.poll().is_pending());
    drop(call);
    assert!(bench.poll().is_pending());
    assert!(bench.network.exchange(1).borrow().is_dropped);
    // The freed exchange slot is reused.
    let mut call = bench.call("b");
    assert!(bench.poll().is_pending());
    answer(&bench.network.exchange(2), SAID);
    assert!(bench.poll().is_pending());
    now(&mut call).unwrap().unwrap();
}

#[test]
fn a_failure_says_whether_the_request_may_have_run() {
    let mut bench = DriverTest::modern();
    // A call that did not run is sent again, three times.
    let failures = [
        (ExchangeFailure::NotSent, 4, TransportFailure::NotSent),
        (ExchangeFailure::Broken, 1, TransportFailure::Broken),
    ];
    let mut number = 0;
    for (failure, times, expected) in failures {
        let mut call = bench.call("a");
        assert!(bench.poll().is_pending());
        for _ in 0..times {
            assert!(now(&mut call).is_none());
            number += 1;
            fail(&bench.network.exchange(number), failure);
            assert!(bench.poll().is_pending());
            bench.clock.0.set(bench.clock.0.get() + 4000);
            assert!(bench.poll().is_pending());
        }
        let error = now(&mut call).unwrap().unwrap_err();
        assert_eq!(error.executed(), (times > 1).then_some(false), "{error}");
        let expected = Failure::Transport(expected);
        assert!(matches!(&error, ClientError::Failed(failure) if *failure == expected), "{error}");
    }
    let mut call = bench.call("a");
    assert!(bench.poll().is_pending());
    let exchange = bench.network.exchange(number + 1);
    head(&exchange, 200, "application/json");
    piece(&exchange, Piece::Bytes(r#"{"jsonrpc":"#.into()));
    piece(&exchange, Piece::Failure(ExchangeFailure::Broken));
    assert!(bench.poll().is_pending());
    now(&mut call).unwrap().unwrap_err();
}

#[test]
fn deadlines_expire_while_no_data_arrives() {
    let mut bench = DriverTest::modern();
    let mut call = bench.call("a");
    assert!(bench.poll().is_pending());
    bench.clock.0.set(3_600_000);
    assert!(bench.poll().is_pending());
    let error = now(&mut call).unwrap().unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert!(bench.network.exchange(1).borrow().is_dropped);
}

#[test]
fn the_driver_finishes_with_the_connection_and_aborts_open_exchanges() {
    let mut bench = DriverTest::modern();
    let mut call = bench.call("a");
    assert!(bench.poll().is_pending());
    bench.client.close();
    assert!(bench.poll().is_ready());
    assert!(bench.network.exchange(1).borrow().is_dropped);
    now(&mut call).unwrap().unwrap_err();
    assert!(bench.poll().is_ready());

    let mut bench = DriverTest::new(&Host::new("host", "1"), |_| ());
    assert!(bench.poll().is_pending());
    fail(&bench.network.exchange(0), ExchangeFailure::NotSent);
    assert!(bench.poll().is_ready());
    let failure = OpeningFailure::Transport(TransportFailure::NotSent);
    assert_eq!(bench.client.close_reason(), Some(CloseReason::OpeningFailed(failure)));
}

#[test]
fn a_server_that_accepts_no_responses_blocks_bodies_but_not_heads() {
    let mut limits = Limits::default();
    limits.transmit_bytes_max = 0;
    let host = Host::new("host", "1").revisions(Revisions::only(Revision::V2025_06_18));
    let mut bench =
        DriverTest::new(&host.limits(limits), |limits| limits.control_exchanges_max = 1);
    assert!(bench.poll().is_pending());
    answer(&bench.network.exchange(0), INITIALIZED);
    assert!(bench.poll().is_pending());
    head(&bench.network.find("notifications/initialized").unwrap(), 202, "");
    assert!(bench.poll().is_pending());
    let mut call = bench.call("a");
    assert!(bench.poll().is_pending());

    // The server keeps sending pings and accepts the responses one at a time.
    let stream = bench.network.find("tools/call").unwrap();
    head(&stream, 200, "text/event-stream");
    for ping in 0..10 {
        let text =
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"{ping}\",\"method\":\"ping\"}}\n\n");
        piece(&stream, Piece::Bytes(text));
    }
    let result = format!(r#"data: {{"jsonrpc":"2.0","id":{},"result":{SAID}}}"#, id(&stream));
    piece(&stream, Piece::Bytes(format!("{result}\n\n")));
    piece(&stream, Piece::End);
    let before = bench.network.count();
    assert!(bench.poll().is_pending());
    assert_eq!(bench.wakes.take(), 0, "no work is pending until the server accepts a response");
    assert_eq!((bench.network.count(), stream.borrow().taken), (before + 1, 2));
    for answered in 0..10 {
        // Once the last response is being sent, the stream is read again.
        assert!(answered == 9 || now(&mut call).is_none());
        let exchange = bench.network.exchange(before + answered);
        assert!(exchange.borrow().body.contains(&format!(r#""id":"{answered}""#)));
        head(&exchange, 202, "");
        piece(&exchange, Piece::End);
        assert!(bench.poll().is_pending());
    }
    now(&mut call).unwrap().unwrap();
    assert_eq!(bench.network.exchange(before).borrow().method, "POST");
}
