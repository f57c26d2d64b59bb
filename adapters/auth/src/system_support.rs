use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio_handlers::{Host, Threading};

/// The same host with what its [`Authorization`](mcp_sansio_handlers::Authorization) needs of the
/// operating system, entropy and the time of day, where the application has not brought its own.
/// `connect` and `connect_with` of an adapter do this by themselves; it is for those who drive the
/// endpoint.
///
/// # Errors
///
/// The operating system has no entropy.
pub fn with_system_support<K: Threading>(host: &Host<K>) -> io::Result<Host<K>> {
    fill(&mut [0; 32])?;
    let entropy = || {
        let mut secret = [0; 32];
        fill(&mut secret).expect("what gives entropy once does not stop");
        secret
    };
    Ok(host.clone().authorization_runtime(unix_time, entropy))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}

#[allow(clippy::disallowed_methods, reason = "it is not for the core")]
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
