use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::protocol::Method;

use super::scope;

/// An operation that may require scopes: a method, or a method with a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    method: Cow<'static, str>,
    subject: Option<Subject>,
}

/// The subject of an operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Subject {
    /// The item with this exact name.
    Named(String),
    /// All reads that the handler of this template gets.
    Template(String),
}

impl Operation {
    /// All requests of a method, defined by the protocol or an extension.
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

    /// Reads of the resource with this exact URI, and subscriptions to it. For the resources of a template use
    /// [`template`](Self::template): a template may match several spellings of a URI.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::about(Method::ResourcesRead, uri)
    }

    /// Reads that the handler of a template gets, and subscriptions to such resources, with the template given as text
    /// (`file:///{path}`). Does not include URIs that have their own handler or match an earlier
    /// template.
    pub fn template(uri_template: impl Into<String>) -> Self {
        let subject = Some(Subject::Template(uri_template.into()));
        Self { method: Method::ResourcesRead.as_str().into(), subject }
    }

    fn about(method: Method, subject: impl Into<String>) -> Self {
        let subject = Some(Subject::Named(subject.into()));
        Self { method: method.as_str().into(), subject }
    }
}

impl From<Method> for Operation {
    fn from(method: Method) -> Self {
        Self::method(method.as_str())
    }
}

/// The scopes that operations require.
#[derive(Clone, Debug, Default)]
pub(super) struct ScopeRequirements(BTreeMap<Cow<'static, str>, MethodScopes>);

#[derive(Clone, Debug, Default)]
struct MethodScopes {
    always: Vec<String>,
    /// By the subject of a request.
    subjects: BTreeMap<String, Vec<String>>,
    /// By the template of the handler.
    templates: BTreeMap<String, Vec<String>>,
}

/// The items of a server, as far as permissions depend on them.
pub trait ItemLookup {
    /// Returns the template whose handler gets the reads of a URI.
    fn template_of(&self, uri: &str) -> Option<String>;

    /// Returns the scopes that the item of a request requires, in addition to those of its
    /// [`Operation`].
    fn scopes_of(&self, method: &str, subject: &str) -> Vec<String>;
}

impl ScopeRequirements {
    pub(super) fn add(&mut self, operation: Operation, scopes: &[String]) {
        let method_scopes = self.0.entry(operation.method).or_default();
        let known = match operation.subject {
            None => &mut method_scopes.always,
            Some(Subject::Named(name)) => method_scopes.subjects.entry(name).or_default(),
            Some(Subject::Template(it)) => method_scopes.templates.entry(it).or_default(),
        };
        scopes.iter().for_each(|it| scope::add(known, it));
    }

    /// Returns the scopes that a request needs. `subject` is the name by which its handler is
    /// found. Without a template lookup, a read needs the scopes of all templates.
    pub(super) fn scopes_for(
        &self,
        method: &str,
        subject: Option<&str>,
        items: Option<&dyn ItemLookup>,
    ) -> impl Iterator<Item = &str> {
        let method_scopes = self.0.get(method);
        // A subscription tells when a resource changes, which only its readers may know.
        let subscribes = [Method::ResourcesSubscribe, Method::SubscriptionsListen]
            .iter()
            .any(|it| it.as_str() == method);
        let item_scopes = match subscribes {
            true => self.0.get(Method::ResourcesRead.as_str()).filter(|_| subject.is_some()),
            false => method_scopes,
        };
        let subject_scopes = item_scopes.and_then(|it| it.subjects.get(subject?));
        let templates = item_scopes.map(|it| &it.templates).filter(|it| !it.is_empty());
        let (template, any) = match items {
            Some(items) => {
                let found = templates.zip(subject);
                (found.and_then(|(it, uri)| it.get(&items.template_of(uri)?)), None)
            }
            None => (None, templates.map(BTreeMap::values)),
        };
        let always = method_scopes.map(|it| &it.always);
        let scopes = always.into_iter().chain(subject_scopes).chain(template);
        scopes.chain(any.into_iter().flatten()).flatten().map(String::as_str)
    }

    pub(super) fn knows(&self, scope: &str) -> bool {
        let named = |scopes: &Vec<String>| scopes.iter().any(|it| it == scope);
        self.0.values().any(|it| {
            named(&it.always) || it.subjects.values().chain(it.templates.values()).any(named)
        })
    }
}
