//! A host that obtains tokens, as its application sees it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use mcp_sansio_handlers::endpoint::HttpEndpoint;
use mcp_sansio_handlers::{Authorization, Call, Host, MemoryStore, NoArguments, Server};
use mcp_sansio_oauth::client::{
    ActionFailure, AssertionRequest, AuthorizationEvent, AuthorizationOptions,
    AuthorizationRequest, ClientSecret, SigningKey, SigningRequest,
};

use crate::guarded::{Guarded, agreed, at_once, call, equipped, forged, host, known, options};
use crate::text;

/// A user whose decision the test makes later.
#[derive(Clone, Default)]
struct User {
    decision: Arc<Mutex<Option<Result<(), ActionFailure>>>>,
    waker: Arc<Mutex<Option<Waker>>>,
    asked: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

/// Counts one function that waits for the user, until it is dropped.
struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl User {
    /// Returns an authorization that asks this user.
    fn authorization(&self) -> Authorization {
        let user = self.clone();
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            let user = user.clone();
            user.asked.fetch_add(1, Ordering::SeqCst);
            let waits = Waits::new(&user.waiting);
            async move {
                let decision = poll_fn(|cx| {
                    *user.waker.lock().unwrap() = Some(cx.waker().clone());
                    user.decision.lock().unwrap().take().map_or(Poll::Pending, Poll::Ready)
                });
                decision.await?;
                drop(waits);
                Ok(agreed(&request))
            }
        })
    }

    fn decide(&self, decision: Result<(), ActionFailure>) {
        *self.decision.lock().unwrap() = Some(decision);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns how many functions wait for the decision.
    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

#[test]
fn a_call_that_needs_a_token_is_repeated_with_it_once() {
    let (client, mut net) = Guarded::opened(&host(at_once()));
    let result = net.run(call(&client)).unwrap();
    assert_eq!(text(&result), "sunny", "{:#?}", net.log);
    let calls: Vec<_> = net.log.iter().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(
        calls,
        ["POST mcp.example/mcp tools/call 401", "POST mcp.example/mcp tools/call 200"]
    );
    // The next call sends the token with its first request.
    net.run(call(&client)).unwrap();
    assert_eq!((net.count(" 401"), net.count("as.example/token")), (1, 1), "{:#?}", net.log);
}

#[test]
fn a_host_without_an_authorization_reports_the_refusal() {
    // Rule: [AUTHC-001].
    let (client, mut net) = Guarded::opened(&Host::new("host", "1"));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("requires authorization, with HTTP status 401"), "{error}");
    assert_eq!(net.log.len(), 1, "{:#?}", net.log);
}

#[test]
fn over_a_byte_stream_nothing_is_authorized() {
    // Rule: [AUTHC-003].
    let authorization = at_once()
        .unix_time(|| unreachable!())
        .entropy(|| unreachable!("no entropy is needed over a byte stream"));
    let host = Host::new("host", "1").authorization(authorization);
    let server = Server::new("server", "1").tool("forecast", "", |_: Call<NoArguments>| "sunny");
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    client.authorize().unwrap();
    client.forget_authorization().unwrap();
    assert_eq!(text(&pair.run(call(&client)).unwrap()), "sunny");
}

#[test]
fn the_opening_waits_for_the_user_however_long_that_takes() {
    let user = User::default();
    let (client, mut net) = Guarded::new(&host(user.authorization()));
    let mut opened = Box::pin(client.opened());
    assert!(net.poll(opened.as_mut()).is_none());
    net.advance(Duration::from_secs(240));
    assert!(net.poll(opened.as_mut()).is_none());
    user.decide(Ok(()));
    net.run(opened).unwrap();
    assert_eq!(user.asked(), 1);
}

#[test]
fn waiting_for_the_user_does_not_count_towards_the_timeout_of_a_call() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    // Four times the timeout of a call.
    net.advance(Duration::from_secs(240));
    assert!(net.poll(waiting.as_mut()).is_none());
    user.decide(Ok(()));
    assert_eq!(text(&net.run(waiting).unwrap()), "sunny");
}

