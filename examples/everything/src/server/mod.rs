//! A server with every feature. Its handlers are written once and serve all five revisions.
//!
//! Names that start with `test_` are fixtures of the official conformance suite, or extend them.

mod extensions;
mod input_requests;
mod media;
mod prompts;
mod resources;
mod rounds;
mod tasks;
mod tools;

use std::path::Path;

use mcp_sansio_handlers::Server;
use mcp_sansio_tokio::skills::{ServedSkills, SkillFolder};

use crate::runtime::Runtime;

pub use extensions::with_extensions;

/// The tool that changes something. With authorization, it requires an additional scope.
pub const WRITES: &str = "test_touch_watched_resource";

/// Returns the server. Its tools pause with the timers of `runtime`. With `tasks`, some of them run
/// as tasks.
#[must_use]
pub fn server(runtime: Runtime, tasks: bool) -> Server {
    let server = Server::new("everything-server", env!("CARGO_PKG_VERSION"))
        .instructions("Call any tool: each shows one feature, and none changes anything.")
        .logging()
        .subscriptions();
    let server = crate::seal::seal_states(server);
    let server = tools::offer(server, runtime);
    let server = input_requests::offer(server);
    let server = rounds::offer(server);
    let server = resources::offer_scoped(resources::offer(server));
    let server = if tasks { tasks::allow(server) } else { server };
    let server = tasks::offer(server, runtime);
    prompts::offer(server)
}

/// Adds the skills in a folder.
///
/// # Errors
///
/// Returns a description of the problem with the folder.
pub fn with_skills(server: Server, folder: &Path) -> Result<Server, String> {
    let skills = SkillFolder::new(folder).read();
    let skills = skills.map_err(|error| format!("no skills in {}: {error}", folder.display()))?;
    Ok(ServedSkills::new(skills).register(server))
}
