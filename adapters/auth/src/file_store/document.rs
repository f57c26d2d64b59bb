use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::FileStoreError;

/// The form of the file that is written.
const VERSION: u32 = 1;

/// What is in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    version: u32,
    /// Sorted, so that the same credentials make the same file.
    credentials: BTreeMap<String, String>,
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

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.credentials.get(name).map(String::as_str)
    }

    /// Whether that changes anything.
    pub(super) fn set(&mut self, name: String, value: &str) -> bool {
        self.credentials.insert(name, value.to_owned()).as_deref() != Some(value)
    }

    /// Whether that changes anything.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.credentials.remove(name).is_some()
    }
}

impl Default for Document {
    fn default() -> Self {
        Self { version: VERSION, credentials: BTreeMap::new() }
    }
}
