//! Credentials in a file that only its owner reads.

mod document;
mod error;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_sansio_handlers::CredentialStore;
use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};

use crate::lock::Lock;
use crate::offload::{self, Spawner};
use crate::private_file::{self, ReadError, sibling};
use document::Document;

pub use error::FileStoreError;

/// Keeps a client's credentials in one file, for all servers and all processes of an application.
///
/// The file can be read by its owner alone, and is replaced as a whole: whoever reads it sees what
/// was there before or what is there after. A writer holds a lock (a file beside it that ends in
/// `.lock`) while it reads, changes and replaces the file, so that no process loses what another one
/// has written. A file that cannot be read is moved aside, never overwritten.
///
/// On Windows there are no modes: a file has the rights of its folder, and that of a user's profile
/// is the user's alone. Give a path below it.
///
/// It has room for 256 credentials and a mebibyte; those that were kept longest ago make room for
/// others.
///
/// On Unix the file and its lock must be files of the user whom the process acts as, not symbolic
/// links, in a folder of theirs or of root's that nobody else can write to: otherwise
/// [`FileStoreError::Untrusted`]. Who can write to the folders above is not looked at.
///
/// [`load`](Self::load), [`save`](Self::save) and [`remove`](Self::remove) block: for as long as a disk
/// takes, and while another process writes, for at most two seconds. As a [`CredentialStore`] it
/// blocks nobody: each call runs on a thread of its own, or where [`spawner`](Self::spawner) says.
// MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
#[derive(Clone)]
pub struct FileStore {
    path: Arc<Path>,
    report: Arc<dyn Fn(&FileStoreError) + Send + Sync>,
    spawner: Spawner,
}

impl FileStore {
    /// A store in the file at `path`. The file and its folder are made when there is something to
    /// keep.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let spawner = offload::on_threads();
        Self { path: path.into().into(), report: Arc::new(|_| ()), spawner }
    }

    /// Has every failure of the [`CredentialStore`] told to `report`, a log, say: the core does not
    /// hear of a credential that could not be kept, and nobody is told by default.
    #[must_use]
    pub fn on_failure(mut self, report: impl Fn(&FileStoreError) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Runs the calls of the [`CredentialStore`], which block, where `spawn` puts them: a runtime's pool
    /// of threads for such, `|job| drop(tokio::task::spawn_blocking(job))` for one. There are a few in
    /// each connection. By default each has a thread of its own.
    #[must_use]
    pub fn spawner(
        mut self,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.spawner = Arc::new(spawn);
        self
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is kept under this key.
    ///
    /// # Errors
    ///
    /// See [`FileStoreError`].
    pub fn load(&self, key: &CredentialKey) -> Result<Option<Credential>, FileStoreError> {
        let document = match self.read() {
            // Only who has the lock may move the file aside.
            Err(FileStoreError::Damaged { .. }) => self.read_or_move_aside(&self.lock()?),
            read => read,
        };
        Ok(document?.get(&name(key)?).map(Credential::new))
    }

    /// Keeps a credential under this key, in place of what there was.
    ///
    /// # Errors
    ///
    /// See [`FileStoreError`]. Nothing is changed then.
    pub fn save(&self, key: &CredentialKey, value: &Credential) -> Result<(), FileStoreError> {
        let name = name(key)?;
        self.change(|document| document.set(name, value.as_str()))
    }

    /// Drops what is kept under this key, if there is something.
    ///
    /// # Errors
    ///
    /// See [`FileStoreError`]. Nothing is changed then.
    pub fn remove(&self, key: &CredentialKey) -> Result<(), FileStoreError> {
        let name = name(key)?;
        self.change(|document| document.remove(&name))
    }

    /// Changes what the file has, unless `change` says that nothing is different.
    fn change(&self, change: impl FnOnce(&mut Document) -> bool) -> Result<(), FileStoreError> {
        let lock = self.lock()?;
        let mut document = self.read_or_move_aside(&lock)?;
        if change(&mut document) {
            private_file::replace(&self.path, &document.write())
                .map_err(|error| FileStoreError::system(&self.path, error))?;
        }
        Ok(())
    }

    fn lock(&self) -> Result<Lock, FileStoreError> {
        private_file::create_parent(&self.path)
            .map_err(|error| FileStoreError::system(&self.path, error))?;
        private_file::check_parent(&self.path)
            .map_err(|why| FileStoreError::from_read_error(&self.path, why))?;
        let path = sibling(&self.path, ".lock");
        Lock::acquire(&path).map_err(|why| match why {
            // Of the lock nobody has heard.
            ReadError::System(error) => FileStoreError::system(&self.path, error),
            why => FileStoreError::from_read_error(&path, why),
        })
    }

    fn read(&self) -> Result<Document, FileStoreError> {
        match private_file::read(&self.path) {
            Ok(Some(text)) => Document::read(&text, &self.path),
            Ok(None) => Ok(Document::default()),
            Err(why) => Err(FileStoreError::from_read_error(&self.path, why)),
        }
    }

    fn read_or_move_aside(&self, _lock: &Lock) -> Result<Document, FileStoreError> {
        let read = self.read();
        if let Err(FileStoreError::Damaged { .. }) = read {
            let aside = (1..=ASIDE_MAX)
                .map(|number| sibling(&self.path, &format!(".damaged-{number}")))
                .find(|aside| !aside.exists())
                .ok_or_else(|| FileStoreError::Damaged {
                    path: self.path.to_path_buf(),
                    aside: None,
                })?;
            std::fs::rename(&self.path, &aside)
                .map_err(|error| FileStoreError::system(&self.path, error))?;
            return Err(FileStoreError::Damaged {
                path: self.path.to_path_buf(),
                aside: Some(aside),
            });
        }
        read
    }
}

impl FileStore {
    /// Does something that blocks where it may, and reports what fails.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, FileStoreError> + Send + 'static,
    ) -> Result<T, FileStoreError> {
        let store = self.clone();
        let done = offload::run(&self.spawner, move || work(&store)).await;
        let done = done.unwrap_or_else(|| {
            let error = io::Error::other("there is no thread to read or write it on");
            Err(FileStoreError::system(&self.path, error))
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
        // What fails was reported.
        let _saved = self.run(move |store| store.save(&key, &credential)).await;
    }

    async fn remove(&self, key: &CredentialKey) {
        let key = key.clone();
        let _removed = self.run(move |store| store.remove(&key)).await;
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("path", &self.path).finish_non_exhaustive()
    }
}

/// How many damaged files are kept. After 16 something else is wrong, and a person has to look.
const ASIDE_MAX: usize = 16;

/// What a key is called in the file.
fn name(key: &CredentialKey) -> Result<String, FileStoreError> {
    match key {
        CredentialKey::Tokens(url) => Ok(format!("tokens {url}")),
        CredentialKey::Client(issuer) => Ok(format!("client {issuer}")),
        CredentialKey::Issuer(client_id) => Ok([document::ISSUER_PREFIX, client_id].concat()),
        _ => Err(FileStoreError::UnknownKey),
    }
}

#[cfg(test)]
mod tests;
