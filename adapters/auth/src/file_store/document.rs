use std::path::Path;

use serde::{Deserialize, Serialize};

use super::FileStoreError;

/// The form of the file that is written.
const VERSION: u32 = 1;

/// The most credentials in a file: far more than the servers that one user has. Servers name
/// authorization servers, and so could fill a disk.
const CREDENTIALS_MAX: usize = 256;

/// The most that a file has of credentials and their keys, in bytes. 1 MiB: all of them, at the
/// usual length of tokens.
const LENGTH_MAX: usize = 1024 * 1024;

/// What the names of entries start with that say which issuer a registered client belongs to.
pub(super) const ISSUER_PREFIX: &str = "issuer of ";

/// What is in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    version: u32,
    /// The one that was kept last is the last one.
    credentials: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    credential: String,
}

/// What every version has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Document {
    pub(super) fn read(text: &[u8], path: &Path) -> Result<Self, FileStoreError> {
        // What is wrong is not told: it would be told with the text around it.
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

    /// Keeps a credential, at the cost of those that were kept longest ago where there are too many:
    /// not of issuers, which are as many as the application has registered clients. Whether that
    /// changes anything.
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

    /// Whether that changes anything.
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
            // What is kept anew is not old any more.
            document.set("kept".into(), &number.to_string());
        }
        assert_eq!(document.credentials.len(), CREDENTIALS_MAX);
        assert_eq!(document.get("1"), None);
        assert_eq!(document.get("2"), Some("x"));
        assert_eq!(document.get("kept"), Some(&*CREDENTIALS_MAX.to_string()));
        // Rule: [AUTHC-036]. An issuer that is forgotten would be chosen anew.
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
