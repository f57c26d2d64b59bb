//! The command line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::{HttpClientOptions, Location};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{CompletionReference, PromptReference, ResourceTemplateReference};
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};
use mcp_sansio_handlers::{ServerSpec, ServersConfig};
use serde_json::{Map, Value};

pub(crate) const USAGE: &str = "\
mcp-inspect [OPTIONS] SUBCOMMAND [ARGS] (--url URL | --unix PATH | -- CMD [ARG...])
mcp-inspect [OPTIONS] --config FILE NAME SUBCOMMAND [ARGS]
mcp-inspect replay FILE [--step | --wire]
mcp-inspect show FILE [-o PAGE]
mcp-inspect completions bash|zsh|fish

Inspects an MCP server: one that is running at URL, one that it starts with CMD, or the one called
NAME in FILE, the `mcpServers` configuration of a host.

  info                     prints the server's name and capabilities
  tools                    lists the tools
  call NAME [JSON]         calls a tool with arguments, a JSON object
  resources                lists resources and templates
  read URI                 reads a resource
  prompts                  lists the prompts
  get NAME [JSON]          gets a prompt with arguments, a JSON object of strings
  complete REF ARG VALUE   completes an argument; REF is prompt:NAME or resource:TEMPLATE
  skills [URI]             lists the skills, reads and verifies their files; with URI, prints the
                           instructions of one, listed or not
  listen [URI...]          prints notifications: changed lists and updates of the resources
  card                     prints the card of the server at URL, without connecting (a draft)
  check                    lists everything, tries one item of each kind, prints a JSON summary
  replay FILE              runs the machine on a recording, see below
  show FILE                draws a recording as an HTML page, see below
  completions SHELL        prints a script that completes command lines in bash, zsh or fish

  --revision R     use only this revision: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or
                   2026-07-28 (default: negotiate)
  --runtime NAME   accepts `tokio`, the only one
  --timeout S      give up after this many seconds (default: 30; with listen: never)
  --json           print results as JSON
  --record FILE    record the client for `replay` and `show`: contains all messages, but no
                   tokens
  --wire           print every line or every HTTP exchange on standard error
  --trace          print a line for each request and notification on standard error, and send a
                   trace context with it
  --url URL        the server's MCP endpoint, or the SSE endpoint of a server of 2024-11-05; the
                   transport is detected
  --config FILE    use the server NAME of the `mcpServers` (or `servers`) in this JSON file
  --unix PATH      connect to the Unix-domain socket at PATH, with http://localhost/mcp as URL
                   unless another URL of that host is given
  --header H       add the header H, `Name: value`, to each request to URL; H is neither
                   printed nor recorded
  --read-only      with check, call a tool only if the server says that it changes nothing
  --sign-in        sign in with a browser if the server requires it
  --store FILE     keep the registration and the tokens in FILE for the next run
  --client-id ID   use this client id to sign in (default: register)
  --scope S        request these scopes as well when signing in

`replay` runs the machine on a recording, made here or by a server. It prints the output of the
machine (with --wire: the messages; with --step: every call) and, at the end, whether everything
matched the recording, or the first difference. `show` draws the exchange as an HTML page, next to
the recording or as PAGE.

Elicitation and sampling requests of the server are answered with defaults and made-up values. On a
terminal there are colours, unless NO_COLOR is set, and a bar for progress.

Exit status:
  0   success
  1   the server cannot be reached, answered with an error or failed a check; a skill differs from
      its digests; a recording does not match
  2   the command line is wrong, and nothing was done
  128 plus the number of a signal, such as 130 for Ctrl-C: the signal ended the command, and the
      server was shut down; a second signal ends both at once
";