#[test]
fn a_user_who_declines_fails_the_call_that_says_so() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    user.decide(Err(ActionFailure::Declined));
    let error = net.run(waiting).unwrap_err().to_string();
    assert!(error.contains("the user declined"), "{error}");
    // The connection still works, and the next call asks the user again.
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    user.decide(Ok(()));
    net.run(waiting).unwrap();
    assert_eq!(user.asked(), 2);
}

#[test]
fn calls_that_come_together_wait_for_one_authorization() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let (mut one, mut other) = (call(&client), call(&client));
    assert!(net.poll(one.as_mut()).is_none() && net.poll(other.as_mut()).is_none());
    user.decide(Ok(()));
    net.run(one).unwrap();
    net.run(other).unwrap();
    assert_eq!((user.asked(), net.count("as.example/token")), (1, 1), "{:#?}", net.log);
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_leaves_the_authorization_to_the_others() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let (mut one, mut other) = (call(&client), call(&client));
    assert!(net.poll(one.as_mut()).is_none() && net.poll(other.as_mut()).is_none());
    drop(one);
    net.pump();
    assert_eq!(user.waiting(), 1);
    user.decide(Ok(()));
    net.run(other).unwrap();
    assert_eq!((user.asked(), net.count("tools/call 200")), (1, 1), "{:#?}", net.log);
}

#[test]
fn dropping_a_connection_drops_pending_user_actions() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    assert_eq!(user.waiting(), 1);
    net.endpoint = None;
    assert_eq!(user.waiting(), 0);
    net.run(waiting).unwrap_err();
}

#[test]
fn closing_a_connection_withdraws_pending_user_actions() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    client.close();
    net.run(waiting).unwrap_err();
    assert_eq!(user.waiting(), 0);
    assert!(net.endpoint.as_ref().unwrap().is_drained());
}

#[test]
fn a_forged_redirect_is_passed_over() {
    // Rule: [AUTHC-048].
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let authorization =
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            assert!(!request.is_answered_by(&forged(&request)));
            assert!(request.is_answered_by(&agreed(&request)));
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            Ok(if first { forged(&request) } else { agreed(&request) })
        });
    let (client, mut net) = Guarded::opened(&host(authorization));
    net.run(call(&client)).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_function_that_never_returns_a_valid_redirect_is_called_a_bounded_number_of_times() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let authorization =
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(forged(&request))
        });
    let (client, mut net) = Guarded::opened(&host(authorization));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("no redirect matched"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 8);
}

#[test]
fn without_a_function_the_failure_says_which_one_is_missing() {
    let (client, mut net) = Guarded::opened(&host(Authorization::new(options())));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("`Authorization::on_authorize`"), "{error}");
}

#[test]
fn without_entropy_the_failure_names_the_missing_function() {
    let host = Host::new("host", "1").authorization(Authorization::new(options()));
    let (client, mut net) = Guarded::new(&host);
    let reason = net.run(client.opened()).unwrap_err().to_string();
    assert!(reason.contains("`Authorization::entropy`"), "{reason}");
    assert!(net.log.is_empty());
    assert!(net.endpoint.as_ref().unwrap().is_drained());
}

#[test]
fn an_adapter_does_not_override_the_applications_runtime() {
    let host = host(at_once()).authorization_runtime(|| unreachable!(), || unreachable!());
    let (client, mut net) = Guarded::opened(&host);
    net.run(call(&client)).unwrap();
    let bare = Host::new("host", "1").authorization(at_once());
    let (client, mut net) = Guarded::opened(&bare.authorization_runtime(|| 1, || [1; 32]));
    net.run(call(&client)).unwrap();
}

