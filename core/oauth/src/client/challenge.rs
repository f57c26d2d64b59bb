//! Challenges of responses with 401 and 403: the field `WWW-Authenticate`.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::http::is_token_byte;

use super::scopes::is_scope_list;

/// The most bytes of `WWW-Authenticate` that are parsed; the rest is ignored.
pub const CHALLENGES_LENGTH_MAX: usize = 16 * 1024;
/// The most challenges that are kept.
pub const CHALLENGES_MAX: usize = 16;
/// The most parameters that a challenge may have; one with more is refused.
pub const PARAMETERS_MAX: usize = 32;

/// A challenge of `WWW-Authenticate` (RFC 9110, section 11.6.1).
///
/// ```
/// use mcp_sansio_oauth::Challenge;
///
/// let value: &[u8] = br#"Bearer error="insufficient_scope", scope="files:write""#;
/// let challenges = Challenge::parse([value]);
/// assert_eq!(challenges[0].scheme, "bearer");
/// assert_eq!(challenges[0].param("scope"), Some("files:write"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The scheme, in lower case: `bearer`.
    pub scheme: String,
    /// The token68 text that some schemes have in place of parameters.
    pub token68: Option<String>,
    /// The parameters in their order. Names are unique and in lower case; values are without quotes
    /// and escapes, with invalid UTF-8 replaced.
    pub params: Vec<(String, String)>,
}

/// The parameters of a challenge that MCP uses. All of them are unverified claims of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BearerChallenge {
    /// Whether the server expects the token with a proof that the client holds a key: `DPoP` (RFC
    /// 9449) instead of `Bearer` (RFC 6750).
    pub is_dpop: bool,
    /// The URL of the protected resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces. `None` if the server named no scope
    /// or an invalid one.
    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-051]
    pub scope: Option<String>,
    /// The error code: `invalid_token`, `insufficient_scope`, …
    pub error: Option<String>,
    /// The error message for developers. Do not show it as a message of the client.
    pub error_description: Option<String>,
}

impl Challenge {
    /// Parses the challenges of all field lines called `WWW-Authenticate`, in their order, in
    /// linear time.
    ///
    /// Never fails: a malformed part ends its challenge, which keeps the parameters before it, and
    /// parsing continues at the next scheme. Some servers omit the quotes of a value without
    /// spaces, write single ones, or omit the comma after the quotes: that is read. Several words
    /// without quotes are not, as a message could contain what looks like a parameter. A challenge with a duplicate parameter is
    /// skipped, as
    /// no interpretation of it is safe: an attacker who can inject text into one parameter could
    /// add another one before the server's.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHC-015]
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Vec<Self> {
        let mut reading = Reading { challenges: Vec::new(), current: Current::None };
        let mut budget = CHALLENGES_LENGTH_MAX;
        for value in values {
            if value.len() > budget {
                break;
            }
            budget -= value.len();
            reading.line(Scanner(value));
        }
        reading.end();
        reading.challenges
    }

    /// Returns the value of a parameter, by its name in lower case.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }
}

impl BearerChallenge {
    /// Selects the challenge to act on: the first token challenge that names resource metadata,
    /// otherwise the first token challenge; `None` without any.
    #[must_use]
    pub fn select(challenges: &[Challenge]) -> Option<Self> {
        let mut tokens = challenges.iter().filter_map(Self::from_challenge);
        let first = tokens.next()?;
        if first.resource_metadata.is_some() {
            return Some(first);
        }
        tokens.find(|it| it.resource_metadata.is_some()).or(Some(first))
    }

    /// Converts a challenge of the schemes `Bearer` and `DPoP`; `None` for other schemes.
    #[must_use]
    pub fn from_challenge(challenge: &Challenge) -> Option<Self> {
        let is_dpop = challenge.scheme == "dpop";
        if !is_dpop && challenge.scheme != "bearer" {
            return None;
        }
        let param = |name| challenge.param(name).map(String::from);
        Some(Self {
            is_dpop,
            resource_metadata: param("resource_metadata"),
            scope: param("scope").filter(|scope| is_scope_list(scope)),
            error: param("error"),
            error_description: param("error_description"),
        })
    }
}

/// The challenge that the next parameter belongs to.
enum Current {
    /// None: no scheme was read yet, or a malformed part followed it.
    None,
    /// This challenge.
    Challenge(Challenge),
    /// A challenge that is skipped.
    Refused,
}

struct Reading {
    challenges: Vec<Challenge>,
    current: Current,
}

impl Reading {
    /// Parses a field line. A challenge may continue in the next line: lines with the same name are
    /// one list (RFC 9110, section 5.3).
    fn line(&mut self, mut text: Scanner<'_>) {
        while text.next_element() {
            let name = text.token();
            if name.is_empty() {
                self.malformed(&mut text);
            } else if text.equals() {
                self.value_of(name, &mut text);
            } else {
                self.end();
                self.current = Current::Challenge(Challenge {
                    scheme: lower_case(name),
                    token68: None,
                    params: Vec::new(),
                });
                self.after_scheme(&mut text);
            }
        }
    }

