//! A client whose server makes it use as much memory as possible.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallHandle, CallOptions, Client, ClientMachine, ClientOptions, Event, InputHandle, Limits,
    MessageLengths,
};
use mcp_sansio::protocol::{
    ClientCapabilities, Implementation, RootsCapability, SamplingCapability,
};
use mcp_sansio::{Method, Revision, Revisions};

use crate::allocator::{begin, measured, peak};
use crate::limits::{large, odd, small};

/// The client, and a server that reads nothing until the test does.
struct TestClient {
    client: Client,
    limits: Limits,
    lengths: MessageLengths,
    now: Instant,
    calls: Vec<CallHandle>,
    inputs: Vec<InputHandle>,
    next_id: u64,
    /// The id of the client's next request.
    expected: i64,
}

impl TestClient {
    fn new(limits: &Limits, lengths: MessageLengths, revision: Revision, seed: u64) -> Self {
        let offers = ClientCapabilities::new()
            .roots(RootsCapability::new())
            .sampling(SamplingCapability::new());
        let options = ClientOptions::new(Implementation::new("c", "1"))
            .revisions(Revisions::only(revision))
            .capabilities(offers)
            .limits(limits.clone());
        let now = Instant::ZERO;
        Self {
            client: measured(|| Client::new(options, seed, now)),
            limits: limits.clone(),
            lengths,
            now,
            calls: Vec::with_capacity(limits.calls_in_flight_max * 2),
            inputs: Vec::with_capacity(4096),
            next_id: 0,
            expected: 2,
        }
    }

    /// Delivers a frame, unless it is too long or the client is congested. Returns whether it was
    /// delivered.
    fn send(&mut self, frame: &str) -> bool {
        if frame.len() > self.lengths.received_max || self.client.is_congested() {
            return false;
        }
        let Self { client, inputs, now, .. } = self;
        measured(|| {
            let event = client.handle_message(frame.as_bytes(), *now).unwrap();
            let queued = core::iter::from_fn(|| client.poll_event());
            if let Some(Event::InputRequested(input)) = &event {
                inputs.push(input.handle);
            }
            for event in queued {
                if let Event::InputRequested(input) = event {
                    inputs.push(input.handle);
                }
            }
        });
        true
    }

    fn drain(&mut self) {
        measured(|| while self.client.poll_transmit().is_some() {});
    }

    fn id(&mut self) -> String {
        self.next_id += 1;
        format!("{:0>64}", self.next_id)
    }

    /// Returns a frame of the greatest length: `before`, a text, `after`.
    fn longest(&self, before: &str, after: &str) -> String {
        let length = self.lengths.received_max.saturating_sub(before.len() + after.len());
        [before, &"x".repeat(length), after].concat()
    }

    fn open_legacy(&mut self) {
        self.drain();
        let opening = self.longest(
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":""#,
            r#""}}"#,
        );
        assert!(self.send(&opening));
        self.drain();
    }

    fn open_modern(&mut self) {
        self.drain();
        let opening = self.longest(
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":""#,
            r#""}}"#,
        );
        assert!(self.send(&opening));
        self.drain();
    }

    /// Makes as many calls as the limit allows, repeatedly and with new ids.
    fn fill_calls(&mut self, params: &RawJson<'_>) {
        for round in 0..3 {
            loop {
                let options = CallOptions::default().progress();
                let Self { client, now, .. } = self;
                let call = measured(|| client.call(Method::ToolsCall, params, &options, *now));
                self.drain();
                let Ok(call) = call else { break };
                self.calls.push(call);
                self.expected += 1;
            }
            if round == 2 {
                return;
            }
            for call in core::mem::take(&mut self.calls) {
                let Self { client, now, .. } = self;
                measured(|| {
                    client.cancel(call, "not needed", *now);
                    while client.poll_event().is_some() {}
                });
                self.drain();
            }
            self.calls.reserve(self.limits.calls_in_flight_max * 2);
        }
    }

