//! Method names.

use alloc::borrow::Cow;
use core::fmt;

use crate::protocol::Method;

/// The name of a method: one that the protocol defines, or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodName<'a> {
    /// A method that the protocol defines.
    Known(Method),
    /// A method that the protocol does not define; delivered only if the policy allows it.
    Other(Cow<'a, str>),
}

impl MethodName<'_> {
    /// Returns the method, if the protocol defines it.
    #[must_use]
    pub const fn known(&self) -> Option<Method> {
        if let Self::Known(method) = self { Some(*method) } else { None }
    }

    /// Returns the name as written in messages.
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
