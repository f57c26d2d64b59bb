//! Stores for the credentials of a host.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use mcp_sansio_handlers::endpoint::HttpEndpoint;
use mcp_sansio_handlers::{Client, CredentialStore};
use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};

use crate::guarded::{Guarded, at_once, call, host};

#[test]
fn connections_of_one_authorization_share_its_credentials() {
    let host = host(at_once());
    let (client, mut net) = Guarded::opened(&host.clone());
    net.run(call(&client)).unwrap();
    let (client, mut net) = Guarded::opened(&host);
    net.run(call(&client)).unwrap();
    assert_eq!((net.count(" 401"), net.count("as.example")), (0, 0), "{:#?}", net.log);
}

/// A store whose writes wait until the test allows them.
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
fn a_store_that_cannot_be_read_only_costs_the_user_another_sign_in() {
    let (client, mut net) = Guarded::opened(&host(at_once().store(Slow::default())));
    net.run(call(&client)).unwrap();
}

#[test]
fn a_connection_closes_after_its_store_writes_finish_or_time_out() {
    for in_time in [true, false] {
        let slow = Slow::default();
        let (client, mut net) = Guarded::opened(&host(at_once().store(slow.clone())));
        net.run(call(&client)).unwrap();
        client.close();
        net.pump();
        assert!(!net.endpoint.as_ref().unwrap().is_drained());
        if in_time {
            slow.let_write();
            net.pump();
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

#[test]
fn a_slow_store_receives_only_current_writes() {
    let slow = Slow::default();
    let (client, mut net) = Guarded::opened(&host(at_once().store(slow.clone())));
    for _ in 0..5 {
        client.authorize().unwrap();
        net.pump();
        client.forget_authorization().unwrap();
        net.pump();
    }
    client.authorize().unwrap();
    net.pump();
    assert_eq!(net.count("as.example/token"), 6, "{:#?}", net.log);
    slow.let_write();
    net.pump();
    // The write that was in progress, and the latest one.
    let written = slow.written.lock().unwrap();
    assert_eq!(written.len(), 2, "{written:?}");
}

const DUE: &str =
    r#"{"access_token":"t1","token_type":"Bearer","expires_in":0,"refresh_token":"r1"}"#;
const RENEWED: &str =
    r#"{"access_token":"t2","token_type":"Bearer","expires_in":3600,"refresh_token":"r2"}"#;

/// Returns two connections of a host, whose token is due; the first one renews it, and the second
/// one is not open yet.
fn one_renews() -> [(Client, Guarded); 2] {
    let host = host(at_once());
    let (first, mut net) = Guarded::opened(&host);
    net.token = Some(DUE.to_owned());
    net.run(call(&first)).unwrap();
    let second = Guarded::new(&host);
    net.token = None;
    net.log.clear();
    assert!(net.poll(call(&first).as_mut()).is_none());
    assert_eq!(net.count("grant_type=refresh_token"), 1, "{:#?}", net.log);
    [(first, net), second]
}

#[test]
fn connections_renew_a_token_one_at_a_time() {
    let [(_first, mut net), (client, mut other)] = one_renews();
    let mut waiting = pin!(client.opened());
    let polled = other.poll(waiting.as_mut());
    assert!(polled.is_none(), "{polled:?} {:#?}", other.log);
    assert_eq!(other.count("as.example"), 0, "{:#?}", other.log);
    net.answer_token(RENEWED);
    other.run(waiting.as_mut()).unwrap();
    // It uses the token of the first connection.
    assert_eq!(other.count("as.example"), 0, "{:#?}", other.log);
}

#[test]
fn a_connection_that_closes_during_a_renewal_lets_others_renew() {
    let [(first, mut net), (client, mut other)] = one_renews();
    let mut waiting = pin!(client.opened());
    let polled = other.poll(waiting.as_mut());
    assert!(polled.is_none(), "{polled:?} {:#?}", other.log);
    first.close();
    net.pump();
    other.token = Some(RENEWED.to_owned());
    other.run(waiting.as_mut()).unwrap();
    assert_eq!(other.count("grant_type=refresh_token"), 1, "{:#?}", other.log);
}

#[test]
fn a_connection_that_is_dropped_during_a_renewal_lets_others_renew() {
    let [(first, net), (client, mut other)] = one_renews();
    drop((first, net));
    other.token = Some(RENEWED.to_owned());
    other.run(client.opened()).unwrap();
    assert_eq!(other.count("grant_type=refresh_token"), 1, "{:#?}", other.log);
}

#[test]
fn closing_does_not_wait_for_the_lock_of_another_connection() {
    let [(_first, _net), (client, mut other)] = one_renews();
    assert!(other.poll(pin!(client.opened())).is_none());
    client.close();
    other.pump();
    let endpoint = other.endpoint.as_ref().unwrap();
    assert!(endpoint.is_drained());
    assert_eq!(endpoint.poll_timeout(), None);
}
