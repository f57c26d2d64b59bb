//! Methods as they came.

use alloc::borrow::Cow;
use core::fmt;

use crate::protocol::Method;

/// A method as it came: one that the protocol knows, or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodName<'a> {
    /// A method of the table.
    Known(Method),
    /// A method that the table lacks; delivered only if the policy says so.
    Other(Cow<'a, str>),
}

impl MethodName<'_> {
    /// The method, if it is one of the table.
    pub(crate) const fn known(&self) -> Option<Method> {
        if let Self::Known(method) = self { Some(*method) } else { None }
    }

    /// The spelling on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Other(name) => name,
        }
    }

    pub(crate) fn into_owned(self) -> MethodName<'static> {
        match self {
            Self::Known(method) => MethodName::Known(method),
            Self::Other(name) => MethodName::Other(Cow::Owned(name.into_owned())),
        }
    }
}

impl fmt::Display for MethodName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<Method> for MethodName<'_> {
    fn eq(&self, method: &Method) -> bool {
        matches!(self, Self::Known(known) if known == method)
    }
}