/// The subcommand to run.
#[derive(Debug)]
pub(crate) enum Command {
    Info,
    Tools,
    Call { name: String, arguments: RawJson<'static> },
    Resources,
    Read { uri: String },
    Prompts,
    Get { name: String, arguments: Vec<(String, String)> },
    Complete { reference: CompletionReference, argument: String, value: String },
    Skills { uri: Option<String> },
    Listen { uris: Vec<String> },
    Check { read_only: bool },
    Card,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) revision: Option<Revision>,
    /// The timeout given on the command line.
    pub(crate) timeout: Option<Duration>,
    pub(crate) json: bool,
    pub(crate) wire: bool,
    /// Whether a line is printed for each request and notification.
    pub(crate) trace: bool,
    pub(crate) record: Option<PathBuf>,
    pub(crate) command: Command,
    pub(crate) server: Place,
    /// The Unix-domain socket of the server.
    #[cfg(unix)]
    pub(crate) unix: Option<PathBuf>,
    pub(crate) sign_in: Option<SignIn>,
}

/// How to sign in.
#[derive(Debug, Default)]
pub(crate) struct SignIn {
    /// Where to keep the registration and the tokens.
    pub(crate) store: Option<PathBuf>,
    pub(crate) client_id: Option<String>,
    /// The scopes to request in addition.
    pub(crate) scopes: Vec<String>,
}

/// The location of the server.
#[derive(Debug)]
pub(crate) enum Place {
    /// Has at least one word.
    Program(Program),
    Url(Box<HttpClientOptions>),
}

/// A program that is a server.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Additional environment variables.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: Option<String>,
}

impl Options {
    /// Returns a name for the server: its URL or its program.
    pub(crate) fn server_label(&self) -> String {
        match &self.server {
            Place::Program(program) => program.words.first().cloned().unwrap_or_default(),
            Place::Url(url) => url.url().as_str().to_owned(),
        }
    }

    /// Returns the time limit of the whole command.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(30))
    }

    pub(crate) fn parse(mut arguments: Arguments) -> Result<Self, Stop> {
        let (mut revision, mut timeout) = (None, None);
        let (mut json, mut wire, mut trace, mut record) = (false, false, false, None);
        let (mut sign_in, mut details) = (false, SignIn::default());
        let (mut words, mut program, mut url) = (Vec::new(), Program::default(), None);
        let mut config = None;
        let (mut headers, mut read_only) = (Vec::new(), false);
        #[cfg(unix)]
        let mut unix = None;
        while let Some(argument) = arguments.shift()? {
            match argument {
                Argument::Word(word) => words.push(word),
                Argument::Rest(rest) => program.words = rest,
                Argument::Flag(flag) => match flag.as_str() {
                    "--revision" => revision = Some(parse_revision(&arguments.value(&flag)?)?),
                    "--runtime" => check_runtime(&arguments.value(&flag)?)?,
                    "--timeout" => timeout = Some(parse_seconds(&arguments.value(&flag)?)?),
                    "--json" => json = true,
                    "--wire" => wire = true,
                    "--trace" => trace = true,
                    "--record" => record = Some(arguments.value(&flag)?.into()),
                    "--config" => config = Some(arguments.value(&flag)?),
                    "--url" => url = Some(parse_url(&arguments.value(&flag)?)?),
                    #[cfg(unix)]
                    "--unix" => unix = Some(PathBuf::from(arguments.value(&flag)?)),
                    "--header" => headers.push(arguments.value(&flag)?),
                    "--read-only" => read_only = true,
                    "--sign-in" => sign_in = true,
                    "--store" => details.store = Some(arguments.value(&flag)?.into()),
                    "--client-id" => details.client_id = Some(arguments.value(&flag)?),
                    "--scope" => {
                        let value = arguments.value(&flag)?;
                        details.scopes.extend(value.split_whitespace().map(Into::into));
                    }
                    _ => return Err(Stop::unknown(&flag)),
                },
            }
        }
        match config.map(|file| read_spec(&file, &mut words)).transpose()? {
            None => {}
            Some(_) if url.is_some() || !program.words.is_empty() => {
                return Err(Stop::wrong("`--config` already says which server is meant"));
            }
            Some(ServerSpec::Process { command, args, env, cwd }) => {
                let words = std::iter::once(command).chain(args).collect();
                program = Program { words, env, directory: cwd };
            }
            Some(ServerSpec::Http { url: address, headers: fields }) => {
                url = Some(parse_url(&address)?);
                let fields = fields.iter().map(|(name, value)| format!("{name}: {value}"));
                headers = fields.chain(headers).collect();
            }
            Some(_) => return Err(Stop::wrong("the transport of this server is not supported")),
        }
        #[cfg(unix)]
        if unix.is_some() {
            url = Some(url.map_or_else(|| parse_url("http://localhost/mcp"), of_localhost)?);
        }
        let sign_in = details.if_wanted(sign_in)?;
        let command = match parse_command(words)? {
            Command::Check { .. } => Command::Check { read_only },
            _ if read_only => {
                return Err(Stop::wrong("`--read-only` needs the subcommand `check`"));
            }
            command => command,
        };
        let server = match url {
            None if sign_in.is_some() => {
                return Err(Stop::wrong("`--sign-in` needs `--url`"));
            }
            None if !headers.is_empty() => return Err(Stop::wrong("`--header` needs `--url`")),
            None if program.words.is_empty() => {
                return Err(Stop::wrong(
                    "no server is given: use `--url URL`, `-- CMD [ARG...]` or `--config FILE NAME`",
                ));
            }
            None if matches!(command, Command::Card) => {
                return Err(Stop::wrong("the subcommand `card` needs `--url`"));
            }
            None => Place::Program(program),
            Some(_) if matches!(command, Command::Card) && !headers.is_empty() => {
                return Err(Stop::wrong(
                    "`card` sends no `--header`: a card needs no authorization",
                ));
            }
            Some(_) if !program.words.is_empty() => {
                return Err(Stop::wrong(
                    "more than one server is given: use either `--url URL` or `-- CMD [ARG...]`",
                ));
            }
            Some(url) => Place::Url(Box::new(with_headers(url, &headers)?)),
        };
        Ok(Self {
            revision,
            timeout,
            json,
            wire,
            trace,
            record,
            command,
            server,
            #[cfg(unix)]
            unix,
            sign_in,
        })
    }
}

