//! The side of a client.

mod loaded;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::Resource;
use mcp_sansio_handlers::extension::Extension;
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Client, ClientError, Host};
use mcp_sansio_sync::Mutex;

use super::ID;
use super::entry::{InvalidSkill, Skill, SkillDigest, SkillLimits};
use super::messages::{
    GET_SKILL, GetSkillParams, LIST_SKILLS, ListSkillsParams, READ_DIRECTORY, ReadDirectoryParams,
};
use super::server::SkillSettings;
use super::uri::SkillUri;

use loaded::{Cache, Content};

pub use loaded::{
    LoadedSkill, NotApproved, SkillApproval, SkillChild, SkillDirectory, SkillFile, SkillId,
};

/// The most pages of a list. 1,000, as for the lists of the protocol: a longer list is made up by
/// the server.
const PAGES_MAX: usize = 1000;

/// The default size of the cache, in bytes. 16 MiB, the largest skill that a host has to accept.
const CACHE_BYTES: usize = 16 << 20;

/// Declares to servers that the host uses skills. The specification does not require it; some
/// servers do.
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
    match Extension::new(ID) {
        Ok(extension) => host.extension(extension),
        // The identifier is valid.
        Err(_) => host,
    }
}

/// The skills of one server. A clone shares the connection and the cache.
///
/// It lists skills, loads them, and verifies each file against the entry of its skill: bytes that
/// do not agree are never handed out. It fetches nothing before it is needed. Whether to load a
/// skill is the decision of the host and its user: see [`SkillApproval`].
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
    /// Creates a client for the skills of one server. `server` is the host's label of it: the name
    /// in the host's configuration, not the one that the server gives itself.
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

    /// Returns whether the server declared that it lists [directories](Self::directory).
    ///
    /// # Errors
    ///
    /// [`SkillError::NotOffered`]: the server did not declare the extension, or the connection is not
    /// open yet.
    // MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-006]
    pub fn lists_directories(&self) -> Result<bool, SkillError> {
        let session = self.shared.client.session().ok_or(SkillError::NotOffered)?;
        let settings = session.extension(ID).ok_or(SkillError::NotOffered)?;
        // Settings of a later version may have other types.
        let settings: SkillSettings = settings.decode().unwrap_or_default();
        Ok(settings.directory_read)
    }

    /// Lists the skills, page by page. Fetches no files.
    ///
    /// # Errors
    ///
    /// The server did not declare skills, or a call failed. Entries that are not valid are no
    /// error: see [`SkillListing::invalid`].
    // MCP 2026-07-28 skills:skills#listing-skills [SKILL-062]
    pub async fn list(&self) -> Result<SkillListing, SkillError> {
        self.lists_directories()?;
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
        let uri = SkillUri::parse(uri).map_err(SkillError::Uri)?;
        self.lists_directories()?;
        let params = GetSkillParams::new(uri.as_str());
        let result = self.shared.client.call_extension(&GET_SKILL, &params).await?;
        let skill = OfferedSkill::read(self.server(), &result.skill, &self.limits)?;
        if *skill.uri() != uri {
            return Err(InvalidSkill::OtherSkill(skill.uri().as_str().into()).into());
        }
        Ok(skill)
    }

    /// Loads a skill: fetches its `SKILL.md`, and verifies it against the entry. The other files
    /// are fetched when they are [read](LoadedSkill::read).
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
        if !self.lists_directories()? {
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

// ------------------------------------------------------------------ lists of skills

/// A skill that a server offers: its entry, with its identity.
///
/// It is made from an answer of the server alone: a resource is not a skill because of its URI.
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-019]
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedSkill {
    id: SkillId,
    entry: Skill,
}

/// The skills that a server lists. The list may be incomplete: a skill that is not in it can be
/// loaded by its URI.
// MCP 2026-07-28 skills:skills#listing-skills [SKILL-060]
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SkillListing {
    /// The skills, in the order of the server.
    pub skills: Vec<OfferedSkill>,
    /// The entries that are not valid, which must not be loaded.
    pub invalid: Vec<InvalidListed>,
}

/// An entry of a listing that is not valid.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidListed {
    /// The URI in the entry, if it has one.
    pub uri: Option<String>,
    /// The reason.
    pub reason: InvalidSkill,
}

impl OfferedSkill {
    fn read(server: &str, json: &Json, limits: &SkillLimits) -> Result<Self, InvalidSkill> {
        let entry: Skill = json.decode().map_err(|error| InvalidSkill::Form(error.to_string()))?;
        entry.check(limits)?;
        Ok(Self { id: SkillId::new(server, entry.uri.clone()), entry })
    }

    /// Returns the identity.
    #[must_use]
    pub const fn id(&self) -> &SkillId {
        &self.id
    }

