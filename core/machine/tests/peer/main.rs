//! The two machines, each against a script and against each other.

#[path = "../schema/facts.rs"]
mod facts;
mod fixtures;
mod machine;
mod pair;
#[path = "../recording/played.rs"]
mod played;
mod schema_checker;
#[path = "../schema/spec.rs"]
#[allow(dead_code, reason = "these tests generate messages and validate none")]
mod spec;
#[path = "../schema/validators.rs"]
mod validators;
mod wire;

mod backpressure;
mod batches;
mod calls;
mod cancellation;
mod closing;
mod contract;
mod duplicates;
mod eras;
mod gate;
mod ids;
mod input_rounds;
mod input_rounds_wire;
mod input_tasks;
mod keep_alive;
mod lifecycle;
mod logging;
mod misbehaving_client_peer;
mod misbehaving_server_peer;
mod progress;
mod random;
mod repeats;
mod subscriptions;
mod tasks;
mod timeouts;
mod tolerance;
mod validation;
mod versions;
mod withdrawing;
