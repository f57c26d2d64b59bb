use alloc::borrow::Cow;
use alloc::string::String;

use crate::jsonrpc::RawJson;
use crate::protocol::Method;

/// What a client may ask for, and a scope be needed for: a method, or one thing that it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    pub(super) method: Cow<'static, str>,
    pub(super) subject: Option<String>,
}

impl Operation {
    /// Every request of a method, of the protocol or of an extension.
    pub fn method(method: impl Into<Cow<'static, str>>) -> Self {
        Self { method: method.into(), subject: None }
    }

    /// Calls of the tool called `name`.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::about(Method::ToolsCall, name)
    }

    /// Uses of the prompt called `name`.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::about(Method::PromptsGet, name)
    }

    /// Reads of the resource at exactly this URI. For the resources of a template let the handler
    /// decide, which knows what the URI means.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::about(Method::ResourcesRead, uri)
    }

    fn about(method: Method, subject: impl Into<String>) -> Self {
        Self { method: method.as_str().into(), subject: Some(subject.into()) }
    }

    /// Whether a request is of this operation. Reads the subject as handlers are found by it.
    pub(super) fn covers(&self, method: &str, params: &RawJson<'_>) -> bool {
        if self.method != method {
            return false;
        }
        let Some(subject) = &self.subject else { return true };
        let key = if method == Method::ResourcesRead.as_str() { "uri" } else { "name" };
        params.get(key).and_then(|it| it.to_text()).is_some_and(|it| *it == **subject)
    }
}

impl From<Method> for Operation {
    fn from(method: Method) -> Self {
        Self::method(method.as_str())
    }
}