#[test]
fn an_observer_sees_each_step_of_the_authorization() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let authorization = at_once().observe(move |event| {
        sees.lock().unwrap().push(match event {
            AuthorizationEvent::Paused(_) => "waiting",
            AuthorizationEvent::Resumed(_) => "goes on",
            AuthorizationEvent::Authorized { .. } => "authorized",
            _ => "other",
        });
    });
    let (client, mut net) = Guarded::opened(&host(authorization));
    net.run(call(&client)).unwrap();
    let seen = seen.lock().unwrap();
    let at = |what| seen.iter().position(|it| *it == what).unwrap_or_else(|| panic!("{seen:?}"));
    assert!(at("waiting") < at("goes on") && at("waiting") < at("authorized"));
}

#[test]
fn an_application_signs_in_before_the_server_asks_and_signs_out() {
    let user = User::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let store = MemoryStore::new();
    let authorization = user.authorization().store(store.clone()).observe(move |event| {
        shown.lock().unwrap().push(format!("{event:?}"));
    });
    let (client, mut net) = Guarded::opened(&host(authorization));
    client.authorize().unwrap();
    // A second `authorize` joins the pending one.
    client.authorize().unwrap();
    net.pump();
    assert_eq!((user.asked(), user.waiting()), (1, 1));
    user.decide(Ok(()));
    net.pump();
    assert_eq!(seen.lock().unwrap().iter().filter(|it| it.starts_with("Authorized")).count(), 1);
    net.log.clear();
    assert_eq!(text(&net.run(call(&client)).unwrap()), "sunny");
    assert_eq!(net.log, ["POST mcp.example/mcp tools/call 200"]);
    client.forget_authorization().unwrap();
    net.pump();
    assert_eq!(format!("{store:?}"), "MemoryStore { length: 0 }");
    net.log.clear();
    let mut second = call(&client);
    assert!(net.poll(second.as_mut()).is_none());
    assert_eq!((net.log[0].as_str(), user.asked()), ("POST mcp.example/mcp tools/call 401", 2));
    // Signing out also withdraws the request that waits for the user.
    client.forget_authorization().unwrap();
    let failure = net.run(second).unwrap_err();
    assert!(failure.to_string().contains("cancelled"), "{failure}");
    assert_eq!((user.asked(), user.waiting()), (2, 0));
}

#[test]
fn a_local_host_accepts_functions_that_are_not_send() {
    let asked = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&asked);
    let authorization =
        Authorization::local(options()).on_authorize(async move |request: AuthorizationRequest| {
            counted.set(counted.get() + 1);
            Ok(agreed(&request))
        });
    let host = Host::local("host", "1").authorization(equipped(authorization));
    let (client, mut net) = Guarded::opened(&host);
    net.run(call(&client)).unwrap();
    assert_eq!(asked.get(), 1);
}

#[test]
fn signing_requests_reach_the_signing_function() {
    let secret = ClientSecret::PrivateKey { algorithm: "ES256".to_owned(), key_id: None };
    let options = known(AuthorizationOptions::client_credentials(), secret);
    let authorization = Authorization::new(options.clone()).on_sign(|request: SigningRequest| {
        assert_eq!(request.key, SigningKey::Client("demo".to_owned()));
        Ok(vec![1; 64])
    });
    let (client, mut net) = Guarded::opened(&host(authorization));
    net.run(call(&client)).unwrap();
    assert_eq!(net.count("client_assertion="), 1, "{:#?}", net.log);

    let (client, mut net) = Guarded::opened(&host(Authorization::new(options)));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("`Authorization::on_sign`"), "{error}");
}

#[test]
fn an_assertion_is_obtained_from_the_registered_function() {
    let options = known(AuthorizationOptions::assertion(), ClientSecret::None);
    let authorization =
        Authorization::new(options.clone()).on_assertion(async |request: AssertionRequest| {
            Ok(format!("for-{}", request.audience.len()))
        });
    let (client, mut net) = Guarded::opened(&host(authorization));
    net.run(call(&client)).unwrap();
    assert_eq!(net.count("assertion=for-18"), 1, "{:#?}", net.log);

    let (client, mut net) = Guarded::opened(&host(Authorization::new(options)));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("`Authorization::on_assertion`"), "{error}");
}
