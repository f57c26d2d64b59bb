use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio_handlers::Host;
use mcp_sansio_handlers::handler::Threading;

/// Returns the host with entropy and the time of day from the operating system for its
/// [`Authorization`](mcp_sansio_handlers::Authorization), unless the application has provided its
/// own. `connect` and `connect_with` of an adapter do this already; call it when driving the
/// endpoint directly.
///
/// # Errors
///
/// The operating system has no entropy.
pub fn with_system_support<K: Threading>(host: &Host<K>) -> io::Result<Host<K>> {
    fill(&mut [0; 32])?;
    let entropy = || {
        let mut secret = [0; 32];
        fill(&mut secret).expect("the operating system provided entropy before");
        secret
    };
    Ok(host.clone().authorization_runtime(unix_time, entropy))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}

#[allow(clippy::disallowed_methods, reason = "only the core must not read the time")]
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
