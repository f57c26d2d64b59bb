//! A host that gets tokens: what its application sees of that.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use mcp_sansio::auth::client::{
    ActionFailure, AuthorizationRequest, Credential, CredentialKey, Event,
};
use mcp_sansio::handler::{
    Authorization, Client, ClientError, CredentialStore, Host, HttpEndpoint,
};
use mcp_sansio::protocol::CallToolResult;

use crate::guarded::{Guarded, agreed, equipped, forged, options};
use crate::text;

fn host(authorization: Authorization) -> Host {
    Host::new("host", "1").authorization(equipped(authorization))
}

fn call(
    client: &Client,
) -> std::pin::Pin<Box<dyn Future<Output = Result<CallToolResult, ClientError>>>> {
    Box::pin(client.call_tool("forecast", &BTreeMap::<String, String>::new()).into_future())
}

/// A user who takes a while to decide.
#[derive(Clone, Default)]
struct User {
    decision: Arc<Mutex<Option<Result<(), ActionFailure>>>>,
    waker: Arc<Mutex<Option<Waker>>>,
    asked: Arc<AtomicUsize>,
    /// As long as somebody waits for the decision.
    waited_for: Arc<()>,
}

impl User {
    /// An authorization that sends this user.
    fn authorization(&self) -> Authorization {
        let user = self.clone();
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            let user = user.clone();
            user.asked.fetch_add(1, Ordering::SeqCst);
            let waits = Arc::clone(&user.waited_for);
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

    /// How many functions wait for the decision. One reference is the test's, one the function's.
    fn waiting(&self) -> usize {
        Arc::strong_count(&self.waited_for) - 2
    }
}

fn at_once() -> Authorization {
    Authorization::new(options())
        .on_authorize(async |request: AuthorizationRequest| Ok(agreed(&request)))
}

#[test]
fn a_call_that_needs_a_token_goes_on_with_it_once() {
    let (client, mut net) = Guarded::opened(&host(at_once()));
    let result = net.run(call(&client)).unwrap();
    assert_eq!(text(&result), "sunny", "{:#?}", net.log);
    let calls: Vec<_> = net.log.iter().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(
        calls,
        ["POST mcp.example/mcp tools/call 401", "POST mcp.example/mcp tools/call 200"]
    );
    // The next one has the token from the start.
    net.run(call(&client)).unwrap();
    assert_eq!((net.count("401"), net.count("as.example/token")), (1, 1), "{:#?}", net.log);
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
fn the_time_of_a_call_is_not_that_of_the_user() {
    let user = User::default();
    let (client, mut net) = Guarded::opened(&host(user.authorization()));
    let mut waiting = call(&client);
    assert!(net.poll(waiting.as_mut()).is_none());
    // Four times as long as a call may take.
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
    // The connection is as good as before, and the next call asks again.
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
    net.settle();
    assert_eq!(user.waiting(), 1);
    user.decide(Ok(()));
    net.run(other).unwrap();
    assert_eq!((user.asked(), net.count("tools/call 200")), (1, 1), "{:#?}", net.log);
}

#[test]
fn a_connection_that_is_dropped_drops_what_waits_for_the_user() {
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
fn a_connection_that_is_closed_withdraws_what_waits_for_the_user() {
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
fn a_function_that_never_has_the_answer_is_not_called_forever() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let authorization =
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(forged(&request))
        });
    let (client, mut net) = Guarded::opened(&host(authorization));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("no redirect answers"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 8);
}

#[test]
fn without_a_function_the_failure_says_which_one_is_missing() {
    let (client, mut net) = Guarded::opened(&host(Authorization::new(options())));
    let error = net.run(call(&client)).unwrap_err().to_string();
    assert!(error.contains("`Authorization::on_authorize`"), "{error}");
}

#[test]
fn without_entropy_the_failure_says_what_is_missing() {
    let host = Host::new("host", "1").authorization(Authorization::new(options()));
    let (client, mut net) = Guarded::new(&host);
    let reason = net.run(client.opened()).unwrap_err().to_string();
    assert!(reason.contains("`Authorization::entropy`"), "{reason}");
    assert!(net.log.is_empty());
    assert!(net.endpoint.as_ref().unwrap().is_drained());
}

#[test]
fn what_an_adapter_brings_along_does_not_replace_what_the_application_has() {
    let host = host(at_once()).equip_authorization(|| unreachable!(), || unreachable!());
    let (client, mut net) = Guarded::opened(&host);
    net.run(call(&client)).unwrap();
    let bare = Host::new("host", "1").authorization(at_once());
    let (client, mut net) = Guarded::opened(&bare.equip_authorization(|| 1, || [1; 32]));
    net.run(call(&client)).unwrap();
}

#[test]
fn connections_of_one_authorization_share_what_is_kept() {
    let host = host(at_once());
    let (client, mut net) = Guarded::opened(&host.clone());
    net.run(call(&client)).unwrap();
    let (client, mut net) = Guarded::opened(&host);
    net.run(call(&client)).unwrap();
    assert_eq!((net.count("401"), net.count("as.example")), (0, 0), "{:#?}", net.log);
}

#[test]
fn an_observer_sees_what_happens() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let authorization = at_once().observe(move |event| {
        sees.lock().unwrap().push(match event {
            Event::Waiting(_) => "waiting",
            Event::GoesOn(_) => "goes on",
            Event::Authorized { .. } => "authorized",
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
fn the_functions_of_a_local_host_stay_on_its_thread() {
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

/// A store whose writes take as long as the test wants.
#[derive(Clone, Default)]
struct Slow {
    written: Arc<Mutex<Vec<CredentialKey>>>,
    may_write: Arc<Mutex<bool>>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Slow {
    fn let_write(&self) {
        *self.may_write.lock().unwrap() = true;
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

impl CredentialStore for Slow {
    async fn load(&self, _: &CredentialKey) -> Result<Option<Credential>, ActionFailure> {
        Err(ActionFailure::Failed("the key ring is locked".to_owned()))
    }

    async fn save(&self, key: &CredentialKey, _: Credential) {
        poll_fn(|cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            if *self.may_write.lock().unwrap() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.written.lock().unwrap().push(key.clone());
    }

    async fn remove(&self, _: &CredentialKey) {}
}

#[test]
fn a_store_that_cannot_be_read_costs_the_user_a_sign_in_and_no_more() {
    let (client, mut net) = Guarded::opened(&host(at_once().store(Slow::default())));
    net.run(call(&client)).unwrap();
}

#[test]
fn a_connection_ends_when_what_is_to_be_kept_is_kept_or_takes_too_long() {
    for in_time in [true, false] {
        let slow = Slow::default();
        let (client, mut net) = Guarded::opened(&host(at_once().store(slow.clone())));
        net.run(call(&client)).unwrap();
        client.close();
        net.settle();
        assert!(!net.endpoint.as_ref().unwrap().is_drained());
        if in_time {
            slow.let_write();
            net.settle();
        } else {
            net.advance(Duration::from_millis(4999));
            assert!(!net.endpoint.as_ref().unwrap().is_drained());
            net.advance(Duration::from_millis(1));
        }
        let endpoint = net.endpoint.as_ref().unwrap();
        assert!(endpoint.is_drained());
        assert_eq!(endpoint.poll_timeout(), None);
        assert_eq!(!slow.written.lock().unwrap().is_empty(), in_time);
    }
}