    /// Parses the token68 or the first parameter, if the scheme has any.
    fn after_scheme(&mut self, text: &mut Scanner<'_>) {
        let separated = text.space();
        if text.at_end_of_element() {
            return;
        }
        if separated && let Some(token68) = text.token68() {
            if let Current::Challenge(challenge) = &mut self.current {
                challenge.token68 = Some(lossy(token68));
            }
            return;
        }
        let name = text.token();
        if separated && !name.is_empty() && text.equals() {
            self.value_of(name, text);
        } else {
            self.malformed(text);
        }
    }

    fn value_of(&mut self, name: &[u8], text: &mut Scanner<'_>) {
        let Some(value) = text.value() else { return self.malformed(text) };
        if let Current::Challenge(challenge) = &mut self.current {
            let name = lower_case(name);
            if challenge.token68.is_some() {
                self.end();
            } else if challenge.param(&name).is_some() || challenge.params.len() == PARAMETERS_MAX {
                self.current = Current::Refused;
            } else {
                challenge.params.push((name, value));
            }
        }
    }

    fn malformed(&mut self, text: &mut Scanner<'_>) {
        text.skip_element();
        self.end();
    }

    fn end(&mut self) {
        if let Current::Challenge(challenge) = core::mem::replace(&mut self.current, Current::None)
            && self.challenges.len() < CHALLENGES_MAX
        {
            self.challenges.push(challenge);
        }
    }
}

/// The rest of a field line.
struct Scanner<'a>(&'a [u8]);

impl<'a> Scanner<'a> {
    /// Moves to the next element of the list; returns `false` at the end. Skips empty elements.
    fn next_element(&mut self) -> bool {
        self.take(|byte| matches!(byte, b' ' | b'\t' | b','));
        !self.0.is_empty()
    }

    /// Skips white space; returns whether there was any.
    fn space(&mut self) -> bool {
        !self.take(|byte| matches!(byte, b' ' | b'\t')).is_empty()
    }

    const fn at_end_of_element(&self) -> bool {
        matches!(self.0, [] | [b',', ..])
    }

    fn token(&mut self) -> &'a [u8] {
        self.take(is_token_byte)
    }

    /// Takes `=` and the white space around it if it is next; otherwise takes nothing.
    fn equals(&mut self) -> bool {
        let before = self.0;
        self.space();
        if let [b'=', rest @ ..] = self.0 {
            self.0 = rest;
            self.space();
            return true;
        }
        self.0 = before;
        false
    }

    /// Takes a token68 if it is the whole element; otherwise takes nothing.
    fn token68(&mut self) -> Option<&'a [u8]> {
        let before = self.0;
        let text = self.take(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
        });
        let padding = self.take(|byte| byte == b'=').len();
        let token68 = &before[..text.len() + padding];
        self.space();
        if !text.is_empty() && self.at_end_of_element() {
            return Some(token68);
        }
        self.0 = before;
        None
    }

    /// Takes a value that is the rest of the element; some servers omit the comma after one in
    /// quotes.
    fn value(&mut self) -> Option<String> {
        let quoted = self.0.first() == Some(&b'"');
        let value = if quoted { self.quoted()? } else { self.bare()? };
        let separated = self.space();
        let ended = self.at_end_of_element() || quoted && separated && self.is_at_parameter();
        ended.then_some(value)
    }

    /// Takes a value without quotes, or in single ones. It should have double ones unless it is a
    /// token, but some servers write URLs and scopes like this.
    fn bare(&mut self) -> Option<String> {
        let value = self.take(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b','));
        let inside = value.strip_prefix(b"'").and_then(|it| it.strip_suffix(b"'"));
        (!value.is_empty()).then(|| lossy(inside.unwrap_or(value)))
    }

    /// Takes a value in quotes.
    fn quoted(&mut self) -> Option<String> {
        let [b'"', inside @ ..] = self.0 else { return None };
        let mut value = Vec::new();
        let mut bytes = inside.iter();
        loop {
            let byte = match bytes.next()? {
                b'"' => break,
                b'\\' => bytes.next()?,
                byte => byte,
            };
            if byte.is_ascii_control() && *byte != b'\t' {
                return None;
            }
            value.push(*byte);
        }
        self.0 = bytes.as_slice();
        Some(lossy(&value))
    }

    /// Whether the next thing is a name and `=`.
    fn is_at_parameter(&self) -> bool {
        let mut ahead = Scanner(self.0);
        !ahead.token().is_empty() && ahead.equals()
    }

    /// Skips a malformed part, up to the next comma outside of quotes.
    fn skip_element(&mut self) {
        let (mut quoted, mut escaped) = (false, false);
        self.take(|byte| {
            if escaped {
                escaped = false;
            } else if byte == b'"' {
                quoted = !quoted;
            } else if quoted {
                escaped = byte == b'\\';
            } else {
                return byte != b',';
            }
            true
        });
    }

    fn take(&mut self, mut wanted: impl FnMut(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !wanted(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lower_case(name: &[u8]) -> String {
    lossy(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
