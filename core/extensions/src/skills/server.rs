//! The side of a server.

use alloc::format;
use alloc::sync::Arc;
use core::num::NonZeroUsize;

use mcp_sansio::Capability;
use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::protocol::{CacheHints, ExtensionError, ReadResourceResult, ResourceTemplate};
use mcp_sansio_handlers::extension::{Extension, ExtensionMethod};
use mcp_sansio_handlers::handler::{Handler, Threading};
use mcp_sansio_handlers::{
    Call, CatalogEdit, Connections, HandlerError, ReadResource, SendError, Server, ThreadSafe,
};
use mcp_sansio_sync::Mutex;

use super::ID;
use super::messages::{
    GET_SKILL, GetSkillParams, GetSkillResult, LIST_SKILLS, ListSkillsParams, ListSkillsResult,
    READ_DIRECTORY, ReadDirectoryParams, ReadDirectoryResult,
};
use super::set::{PAGE_SIZE_DEFAULT, SkillChanges, SkillSet};

/// Serves a [`SkillSet`], which can be replaced while the server runs. A clone is another handle to
/// the same skills.
///
/// ```
/// use mcp_sansio_extensions::skills::{ServedSkills, SkillSet};
/// use mcp_sansio_handlers::Server;
///
/// let skills = SkillSet::builder()
///     .file("refunds/SKILL.md", "---\nname: refunds\ndescription: Refunds an order\n---\nAsk first.\n")
///     .build()?;
/// let server = ServedSkills::new(skills).register(Server::new("shop", "1.0.0"));
/// # assert!(server.endpoint(42).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `skills/list`, `skills/get` and `resources/directory/read` are answered from the set, and so are
/// reads of its files. `resources/list` contains the `SKILL.md` of each listed skill, so that
/// clients without the extension find them.
#[derive(Clone)]
pub struct ServedSkills {
    shared: Arc<Shared>,
    options: Options,
}

struct Shared {
    set: Mutex<Arc<SkillSet>>,
}

/// How the skills are served.
#[derive(Clone, Debug)]
struct Options {
    page_size: NonZeroUsize,
    cache: CacheHints,
    directory_read: bool,
}

/// The settings of the extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SkillSettings {
    /// Whether the server answers `resources/directory/read`.
    // MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-001]
    #[serde(default)]
    pub(super) directory_read: bool,
}

impl ServedSkills {
    /// Creates a handle that serves `set`.
    #[must_use]
    pub fn new(set: SkillSet) -> Self {
        let options = Options {
            page_size: PAGE_SIZE_DEFAULT,
            cache: CacheHints::default(),
            directory_read: true,
        };
        Self { shared: Arc::new(Shared { set: Mutex::new(Arc::new(set)) }), options }
    }

