//! The side of a client.

mod approval;
mod cache;
mod error;
mod file;
mod id;
mod listing;
mod loaded;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::protocol::Resource;
use mcp_sansio_handlers::extension::HostExtension;
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Client, ClientError, Host};
use mcp_sansio_sync::Mutex;

pub use approval::{NotApproved, SkillApproval};
pub use error::{InvalidEntry, SkillError, VerificationError};
pub use file::SkillFile;
pub use id::{InvalidSkillPath, SkillId};
pub use listing::{InvalidListed, OfferedSkill, SkillListing};
pub use loaded::{LoadedSkill, RefreshedSkill, SkillChild, SkillDirectory};

use super::ID;
use super::digest::SkillDigest;
use super::entry::SkillLimits;
use super::messages::{
    GET_SKILL, GetSkillParams, LIST_SKILLS, ListSkillsParams, READ_DIRECTORY, ReadDirectoryParams,
};
use super::server::SkillSettings;
use super::uri::SkillUri;
use cache::Cache;
use file::Content;

/// The most pages of a list. 1,000, as for the lists of the protocol: a longer list is made up by the
/// server.
const PAGES_MAX: usize = 1000;

/// The default size of the cache, in bytes. 16 MiB, the largest skill that a host has to accept.
const CACHE_BYTES: usize = 16 << 20;

/// Declares to servers that the host uses skills. The specification does not require it; some servers
/// do.
///
/// ```
/// use mcp_sansio_extensions::skills;
/// use mcp_sansio_handlers::Host;
///
/// let host = skills::declare(Host::new("demo", "1.0.0"));
/// # let _ = host;
/// ```
#[must_use]
pub fn declare<K: Threading>(host: Host<K>) -> Host<K> {
    match HostExtension::new(ID) {
        Ok(extension) => host.extension(extension),
        // The identifier is valid.
        Err(_) => host,
    }
}

/// The skills of one server. A clone shares the connection and the cache.
///
/// It lists skills, loads them, and verifies each file against the entry of its skill: bytes that do
/// not agree are never handed out. It fetches nothing before it is needed. Whether to load a skill is
/// the decision of the host and its user: see [`SkillApproval`].
///
/// ```
/// use mcp_sansio_extensions::skills::{SkillApproval, SkillClient, SkillError};
/// use mcp_sansio_handlers::Client;
///
/// async fn use_skill(client: Client) -> Result<(), SkillError> {
///     let skills = SkillClient::new("shop", client);
///     for skill in skills.list().await?.skills {
///         println!("{}: {}", skill.name(), skill.description());
///     }
///     let refunds = skills.get("skill://refunds/SKILL.md").await?;
///     // Here the user is asked, and the approval is stored.
///     let approval = SkillApproval::new(&refunds)?;
///     let refunds = skills.load_approved(&refunds, &approval).await?;
///     assert_eq!(refunds.instructions(), "Write `email.md`.\n");
///     assert_eq!(refunds.read("email.md").await?.text(), Some("Dear customer,\n"));
///     Ok(())
/// }
/// # use mcp_sansio_extensions::skills::{self, ServedSkills, SkillSet};
/// # use mcp_sansio_handlers::{Host, Server};
/// # let set = SkillSet::builder()
/// #     .file("refunds/SKILL.md", "---\nname: refunds\ndescription: d\n---\nWrite `email.md`.\n")
/// #     .file("refunds/email.md", "Dear customer,\n")
/// #     .build()?;
/// # let server = ServedSkills::new(set).register(Server::new("shop", "1.0.0"));
/// # let host = skills::declare(Host::new("demo", "1.0.0"));
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
/// # pair.run(use_skill(client))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SkillClient {
    shared: Arc<Shared>,
    limits: SkillLimits,
    generated: bool,
}

struct Shared {
    /// The host's label.
    server: String,
    client: Client,
    cache: Mutex<Cache>,
}

impl SkillClient {
    /// Creates a client for the skills of one server. `server` is the host's label of it: the name in
    /// the host's configuration, not the one that the server gives itself.
    ///
    /// It and the skills that are loaded with it keep the connection open.
    #[must_use]
    pub fn new(server: impl Into<String>, client: Client) -> Self {
        let (server, cache) = (server.into(), Mutex::new(Cache::new(CACHE_BYTES)));
        let shared = Arc::new(Shared { server, client, cache });
        Self { shared, limits: SkillLimits::default(), generated: true }
    }

    /// Sets the sizes of skills that the host accepts.
    // MCP 2026-07-28 skills:skills#limits [SKILL-052]
    #[must_use]
    pub const fn limited(mut self, limits: SkillLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Declines skills with generated content, which cannot be verified.
    // MCP 2026-07-28 skills:skills#resources [SKILL-049]
    #[must_use]
    pub const fn decline_generated(mut self) -> Self {
        self.generated = false;
        self
    }

    /// Sets the most bytes of verified files that are kept in memory; 0 keeps none. 16 MiB by
    /// default. Forgets the files that are kept.
    #[must_use]
    pub fn cache_bytes(self, bytes: usize) -> Self {
        self.shared.cache.lock(|cache| *cache = Cache::new(bytes));
        self
    }

    /// Returns the host's label of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    pub(super) const fn limits(&self) -> &SkillLimits {
        &self.limits
    }