impl SignIn {
    fn if_wanted(self, wanted: bool) -> Result<Option<Self>, Stop> {
        let Self { store, client_id, scopes } = &self;
        if !wanted && (store.is_some() || client_id.is_some() || !scopes.is_empty()) {
            return Err(Stop::wrong("`--store`, `--client-id` and `--scope` need `--sign-in`"));
        }
        Ok(wanted.then_some(self))
    }
}

/// Returns the URL if it leads to the socket.
#[cfg(unix)]
fn of_localhost(url: Location) -> Result<Location, Stop> {
    if url.origin().to_string() == "http://localhost" {
        return Ok(url);
    }
    Err(Stop::wrong("`--unix` needs a URL that begins with `http://localhost/`"))
}

/// Reads the server that the first word names from a configuration file.
fn read_spec(file: &str, words: &mut Vec<String>) -> Result<ServerSpec, Stop> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Stop::Wrong(format!("cannot read {file}: {error}")))?;
    let config = ServersConfig::parse(&text, |name| std::env::var(name).ok());
    let mut config = config.map_err(|error| Stop::Wrong(format!("{file}: {error}")))?;
    let names = match config.servers.keys().cloned().collect::<Vec<_>>() {
        names if names.is_empty() => "no servers".into(),
        names => names.join(", "),
    };
    if words.is_empty() {
        let reason = format!("`--config` needs the name of a server; {file} has {names}");
        return Err(Stop::Wrong(reason));
    }
    let name = words.remove(0);
    match config.servers.remove(&name) {
        Some(spec) => spec.map_err(|error| Stop::Wrong(format!("{file}: {error}"))),
        None if config.disabled.contains(&name) => {
            Err(Stop::Wrong(format!("{file}: the server `{name}` is disabled")))
        }
        None => Err(Stop::Wrong(format!("{file} has no server of this name, but {names}"))),
    }
}

// The message must not contain the text, which may include a password.
fn parse_url(text: &str) -> Result<Location, Stop> {
    let example = "an example is `https://example.com/mcp`";
    Location::parse(text).map_err(|error| Stop::Wrong(format!("{error}; {example}")))
}

