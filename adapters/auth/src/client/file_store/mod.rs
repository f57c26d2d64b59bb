//! Credentials in a file that only its owner can read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio_handlers::{CredentialLock, CredentialStore};
use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};
use serde::{Deserialize, Serialize};

use crate::client::offload::Spawner;
use crate::client::private_file::{Lock, PrivateFileError, ReadError, sibling};
use crate::client::{offload, private_file};

/// Stores a client's credentials in one file, for all servers and all processes of an application.
///
/// Only the owner can read the file. It is replaced atomically: a reader sees either the old or the
/// new content. A writer holds a lock (a file next to it that ends in `.lock`) while it reads,
/// changes and replaces the file, so that processes do not overwrite each other's changes. A file
/// that cannot be read is moved aside, never overwritten.
///
/// Windows has no file modes: a file inherits the access rights of its folder, and only the user
/// has access to the user's profile. Use a path below it.
///
/// It holds 256 credentials and one mebibyte; the oldest are evicted.
///
/// On Unix the file and its lock must be regular files of the effective user, not symbolic links,
/// in a folder owned by that user or root that no other user can write to: otherwise
/// [`PrivateFileError::Untrusted`]. The parents of the folder are not checked.
///
/// While a client renews a token, it holds another lock: one of 16 files next to the file, chosen
/// by the key, with names that end in `.lock`, too. Processes renew a token one at a time, and read
/// the one that another process has got.
///
/// [`load`](Self::load), [`save`](Self::save) and [`remove`](Self::remove) block: for disk access,
/// and for at most two seconds while another process writes. As a [`CredentialStore`] it does not
/// block: each call runs on its own thread, or on the [`spawner`](Self::spawner). A call that waits
/// for another process to renew a token occupies its thread for at most 50 seconds.
///
/// ```
/// use mcp_sansio_auth::FileStore;
/// use mcp_sansio_handlers::Authorization;
/// use mcp_sansio_oauth::client::AuthorizationOptions;
///
/// # let folder = std::env::temp_dir();
/// let store = FileStore::new(folder.join("demo/credentials.json"))
///     .on_failure(|error| eprintln!("the token was not stored: {error}"));
/// let options = AuthorizationOptions::code("http://127.0.0.1:8080/callback")?;
/// let authorization = Authorization::new(options).store(store);
/// # let _ = authorization;
/// # Ok::<(), mcp_sansio_oauth::client::InvalidOption>(())
/// ```
// MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
#[derive(Clone)]
pub struct FileStore {
    path: Arc<Path>,
    report: Arc<dyn Fn(&PrivateFileError) + Send + Sync>,
    spawner: Spawner,
}

