//! What a client needs of the operating system.

mod file_store;
mod offload;
mod private_file;
pub(crate) mod sign;

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{io, thread};

use mcp_sansio::http::{InvalidUrl, Location, Scheme};
use mcp_sansio_handlers::Host;
use mcp_sansio_handlers::handler::Threading;

pub use file_store::FileStore;
pub use private_file::PrivateFileError;
pub use sign::{KeyError, Signer};

// ------------------------------------------------------------------ browser

/// The page could not be opened in the user's browser.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// The URL is not that of a web page: a fault of its author.
    #[error("not the URL of a web page: {0}")]
    Url(#[from] InvalidUrl),
    /// The page is neither `https` nor on this machine, so that the user's input could be
    /// intercepted.
    #[error("the page is neither `https` nor on a loopback address")]
    Insecure,
    /// The program that opens pages could not be started, probably because there is no desktop.
    /// Show the user the URL.
    #[error("cannot open a browser: {0}")]
    System(#[from] io::Error),
}

/// Opens a web page in the user's browser: with `xdg-open`, on macOS with `open`, on Windows with
/// the handler of URLs. The URL does not pass through a shell. Does not wait for the browser.
///
/// # Errors
///
/// See [`BrowserError`].
// MCP 2026-07-28 security-best-practices#oauth-authorization-url-validation [SEC-007]
pub fn open_in_browser(url: &str) -> Result<(), BrowserError> {
    let location = Location::parse(url)?;
    let origin = location.origin();
    if origin.scheme() != Scheme::Https && !origin.is_loopback() {
        return Err(BrowserError::Insecure);
    }
    // A normalized location starts with `http`, so that no program takes it for an option.
    let mut child = command(location.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Reaps the process.
    thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(target_os = "windows")]
fn command(url: &str) -> Command {
    // `start` is built into the shell, which would interpret the `&` of a query.
    let mut command = Command::new("rundll32");
    command.args(["url.dll,FileProtocolHandler", url]);
    command
}

#[cfg(not(target_os = "windows"))]
fn command(url: &str) -> Command {
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    command.arg(url);
    command
}

// ------------------------------------------------------------------ system support

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

#[cfg(test)]
mod browser_tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        // Rule: [SEC-007].
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "--version",
            "https://a.example/`id`",
            "https://user@a.example/",
            "",
        ] {
            assert!(matches!(open_in_browser(url), Err(BrowserError::Url(_))), "{url}");
        }
        let plain = open_in_browser("http://a.example/authorize");
        assert!(matches!(plain, Err(BrowserError::Insecure)));
    }

    #[test]
    fn the_url_is_one_argument() {
        // Rule: [SEC-007].
        let url = "https://a.example/authorize?a=b&c=$(id)";
        assert_eq!(command(url).get_args().last(), Some(url.as_ref()));
    }
}
