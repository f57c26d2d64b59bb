//! Stores that fail, and tokens that replace each other.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use mcp_sansio_oauth::client::AuthorizationOptions;
use seeded_random::{Random, scaled};

use crate::answers::{Answer, error, mcp_answer, status, token};
use crate::network::{AS, MCP, TOKEN, TestNetwork, client, code, code_bare, password};
use crate::sent::Sent;

const SEEDS: u32 = 25;
const STEPS: u64 = 40;

/// Returns a token that must be renewed after 70 seconds.
fn short(number: u32) -> Answer {
    token(&format!("t{number}"), &format!(r#","expires_in":100,"refresh_token":"r{number}""#))
}

/// Calls a tool when the token is due, and returns the refresh token that was used.
fn renew(network: &mut TestNetwork) -> Option<String> {
    network.advance(Duration::from_secs(75));
    network.call("a");
    network.run();
    network.last_to(TOKEN).form("refresh_token")
}

fn three_tokens() -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [short(1), short(2), short(3)]);
    network.accepted.extend(["Bearer t2".into(), "Bearer t3".into()]);
    network
}

#[test]
fn a_store_that_cannot_save_does_not_return_a_spent_refresh_token() {
    let mut network = three_tokens();
    network.run();
    network.store_writes = Box::new(|| false);
    assert_eq!(renew(&mut network).as_deref(), Some("r1"));
    assert_eq!(renew(&mut network).as_deref(), Some("r2"));
    assert!(network.kept().contains("r1"));
}

#[test]
fn a_failed_save_is_repeated_before_the_next_renewal() {
    let mut network = three_tokens();
    network.run();
    network.store_writes = Box::new(|| false);
    renew(&mut network);
    network.store_writes = Box::new(|| true);
    network.post(TOKEN, status(503));
    renew(&mut network);
    assert!(network.kept().contains("r2") && !network.kept().contains("r1"), "{}", network.kept());
}

#[test]
fn tokens_stored_by_an_earlier_version_are_renewed_and_replaced() {
    let mut network = three_tokens();
    network.run();
    let old: Vec<_> = network.store.keys().cloned().collect();
    for key in old {
        let text = network.store[&key].as_str();
        let (before, rest) = text.split_once(r#","generation":{"#).expect("a generation");
        let (_, after) = rest.split_once('}').expect("its end");
        let text = [before, after].concat();
        network.store.insert(key, mcp_sansio_oauth::client::Credential::new(text));
    }
    let mut network = network.again(code());
    network.posts(TOKEN, [short(2), short(3)]);
    network.run();
    network.store_writes = Box::new(|| false);
    assert_eq!(renew(&mut network).as_deref(), Some("r1"));
    assert_eq!(renew(&mut network).as_deref(), Some("r2"));
}

/// Issues tokens in order, and records those that are presented after their successors.
#[derive(Default)]
struct Issuer {
    issued: u32,
    replaced: Vec<String>,
}

impl Issuer {
    /// Answers a request for a token or with a token.
    fn answer(&mut self, request: &Sent, refuses: bool) -> Option<Answer> {
        if request.place() == TOKEN {
            if let Some(refresh_token) = request.form("refresh_token") {
                if refresh_token != format!("r{}", self.issued) {
                    self.replaced.push(refresh_token);
                    return Some(error(400, "invalid_grant"));
                }
                if refuses {
                    return Some(error(400, "invalid_grant"));
                }
            }
            self.issued += 1;
            return Some(short(self.issued));
        }
        if request.place() != MCP {
            return None;
        }
        let accepted = format!("Bearer t{}", self.issued);
        match request.field("authorization") {
            Some(it) if it != accepted => {
                self.replaced.push(it.into());
                Some(status(401))
            }
            Some(_) if !refuses => Some(mcp_answer(request)),
            _ => Some(status(401)),
        }
    }
}

fn with_user() -> AuthorizationOptions {
    code()
}

fn without_user() -> AuthorizationOptions {
    let app = client("app", Some(AS), password("p"));
    AuthorizationOptions::client_credentials().registered(app).expect("a client")
}

fn with_password() -> AuthorizationOptions {
    code_bare().registered(client("app", Some(AS), password("p"))).expect("a client")
}

#[test]
fn a_client_never_sends_a_token_that_it_has_replaced() {
    let (mut renewals, mut failed_saves) = (0, 0);
    let seeds = scaled(SEEDS);
    for seed in 1..=u64::from(seeds) {
        let mut random = Random::new(seed);
        let options = random.one_of([with_user, without_user, with_password]);
        let mut network = TestNetwork::new(options());
        let issuer = Rc::new(RefCell::new(Issuer::default()));
        let (shared, mut servers) = (Rc::clone(&issuer), random.clone());
        network.network =
            Box::new(move |request| shared.borrow_mut().answer(request, servers.once_in(6)));
        let (failures, mut disk) = (Rc::new(RefCell::new(0)), Random::new(seed ^ 0x5eed));
        let (counted, often) = (Rc::clone(&failures), 1 + random.below(4));
        network.store_writes = Box::new(move || {
            let works = disk.below(4) >= often;
            *counted.borrow_mut() += u32::from(!works);
            works
        });
        let mut text = network.run();
        for _ in 0..STEPS {
            text += &match random.below(10) {
                0 if random.once_in(3) => {
                    network.auth.forget(network.now);
                    network.run()
                }
                1 => {
                    network.store_fails = random.once_in(2);
                    network.run()
                }
                2..=5 => network.advance(Duration::from_secs(random.below(120))),
                _ if network.is_open() => {
                    network.call("a");
                    network.run()
                }
                _ => {
                    network.reconnect();
                    network.run()
                }
            };
        }
        let replaced = &issuer.borrow().replaced;
        assert!(replaced.is_empty(), "seed {seed}: {replaced:?} were replaced:\n{text}");
        renewals += text.matches("refresh_token").count();
        failed_saves += *failures.borrow();
    }
    // The schedules reach the cases under test.
    assert!(renewals > seeds as usize && failed_saves > 2 * seeds, "{renewals} {failed_saves}");
}