impl FileStore {
    /// Creates a store in the file at `path`. The file and its folder are created when a credential
    /// is saved.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let spawner = offload::on_threads();
        Self { path: path.into().into(), report: Arc::new(|_| ()), spawner }
    }

    /// Reports every failure of the [`CredentialStore`] to `report`, for example a log: the core is
    /// not told of a credential that could not be saved. Failures are ignored by default.
    #[must_use]
    pub fn on_failure(
        mut self,
        report: impl Fn(&PrivateFileError) + Send + Sync + 'static,
    ) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Runs the blocking calls of the [`CredentialStore`] with `spawn`, for example on a runtime's
    /// blocking pool: `|job| drop(tokio::task::spawn_blocking(job))`. Each connection makes a few
    /// calls. By default each has its own thread.
    #[must_use]
    pub fn spawner(
        mut self,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.spawner = Arc::new(spawn);
        self
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the credential saved under this key.
    ///
    /// # Errors
    ///
    /// See [`PrivateFileError`].
    pub fn load(&self, key: &CredentialKey) -> Result<Option<Credential>, PrivateFileError> {
        let document = match self.read() {
            // Only the holder of the lock may move the file aside.
            Err(PrivateFileError::Damaged { .. }) => self.read_or_move_aside(&self.lock_file()?),
            read => read,
        };
        Ok(document?.get(&name(key)?).map(Credential::new))
    }

    /// Saves a credential under this key, replacing an earlier one.
    ///
    /// # Errors
    ///
    /// See [`PrivateFileError`]. On failure nothing is changed.
    pub fn save(&self, key: &CredentialKey, value: &Credential) -> Result<(), PrivateFileError> {
        let name = name(key)?;
        self.change(|document| document.set(name, value.as_str()))
    }

    /// Removes the credential saved under this key, if any.
    ///
    /// # Errors
    ///
    /// See [`PrivateFileError`]. On failure nothing is changed.
    pub fn remove(&self, key: &CredentialKey) -> Result<(), PrivateFileError> {
        let name = name(key)?;
        self.change(|document| document.remove(&name))
    }

    /// Waits for the lock that clients hold while they renew the token under this key, as long as
    /// `waits` returns true.
    fn lock_key(
        &self,
        key: &CredentialKey,
        waits: impl Fn() -> bool,
    ) -> Result<CredentialLock, PrivateFileError> {
        let bucket = bucket(&name(key)?);
        let path = sibling(&self.path, &format!(".renewal-{bucket:x}.lock"));
        let lock =
            self.lock_at(&path, |path| Lock::acquire_within(path, RENEWAL_TIMEOUT, waits))?;
        Ok(CredentialLock::new(lock))
    }

    /// Changes the file, unless `change` returns false.
    fn change(&self, change: impl FnOnce(&mut Document) -> bool) -> Result<(), PrivateFileError> {
        let lock = self.lock_file()?;
        let mut document = self.read_or_move_aside(&lock)?;
        if change(&mut document) {
            private_file::replace(&self.path, &document.write())
                .map_err(|error| PrivateFileError::system(&self.path, error))?;
        }
        Ok(())
    }

    fn lock_file(&self) -> Result<Lock, PrivateFileError> {
        self.lock_at(&sibling(&self.path, ".lock"), Lock::acquire)
    }

    fn lock_at(
        &self,
        path: &Path,
        acquire: impl FnOnce(&Path) -> Result<Lock, ReadError>,
    ) -> Result<Lock, PrivateFileError> {
        private_file::create_parent(&self.path)
            .map_err(|error| PrivateFileError::system(&self.path, error))?;
        private_file::check_parent(&self.path)
            .map_err(|why| PrivateFileError::from_read_error(&self.path, why))?;
        acquire(path).map_err(|why| match why {
            // The error refers to the file, since callers do not know the lock.
            ReadError::System(error) => PrivateFileError::system(&self.path, error),
            why => PrivateFileError::from_read_error(path, why),
        })
    }

    fn read(&self) -> Result<Document, PrivateFileError> {
        match private_file::read(&self.path) {
            Ok(Some(text)) => Document::read(&text, &self.path),
            Ok(None) => Ok(Document::default()),
            Err(why) => Err(PrivateFileError::from_read_error(&self.path, why)),
        }
    }

    fn read_or_move_aside(&self, _lock: &Lock) -> Result<Document, PrivateFileError> {
        let read = self.read();
        if let Err(PrivateFileError::Damaged { .. }) = read {
            let aside = (1..=ASIDE_MAX)
                .map(|number| sibling(&self.path, &format!(".damaged-{number}")))
                .find(|aside| !aside.exists())
                .ok_or_else(|| PrivateFileError::Damaged {
                    path: self.path.to_path_buf(),
                    aside: None,
                })?;
            std::fs::rename(&self.path, &aside)
                .map_err(|error| PrivateFileError::system(&self.path, error))?;
            return Err(PrivateFileError::Damaged {
                path: self.path.to_path_buf(),
                aside: Some(aside),
            });
        }
        read
    }
}

impl FileStore {
    /// Runs blocking work on the spawner, and reports failures.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, PrivateFileError> + Send + 'static,
    ) -> Result<T, PrivateFileError> {
        let store = self.clone();
        let done = offload::run(&self.spawner, move || work(&store)).await;
        let done = done.unwrap_or_else(|| {
            let error = io::Error::other("no thread is available to access it");
            Err(PrivateFileError::system(&self.path, error))
        });
        done.inspect_err(|error| (self.report)(error))
    }
}

impl CredentialStore for FileStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Credential>, ActionFailure> {
        let key = key.clone();
        let loaded = self.run(move |store| store.load(&key)).await;
        loaded.map_err(|error| ActionFailure::Failed(error.to_string()))
    }

    async fn save(&self, key: &CredentialKey, credential: Credential) {
        let key = key.clone();
        // `run` has reported a failure.
        let _saved = self.run(move |store| store.save(&key, &credential)).await;
    }

    async fn remove(&self, key: &CredentialKey) {
        let key = key.clone();
        let _removed = self.run(move |store| store.remove(&key)).await;
    }

    async fn lock(&self, key: &CredentialKey) -> Result<CredentialLock, ActionFailure> {
        let key = key.clone();
        // The thread stops to wait when this future is dropped.
        let waiting = Arc::new(());
        let waits = Arc::downgrade(&waiting);
        let work = move |store: &Self| store.lock_key(&key, || waits.strong_count() > 0);
        let locked = self.run(work).await;
        drop(waiting);
        locked.map_err(|error| ActionFailure::Failed(error.to_string()))
    }
}

mcp_sansio::partial_debug! { impl Debug for FileStore { path, .. } }

/// Damaged files that are kept. 16: with more, something else is wrong and needs attention.
const ASIDE_MAX: usize = 16;

