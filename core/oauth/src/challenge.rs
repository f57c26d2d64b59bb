//! What a server asks for with 401 and 403: the field `WWW-Authenticate`.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::http::is_token_byte;

use super::scopes::is_scope_list;

/// The most bytes of `WWW-Authenticate` that are looked at; what comes after them is not.
pub const CHALLENGES_LENGTH_MAX: usize = 16 * 1024;
/// The most challenges that are kept.
pub const CHALLENGES_MAX: usize = 16;
/// The most parameters that a challenge may have; one with more is refused.
pub const PARAMETERS_MAX: usize = 32;

/// One challenge of `WWW-Authenticate` (RFC 9110, section 11.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The scheme, in lower case: `bearer`.
    pub scheme: String,
    /// The text that some schemes have in place of parameters.
    pub token68: Option<String>,
    /// The parameters in their order. Names are in lower case and each is there once; values are
    /// without quotes and escapes, and what was no UTF-8 in them is replaced.
    pub params: Vec<(String, String)>,
}

/// How a server wants a token presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChallengeScheme {
    /// `Bearer` (RFC 6750).
    Bearer,
    /// `DPoP` (RFC 9449): with a proof that the client holds a key.
    DPoP,
}

/// What MCP reads in a challenge. All of it is what the server says, unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BearerChallenge {
    /// How the token is to be presented.
    pub scheme: ChallengeScheme,
    /// Where the metadata of the protected resource is.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces. `None` where the server named none
    /// or wrote what no scope can have in it.
    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-051]
    pub scope: Option<String>,
    /// What is wrong with the request: `invalid_token`, `insufficient_scope`, …
    pub error: Option<String>,
    /// The same for a developer. Not to be shown as if it were the client's own words.
    pub error_description: Option<String>,
}

impl Challenge {
    /// The challenges of all field lines called `WWW-Authenticate`, in their order. Linear.
    ///
    /// Nothing is an error: what is malformed ends the challenge it stands in, which keeps what came
    /// before, and the next scheme starts afresh. A challenge that names a parameter twice is left
    /// out, as no reading of it is safe: whoever gets text into one parameter could add another in
    /// front of the server's.
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

    /// The value of a parameter, by its name in lower case.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }
}

impl BearerChallenge {
    /// The challenge to act on: the first for a token that names resource metadata, otherwise the
    /// first for a token; `None` if there is none.
    #[must_use]
    pub fn select(challenges: &[Challenge]) -> Option<Self> {
        let mut tokens = challenges.iter().filter_map(Self::from_challenge);
        let first = tokens.next()?;
        if first.resource_metadata.is_some() {
            return Some(first);
        }
        tokens.find(|it| it.resource_metadata.is_some()).or(Some(first))
    }

    /// What a challenge of the schemes `Bearer` and `DPoP` says; `None` for other schemes.
    #[must_use]
    pub fn from_challenge(challenge: &Challenge) -> Option<Self> {
        let scheme = match &*challenge.scheme {
            "bearer" => ChallengeScheme::Bearer,
            "dpop" => ChallengeScheme::DPoP,
            _ => return None,
        };
        let param = |name| challenge.param(name).map(String::from);
        Some(Self {
            scheme,
            resource_metadata: param("resource_metadata"),
            scope: param("scope").filter(|scope| is_scope_list(scope)),
            error: param("error"),
            error_description: param("error_description"),
        })
    }
}

/// Where the next parameter belongs.
enum Current {
    /// Nowhere: no scheme came yet, or something malformed came after it.
    None,
    /// To this challenge.
    Challenge(Challenge),
    /// To a challenge that is left out.
    Refused,
}

struct Reading {
    challenges: Vec<Challenge>,
    current: Current,
}

impl Reading {
    /// Reads one field line. A challenge may go on in the next one: lines of one name are one list
    /// (RFC 9110, section 5.3).
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

    /// Reads the token68 or the first parameter, where the scheme does not stand alone.
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
        let value = text.value();
        text.space();
        let Some(value) = value.filter(|_| text.at_end_of_element()) else {
            return self.malformed(text);
        };
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
    /// Goes to the next element of the list; false if there is none. Elements may be empty.
    fn next_element(&mut self) -> bool {
        self.take(|byte| matches!(byte, b' ' | b'\t' | b','));
        !self.0.is_empty()
    }

    /// Whether there was white space.
    fn space(&mut self) -> bool {
        !self.take(|byte| matches!(byte, b' ' | b'\t')).is_empty()
    }

    const fn at_end_of_element(&self) -> bool {
        matches!(self.0, [] | [b',', ..])
    }

    fn token(&mut self) -> &'a [u8] {
        self.take(is_token_byte)
    }

    /// Takes `=` and the white space around it, if it is there; otherwise nothing.
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

    /// Takes a token68 if it is all of the element; otherwise nothing.
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

    fn value(&mut self) -> Option<String> {
        let [b'"', inside @ ..] = self.0 else {
            let token = self.token();
            return (!token.is_empty()).then(|| lossy(token));
        };
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

    /// Goes behind what is malformed: to the next comma outside of quotes.
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
