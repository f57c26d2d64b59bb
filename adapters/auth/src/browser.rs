use std::io;
use std::process::{Command, Stdio};
use std::thread;

use mcp_sansio::http::{InvalidUrl, Location, Scheme};

/// The user's browser does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// What is to be opened is no web page. The fault of whoever gave the URL.
    #[error("not the URL of a web page: {0}")]
    Url(#[from] InvalidUrl),
    /// The page is neither `https` nor on this machine: what the user enters there can be read on
    /// the way.
    #[error("the page is neither `https` nor on a loopback address")]
    Insecure,
    /// The program that opens pages does not start: there is no desktop, most likely. Show the user
    /// the URL.
    #[error("no browser can be opened: {0}")]
    System(#[from] io::Error),
}

/// Opens a web page in the user's browser: by `xdg-open`, on macOS by `open`, on Windows by the
/// handler of URLs. No shell sees the URL. It does not wait for the browser.
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
    // In the one form that a location has it starts with `http`: no program takes it for an option.
    let mut child = command(location.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Some systems keep what is left of a process until somebody asks for it.
    thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(target_os = "windows")]
fn command(url: &str) -> Command {
    // `start` belongs to the shell, which would read the `&` of a query as its own.
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

#[cfg(test)]
mod tests {
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
