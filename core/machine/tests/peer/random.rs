//! Random operations on a pair: no operation panics, every call ends exactly once, both sides
//! become idle, and the same seed gives the same conversation.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    CallHandle, CallOptions, ClientMachine, Event, InputHandle, Policy, Request, ServerMachine,
    Timeouts,
};
use mcp_sansio::protocol::{
    ElicitFormParams, ElicitParams, ElicitSchema, InputRequest, InputRequiredResult,
    ListRootsParams, Map, SubscriptionFilter,
};
use mcp_sansio::{LoggingLevel, Method, Revision, Revisions};
use proptest::prelude::*;
use seeded_random::{Random, scaled};

use crate::fixtures::*;
use crate::pair::Pair;

/// The state of the two applications.
#[derive(Default)]
struct World {
    /// How often each call of a side ended.
    calls: BTreeMap<(bool, CallHandle), u32>,
    requests: Vec<Request<'static>>,
    inputs: Vec<InputHandle>,
    closed: [u32; 2],
}

impl World {
    fn look(&mut self, pair: &mut Pair) {
        for (client, events) in [(true, &mut pair.client_events), (false, &mut pair.server_events)]
        {
            for event in events.drain(..) {
                assert_eq!(self.closed[usize::from(client)], 0, "after the end: {event:?}");
                match event {
                    Event::Ended(ended) => {
                        *self.calls.get_mut(&(client, ended.call)).expect("a call") += 1;
                    }
                    Event::Request(request) if !client => self.requests.push(request),
                    Event::InputRequested(input) => self.inputs.push(input.handle),
                    Event::Closed(_) => self.closed[usize::from(client)] += 1,
                    _ => {}
                }
            }
        }
    }

    fn called(&mut self, client: bool, call: Option<CallHandle>) {
        if let Some(call) = call {
            let fresh = self.calls.insert((client, call), 0).is_none();
            assert!(fresh, "a handle is used twice");
        }
    }
}

fn questions(random: &mut Random) -> InputRequiredResult {
    let mut questions: Map<InputRequest> = Map::default();
    for key in ["a", "b"].iter().take(random.below(3) as usize) {
        let form = ElicitParams::from(ElicitFormParams::new("?", ElicitSchema::new()));
        let question: InputRequest =
            if random.below(2) == 0 { form.into() } else { ListRootsParams::new().into() };
        questions.insert(*key, question);
    }
    let required = InputRequiredResult::new().input_requests(questions);
    if random.below(2) == 0 { required.request_state("s") } else { required }
}

fn operate(pair: &mut Pair, world: &mut World, random: &mut Random) {
    let now = pair.now;
    let seconds = Duration::from_secs(random.below(20));
    let mut options = CallOptions::default();
    if random.below(2) == 0 {
        options = options.timeout(seconds).timeout_hard(2 * seconds).progress();
    }
    match random.below(16) {
        0..=2 => {
            let methods = [Method::ToolsCall, Method::PromptsGet, Method::ToolsList, Method::Ping];
            let method = random.one_of(methods);
            let call = pair.client.call(method, &echo(), &options, now);
            world.called(true, call.ok());
        }
        3 => {
            let methods = [Method::RootsList, Method::Ping, Method::ElicitationCreate];
            let method = random.one_of(methods);
            let params =
                raw(r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#);
            let call = pair.server.call(method, &params, &options, now);
            world.called(false, call.ok());
        }
        4 => {
            let filter = SubscriptionFilter::new()
                .tools_list_changed(true)
                .resource_subscriptions(["a:1".into(), "a:2".into()]);
            let call = pair.client.subscribe(&filter, now);
            world.called(true, call.ok());
        }
        5 | 6 => {
            let calls: Vec<_> = world.calls.keys().copied().collect();
            match random.pick(&calls) {
                Some((true, call)) => pair.client.cancel(*call, "", now),
                Some((false, call)) => pair.server.cancel(*call, "", now),
                None => {}
            }
        }
        7..=9 if !world.requests.is_empty() => {
            let at = random.index(world.requests.len());
            let request = world.requests.swap_remove(at);
            // The request may have been cancelled and need no response.
            let _late = match random.below(4) {
                0 => pair.server.require_input(&request, &questions(random), now),
                1 => pair.server.reject(request.handle, ErrorObject::internal("no"), now),
                _ => pair.server.respond_with(request.handle, &raw("{}"), now),
            };
        }
        10 => {
            if let Some(request) = random.pick(&world.requests) {
                let progress = random.below(100) as f64;
                pair.server.progress(request.handle, progress, None, Some("m"), now);
                pair.server.log(Some(request.handle), LoggingLevel::Error, None, &1, now).unwrap();
            }
        }
        11 | 12 if !world.inputs.is_empty() => {
            let at = random.index(world.inputs.len());
            let input = world.inputs.swap_remove(at);
            let _late = if random.below(4) == 0 {
                pair.client.refuse_input(input, ErrorObject::internal("no"), now)
            } else {
                pair.client.answer_input_with(input, &raw(r#"{"roots":[]}"#), now)
            };
        }
        13 => {
            pair.server.resource_updated("a:1", now);
            let _not_open = pair.client.set_log_level(LoggingLevel::Debug, now);
        }
        14 => {
            pair.now = now + seconds;
            pair.client.handle_timeout(pair.now);
            pair.server.handle_timeout(pair.now);
        }
        _ => {
            let piece = 1 + random.below(200) as usize;
            for _ in 0..=random.below(3) {
                pair.step_in_pieces(piece);
            }
        }
    }
    if random.below(400) == 0 {
        match random.below(4) {
            0 => pair.client.close(now),
            1 => pair.server.close(now),
            2 => pair.client.handle_eof(),
            _ => pair.server.handle_eof(),
        }
    }
}

fn run(seed: u64) -> String {
    let mut random = Random::new(seed);
    let keep_alive = (random.below(2) == 0).then_some(Duration::from_secs(7));
    let wanted: Timeouts = timeouts(|timeouts| timeouts.keep_alive = keep_alive);
    let revision = random.one_of(Revision::ALL);
    let revisions = if random.below(3) == 0 { Revisions::ALL } else { Revisions::only(revision) };
    let mut policy = Policy::default();
    policy.deliver_unknown_methods = true;
    let client = host().revisions(revisions).timeouts(wanted.clone()).policy(policy);
    let mut pair = Pair::new(client, full_server().timeouts(wanted));
    let mut world = World::default();
    for _ in 0..300 {
        operate(&mut pair, &mut world, &mut random);
        world.look(&mut pair);
    }
    // Ending the connection ends every pending call.
    pair.drive();
    world.look(&mut pair);
    pair.client.handle_eof();
    pair.server.handle_eof();
    pair.drive();
    world.look(&mut pair);
    for request in world.requests.drain(..) {
        let _late = pair.server.respond_with(request.handle, &raw("{}"), pair.now);
    }
    pair.drive();
    world.look(&mut pair);
    assert_eq!(world.closed, [1, 1]);
    for ((client, call), ends) in &world.calls {
        assert_eq!(*ends, 1, "{call:?} of the client: {client}\n{}", pair.take_transcript());
    }
    assert_eq!(pair.next_deadline(), None);
    assert!(pair.client.is_drained() && pair.server.is_drained(), "{}", pair.take_transcript());
    pair.take_transcript()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(16), failure_persistence: None, ..ProptestConfig::default() })]

    // Rule: [STDIO-003]: the checker of the pair reads every line of both sides.
    #[test]
    fn any_sequence_of_operations_ends_every_call_once(seed: u64) {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_conversation() {
    for seed in 0..8 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}
