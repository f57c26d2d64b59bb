//! The first line of a recording: the kind of the machine and its settings.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::{Era, Revision, Revisions};

use super::arguments::Unperformable;
use super::client::ClientSettings;
#[cfg(feature = "http")]
use super::http_client::HttpClientSettings;
#[cfg(feature = "http")]
use super::http_server::HttpServerSettings;
use super::server::ServerSettings;

/// The version of the format: see `docs/guide/recording.md`.
pub const FORMAT: u32 = 2;

/// The first line, before all calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start<'a> {
    recording: u32,
    /// The version of the crate that wrote it.
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) machine: Machine<'a>,
}

/// A machine: its role, its transport and its settings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Machine<'a> {
    Server(#[serde(borrow)] Box<ServerSettings<'a>>),
    Client {
        at: u64,
        #[serde(borrow)]
        options: Box<ClientSettings<'a>>,
    },
    #[cfg(feature = "http")]
    HttpServer {
        #[serde(borrow)]
        options: Box<ServerSettings<'a>>,
        #[serde(borrow)]
        http: Box<HttpServerSettings<'a>>,
    },
    #[cfg(feature = "http")]
    HttpClient {
        at: u64,
        /// Seeds the jitter of retries.
        seed: u64,
        #[serde(borrow)]
        options: Box<ClientSettings<'a>>,
        #[serde(borrow)]
        http: Box<HttpClientSettings<'a>>,
    },
}

impl<'a> Start<'a> {
    pub(crate) const fn new(machine: Machine<'a>) -> Self {
        Self { recording: FORMAT, version: Cow::Borrowed(env!("CARGO_PKG_VERSION")), machine }
    }
}

/// Revisions by name, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revisioned(pub(crate) Revisions);

impl Serialize for Revisioned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Revision::as_str))
    }
}

impl<'de> Deserialize<'de> for Revisioned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut revisions = Revisions::NONE;
        for name in Vec::<Cow<'de, str>>::deserialize(deserializer)? {
            let unknown = || D::Error::custom("the revision is unknown");
            let revision = Revision::parse(&name).ok_or_else(unknown)?;
            revisions = revisions.union(Revisions::only(revision));
        }
        Ok(Self(revisions))
    }
}

pub(crate) const fn era_name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

pub(crate) fn era(name: &str) -> Result<Era, Unperformable> {
    let mut eras = [Era::Legacy, Era::Modern].into_iter();
    eras.find(|era| era_name(*era) == name).ok_or(Unperformable("the era is unknown"))
}
