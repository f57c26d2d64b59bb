use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{KeyError, Signer, generate_es256};
use crate::Algorithm;
use crate::client::lock::Lock;
use crate::client::private_file::{
    ReadError, UntrustedPath, check_parent, create_parent, read, replace, sibling,
};

/// A key file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// Other users can read the file, and may have done so.
    #[error("other users can read `{}`: remove it, and a new key is generated", .0.display())]
    Exposed(PathBuf),
    /// The file may belong to another user: it is a symbolic link, or has another owner, or others
    /// can write to its folder.
    #[error("`{}` is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why it is not trusted.
        reason: UntrustedPath,
    },
    /// The file does not contain a usable key. It is left unchanged.
    #[error("`{}`: {fault}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why its content is invalid.
        fault: KeyError,
    },
    /// The operating system failed.
    #[error("`{}`: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl Signer {
    /// Reads the key for ES256 in the file at `path`; if the file does not exist, generates a key
    /// and writes it, as PKCS#8 PEM that only the owner can read. Concurrent processes get the same
    /// key.
    ///
    /// # Errors
    ///
    /// See [`KeyFileError`]. An existing file is never changed.
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
        // Another process may have written it first.
        if let Some(signer) = read_key(path)? {
            return Ok(signer);
        }
        let key = |fault| KeyFileError::Key { path: path.to_path_buf(), fault };
        let der = generate_es256().map_err(key)?;
        replace(path, &pem(der.as_ref())).map_err(system)?;
        Self::from_pkcs8(der.as_ref(), Algorithm::Es256).map_err(key)
    }
}

/// Reads the key in a file; `None` if the file does not exist.
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
