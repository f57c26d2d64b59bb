use std::io;
use std::path::{Path, PathBuf};

use crate::client::private_file::{ReadError, UntrustedPath};

/// Credentials could not be read or saved. No error contains a credential.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// Other users can read the file, and may have done so.
    #[error(
        "other users can read `{}`: make it private (`chmod 600`), and sign in again if they may have \
         done so",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file, or its lock (which ends in `.lock`), may belong to another user. Its content is
    /// not used.
    #[error("`{}` is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why it is not trusted.
        reason: UntrustedPath,
    },
    /// The content of the file was not written by a store. The file is moved aside, so that the
    /// next call starts with an empty one.
    #[error("`{}` is damaged{}", path.display(), DisplayAside(aside.as_deref()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The new path of the file; `None` if it was not moved, because too many were moved
        /// before.
        aside: Option<PathBuf>,
    },
    /// The file was written by a newer version of this store. It is left unchanged.
    #[error("`{}` was written by a newer version of this program", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The core uses a kind of key that is unknown to this store, which is older than the core.
    #[error("unknown kind of credential; update this store to the version of the core")]
    UnknownKey,
    /// The operating system failed, or another process has held the lock for too long.
    #[error("`{}`: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl FileStoreError {
    pub(super) fn system(path: &Path, error: io::Error) -> Self {
        Self::System { path: path.to_path_buf(), error }
    }

    /// Creates the error for the file at `path`.
    pub(super) fn from_read_error(path: &Path, why: ReadError) -> Self {
        let path = path.to_path_buf();
        match why {
            ReadError::Exposed => Self::Exposed { path },
            ReadError::Untrusted(reason) => Self::Untrusted { path, reason },
            ReadError::TooLong => Self::Damaged { path, aside: None },
            ReadError::System(error) => Self::System { path, error },
        }
    }
}

struct DisplayAside<'a>(Option<&'a Path>);

impl std::fmt::Display for DisplayAside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(aside) => write!(f, " and was moved to `{}`", aside.display()),
            None => {
                f.write_str("; too many files were moved aside before: inspect and remove them")
            }
        }
    }
}
