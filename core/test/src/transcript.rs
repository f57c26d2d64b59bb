use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};

use mcp_sansio::{Instant, Side};
use serde_json::Value;

/// The messages of a connection as text, one line each, in the order of their arrival.
///
/// Lines that begin with `>` were received by the server, and lines that begin with `<` by the
/// client. A line such as `-- 1500 ms` precedes the first message after the clock has moved. On
/// HTTP there are lines for the method and the body of each request, the status of each response,
/// and each line of its body.
///
/// The same seed and the same inputs give the same text, so a transcript can be compared with a
/// snapshot. [`outline`](Self::outline) omits the contents of the messages.
///
/// ```
/// use mcp_sansio::{Revision, Revisions};
/// use mcp_sansio_handlers::{Host, Server};
///
/// let host = Host::new("test", "1.0.0").revisions(Revisions::only(Revision::V2025_11_25));
/// let (client, mut pair) = mcp_sansio_test::connect(&Server::new("empty", "1.0.0"), &host);
/// assert_eq!(
///     pair.transcript.outline(),
///     ["> initialize", "< result", "> notifications/initialized"]
/// );
/// assert_eq!(pair.transcript.count(r#""protocolVersion":"2025-11-25""#), 2);
/// # drop(client);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    lines: Vec<String>,
    /// The time of the last line.
    at: Instant,
}

impl Transcript {
    /// Returns the lines.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns how many lines contain `text`.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(text)).count()
    }

    /// Removes all lines, for example those of the handshake.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// Returns the lines with the kind of each message in place of its text: the method of a
    /// request or notification, `result`, or `error` with its code. The outline does not change
    /// when a message gets another member.
    #[must_use]
    pub fn outline(&self) -> Vec<String> {
        let shorten = |line: &String| match line.find(['{', '[']) {
            Some(start) => match serde_json::from_str(&line[start..]) {
                Ok(message) => format!("{}{}", &line[..start], kind(&message)),
                Err(_) => line.clone(),
            },
            None => line.trim_end().to_owned(),
        };
        self.lines.iter().map(shorten).collect()
    }

    /// Adds a message of `from`.
    pub fn push(&mut self, from: Side, message: impl Display, now: Instant) {
        if now > self.at {
            self.at = now;
            let millis = now.saturating_since(Instant::ZERO).as_millis();
            self.lines.push(format!("-- {millis} ms"));
        }
        let mark = if from == Side::Client { '>' } else { '<' };
        self.lines.push(format!("{mark} {message}"));
    }
}

impl Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns the kind of a message, or the kinds of the messages in a batch.
fn kind(message: &Value) -> String {
    if let Value::Array(batch) = message {
        return format!("[{}]", batch.iter().map(kind).collect::<Vec<_>>().join(", "));
    }
    match (&message["method"], &message["error"]["code"]) {
        (Value::String(method), _) => method.clone(),
        (_, Value::Number(code)) => format!("error {code}"),
        _ if message.get("result").is_some() => "result".to_owned(),
        _ => message.to_string(),
    }
}
