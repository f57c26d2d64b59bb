//! Servers as data, from the JSON that hosts share.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::InvalidValue;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::HeaderFields;
use serde::de::IgnoredAny;

/// The servers in a configuration of a host, such as `claude_desktop_config.json`, `.mcp.json` and
/// `mcp.json`: the objects in `mcpServers`, or in `servers`, as VS Code calls it.
///
/// | Member | Value |
/// | --- | --- |
/// | `command`, `args`, `env`, `cwd` | a program that is the server: its name or path, arguments, additional environment variables, and working directory |
/// | `url` (or `serverUrl`, `httpUrl`), `headers` | the URL of a server on HTTP, and header fields of each request |
/// | `type` (or `transport`, `transportType`) | `stdio` (or `local`), `http` (or `streamable-http`, `streamableHttp`), or `sse`, in any case; only needed for an entry with both `command` and `url` |
/// | `disabled`, `enabled` | if `true` or `false` respectively, the entry is skipped |
///
/// Comments (`//` and `/* */`) and trailing commas are skipped, since VS Code allows them. In these
/// strings, except for `type`, `${NAME}` stands for a variable, `${NAME:-default}` has a default, and
/// `${env:NAME}` is the same as `${NAME}`. Other members are not read.
///
/// ```
/// use mcp_sansio_handlers::{ServerSpec, ServersConfig};
///
/// let text = r#"{ "mcpServers": {
///     "files": { "command": "files-server", "args": ["${HOME}/notes"] },
///     "weather": { "url": "https://mcp.example.com", "headers": { "X-Key": "${KEY}" } }
/// } }"#;
/// // In a program: `|name| std::env::var(name).ok()`.
/// let config = ServersConfig::parse(text, |name| (name == "HOME").then(|| "/home/ann".into()))?;
/// let Ok(ServerSpec::Process { args, .. }) = &config.servers["files"] else { panic!() };
/// assert_eq!(args, &["/home/ann/notes"]);
/// assert_eq!(
///     config.servers["weather"].as_ref().unwrap_err().to_string(),
///     "`mcpServers.weather.headers.X-Key`: the variable `KEY` is not set and has no default",
/// );
/// # Ok::<(), mcp_sansio::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServersConfig {
    /// The servers by name. A malformed entry does not hide the others.
    pub servers: BTreeMap<String, Result<ServerSpec, InvalidValue>>,
    /// The names of the entries that were skipped, because they are disabled.
    pub disabled: Vec<String>,
    /// The places of the members that were not read, such as `mcpServers.files.autoApprove`.
    pub ignored: Vec<String>,
}

/// How to reach a server. Its [`Debug`](fmt::Debug) output omits the values of environment
/// variables and header fields.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerSpec {
    /// A program that is started, and speaks on its standard streams.
    Process {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables that it has in addition to those of the host.
        env: BTreeMap<String, String>,
        /// Its working directory; `None` for that of the host.
        cwd: Option<String>,
    },
    /// A server on HTTP.
    Http {
        /// Its URL, which begins with `http:` or `https:`.
        url: String,
        /// The names and values of header fields of each request, which are valid.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { command, args, env, cwd } => f
                .debug_struct("Process")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("url", url).field("headers", &headers.keys()).finish()
            }
        }
    }
}

fn wrong<T>(place: &str, reason: impl Into<Cow<'static, str>>) -> Result<T, InvalidValue> {
    Err(InvalidValue::at(place, reason))
}

