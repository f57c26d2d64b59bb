//! A server with entries and files of a test's choice, which records reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mcp_sansio::Capability;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::{CacheHints, Resource, ResourceTemplate, TextResourceContents};
use mcp_sansio_extensions::skills::{
    GET_SKILL, GetSkillParams, GetSkillResult, ID, LIST_SKILLS, ListSkillsParams, ListSkillsResult,
    READ_DIRECTORY, ReadDirectoryParams, ReadDirectoryResult, SkillResource,
};
use mcp_sansio_handlers::extension::Extension;
use mcp_sansio_handlers::{Call, HandlerError, ReadResource, Server};
use serde_json::{Value, json};

/// The answers of the server. They can be changed at any time.
#[derive(Clone, Default)]
pub(crate) struct Forged(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    pages: Vec<(Vec<Value>, Option<&'static str>)>,
    entry: Value,
    files: BTreeMap<String, String>,
    children: Vec<Resource>,
    /// The URIs of all reads.
    reads: Vec<String>,
    calls: Vec<String>,
}

impl Forged {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn state<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().expect("no panic"))
    }

    /// Lists these entries on one page.
    pub(crate) fn list(&self, entries: impl IntoIterator<Item = Value>) -> &Self {
        let page = (entries.into_iter().collect(), None);
        self.state(|state| state.pages = vec![page]);
        self
    }

    /// Lists pages, each with the cursor of the next one: `1` is that of the second.
    pub(crate) fn pages(&self, pages: Vec<(Vec<Value>, Option<&'static str>)>) {
        self.state(|state| state.pages = pages);
    }

    /// Answers `skills/get` with this entry.
    pub(crate) fn entry(&self, entry: Value) -> &Self {
        self.state(|state| state.entry = entry);
        self
    }

    /// Has a file, or another content of it.
    pub(crate) fn file(&self, uri: &str, text: &str) -> &Self {
        self.state(|state| state.files.insert(uri.into(), text.into()));
        self
    }

    /// Answers all reads of directories with these children.
    pub(crate) fn children(&self, children: impl IntoIterator<Item = Resource>) {
        self.state(|state| state.children = children.into_iter().collect());
    }

    /// Returns the URIs that were read since the last call.
    pub(crate) fn reads(&self) -> Vec<String> {
        self.state(|state| core::mem::take(&mut state.reads))
    }

    /// Returns the methods of the extension that were called since the last call.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state(|state| core::mem::take(&mut state.calls))
    }

    pub(crate) fn server(&self) -> Server {
        self.server_with(&json!({ "directoryRead": true }))
    }

    pub(crate) fn server_with(&self, settings: &Value) -> Server {
        let (list, get, directory, read) = (self.clone(), self.clone(), self.clone(), self.clone());
        let to_json = |value: &Value| Json::from_serialize(value).expect("JSON");
        let extension = Extension::new(ID)
            .and_then(|extension| extension.settings(settings))
            .expect("valid")
            .requires(Capability::Resources)
            .request(&LIST_SKILLS, move |call: Call<ListSkillsParams>| {
                list.state(|state| {
                    state.calls.push("skills/list".into());
                    let page = call.arguments.cursor.as_deref().unwrap_or("0");
                    let page: usize = page.parse().unwrap_or(0);
                    let (entries, next) = state.pages.get(page).cloned().unwrap_or_default();
                    let entries = entries.iter().map(to_json).collect();
                    ListSkillsResult::new(entries, CacheHints::default())
                        .next_cursor(next.map(Into::into))
                })
            })
            .request(&GET_SKILL, move |_: Call<GetSkillParams>| {
                get.state(|state| {
                    state.calls.push("skills/get".into());
                    GetSkillResult::new(to_json(&state.entry), CacheHints::default())
                })
            })
            .request(&READ_DIRECTORY, move |_: Call<ReadDirectoryParams>| {
                directory.state(|state| {
                    state.calls.push("resources/directory/read".into());
                    ReadDirectoryResult::new(state.children.clone())
                })
            });
        let read = move |call: Call<ReadResource>| {
            let uri = &call.arguments.uri;
            read.state(|state| {
                state.reads.push(uri.clone());
                let text = state.files.get(uri);
                let text = text.ok_or_else(|| HandlerError::resource_not_found(uri))?;
                Ok(TextResourceContents::new(uri, text.as_str()))
            })
        };
        Server::new("forged", "1.0.0")
            .resource_template(ResourceTemplate::new("skill://{+path}", "files"), read)
            .extension(extension)
    }
}

/// Returns an entry of `uri` with the name in it, and these files.
pub(crate) fn entry(uri: &str, files: &[(&str, &str)]) -> Value {
    let files = files.iter().map(|(uri, text)| SkillResource::of(*uri, text.as_bytes()));
    let files: Vec<_> = files.collect();
    let name = uri.rsplit('/').nth(1).expect("a name");
    json!({
        "uri": uri,
        "frontmatter": { "name": name, "description": format!("About {name}") },
        "resources": files,
    })
}
