//! Credentials in a file that only its owner reads.

mod document;
mod error;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_sansio::auth::client::{ActionFailure, Credential, CredentialKey};
use mcp_sansio::handler::CredentialStore;

use crate::lock::Lock;
use crate::private_file::{self, Unread, beside};
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
/// The calls block: for as long as a disk takes, and while another process writes, for at most two
/// seconds.
// MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
#[derive(Clone)]
pub struct FileStore {
    path: Arc<Path>,
    report: Arc<dyn Fn(&FileStoreError) + Send + Sync>,
}

impl FileStore {
    /// A store in the file at `path`. The file and its folder are made when there is something to
    /// keep.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into(), report: Arc::new(|_| ()) }
    }

    /// Has every failure of the [`CredentialStore`] told to `report`, a log, say: the core does not
    /// hear of a credential that could not be kept, and nobody is told by default.
    #[must_use]
    pub fn on_failure(mut self, report: impl Fn(&FileStoreError) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
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
        private_file::create_folder_of(&self.path)
            .and_then(|()| Lock::acquire(&beside(&self.path, ".lock")))
            .map_err(|error| FileStoreError::system(&self.path, error))
    }

    fn read(&self) -> Result<Document, FileStoreError> {
        let path = || self.path.to_path_buf();
        match private_file::read(&self.path) {
            Ok(Some(text)) => Document::read(&text, &self.path),
            Ok(None) => Ok(Document::default()),
            Err(Unread::Exposed) => Err(FileStoreError::Exposed { path: path() }),
            Err(Unread::TooLong) => Err(FileStoreError::Damaged { path: path(), aside: None }),
            Err(Unread::System(error)) => Err(FileStoreError::system(&self.path, error)),
        }
    }

    fn read_or_move_aside(&self, _lock: &Lock) -> Result<Document, FileStoreError> {
        let read = self.read();
        if let Err(FileStoreError::Damaged { .. }) = read {
            let aside = (1..=ASIDE_MAX)
                .map(|number| beside(&self.path, &format!(".damaged-{number}")))
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

impl CredentialStore for FileStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Credential>, ActionFailure> {
        self.load(key).map_err(|error| {
            (self.report)(&error);
            ActionFailure::Failed(error.to_string())
        })
    }

    async fn save(&self, key: &CredentialKey, credential: Credential) {
        if let Err(error) = self.save(key, &credential) {
            (self.report)(&error);
        }
    }

    async fn remove(&self, key: &CredentialKey) {
        if let Err(error) = self.remove(key) {
            (self.report)(&error);
        }
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
        CredentialKey::Issuer(client_id) => Ok([document::ISSUER_OF, client_id].concat()),
        _ => Err(FileStoreError::UnknownKey),
    }
}

#[cfg(test)]
mod tests;