impl ServersConfig {
    /// Reads a configuration. `variable` returns the values of variables, usually those of the
    /// environment. Any name in `${..}` is passed to it, also `input:token` and `workspaceFolder`
    /// of VS Code.
    ///
    /// # Errors
    ///
    /// The fault of its author: the text is not a JSON object, or has no member `mcpServers` or
    /// `servers` that is an object. Defects of entries are in [`servers`](Self::servers). No error
    /// contains values, which may be secrets.
    pub fn parse(
        text: &str,
        mut variable: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, InvalidValue> {
        // Some editors write a byte order mark.
        let text = without_comments(text.trim_start_matches('\u{feff}').trim());
        if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
            return wrong("", format!("the configuration is not JSON: {error}"));
        }
        let mut reader = Reader { variable: &mut variable, ignored: Vec::new() };
        let (mut servers, mut disabled) = (BTreeMap::new(), Vec::new());
        let mut has_servers = false;
        for list in RawJson::trusted(text.trim()).members() {
            let list_name = list.name();
            if !matches!(&*list_name, "mcpServers" | "servers") {
                reader.ignored.push(list_name.into_owned());
                continue;
            }
            has_servers = true;
            for entry in object(&list_name, &list.value)? {
                let name = entry.name().into_owned();
                let place = format!("{list_name}.{name}");
                let repeated = || wrong(&place, "there are two entries of this name");
                match reader.entry(&place, &entry.value).transpose() {
                    None => disabled.push(name),
                    Some(_) if servers.contains_key(&name) => {
                        drop(servers.insert(name, repeated()))
                    }
                    Some(spec) => drop(servers.insert(name, spec)),
                }
            }
        }
        if !has_servers {
            return wrong("", "the configuration has no member `mcpServers` or `servers`");
        }
        Ok(Self { servers, disabled, ignored: reader.ignored })
    }
}

/// Replaces comments and trailing commas by spaces, so that the places of errors stay the same.
fn without_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    // The last character outside of comments that is no space, and the place of a comma that is
    // superfluous if the list ends next.
    let (mut last, mut comma) = ('{', None);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match comment_length(rest) {
            0 if character == '"' => string_length(rest),
            0 => character.len_utf8(),
            comment => {
                let (comment, after) = rest.split_at(comment);
                clean.extend(comment.bytes().map(|it| if it == b'\n' { '\n' } else { ' ' }));
                rest = after;
                continue;
            }
        };
        match character {
            ',' if !matches!(last, '{' | '[' | ',' | ':') => comma = Some(clean.len()),
            '}' | ']' => {
                if let Some(comma) = comma.take() {
                    clean.replace_range(comma..=comma, " ");
                }
            }
            character if character.is_whitespace() => {}
            _ => comma = None,
        }
        if !character.is_whitespace() {
            last = character;
        }
        let (part, after) = rest.split_at(length);
        clean.push_str(part);
        rest = after;
    }
    clean
}

/// Returns the length of the comment that the text begins with, or 0 if it begins with
/// none. `/*` without an end begins none.
fn comment_length(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    let inner = text.strip_prefix("/*").and_then(|inner| inner.find("*/"));
    inner.map_or(0, |length| length + 4)
}

/// Returns the length of the string that the text begins with.
fn string_length(text: &str) -> usize {
    let mut is_escaped = true;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Returns the members of an object.
fn object<'a>(
    place: &str,
    value: &'a RawJson<'_>,
) -> Result<mcp_sansio::jsonrpc::Members<'a>, InvalidValue> {
    if value.as_str().starts_with('{') {
        Ok(value.members())
    } else {
        wrong(place, "not an object")
    }
}

/// Reads entries.
struct Reader<'a> {
    variable: &'a mut dyn FnMut(&str) -> Option<String>,
    ignored: Vec<String>,
}

