//! Skills of a folder: served, listed and verified by the programs.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::process::{RUNTIMES, example, run};

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-skills-{test}-{}", std::process::id()));
        let folder = Self(path);
        folder.write(
            "shop/refunds/SKILL.md",
            "---\nname: refunds\ndescription: Refunds an order\n---\nWrite `email.md`.\n",
        );
        folder.write("shop/refunds/email.md", "Dear customer,\n");
        folder
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn skills_are_listed_and_verified() {
    let folder = Folder::new("listed");
    let server = example("skills-server");
    let server = ["--", server.to_str().unwrap(), folder.text()];
    let outcome = run("mcp-inspect", ["skills"].into_iter().chain(server));
    let expected = "refunds  Refunds an order\n  \
                    skill://shop/refunds/SKILL.md  2 files, 85 bytes, verified\n";
    assert_eq!(outcome.stdout, expected, "{outcome:?}");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");

    let one = ["skills", "skill://shop/refunds/SKILL.md"];
    let outcome = run("mcp-inspect", one.into_iter().chain(server));
    assert_eq!(outcome.stdout, "Write `email.md`.\n", "{outcome:?}");
    assert_eq!(outcome.stderr.matches("sha256:").count(), 2, "{outcome:?}");

    let json = ["skills", "--json", "--revision", "2025-11-25"];
    let outcome = run("mcp-inspect", json.into_iter().chain(server));
    let line: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(line["verified"], true, "{outcome:?}");
    assert_eq!(line["skill"]["frontmatter"]["name"], "refunds");

    let missing = ["skills", "skill://none/SKILL.md"];
    let outcome = run("mcp-inspect", missing.into_iter().chain(server));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("no skill is served at skill://none/SKILL.md"), "{outcome:?}");
}

#[test]
fn the_everything_server_serves_a_folder_on_every_runtime() {
    let folder = Folder::new("everything");
    let server = example("everything-server");
    for runtime in RUNTIMES {
        let words = ["skills", "--", server.to_str().unwrap()];
        let options = ["--stdio", "--runtime", runtime, "--skills", folder.text()];
        let outcome = run("mcp-inspect", words.into_iter().chain(options));
        assert!(outcome.stdout.contains("2 files, 85 bytes, verified"), "{outcome:?}");
    }
    folder.write("broken/SKILL.md", "no frontmatter");
    let outcome = run("everything-server", ["--stdio", "--skills", folder.text()]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("broken/SKILL.md"), "{outcome:?}");
}

#[test]
fn a_server_without_skills_is_named() {
    let server = example("everything-server");
    let words = ["skills", "--", server.to_str().unwrap(), "--stdio"];
    let outcome = run("mcp-inspect", words);
    assert_eq!(outcome.stderr, "mcp-inspect: the server did not declare skills\n", "{outcome:?}");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
}

#[test]
fn a_folder_is_read_again_on_request() {
    let folder = Folder::new("again");
    let server = example("skills-server");
    let server = ["--", server.to_str().unwrap(), folder.text()];
    folder.write("new/SKILL.md", "---\nname: new\ndescription: d\n---\n");
    let outcome = run("mcp-inspect", ["call", "reload"].into_iter().chain(server));
    assert_eq!(outcome.stdout, "2 skills\n", "{outcome:?}");
}