// The messages must not contain the text, which may include a key.
fn with_headers(url: Location, headers: &[String]) -> Result<HttpClientOptions, Stop> {
    headers.iter().try_fold(HttpClientOptions::new(url), |options, header| {
        let parts = header.split_once(':');
        let (name, value) = parts.ok_or_else(|| Stop::wrong("a header is `Name: value`"))?;
        options.header(name, value).map_err(|error| Stop::Wrong(error.to_string()))
    })
}

fn parse_revision(text: &str) -> Result<Revision, Stop> {
    Revision::parse(text).ok_or_else(|| {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        Stop::Wrong(format!("unknown revision `{text}`; known revisions: {known}"))
    })
}

/// Other programs of the project have a choice here. This one runs on tokio.
fn check_runtime(name: &str) -> Result<(), Stop> {
    match name {
        "tokio" => Ok(()),
        _ => Err(Stop::Wrong(format!("unknown runtime `{name}`; the only one is tokio"))),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, Stop> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| Stop::Wrong(format!("`{text}` is not a number of seconds")))
}

fn parse_command(words: Vec<String>) -> Result<Command, Stop> {
    let mut words = words.into_iter();
    let Some(name) = words.next() else {
        return Err(Stop::wrong("no subcommand is given; try `check`"));
    };
    let mut next =
        |what: &str| words.next().ok_or_else(|| Stop::Wrong(format!("`{name}` needs {what}")));
    let command = match name.as_str() {
        "info" => Command::Info,
        "tools" => Command::Tools,
        "call" => {
            let name = next("the name of a tool")?;
            let arguments = parse_arguments(next("").ok().as_deref())?;
            Command::Call { name, arguments }
        }
        "resources" => Command::Resources,
        "read" => Command::Read { uri: next("a URI")? },
        "prompts" => Command::Prompts,
        "get" => {
            let name = next("the name of a prompt")?;
            let arguments = parse_arguments(next("").ok().as_deref())?;
            let arguments: Map<String, Value> =
                arguments.decode().map_err(|error| Stop::Wrong(error.to_string()))?;
            // `null` is an argument that is left out.
            let text = |value: Value| match value {
                Value::Null => None,
                Value::String(text) => Some(text),
                other => Some(other.to_string()),
            };
            let arguments = arguments.into_iter();
            let arguments = arguments.filter_map(|(key, value)| Some((key, text(value)?)));
            let arguments = arguments.collect();
            Command::Get { name, arguments }
        }
        "complete" => Command::Complete {
            reference: parse_reference(&next("a prompt or a template")?)?,
            argument: next("the name of an argument")?,
            value: next("the text typed so far")?,
        },
        "skills" => Command::Skills { uri: next("").ok() },
        "listen" => Command::Listen { uris: words.by_ref().collect() },
        "check" => Command::Check { read_only: false },
        "card" => Command::Card,
        _ => return Err(Stop::Wrong(format!("unknown subcommand `{name}`"))),
    };
    match words.next() {
        Some(extra) => Err(Stop::Wrong(format!("unexpected argument `{extra}`"))),
        None => Ok(command),
    }
}

/// Reads the arguments of a tool, which are sent as they are written, or of a prompt.
fn parse_arguments(text: Option<&str>) -> Result<RawJson<'static>, Stop> {
    let Some(text) = text else { return Ok(RawJson::EMPTY_OBJECT) };
    match RawJson::parse(text) {
        Ok(arguments) if arguments.is_object() => Ok(arguments.into_owned()),
        Ok(_) => Err(Stop::Wrong(format!("the arguments must be a JSON object, not `{text}`"))),
        Err(error) => Err(Stop::Wrong(format!("the arguments are not JSON: {error}"))),
    }
}

fn parse_reference(text: &str) -> Result<CompletionReference, Stop> {
    match text.split_once(':') {
        Some(("prompt", name)) => Ok(PromptReference::new(name).into()),
        Some(("resource", template)) => Ok(ResourceTemplateReference::new(template).into()),
        _ => Err(Stop::Wrong(format!("`{text}` is neither prompt:NAME nor resource:TEMPLATE"))),
    }
}