impl Reader<'_> {
    /// Reads an entry; returns `None` if it is disabled.
    fn entry(
        &mut self,
        place: &str,
        entry: &RawJson<'_>,
    ) -> Result<Option<ServerSpec>, InvalidValue> {
        if self.is_disabled(place, entry)? {
            return Ok(None);
        }
        let (mut kind, mut command, mut url, mut cwd) = (None, None, None, None);
        let (mut args, mut env, mut headers) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for member in object(place, entry)? {
            let (name, value) = (member.name(), &member.value);
            let place = &format!("{place}.{name}");
            if entry.members().filter(|other| other.is_named(&name)).count() > 1 {
                return wrong(place, "given twice");
            }
            match &*name {
                // In an optional member, `null` is absence.
                _ if *value == RawJson::NULL => {}
                "type" => {
                    let given = Some(string(place, value)?).filter(|kind| !kind.is_empty());
                    kind = given.or(kind);
                }
                "transport" | "transportType" if value.to_text().is_some() => {
                    kind = kind.or_else(|| value.to_text().filter(|kind| !kind.is_empty()));
                }
                "command" => command = Some(self.string(place, value)?),
                "cwd" => cwd = Some(self.string(place, value)?),
                "url" | "serverUrl" | "httpUrl" if url.is_some() => {
                    return wrong(place, "given twice");
                }
                "url" | "serverUrl" | "httpUrl" => url = Some(self.string(place, value)?),
                "args" => {
                    let Ok(elements) = value.decode::<Vec<RawJson<'_>>>() else {
                        return wrong(place, "not an array");
                    };
                    for (index, element) in elements.iter().enumerate() {
                        args.push(self.string(&format!("{place}[{index}]"), element)?);
                    }
                }
                "env" => env = self.strings(place, value)?,
                "headers" => {
                    headers = self.strings(place, value)?;
                    for (name, value) in &headers {
                        if let Err(error) = HeaderFields::new().field(name, value) {
                            return wrong(&format!("{place}.{name}"), error.to_string());
                        }
                    }
                }
                "disabled" | "enabled" => {}
                _ => self.ignored.push(place.clone()),
            }
        }
        let known = kind.as_deref().map(|kind| kind.to_ascii_lowercase().replace('_', "-"));
        let process = match (known.as_deref(), &command, &url) {
            (None, Some(_), Some(_)) => {
                return wrong(
                    place,
                    "both `command` and `url` are given; `type` says which counts",
                );
            }
            (None, None, None) => return wrong(place, "neither `command` nor `url` is given"),
            (Some("stdio" | "local"), ..) | (None, Some(_), None) => true,
            (Some("http" | "streamable-http" | "streamablehttp" | "sse"), ..)
            | (None, None, Some(_)) => false,
            (Some(_), ..) => {
                let other = kind.unwrap_or_default();
                let reason = format!("`{other}` is not `stdio`, `http` or `sse`");
                return wrong(&format!("{place}.type"), reason);
            }
        };
        if process {
            let Some(command) = command.filter(|command| !command.is_empty()) else {
                return wrong(&format!("{place}.command"), "missing");
            };
            return Ok(Some(ServerSpec::Process { command, args, env, cwd }));
        }
        let Some(url) = url else { return wrong(&format!("{place}.url"), "missing") };
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return wrong(&format!("{place}.url"), "not an `http:` or `https:` URL");
        }
        Ok(Some(ServerSpec::Http { url, headers }))
    }

    /// Returns whether an entry is disabled, wherever it says so, and whatever else is in it.
    fn is_disabled(&self, place: &str, entry: &RawJson<'_>) -> Result<bool, InvalidValue> {
        let mut is_disabled = false;
        for member in object(place, entry)? {
            let name = member.name();
            if !matches!(&*name, "disabled" | "enabled") || member.value == RawJson::NULL {
                continue;
            }
            match member.value.decode::<bool>() {
                Ok(value) => is_disabled |= value == (name == "disabled"),
                Err(_) => return wrong(&format!("{place}.{name}"), "neither `true` nor `false`"),
            }
        }
        Ok(is_disabled)
    }

    fn strings(
        &mut self,
        place: &str,
        value: &RawJson<'_>,
    ) -> Result<BTreeMap<String, String>, InvalidValue> {
        let mut strings = BTreeMap::new();
        for member in object(place, value)?.filter(|member| member.value != RawJson::NULL) {
            let name = member.name().into_owned();
            let place = &format!("{place}.{name}");
            let string = match member.value.as_str() {
                // A number, which VS Code allows.
                number if number.starts_with(|it: char| it == '-' || it.is_ascii_digit()) => {
                    number.into()
                }
                _ => self.string(place, &member.value)?,
            };
            if strings.insert(name, string).is_some() {
                return wrong(place, "given twice");
            }
        }
        Ok(strings)
    }

    /// Reads a string, and replaces the variables in it.
    fn string(&mut self, place: &str, value: &RawJson<'_>) -> Result<String, InvalidValue> {
        let text = string(place, value)?;
        let (mut expanded, mut rest) = (String::new(), &*text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inner, after)) = after.split_once('}') else { break };
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            expanded.push_str(before);
            match ((self.variable)(name), default) {
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => {
                    let reason = format!("the variable `{name}` is not set and has no default");
                    return wrong(place, reason);
                }
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

fn string<'a>(place: &str, value: &RawJson<'a>) -> Result<Cow<'a, str>, InvalidValue> {
    value.to_text().map_or_else(|| wrong(place, "not a string"), Ok)
}
