//! How the parts of commands are serialized.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::time::Duration;

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::jsonrpc::RawJson;
use crate::peer::{CallOptions, MethodName};
use crate::protocol::{LoggingLevel, Method, SerializeAt, whole};

use super::MaybeOwned;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MaybeOwned<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self::Owned(Box::new(value)))
    }
}

impl<T: Serialize> Serialize for MaybeOwned<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// Serializes a protocol value with the fields of all revisions.
pub(super) fn at_all_revisions<T: SerializeAt, S: Serializer>(
    value: &MaybeOwned<'_, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    whole(&**value).serialize(serializer)
}

/// A number as decimal text, which restores it exactly.
pub(super) mod decimal {
    use super::{Cow, Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        number: &f64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<f64, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }

    /// A number that may be absent.
    pub(in super::super) mod optional {
        use super::{Deserialize, Deserializer, Serialize, Serializer};

        #[derive(Serialize, Deserialize)]
        struct Number(#[serde(with = "super")] f64);

        pub(in super::super::super) fn serialize<S: Serializer>(
            number: &Option<f64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            number.map(Number).serialize(serializer)
        }

        pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<f64>, D::Error> {
            Ok(Option::<Number>::deserialize(deserializer)?.map(|number| number.0))
        }
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| D::Error::custom("the method is unknown"))
    }
}

impl Serialize for LoggingLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A method name: text, or `{"other":"…"}` for one that the protocol does not define.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name<'a> {
    Known(Method),
    Other {
        #[serde(borrow)]
        other: Cow<'a, str>,
    },
}

impl Serialize for MethodName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(method) => method.serialize(serializer),
            Self::Other(name) => Name::Other { other: (&**name).into() }.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MethodName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Name::deserialize(deserializer)? {
            Name::Known(method) => Self::Known(method),
            Name::Other { other } => Self::Other(other),
        })
    }
}

/// [`CallOptions`] without the context of the caller, which only its observer understands.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_hard: Option<Duration>,
    #[serde(skip_serializing_if = "is_false")]
    progress_keeps_deadline: bool,
    #[serde(skip_serializing_if = "is_false")]
    progress: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<LoggingLevel>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    meta: Option<RawJson<'a>>,
    /// Requests a task, with a lifetime or without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Lifetime>,
}

/// The requested lifetime of a task.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Lifetime {
    ttl: Option<Duration>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Serialize for CallOptions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = Options {
            timeout: self.timeout,
            timeout_hard: self.timeout_hard,
            progress_keeps_deadline: self.progress_keeps_deadline,
            progress: self.wants_progress(),
            log_level: self.log_level,
            meta: self.meta.clone(),
            task: self.task_ttl().map(|ttl| Lifetime { ttl }),
        };
        options.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CallOptions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let recorded = Options::deserialize(deserializer)?;
        let mut options = CallOptions::default();
        if recorded.progress {
            options = options.progress();
        }
        if let Some(Lifetime { ttl }) = recorded.task {
            options = options.task(ttl);
        }
        options.timeout = recorded.timeout;
        options.timeout_hard = recorded.timeout_hard;
        options.progress_keeps_deadline = recorded.progress_keeps_deadline;
        options.log_level = recorded.log_level;
        options.meta = recorded.meta;
        Ok(options)
    }
}
