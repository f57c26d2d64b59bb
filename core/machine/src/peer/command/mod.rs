//! Commands of an application to a machine, and the methods that apply them.
//!
//! A command is data: it can be recorded as text and applied again. A value that it borrows from
//! the application is encoded when the command is serialized.

#[cfg(feature = "client")]
mod client;
mod format;
pub(crate) mod handle_format;
#[cfg(feature = "server")]
mod server;

use alloc::boxed::Box;
use alloc::string::String;
use core::ops::Deref;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::Revision;
use crate::jsonrpc::{RawJson, WriteError};
use crate::protocol::{ToolOutput, WriteJsonAt};

use super::error::CommandError;
use super::handle::CallHandle;
use super::machine::Applied;

#[cfg(feature = "client")]
pub use client::{ClientCommand, ClientMachine};
#[cfg(feature = "server")]
pub use server::{ServerCommand, ServerMachine};

/// The parameters or the result in a command: a value that the machine encodes, or JSON text.
///
/// A value is encoded for the revision of the request that the command names, or otherwise for that
/// of the session; a server uses the newest revision if there is no request. When a command is
/// serialized, its values become text of the newest revision: see [`to_text`](Self::to_text) for
/// another one.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// A value. [`Verbatim`](crate::protocol::Verbatim) is the same at every revision.
    Value(&'a dyn WriteJsonAt),
    /// JSON text, which is the same at every revision.
    Json(RawJson<'a>),
}

impl<'a> Body<'a> {
    /// Encodes the value at `revision`. Text is returned as it is, and so is a value that cannot be
    /// encoded.
    #[must_use]
    pub fn to_text(self, revision: Revision) -> Self {
        let Self::Value(value) = self else { return self };
        let mut out = String::new();
        if value.write_json_at(revision, &mut out).is_err() {
            return self;
        }
        RawJson::parse(&out).map_or(self, |json| Self::Json(json.into_owned()))
    }

    /// Returns the value to write. Text is a value that is the same at every revision.
    pub(crate) fn value(&self) -> &dyn WriteJsonAt {
        match self {
            Self::Value(value) => *value,
            Self::Json(_) => self,
        }
    }

    /// Returns whether the body is a value, not text. In a recorded command that is a value which
    /// could not be encoded: it is left out, and read back as one that cannot be encoded either.
    fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

impl WriteJsonAt for Body<'_> {
    fn write_json_at(&self, revision: Revision, out: &mut String) -> Result<(), WriteError> {
        match self {
            Self::Value(value) => value.write_json_at(revision, out),
            Self::Json(json) => {
                out.push_str(json.as_str());
                Ok(())
            }
        }
    }

    fn is_plain(&self) -> bool {
        if let Self::Value(value) = self { value.is_plain() } else { false }
    }

    fn output(&self) -> ToolOutput<'_> {
        if let Self::Value(value) = self { value.output() } else { ToolOutput::Unknown }
    }

    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        match self {
            Self::Value(value) => value.as_raw_json(),
            Self::Json(json) => Some(json),
        }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.clone().to_text(Revision::LATEST) {
            Self::Json(json) => json.serialize(serializer),
            Self::Value(_) => Err(serde::ser::Error::custom("the value cannot be encoded")),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self::Json)
    }
}

impl Default for Body<'_> {
    /// A value that cannot be encoded.
    fn default() -> Self {
        struct Unwritable;

        impl WriteJsonAt for Unwritable {
            fn write_json_at(&self, _: Revision, _: &mut String) -> Result<(), WriteError> {
                Err(WriteError::NotAnObject)
            }
        }

        Self::Value(&Unwritable)
    }
}

impl<'a> From<&'a dyn WriteJsonAt> for Body<'a> {
    fn from(value: &'a dyn WriteJsonAt) -> Self {
        Self::Value(value)
    }
}

impl<'a> From<RawJson<'a>> for Body<'a> {
    fn from(json: RawJson<'a>) -> Self {
        Self::Json(json)
    }
}

/// A borrowed value, or an owned one in memory of its own: the part of a command that is too large
/// to be copied into it.
#[derive(Clone, Debug)]
pub enum MaybeOwned<'a, T> {
    /// A value of the application.
    Borrowed(&'a T),
    /// A value of the command.
    Owned(Box<T>),
}

impl<T> Deref for MaybeOwned<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
        }
    }
}

impl<'a, T> From<&'a T> for MaybeOwned<'a, T> {
    fn from(value: &'a T) -> Self {
        Self::Borrowed(value)
    }
}

impl<T> From<T> for MaybeOwned<'_, T> {
    fn from(value: T) -> Self {
        Self::Owned(Box::new(value))
    }
}

/// Returns the call that a command started. Commands with a method or a filter start one.
fn started(applied: Result<Applied, CommandError>) -> Result<CallHandle, CommandError> {
    applied?.call().ok_or(CommandError::NotOpen)
}
