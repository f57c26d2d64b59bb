//! Tests of `layers`.

use super::*;

#[test]
fn the_workspace_keeps_its_layers() {
    assert_eq!(errors().unwrap(), [""; 0]);
}

/// Returns what files of a fictitious crate, with some of the modules of the real one, name
/// upwards.
fn found(texts: &[(&str, &str)]) -> Vec<String> {
    let all = ["jsonrpc", "protocol", "catalog", "peer", "http", "instant"];
    let paths = all.map(|module| format!("{module}/mod.rs"));
    let empty = paths.iter().map(|path| (path.as_str(), ""));
    let file = |(path, text): (&str, &str)| File { path: path.into(), source: Source::new(text) };
    let files: Vec<File> = empty.chain(texts.iter().copied()).map(file).collect();
    upward(&files).iter().map(|it| it.split(", which").next().unwrap().to_owned()).collect()
}

#[test]
fn a_module_names_only_those_below_it() {
    let found = found(&[
        ("peer/a.rs", "use crate::protocol::X;\nuse crate::{jsonrpc, http::{Y, Z}};\n"),
        ("peer/b/mod.rs", "use super::super::catalog::X;\nfn f() { super::super::http::g() }"),
        ("protocol/c.rs", "use crate::peer::X;\n#[cfg(test)]\nmod tests { use crate::http::Y; }"),
        ("jsonrpc/d.rs", "// crate::peer\nuse crate::instant::X;\nuse super::peer::Y;"),
    ]);
    let expected = [
        "peer/a.rs: `peer` names `http`",
        "peer/b/mod.rs: `peer` names `http`",
        "protocol/c.rs: `protocol` names `peer`",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_name_at_the_root_is_of_the_module_that_it_comes_from() {
    let found = found(&[
        ("lib.rs", "pub use peer::{Connection, X};\npub use instant::Text;\npub mod peer;"),
        ("protocol/a.rs", "use crate::{Connection, Text};"),
        ("http/b.rs", "use crate::{Connection, Text};"),
    ]);
    assert_eq!(found, ["protocol/a.rs: `protocol` names `peer`"]);
}

#[test]
fn siblings_and_foundations_are_no_layers_below() {
    assert!(is_below("instant", "jsonrpc") && is_below("instant", "principal"));
    assert!(!is_below("framing", "seal") && !is_below("peer", "instant"));
    assert!(is_below("peer", "http") && !is_below("http", "peer") && !is_below("peer", "peer"));
}

#[test]
fn a_crate_of_the_core_uses_public_items_of_the_core() {
    let one = |name: &str, folder: &str, on: &str, feature: &str| Crate {
        name: name.to_owned(),
        description: String::new(),
        published: true,
        folder: PathBuf::from(folder),
        dependencies: vec![crates::Dependency {
            name: on.to_owned(),
            optional: false,
            features: vec![feature.to_owned()],
        }],
    };
    let found = crate_errors(&[
        one(MACHINE, "core/machine", "serde", "std"),
        one("handlers", "core/handlers", MACHINE, "_private"),
        one("oauth", "core/oauth", "tokio", "http"),
        one("tokio", "adapters/tokio", MACHINE, "http"),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("private feature `_private`"), "{found:?}");
    assert!(found[1].ends_with("depends on tokio, which is not under core/"), "{found:?}");
}
