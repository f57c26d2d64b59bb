use std::io;

use mcp_sansio::handler::{Host, Kind};

use crate::unix_time;

/// The same host with what its [`Authorization`](crate::Authorization) needs of the operating
/// system, entropy and the time of day, where the application has not brought its own.
/// [`connect`](crate::connect()) and [`connect_with`](crate::connect_with) do this by themselves; it
/// is for those who drive the endpoint.
///
/// # Errors
///
/// The operating system has no entropy.
pub fn equip<K: Kind>(host: &Host<K>) -> io::Result<Host<K>> {
    fill(&mut [0; 32])?;
    let entropy = || {
        let mut secret = [0; 32];
        fill(&mut secret).expect("what gives entropy once does not stop");
        secret
    };
    Ok(host.clone().equip_authorization(unix_time, entropy))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}
