use std::io;
use std::path::{Path, PathBuf};

use crate::private_file::{ReadError, UntrustedPath};

/// Credentials cannot be read or kept. No error has any of them in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// Others can read the file, and may have done so.
    #[error(
        "others can read `{}`: make it private (`chmod 600`), and sign in anew if they may have \
         done so",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file or its lock, which ends in `.lock`, may be somebody else's. Nothing of it is used.
    #[error("`{}` is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: UntrustedPath,
    },
    /// The file is not what a store has written. It is moved aside, so that the next call starts
    /// with an empty one.
    #[error("`{}` is damaged{}", path.display(), DisplayAside(aside.as_deref()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it is now. `None`: where it was, as too many were moved aside before.
        aside: Option<PathBuf>,
    },
    /// The file is of a newer version of this store. It stays as it is.
    #[error("`{}` was written by a newer version of this program", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The core keeps something under a key that this store does not know: it is older than the
    /// core.
    #[error("there is no name for what is to be kept")]
    UnknownKey,
    /// The operating system, or another process that has held the lock for too long.
    #[error("`{}`: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
}

impl FileStoreError {
    pub(super) fn system(path: &Path, error: io::Error) -> Self {
        Self::System { path: path.to_path_buf(), error }
    }

    /// What is wrong with the file at `path`.
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
            None => f.write_str(", as many before it: look at them and move them away"),
        }
    }
}