    /// Sets how long clients may keep entries and files. By default they are stale at once, so that
    /// a replaced set is seen.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.options.cache = cache;
        self
    }

    /// Sets the most entries on a page, and the most children of a directory on a page. 100 by
    /// default.
    #[must_use]
    pub const fn page_size(mut self, size: NonZeroUsize) -> Self {
        self.options.page_size = size;
        self
    }

    /// Sets whether clients can list directories. They can by default.
    #[must_use]
    pub const fn directory_read(mut self, served: bool) -> Self {
        self.options.directory_read = served;
        self
    }

    /// Returns the skills that are served now.
    #[must_use]
    pub fn set(&self) -> Arc<SkillSet> {
        self.shared.set.lock(|set| Arc::clone(set))
    }

    /// Registers the extension, its methods and the files with a server. A mistake is an error of
    /// the server's `endpoint`.
    // MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-002] [SKILL-003] [SKILL-004]
    #[must_use]
    pub fn register<K: Threading>(&self, server: Server<K>) -> Server<K> {
        let set = self.set();
        let mut server = server;
        for resource in set.listed_resources() {
            server = server.resource(resource, ReadFile(self.clone()));
        }
        for base in set.bases() {
            server = server.resource_template(template(base), ReadFile(self.clone()));
        }
        match self.extension() {
            Ok(extension) => server.extension(extension),
            // The identifier is valid and the settings are an object.
            Err(_) => server,
        }
    }

    fn extension<K: Threading>(&self) -> Result<Extension<K>, ExtensionError> {
        let Options { directory_read, .. } = self.options;
        let extension = Extension::new(ID)?
            .settings(&SkillSettings { directory_read })?
            .requires(Capability::Resources)
            .request(&LIST_SKILLS, Answer(self.clone(), Self::list))
            .request(&GET_SKILL, Answer(self.clone(), Self::get));
        // MCP 2026-07-28 skills:skills#error-handling [SKILL-093]
        Ok(if directory_read {
            extension.request(&READ_DIRECTORY, Answer(self.clone(), Self::read_directory))
        } else {
            extension
        })
    }

    fn list(
        &self,
        call: &Call<ListSkillsParams>,
    ) -> Result<ListSkillsResult, ErrorObject<'static>> {
        let Options { page_size, cache, .. } = &self.options;
        let (skills, next) = self.set().page(call.arguments.cursor.as_deref(), *page_size)?;
        let result = ListSkillsResult::new(skills, cache.clone());
        Ok(result.next_cursor(next).at_revision(call.revision()))
    }

    // MCP 2026-07-28 skills:skills#getting-a-skill [SKILL-065]
    fn get(&self, call: &Call<GetSkillParams>) -> Result<GetSkillResult, ErrorObject<'static>> {
        let (set, uri) = (self.set(), &call.arguments.uri);
        let Some(entry) = set.entry(uri) else {
            let message = format!("no skill is served at {uri}");
            return Err(ErrorObject::invalid_params(message));
        };
        let result = GetSkillResult::new(entry.clone(), self.options.cache.clone());
        Ok(result.at_revision(call.revision()))
    }

    fn read_directory(
        &self,
        call: &Call<ReadDirectoryParams>,
    ) -> Result<ReadDirectoryResult, ErrorObject<'static>> {
        let ReadDirectoryParams { uri, cursor } = &call.arguments;
        let page = self.set().directory(uri, cursor.as_deref(), self.options.page_size)?;
        Ok(page.at_revision(call.revision()))
    }

    // MCP 2026-07-28 skills:skills#error-handling [SKILL-092]
    fn read(&self, uri: &str) -> Result<ReadResourceResult, HandlerError> {
        match self.set().read(uri) {
            Ok(Some(contents)) => {
                Ok(ReadResourceResult::new([contents]).cached(self.options.cache.clone()))
            }
            Ok(None) => Err(HandlerError::resource_not_found(uri)),
            Err(error) => {
                Err(HandlerError::failed(format!("the generated SKILL.md is not valid: {error}")))
            }
        }
    }

    /// Replaces the skills, and returns what changed. Clients see the new skills with their next
    /// request. To tell them, use [`announce`](Self::announce), or apply the changes to the catalog
    /// of a connection with [`SkillChanges::apply`].
    ///
    /// The set should have the same [bases](super::SkillSetBuilder::base) as the first: the
    /// templates of the resources stay.
    pub fn replace(&self, set: SkillSet) -> SkillChanges {
        let set = Arc::new(set);
        let old = self.shared.set.lock(|current| core::mem::replace(current, Arc::clone(&set)));
        old.changes_to(&set)
    }

    /// Tells the clients of a server what changed: that the list of resources did, and its
    /// subscribers that a file did.
    ///
    /// # Errors
    ///
    /// [`SendError`]: see [`Connections::edit_catalog`]. The skills are replaced nevertheless.
    pub fn announce(
        &self,
        changes: &SkillChanges,
        connections: &Connections,
    ) -> Result<(), SendError> {
        if !(changes.described.is_empty() && changes.removed.is_empty()) {
            let (skills, changes) = (self.clone(), changes.clone());
            // The resources of a set can be added: their URIs were checked.
            let _added =
                connections.edit_catalog(move |catalog| changes.apply(&skills, catalog))?;
        }
        // One connection that is full keeps no subscriber of another from its updates.
        let updated = changes.updated.iter().map(|uri| connections.resource_updated(uri));
        updated.fold(Ok(()), Result::and)
    }
}

impl SkillChanges {
    /// Applies the changes to the resources of a connection, or of a server on HTTP.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogEdit::add_resource`].
    pub fn apply<K: Threading>(
        &self,
        skills: &ServedSkills,
        catalog: &mut CatalogEdit<'_, K>,
    ) -> Result<(), CatalogError> {
        for uri in &self.removed {
            catalog.remove_resource(uri);
        }
        for resource in &self.described {
            if catalog.resource(&resource.uri).is_some() {
                catalog.update_resource(resource.clone())?;
            } else {
                catalog.add_resource(resource.clone(), ReadFile(skills.clone()))?;
            }
        }
        Ok(())
    }
}

/// The template of all files below a base.
fn template(base: &str) -> ResourceTemplate {
    let slash = if base.ends_with('/') { "" } else { "/" };
    let template = ResourceTemplate::new(format!("{base}{slash}{{+path}}"), "skill-files");
    template.title("Files of skills").description("The files that belong to a skill")
}

/// Reads a file of the skills.
struct ReadFile(ServedSkills);

/// Answers a request of the extension.
struct Answer<F>(ServedSkills, F);

/// Marks the handlers of this module.
enum Served {}

impl<K: Threading> Handler<K, ReadResourceResult, Served> for ReadFile {
    fn into_function(self) -> K::Function {
        let Self(skills) = self;
        let read = move |call: Call<ReadResource>| skills.read(&call.arguments.uri);
        K::from_thread_safe(Handler::<ThreadSafe, ReadResourceResult, _>::into_function(read))
    }
}

impl<K, P, R, F> Handler<K, ExtensionMethod<P, R>, Served> for Answer<F>
where
    K: Threading,
    F: Fn(&ServedSkills, &Call<P>) -> Result<R, ErrorObject<'static>> + Send + Sync + 'static,
    P: serde::de::DeserializeOwned + 'static,
    R: serde::Serialize + 'static,
{
    fn into_function(self) -> K::Function {
        let Self(skills, answer) = self;
        let handler = move |call: Call<P>| answer(&skills, &call).map_err(HandlerError::Protocol);
        K::from_thread_safe(Handler::<ThreadSafe, ExtensionMethod<P, R>, _>::into_function(handler))
    }
}

mcp_sansio::partial_debug! { impl Debug for ServedSkills { options, .. } }
