use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{KeyError, Signer, generate_es256};
use crate::Algorithm;
use crate::lock::Lock;
use crate::private_file::{
    ReadError, UntrustedPath, check_parent, create_parent, read, replace, sibling,
};

/// A key cannot be read from a file, or not be kept there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// Others can read the file, and may have done so.
    #[error("others can read `{}`: remove it, a new key is made then", .0.display())]
    Exposed(PathBuf),
    /// The file may be somebody else's: it is a symbolic link, or belongs to another user, or others
    /// can write to its folder.
    #[error("`{}` is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: UntrustedPath,
    },
    /// What is in the file is no key that can be used. It stays as it is.
    #[error("`{}`: {fault}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with what is in it.
        fault: KeyError,
    },
    /// The operating system.
    #[error("`{}`: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
}

impl Signer {
    /// The key for ES256 in the file at `path`; where there is none, a new one that is kept there,
    /// as PKCS#8 PEM that the owner alone can read. Processes that do so at the same time get the
    /// same key.
    ///
    /// # Errors
    ///
    /// See [`KeyFileError`]. A file that is there is never changed.
    pub fn open_es256(path: impl AsRef<Path>) -> Result<Self, KeyFileError> {
        let path = path.as_ref();
        if let Some(signer) = read_key(path)? {
            return Ok(signer);
        }
        let system = |error| KeyFileError::System { path: path.to_path_buf(), error };
        create_parent(path).map_err(system)?;
        let unread = |why| from_read_error(path, why);
        check_parent(path).map_err(unread)?;
        let _lock = Lock::acquire(&sibling(path, ".lock")).map_err(unread)?;
        // Another process may have been the first.
        if let Some(signer) = read_key(path)? {
            return Ok(signer);
        }
        let key = |fault| KeyFileError::Key { path: path.to_path_buf(), fault };
        let der = generate_es256().map_err(key)?;
        replace(path, &pem(der.as_ref())).map_err(system)?;
        Self::from_pkcs8(der.as_ref(), Algorithm::Es256).map_err(key)
    }
}

/// The key in a file; `None` where there is none.
fn read_key(path: &Path) -> Result<Option<Signer>, KeyFileError> {
    let key = |fault| KeyFileError::Key { path: path.to_path_buf(), fault };
    match read(path) {
        Ok(None) => Ok(None),
        Ok(Some(pem)) => {
            let pem = Zeroizing::new(pem);
            Signer::from_pkcs8_pem(&pem, Algorithm::Es256).map(Some).map_err(key)
        }
        Err(why) => Err(from_read_error(path, why)),
    }
}

fn from_read_error(path: &Path, why: ReadError) -> KeyFileError {
    let path = path.to_path_buf();
    match why {
        ReadError::Exposed => KeyFileError::Exposed(path),
        ReadError::Untrusted(reason) => KeyFileError::Untrusted { path, reason },
        ReadError::TooLong => KeyFileError::Key { path, fault: KeyError::NotAKey },
        ReadError::System(error) => KeyFileError::System { path, error },
    }
}

fn pem(der: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = Zeroizing::new(STANDARD.encode(der));
    let mut pem = Zeroizing::new(Vec::with_capacity(2 * text.len() + 64));
    pem.extend_from_slice(b"-----BEGIN PRIVATE KEY-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(b"-----END PRIVATE KEY-----\n");
    pem
}
