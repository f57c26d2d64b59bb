//! Protection of request states against modification by the client.

use std::path::Path;
use std::time::Duration;

use mcp_sansio::seal::Seal;
use mcp_sansio_handlers::Server;

/// Long enough for a user who looks something up before they answer.
const LIFETIME: Duration = Duration::from_secs(600);

/// Seals request states with a random key of this process. A server with several processes needs a
/// shared key.
///
/// # Panics
///
/// Panics if the random number generator of the operating system fails, because states could be
/// forged without a key.
pub(crate) fn seal_states(server: Server) -> Server {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the operating system provides random numbers");
    server.seal(Seal::new(key), LIFETIME)
}

/// Seals request states with the key in the first line of a file. States that were sealed with the
/// keys in the other lines are accepted, so that all nodes can change their key one after the
/// other.
///
/// # Errors
///
/// The file cannot be read, or a line is not 64 hexadecimal digits.
pub(crate) fn with_keys_of(server: Server, path: &Path) -> Result<Server, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let keys: Option<Vec<_>> = text.split_whitespace().map(parse).collect();
    let keys = keys.ok_or("each line must be a key of 64 hexadecimal digits")?;
    let Some((current, previous)) = keys.split_first() else { return Err("no key".into()) };
    let seal = Seal::new(*current).with_previous_keys(previous.iter().copied());
    Ok(server.seal(seal, LIFETIME))
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(key)
}