    /// Returns the URI.
    #[must_use]
    pub const fn uri(&self) -> &SkillUri {
        &self.entry.uri
    }

    /// Returns the entry.
    #[must_use]
    pub const fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns the name: a label, which other skills may have too.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        self.entry.description()
    }
}

impl SkillListing {
    /// Adds a page.
    fn add(
        &mut self,
        server: &str,
        page: &[Json],
        limits: &SkillLimits,
        known: &mut BTreeSet<SkillUri>,
    ) {
        for json in page {
            let read = OfferedSkill::read(server, json, limits).and_then(|skill| {
                if known.insert(skill.uri().clone()) {
                    Ok(skill)
                } else {
                    Err(InvalidSkill::Duplicate(skill.uri().to_string()))
                }
            });
            match read {
                Ok(skill) => self.skills.push(skill),
                Err(reason) => {
                    let uri = json.as_raw().get("uri").and_then(|uri| uri.decode().ok());
                    self.invalid.push(InvalidListed { uri, reason });
                }
            }
        }
    }

    /// Returns a label for each skill, in their order: its name, or its path if another skill of
    /// the listing has the same name.
    ///
    /// Labels are unique within the server, unless schemes differ. Put the label of the server
    /// before them where skills of several servers meet.
    // MCP 2026-07-28 skills:skills#names [SKILL-036] [SKILL-037]
    #[must_use]
    pub fn labels(&self) -> Vec<&str> {
        let mut names = BTreeMap::<&str, usize>::new();
        for skill in &self.skills {
            *names.entry(skill.name()).or_default() += 1;
        }
        let label = |skill: &'_ OfferedSkill| names.get(skill.name()) == Some(&1);
        self.skills
            .iter()
            .map(|skill| if label(skill) { skill.name() } else { skill.uri().path() })
            .collect()
    }

    /// Returns the skills with this name. There may be several.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &OfferedSkill> {
        self.skills.iter().filter(move |skill| skill.name() == name)
    }
}

// ------------------------------------------------------------------ errors

/// Why a host got no skill, or no file of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server did not declare the extension, or the connection is not open yet. Nothing was
    /// sent.
    #[error("the server did not declare skills")]
    NotOffered,
    /// The server did not declare that directories can be read. Nothing was sent.
    #[error("the server does not list directories")]
    NoDirectories,
    /// The call failed. [`ClientError::as_refusal`] with `-32602` means that the server serves no
    /// such skill or file.
    #[error(transparent)]
    Call(Box<ClientError>),
    /// The URI is not one of a skill: the fault of the caller.
    #[error("{0}")]
    Uri(InvalidSkill),
    /// The entry is not one: the fault of the server. The skill must not be loaded.
    #[error("the entry of the skill is not valid: {0}")]
    Entry(#[from] InvalidSkill),
    /// The reference is empty or leads out of the skill: see [`SkillUri::resolve`]. Nothing was sent.
    #[error("the reference {0:?} is empty or leads out of the skill")]
    Reference(String),
    /// The content is not what the entry says. It must not be used, and is not handed out. Refresh
    /// the entry with [`SkillClient::get`](SkillClient::get).
    #[error(transparent)]
    Verification(#[from] VerificationError),
    /// The user did not approve the present version of the skill. Nothing was sent.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// The content of the skill is generated, and the host
    /// [declines](SkillClient::decline_generated) such skills. Nothing was sent.
    #[error("the content of the skill is generated, which this host declines")]
    Generated,
    /// More was read of a skill with generated content than
    /// [`SkillLimits::bytes_max`](crate::skills::SkillLimits::bytes_max).
    #[error("the generated skill is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
}

impl From<ClientError> for SkillError {
    fn from(error: ClientError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Why the content of a file is not what the entry of its skill says: it is damaged, changed, or
/// the skill was updated since.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerificationError {
    /// The entry does not list the file.
    #[error("the entry of the skill does not list {uri:?}")]
    Unlisted {
        /// The file.
        uri: String,
    },
    /// The server did not answer with exactly the contents of the file.
    #[error("the server did not send the contents of {uri:?}")]
    Contents {
        /// The file.
        uri: String,
    },
    /// The length differs.
    #[error("{uri:?} has {received} bytes, and its entry says {expected}")]
    Size {
        /// The file.
        uri: String,
        /// The size in the entry.
        expected: u64,
        /// The size of the content.
        received: u64,
    },
    /// The digest differs.
    #[error("the digest of {uri:?} differs from its entry")]
    Digest {
        /// The file.
        uri: String,
    },
    /// The `SKILL.md` has no valid frontmatter, or not that of the entry.
    #[error("{uri:?}: {reason}")]
    Frontmatter {
        /// The file.
        uri: String,
        /// The reason.
        reason: InvalidSkill,
    },
}
