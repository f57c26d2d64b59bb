use std::path::Path;

use serde::{Deserialize, Serialize};

use super::FileStoreError;

/// The format version that is written.
const VERSION: u32 = 1;

/// The most credentials in a file: far more than the servers of one user. The limit keeps servers,
/// which choose their authorization servers, from filling a disk.
const CREDENTIALS_MAX: usize = 256;

/// The most bytes of credentials and their keys in a file. 1 MiB: all credentials, at the usual
/// length of tokens.
const LENGTH_MAX: usize = 1024 * 1024;

/// Prefix of the entries that record the issuer of a registered client.
pub(super) const ISSUER_PREFIX: &str = "issuer of ";

/// The content of the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
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
    pub(super) fn read(text: &[u8], path: &Path) -> Result<Self, FileStoreError> {
        // Omit the parse error, which quotes the surrounding text.
        let damaged = |_| FileStoreError::Damaged { path: path.to_path_buf(), aside: None };
        let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
        if version > VERSION {
            return Err(FileStoreError::Newer { path: path.to_path_buf() });
        }
        serde_json::from_slice(text).map_err(damaged)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts are JSON")
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.credentials.iter().find(|it| it.key == key).map(|it| &*it.credential)
    }

    /// Saves a credential, evicting the oldest ones if there are too many. Issuers are not evicted,
    /// since their number is that of the clients that the application has registered. Returns
    /// whether the document has changed.
    pub(super) fn set(&mut self, key: String, credential: &str) -> bool {
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
    pub(super) fn remove(&mut self, key: &str) -> bool {
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
mod tests {
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
