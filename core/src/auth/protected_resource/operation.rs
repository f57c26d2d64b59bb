use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::scope;
use crate::protocol::Method;

/// What a client may ask for, and a scope be needed for: a method, or one thing that it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    method: Cow<'static, str>,
    subject: Option<String>,
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
}

impl From<Method> for Operation {
    fn from(method: Method) -> Self {
        Self::method(method.as_str())
    }
}

/// The scopes that operations need.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs(BTreeMap<Cow<'static, str>, OfMethod>);

#[derive(Clone, Debug, Default)]
struct OfMethod {
    always: Vec<String>,
    /// By what a request is about.
    subjects: BTreeMap<String, Vec<String>>,
}

impl Needs {
    pub(super) fn add(&mut self, operation: Operation, scopes: &[String]) {
        let of_method = self.0.entry(operation.method).or_default();
        let known = match operation.subject {
            None => &mut of_method.always,
            Some(subject) => of_method.subjects.entry(subject).or_default(),
        };
        scopes.iter().for_each(|it| scope::add(known, it));
    }

    /// What a request needs. `subject` is what it is about, as its handler is found by it.
    pub(super) fn of(&self, method: &str, subject: Option<&str>) -> impl Iterator<Item = &str> {
        let of_method = self.0.get(method);
        let of_subject = of_method.and_then(|it| it.subjects.get(subject?));
        let always = of_method.map(|it| &it.always);
        always.into_iter().chain(of_subject).flatten().map(String::as_str)
    }

    pub(super) fn knows(&self, scope: &str) -> bool {
        let named = |scopes: &Vec<String>| scopes.iter().any(|it| it == scope);
        self.0.values().any(|it| named(&it.always) || it.subjects.values().any(named))
    }
}
