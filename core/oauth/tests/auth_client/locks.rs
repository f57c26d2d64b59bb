//! Processes of one application that renew the same token.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use seeded_random::{Random, scaled};

use crate::answers::{Answer, error, mcp_answer, status, token};
use crate::network::{MCP, TOKEN, TestNetwork, User, code};
use crate::sent::Sent;

const SEEDS: u32 = 8;
const STEPS: u64 = 80;

/// Returns a token that must be renewed after 70 seconds.
fn short(number: u32) -> Answer {
    token(&format!("t{number}"), &format!(r#","expires_in":100,"refresh_token":"r{number}""#))
}

/// Returns a network whose token is due.
fn due() -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [short(1), short(2)]);
    network.accepted.push("Bearer t2".into());
    network.run();
    network.advance(Duration::from_secs(75));
    network
}

#[test]
fn a_renewal_waits_for_that_of_another_process_and_uses_its_token() {
    let mut network = due();
    let mut other = due();
    other.call("a");
    other.run();
    network.locked_elsewhere = true;
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    lock tokens for https://mcp.example/mcp
    waiting
    ");
    network.store = other.store;
    network.unlock_elsewhere();
    insta::assert_snapshot!(network.run(), @"
    unlock
    authorized by https://as.example
    resumed
    tools/call a [Bearer t2]
    call 1 done
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

#[test]
fn a_lock_that_is_never_released_delays_a_renewal_by_one_timeout() {
    let mut network = due();
    network.locked_elsewhere = true;
    network.call("a");
    network.run();
    insta::assert_snapshot!(network.advance(Duration::from_secs(60)), @"
    withdraw the last action
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    tools/call a [Bearer t2]
    call 1 done
    ");
}

#[test]
fn a_store_that_cannot_lock_does_not_prevent_a_renewal() {
    let mut network = due();
    network.store_fails = true;
    network.call("a");
    let text = network.run();
    assert!(text.ends_with("tools/call a [Bearer t2]\ncall 1 done\n"), "{text}");
    assert!(!text.contains("unlock"), "{text}");
}

#[test]
fn the_lock_is_released_before_the_user_is_asked() {
    let mut network = due();
    network.accepted.clear();
    network.post(TOKEN, error(400, "invalid_grant"));
    network.user = User::Stays;
    network.call("a");
    let text = network.run();
    assert!(text.ends_with("sign in at https://as.example/authorize\n"), "{text}");
    assert_eq!((text.matches("lock tokens").count(), network.locked), (1, None), "{text}");
}

#[test]
fn the_lock_is_released_when_the_client_is_closed_or_the_user_signs_out() {
    for closes in [true, false] {
        let mut network = due();
        network.post(TOKEN, Answer::Silence);
        network.call("a");
        network.run();
        assert!(network.locked.is_some());
        match closes {
            true => network.auth.close(),
            false => network.auth.forget(network.now),
        }
        network.run();
        assert_eq!(network.locked, None);
    }
}

/// Issues refresh tokens that are valid once, and records those that are presented again.
#[derive(Default)]
struct Issuer {
    /// How often the tokens of each sign-in were renewed.
    sign_ins: Vec<u32>,
    reused: Vec<String>,
}

impl Issuer {
    fn answer(&mut self, request: &Sent) -> Answer {
        let sign_in = match request.form("refresh_token") {
            None => {
                self.sign_ins.push(0);
                self.sign_ins.len() - 1
            }
            Some(refresh_token) => {
                let parts = refresh_token.split_once('.').expect("a refresh token");
                let (sign_in, renewals) = (parts.0.parse().expect("a number"), parts.1);
                let valid: &mut u32 = &mut self.sign_ins[sign_in];
                if valid.to_string() != renewals {
                    self.reused.push(refresh_token);
                    return error(400, "invalid_grant");
                }
                *valid += 1;
                sign_in
            }
        };
        let name = format!("{sign_in}.{}", self.sign_ins[sign_in]);
        token(&format!("t{name}"), &format!(r#","expires_in":100,"refresh_token":"{name}""#))
    }
}

/// A process of the application.
struct Process {
    network: TestNetwork,
    /// Answers of the token endpoint that are in transit.
    answers: Rc<RefCell<VecDeque<Answer>>>,
}

impl Process {
    fn new(issuer: &Rc<RefCell<Issuer>>, mut server: Random, number: u8) -> Self {
        let mut network = TestNetwork::with_entropy(MCP, code(), [number; 32]);
        let (issuer, answers) = (Rc::clone(issuer), Rc::default());
        let sent: Rc<RefCell<VecDeque<Answer>>> = Rc::clone(&answers);
        network.network = Box::new(move |request| {
            if request.place() == TOKEN {
                sent.borrow_mut().push_back(issuer.borrow_mut().answer(request));
                return Some(Answer::Silence);
            }
            let with_token = request.place() == MCP && request.field("authorization").is_some();
            with_token.then(|| match server.once_in(8) {
                true => status(401),
                false => mcp_answer(request),
            })
        });
        Self { network, answers }
    }

    fn waits(&self) -> bool {
        self.network.locked.is_some() && self.network.locked_elsewhere
    }

    fn holds(&self) -> bool {
        self.network.locked.is_some() && !self.network.locked_elsewhere
    }

    /// Delivers the answer of the token endpoint.
    fn deliver(&mut self) -> String {
        let answer = self.answers.borrow_mut().pop_front();
        match answer {
            Some(answer) => {
                self.network.answer_late(TOKEN, answer);
                self.network.run()
            }
            None => String::new(),
        }
    }
}

/// Performs `act` in the process with this index, with the store and the lock of all.
fn perform(
    processes: &mut [Process],
    at: usize,
    act: impl FnOnce(&mut Process) -> String,
) -> String {
    let held = processes.iter().enumerate().any(|(other, it)| other != at && it.holds());
    let process = &mut processes[at];
    if process.waits() && !held {
        process.network.unlock_elsewhere();
    } else if !process.waits() {
        process.network.locked_elsewhere = held;
    }
    let text = act(process);
    if !process.waits() {
        process.network.locked_elsewhere = false;
    }
    let store = process.network.store.clone();
    for other in &mut *processes {
        other.network.store.clone_from(&store);
    }
    text.lines().map(|line| format!("{at}: {line}\n")).collect()
}

#[test]
fn processes_never_send_a_refresh_token_twice() {
    let (mut renewals, mut waits) = (0, 0);
    let seeds = scaled(SEEDS);
    for seed in 1..=u64::from(seeds) {
        let mut random = Random::new(seed);
        let issuer = Rc::new(RefCell::new(Issuer::default()));
        let mut processes: Vec<_> = (0..3)
            .map(|it| Process::new(&issuer, Random::new(seed * 10 + u64::from(it)), it))
            .collect();
        let mut text = String::new();
        for at in 0..processes.len() {
            // All know the endpoints that the first one finds.
            processes[at].network.secrets = processes[0].network.secrets.clone();
            text += &perform(&mut processes, at, |process| {
                let text = process.network.run();
                text + &process.deliver()
            });
        }
        for _ in 0..STEPS {
            let at = random.index(processes.len());
            text += &match random.below(8) {
                0..=2 => {
                    // No answer takes longer than a client waits.
                    let duration = Duration::from_secs(random.below(25));
                    let mut text = String::new();
                    for at in 0..processes.len() {
                        text += &perform(&mut processes, at, Process::deliver);
                    }
                    for at in 0..processes.len() {
                        text += &perform(&mut processes, at, |it| {
                            let text = it.deliver();
                            text + &it.network.advance(duration)
                        });
                    }
                    text
                }
                3 | 4 => perform(&mut processes, at, Process::deliver),
                _ => perform(&mut processes, at, |process| {
                    match process.network.http.session() {
                        Some(_) => process.network.call("a"),
                        None => process.network.reconnect(),
                    }
                    process.network.run()
                }),
            };
            waits += usize::from(processes[at].waits());
        }
        let reused = &issuer.borrow().reused;
        assert!(reused.is_empty(), "seed {seed}: {reused:?} were sent twice:\n{text}");
        renewals += text.matches("refresh_token").count();
    }
    // The schedules reach the cases under test.
    let seeds = seeds as usize;
    assert!(renewals > 3 * seeds && 2 * waits > seeds, "{renewals} {waits}");
}
