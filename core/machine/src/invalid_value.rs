use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use crate::Printable;

/// A value is invalid. The function that returns this error says whose fault it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", Place(.place))]
#[non_exhaustive]
pub struct InvalidValue {
    /// The part that is invalid, such as the member `mcpServers.files.command` of a configuration;
    /// empty if it is the value itself.
    pub place: String,
    /// What is wrong with it, and how to write it.
    pub reason: Cow<'static, str>,
}

impl InvalidValue {
    /// Creates the error for a value that is invalid as a whole.
    #[must_use]
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::at("", reason)
    }

    /// Creates the error for an invalid part of a value.
    #[must_use]
    pub fn at(place: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }
}

/// Writes the place of a defect, if there is one.
struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "`{}`: ", Printable::new(self.0)) }
    }
}
