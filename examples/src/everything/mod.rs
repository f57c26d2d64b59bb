//! A server with every feature. Its handlers are written once and serve all five revisions.
//!
//! Names that start with `test_` are fixtures of the official conformance suite, or go with them.

mod input_requests;
mod media;
mod prompts;
mod resources;
mod rounds;
mod seal;
mod tasks;
mod tools;

use mcp_sansio_handlers::Server;

use crate::runtime::Runtime;

/// The tool that changes something: it needs more than the others, where anybody asks.
pub const WRITES: &str = "test_touch_watched_resource";

/// The server; its tools pause on the timer of `runtime`, and some of them run as `tasks` if they
/// may.
#[must_use]
pub fn server(runtime: Runtime, tasks: bool) -> Server {
    let server = Server::new("everything-server", env!("CARGO_PKG_VERSION"))
        .instructions("Call any tool: each shows one feature, and none changes anything.")
        .logging()
        .subscriptions();
    let server = seal::seal_states(server);
    let server = tools::offer(server, runtime);
    let server = input_requests::offer(server);
    let server = rounds::offer(server);
    let server = resources::offer_scoped(resources::offer(server));
    let server = if tasks { tasks::allow(server) } else { server };
    let server = tasks::offer(server, runtime);
    prompts::offer(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_offered_has_a_good_name() {
        assert!(server(Runtime::Std, true).endpoint(0).is_ok());
        assert!(server(Runtime::Std, false).endpoint(0).is_ok());
    }
}