    /// Answers every pending call with input requests.
    fn ask(&mut self, state: usize) {
        let first = self.expected - i64::try_from(self.calls.len()).unwrap();
        for id in first..self.expected {
            let questions: Vec<String> = (0..self.limits.inputs_per_round_max)
                .map(|number| format!(r#""{number}":{{"method":"roots/list"}}"#))
                .collect();
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":"{}","inputRequests":{{{}}}}}}}"#,
                "s".repeat(state),
                questions.join(",")
            );
            self.send(&frame);
            self.drain();
        }
    }

    /// Sends requests of the server with new ids until the limit is reached, and leaves them
    /// pending.
    fn fill_requests(&mut self) {
        for _ in 0..=self.limits.requests_in_flight_max * 4 {
            if self.inputs.len() >= self.limits.requests_in_flight_max && !self.inputs.is_empty() {
                let first = self.inputs.remove(0);
                let Self { client, now, .. } = self;
                measured(|| {
                    client.answer_input_with(first, &RawJson::EMPTY_OBJECT, *now).unwrap();
                });
                self.drain();
            }
            let frame = self.request();
            self.send(&frame);
            self.drain();
        }
    }

    fn request(&mut self) -> String {
        let (id, token) = (self.id(), self.id());
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"roots/list","params":{{"_meta":{{"progressToken":"{token}"}}}}}}"#
        )
    }

    /// Sends a batch of the greatest length.
    fn batch(&mut self) {
        let mut text = String::from("[");
        for _ in 0..self.limits.batch_length_max {
            let more = r#"{"jsonrpc":"2.0","id":99999999,"result":{}},"#;
            if text.len() + more.len() < self.lengths.received_max {
                text.push_str(more);
            }
        }
        let text = text.trim_end_matches(',');
        self.send(&format!("{text}]"));
        self.drain();
    }

    /// Stops reading, then ends the connection.
    fn stop_reading(&mut self) {
        // A modern server sends no requests, so the client has nothing to answer.
        let asks = self.client.session().is_some_and(|s| s.revision() < Revision::V2026_07_28);
        while asks && !self.client.is_congested() {
            let id = self.id();
            if !self.send(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"x"}}"#)) {
                break;
            }
        }
        let text = "x".repeat(self.lengths.sent_max.saturating_sub(120));
        let answer = std::collections::BTreeMap::from([("t", &text)]);
        let answer = RawJson::from_serialize(&answer).unwrap();
        for input in core::mem::take(&mut self.inputs) {
            let Self { client, now, .. } = self;
            if asks {
                measured(|| drop(client.answer_input_with(input, &answer, *now)));
            }
        }
        self.now = self.now + Duration::from_secs(3600);
        measured(|| {
            self.client.handle_timeout(self.now);
            self.client.handle_eof();
            while self.client.poll_event().is_some() {}
        });
        self.drain();
    }
}

/// Returns the greatest memory that a server can make a client use, and the result of the formula.
fn measure((limits, lengths): (Limits, MessageLengths), seed: u64) -> (usize, usize) {
    let params = RawJson::parse(r#"{"name":"t"}"#).unwrap().into_owned();
    // The application keeps the shared text.
    let _shared = params.clone();
    let formula = limits.client_memory_max(lengths);
    let mut most = 0;
    // Requests of the server; many input requests; long states.
    let (legacy, modern) = (Revision::V2025_03_26, Revision::V2026_07_28);
    let state = lengths.received_max / 2;
    for (revision, state) in [(legacy, 0), (modern, 0), (modern, state)] {
        begin();
        let mut client = TestClient::new(&limits, lengths, revision, seed);
        if revision == modern {
            client.open_modern();
            client.fill_calls(&params);
            client.ask(state);
        } else {
            client.open_legacy();
            client.fill_calls(&params);
            client.fill_requests();
            client.batch();
        }
        client.stop_reading();
        let peak = peak();
        assert!(
            peak <= formula,
            "{peak} bytes at {revision}, but the formula allows {formula}: {limits:?}, {lengths:?}"
        );
        most = most.max(peak);
    }
    (most, formula)
}

#[test]
fn a_small_client_uses_between_a_fifth_and_all_of_its_formula() {
    let (peak, formula) = measure(small(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn a_large_client_uses_between_a_fifth_and_all_of_its_formula() {
    let (peak, formula) = measure(large(), 7);
    assert!(peak * 5 >= formula, "{peak} of {formula}");
}

#[test]
fn clients_with_unusual_limits_stay_within_their_formula() {
    for seed in 0..u64::from(seeded_random::scaled(15)) {
        let (peak, formula) = measure(odd(seed), seed);
        assert!(peak * 12 >= formula, "{peak} of {formula}, seed {seed}");
    }
}