/// How long to wait for another process that renews a token. 50 seconds: longer than an exchange of
/// 30 seconds, and shorter than the minute for which a client waits.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(50);
/// The number of locks for renewals. 16: few files, and tokens rarely share one.
const RENEWAL_LOCKS: u32 = 16;

/// Returns which of the locks for renewals is that of a key: the same in every process (FNV-1a).
fn bucket(name: &str) -> u32 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % RENEWAL_LOCKS
}

/// Returns the name of a key in the file.
fn name(key: &CredentialKey) -> Result<String, PrivateFileError> {
    match key {
        CredentialKey::Tokens(url) => Ok(format!("tokens {url}")),
        CredentialKey::Client(issuer) => Ok(format!("client {issuer}")),
        CredentialKey::Issuer(client_id) => Ok([ISSUER_PREFIX, client_id].concat()),
        _ => Err(PrivateFileError::UnknownKey),
    }
}

// ------------------------------------------------------------------ document

/// The format version that is written.
const VERSION: u32 = 1;

/// The most credentials in a file: far more than the servers of one user. The limit keeps servers,
/// which choose their authorization servers, from filling a disk.
const CREDENTIALS_MAX: usize = 256;

/// The most bytes of credentials and their keys in a file. 1 MiB: all credentials, at the usual
/// length of tokens.
const LENGTH_MAX: usize = 1024 * 1024;

/// Prefix of the entries that record the issuer of a registered client.
const ISSUER_PREFIX: &str = "issuer of ";

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    /// Most recently saved last.
    credentials: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    credential: String,
}

/// The field common to all versions.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Document {
    fn read(text: &[u8], path: &Path) -> Result<Self, PrivateFileError> {
        // Omit the parse error, which quotes the surrounding text.
        let damaged = |_| PrivateFileError::Damaged { path: path.to_path_buf(), aside: None };
        let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
        if version > VERSION {
            return Err(PrivateFileError::Newer { path: path.to_path_buf() });
        }
        serde_json::from_slice(text).map_err(damaged)
    }

    fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts are JSON")
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.credentials.iter().find(|it| it.key == key).map(|it| &*it.credential)
    }

    /// Saves a credential, evicting the oldest ones if there are too many. Issuers are not evicted,
    /// since their number is that of the clients that the application has registered. Returns
    /// whether the document has changed.
    fn set(&mut self, key: String, credential: &str) -> bool {
        if self.get(&key) == Some(credential) {
            return false;
        }
        self.remove(&key);
        self.credentials.push(Entry { key, credential: credential.to_owned() });
        while self.credentials.len() > 1
            && (self.credentials.len() > CREDENTIALS_MAX || self.length() > LENGTH_MAX)
        {
            let is_issuer = |it: &Entry| it.key.starts_with(ISSUER_PREFIX);
            let oldest = self.credentials.iter().position(|it| !is_issuer(it)).unwrap_or(0);
            self.credentials.remove(oldest);
        }
        true
    }

    /// Removes a credential. Returns whether the document has changed.
    fn remove(&mut self, key: &str) -> bool {
        let before = self.credentials.len();
        self.credentials.retain(|it| it.key != key);
        self.credentials.len() != before
    }

    fn length(&self) -> usize {
        self.credentials.iter().map(|it| it.key.len() + it.credential.len()).sum()
    }
}

impl Default for Document {
    fn default() -> Self {
        Self { version: VERSION, credentials: Vec::new() }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod document_tests {
    use super::*;

    #[test]
    fn the_oldest_credentials_are_evicted() {
        let mut document = Document::default();
        for number in 0..=CREDENTIALS_MAX {
            assert!(document.set(number.to_string(), "x"));
            // Saving again makes an entry the newest.
            document.set("kept".into(), &number.to_string());
        }
        assert_eq!(document.credentials.len(), CREDENTIALS_MAX);
        assert_eq!(document.get("1"), None);
        assert_eq!(document.get("2"), Some("x"));
        assert_eq!(document.get("kept"), Some(&*CREDENTIALS_MAX.to_string()));
        // Rule: [AUTHC-036]. A forgotten issuer would be chosen again.
        let issuer = [ISSUER_PREFIX, "app"].concat();
        document.set(issuer.clone(), "https://as.example");
        for number in 0..=CREDENTIALS_MAX {
            document.set(format!("new {number}"), "x");
        }
        assert_eq!(document.credentials.len(), CREDENTIALS_MAX);
        assert_eq!(document.get(&issuer), Some("https://as.example"));
        document.set("kept".into(), &CREDENTIALS_MAX.to_string());
        assert!(document.set("long".into(), &"x".repeat(LENGTH_MAX - 400)));
        assert!(document.length() <= LENGTH_MAX);
        assert!(document.get("kept").is_some());
        assert!(!document.set("kept".into(), &CREDENTIALS_MAX.to_string()));
    }
}
