//! The parts of a recording's lines that are drawn.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Side;

/// The first line.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) recorded: Side,
    pub(super) http: bool,
    pub(super) name: String,
    pub(super) at: Option<u64>,
}

#[derive(Deserialize)]
struct First<'a> {
    recording: u32,
    #[serde(borrow)]
    machine: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Made {
    at: Option<u64>,
    options: Option<Named>,
    identity: Option<Identity>,
}

#[derive(Deserialize)]
struct Named {
    identity: Identity,
}

#[derive(Deserialize)]
struct Identity {
    name: String,
    version: String,
}

impl Start {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let first: First<'_> =
            serde_json::from_str(text).map_err(|error| format!("not a recording: {error}"))?;
        if first.recording != 2 {
            return Err(format!("unknown recording format {}", first.recording));
        }
        let (machine, made) = first.machine.iter().next().ok_or("the recording has no machine")?;
        let (recorded, http) = match machine.as_str() {
            "server" => (Side::Server, false),
            "client" => (Side::Client, false),
            "http_server" => (Side::Server, true),
            "http_client" => (Side::Client, true),
            other => return Err(format!("unknown machine `{other}`")),
        };
        let made: Made = serde_json::from_str(made.get()).map_err(|error| error.to_string())?;
        let at = made.at;
        let identity = made.identity.or_else(|| made.options.map(|options| options.identity));
        let name = identity.map(|it| format!("{} {}", it.name, it.version)).unwrap_or_default();
        Ok(Self { recorded, http, name, at })
    }
}

/// A call of the machine.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) verb: String,
    pub(super) said: CallFields<'a>,
}

/// The drawn arguments of a call, for all kinds of calls.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallFields<'a> {
    pub(super) at: Option<u64>,
    #[serde(borrow)]
    pub(super) frame: Option<Payload<'a>>,
    #[serde(borrow)]
    pub(super) bytes: Option<Payload<'a>>,
    #[serde(borrow)]
    pub(super) body: Option<Payload<'a>>,
    #[serde(borrow)]
    pub(super) transmit: Option<Transmit<'a>>,
    pub(super) exchange: Option<Vec<u32>>,
    pub(super) method: Option<String>,
    pub(super) target: Option<String>,
    pub(super) url: Option<String>,
    pub(super) fields: Vec<(String, Field)>,
    pub(super) status: Option<u16>,
    pub(super) event: Option<String>,
    pub(super) session: Option<String>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) failure: Option<&'a RawValue>,
    /// A command of the application.
    #[serde(borrow)]
    pub(super) command: Option<&'a RawValue>,
}

/// An output on an exchange.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transmit<'a> {
    Respond {
        status: u16,
        fields: Vec<(String, Field)>,
        #[serde(borrow)]
        body: Payload<'a>,
    },
    Open {
        status: u16,
        fields: Vec<(String, Field)>,
    },
    Chunk {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    Finish {},
    Abort {},
}

/// The value of a header field.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Field {
    Text(String),
    Bytes { base64: String },
}

impl Field {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Bytes { base64 } => base64,
        }
    }
}

/// A recorded byte string.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Payload<'a> {
    Json(#[serde(borrow)] &'a RawValue),
    Lines(#[serde(borrow)] Vec<&'a RawValue>),
    Text(String),
    Base64(String),
}

impl Payload<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(json) => json.get().into(),
            Self::Lines(lines) => {
                lines.iter().flat_map(|line| [line.get(), "\n"]).collect::<String>().into()
            }
            Self::Text(text) => text.as_bytes().into(),
            Self::Base64(text) => BASE64_STANDARD.decode(text).unwrap_or_default(),
        }
    }

    /// Returns the text of each line.
    pub(super) fn texts(&self) -> Vec<String> {
        let bytes = self.bytes();
        let text = match String::from_utf8_lossy(&bytes) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        };
        match self {
            Self::Lines(_) => text.lines().map(Into::into).collect(),
            _ if text.is_empty() => Vec::new(),
            _ => vec![text],
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let call: BTreeMap<String, &'a RawValue> = serde_json::from_str(text)?;
        let mut calls = call.into_iter();
        let one = calls.next().filter(|_| calls.next().is_none());
        let (verb, said) =
            one.ok_or_else(|| serde::de::Error::custom("expected one call per line"))?;
        // Other calls have fields of the same names with other meanings. They are not drawn.
        let said = serde_json::from_str(said.get()).unwrap_or_default();
        Ok(Self { verb, said })
    }
}
