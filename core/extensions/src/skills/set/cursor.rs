//! Cursors: the key of the entry at the end of a page.

use alloc::format;
use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::jsonrpc::ErrorObject;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Skills,
    Directory,
}

impl List {
    const fn mark(self) -> char {
        match self {
            Self::Skills => 's',
            Self::Directory => 'd',
        }
    }

    /// Writes the cursor of a page that ends with `key`. It stays valid when the set changes: the
    /// next page begins after the key.
    pub(super) fn write(self, key: &str) -> String {
        format!("{}{}", self.mark(), URL_SAFE_NO_PAD.encode(key))
    }

    /// Reads a cursor.
    ///
    /// # Errors
    ///
    /// It is not one of this list: the client's error.
    pub(super) fn read(self, cursor: &str) -> Result<String, ErrorObject<'static>> {
        let key = cursor.strip_prefix(self.mark()).and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
        key.and_then(|key| String::from_utf8(key).ok()).ok_or_else(|| {
            ErrorObject::invalid_params(
                "invalid cursor for this list: start again without a cursor",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let cursor = List::Skills.write("skill://a/SKILL.md");
        assert_eq!(List::Skills.read(&cursor).as_deref(), Ok("skill://a/SKILL.md"));
        assert!(List::Directory.read(&cursor).is_err());
        for garbage in ["", "s ", "sé", "s_w"] {
            assert!(List::Skills.read(garbage).is_err(), "{garbage}");
        }
    }
}
