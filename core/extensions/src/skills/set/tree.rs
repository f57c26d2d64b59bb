//! The directories of files, by URI.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use crate::skills::uri::{encode_segment, is_plain_path};

/// The children of a directory, by the segments of their URIs.
pub(super) type Children = BTreeMap<String, Child>;

/// The directories above files, and their direct children.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Children>);

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Child {
    /// As in its path.
    pub(super) name: String,
    pub(super) is_directory: bool,
}

impl Tree {
    /// Adds a file with the directories above it.
    pub(super) fn add_file(&mut self, uri: &str, name: &str) {
        self.add(uri, name, false);
    }

    /// Adds a directory with the directories above it.
    pub(super) fn add_directory(&mut self, uri: &str, name: &str) {
        self.0.entry(uri.to_string()).or_default();
        self.add(uri, name, true);
    }

    /// Adds the file at a path below `root`. Ignores paths that lead elsewhere.
    pub(super) fn add_path(&mut self, root: &str, path: &str) {
        if !is_plain_path(path) {
            return;
        }
        let mut uri = root.to_string();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            uri.push('/');
            uri.push_str(&encode_segment(name, false, false));
            if names.peek().is_some() {
                self.add_directory(&uri, name);
            } else {
                self.add_file(&uri, name);
            }
        }
    }

    fn add(&mut self, uri: &str, name: &str, is_directory: bool) {
        let (mut uri, mut name, mut is_directory) = (uri, name, is_directory);
        while let Some((parent, segment)) = uri.rsplit_once('/') {
            // The first segment follows `scheme://`: no directory is above it.
            if parent.ends_with('/') {
                return;
            }
            let children = self.0.entry(parent.to_string()).or_default();
            if children.contains_key(segment) {
                return;
            }
            let child = Child { name: name.to_string(), is_directory };
            children.insert(segment.to_string(), child);
            (uri, is_directory) = (parent, true);
            name = parent.rsplit('/').next().unwrap_or(parent);
        }
    }

    pub(super) fn children(&self, uri: &str) -> Option<&Children> {
        self.0.get(uri)
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (uri, children) in other.0 {
            self.0.entry(uri).or_default().extend(children);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_directory_above_a_file_is_there() {
        // Rule: [SKILL-085] [SKILL-086].
        let mut tree = Tree::default();
        tree.add_file("skill://acme/refunds/x/y.md", "y.md");
        tree.add_file("skill://acme/refunds/SKILL.md", "SKILL.md");
        tree.add_directory("skill://acme/refunds/empty", "empty");
        let names = |uri: &str| {
            let children = tree.children(uri)?;
            Some(children.iter().map(|(name, child)| (&**name, child.is_directory)).collect())
        };
        let names = |uri| names(uri).unwrap_or_else(|| alloc::vec![("none", false)]);
        let expected: Vec<(&str, bool)> =
            alloc::vec![("SKILL.md", false), ("empty", true), ("x", true)];
        assert_eq!(names("skill://acme/refunds"), expected);
        assert_eq!(names("skill://acme"), [("refunds", true)]);
        assert_eq!(names("skill://acme/refunds/x"), [("y.md", false)]);
        assert_eq!(names("skill://acme/refunds/empty"), []);
        assert_eq!(names("skill:/"), [("none", false)]);
        assert_eq!(names("skill://acme/refunds/x/y.md"), [("none", false)]);
    }
}