    /// Returns what the server declared.
    ///
    /// # Errors
    ///
    /// [`SkillError::NotOffered`]: the server did not declare the extension, or the connection is not
    /// open yet.
    // MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-006]
    pub fn settings(&self) -> Result<SkillSettings, SkillError> {
        let session = self.shared.client.session().ok_or(SkillError::NotOffered)?;
        let settings = session.extension(ID).ok_or(SkillError::NotOffered)?;
        // Settings of a later version may have other types.
        Ok(settings.decode().unwrap_or_default())
    }

    /// Lists the skills, page by page. Fetches no files.
    ///
    /// # Errors
    ///
    /// The server did not declare skills, or a call failed. Entries that are not valid are no error:
    /// see [`SkillListing::invalid`].
    // MCP 2026-07-28 skills:skills#listing-skills [SKILL-062]
    pub async fn list(&self) -> Result<SkillListing, SkillError> {
        self.settings()?;
        let (mut listing, mut known) = (SkillListing::default(), BTreeSet::new());
        let mut cursors = Cursors::default();
        loop {
            let params = ListSkillsParams::new(cursors.current.clone());
            let page = self.shared.client.call_extension(&LIST_SKILLS, &params).await?;
            listing.add(self.server(), &page.skills, &self.limits, &mut known);
            if !cursors.next(page.next_cursor)? {
                return Ok(listing);
            }
        }
    }

    /// Returns the present entry of the skill at `uri`, listed or not.
    ///
    /// # Errors
    ///
    /// The server did not declare skills, serves no such skill, or its entry is not valid.
    // MCP 2026-07-28 skills:skills#listing-skills [SKILL-061]
    pub async fn get(&self, uri: &str) -> Result<OfferedSkill, SkillError> {
        let uri = SkillUri::parse(uri)?;
        self.settings()?;
        let params = GetSkillParams::new(uri.as_str());
        let result = self.shared.client.call_extension(&GET_SKILL, &params).await?;
        let skill = OfferedSkill::read(self.server(), &result.skill, &self.limits)?;
        if *skill.uri() != uri {
            return Err(InvalidEntry::OtherSkill(skill.uri().as_str().into()).into());
        }
        Ok(skill)
    }

    /// Loads a skill: fetches its `SKILL.md`, and verifies it against the entry. The other files are
    /// fetched when they are [read](LoadedSkill::read).
    ///
    /// # Errors
    ///
    /// The call failed, or the content is not what the entry says.
    pub async fn load(&self, skill: &OfferedSkill) -> Result<LoadedSkill, SkillError> {
        if skill.id().server != self.server() {
            // MCP 2026-07-28 skills:skills#security-considerations [SKILL-098]
            return Err(NotApproved::OtherSkill.into());
        }
        if skill.entry().is_dynamic() && !self.generated {
            return Err(SkillError::Generated);
        }
        LoadedSkill::load(self.clone(), skill.clone()).await
    }

    /// Loads a skill if an approval covers its entry.
    ///
    /// # Errors
    ///
    /// [`SkillError::NotApproved`], and those of [`load`](Self::load).
    pub async fn load_approved(
        &self,
        skill: &OfferedSkill,
        approval: &SkillApproval,
    ) -> Result<LoadedSkill, SkillError> {
        approval.check(skill)?;
        self.load(skill).await
    }

    /// Lists the present children of a directory, page by page: in a skill or in other resources.
    ///
    /// # Errors
    ///
    /// [`SkillError::NoDirectories`]: the server did not declare that it lists directories.
    // MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-005]
    pub async fn directory(&self, uri: &str) -> Result<Vec<Resource>, SkillError> {
        if !self.settings()?.directory_read {
            return Err(SkillError::NoDirectories);
        }
        let (mut children, mut cursors) = (Vec::new(), Cursors::default());
        loop {
            let params = ReadDirectoryParams::new(uri, cursors.current.clone());
            let page = self.shared.client.call_extension(&READ_DIRECTORY, &params).await?;
            children.extend(page.resources);
            if !cursors.next(page.next_cursor)? {
                return Ok(children);
            }
        }
    }

    /// Forgets the files that are kept, for example because the user removed the server.
    // MCP 2026-07-28 skills:skills#security-considerations [SKILL-108]
    pub fn forget_files(&self) {
        self.shared.cache.lock(Cache::clear);
    }

    async fn fetch(&self, uri: &str) -> Result<Content, SkillError> {
        // A result that the host has cached may be older than the entry.
        let result = self.shared.client.read_resource(uri).reload().await?;
        Ok(Content::from_result(uri, result)?)
    }

    fn cached(&self, uri: &str, digest: SkillDigest) -> Option<Content> {
        self.shared.cache.lock(|cache| cache.get(uri, digest))
    }

    fn keep(&self, uri: &str, digest: SkillDigest, content: Content) {
        self.shared.cache.lock(|cache| cache.insert(uri.into(), digest, content));
    }
}

/// The cursors of a list that is read page by page.
#[derive(Debug, Default)]
struct Cursors {
    current: Option<String>,
    seen: BTreeSet<String>,
}

impl Cursors {
    /// Notes the cursor of the next page; returns whether there is one.
    fn next(&mut self, cursor: Option<String>) -> Result<bool, ClientError> {
        let Some(cursor) = cursor else { return Ok(false) };
        if self.seen.len() + 1 >= PAGES_MAX {
            return Err(ClientError::TooManyPages { limit: PAGES_MAX });
        }
        if !self.seen.insert(cursor.clone()) {
            return Err(ClientError::CursorLoop(cursor));
        }
        self.current = Some(cursor);
        Ok(true)
    }
}

impl fmt::Debug for SkillClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillClient").field("server", &self.shared.server).finish_non_exhaustive()
    }
}
