//! The layers under `core/`: which modules may name which others.
//!
//! The compiler enforces the boundaries of crates. This check enforces those inside the machine
//! crate, and the dependencies between crates.

mod http_words;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::crates::{self, Crate};
use crate::source::Source;
use crate::{Failure, files};

/// The file with the layers and the exceptions.
const TABLE: &str = "xtask/src/layers.rs";

/// The machine crate, whose modules are the layers.
pub(crate) const MACHINE: &str = "mcp-sansio";

/// The layers of the machine crate, from the top. A module may name modules of lower layers, but
/// not of its own layer.
pub(crate) const LAYERS: &[&[Module]] = &[
    &[Module { name: "recording", knows: "calls of a machine on a tape, and their replay" }],
    &[
        Module { name: "http", knows: "Streamable HTTP and HTTP+SSE, over exchanges" },
        Module { name: "stream", knows: "byte streams: frames, end of input, when to write" },
    ],
    &[Module { name: "peer", knows: "one connection: eras, ids, deadlines, gate, input rounds" }],
    &[Module {
        name: "catalog",
        knows: "tools, resources and prompts of a server, and their lists",
    }],
    &[Module { name: "protocol", knows: "revisions, methods, capabilities, typed messages" }],
    &[
        Module { name: "framing", knows: "newline frames, Server-Sent Events" },
        Module { name: "seal", knows: "seals for the states of input rounds" },
        Module { name: "binding", knows: "capabilities and failures of transports" },
    ],
    &[Module { name: "jsonrpc", knows: "messages, ids, errors, batches; JSON passed on as text" }],
];

/// Modules below all layers, which are independent of the protocol and may name one another.
pub(crate) const FOUNDATION: [&str; 8] =
    ["backoff", "caller", "instant", "job", "panic_guard", "principal", "printable", "session_key"];

/// Exceptions to the rules. The list should become shorter: an exception that is no longer needed
/// is an error.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        files: &["jsonrpc/writer.rs", "protocol/wire.rs", "recording/recorded.rs"],
        rule: Rule::NothingHidden,
        reason: "provided methods of public traits, which only the types of this crate override",
    },
    Exception {
        files: &["reply.rs"],
        rule: Rule::NothingHidden,
        reason: "made by handlers of this crate, not by applications",
    },
];

/// The layer that must not depend on a transport.
const WITHOUT_HTTP: &str = "peer";

/// A module of the machine crate.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    /// Its subject, in a few words.
    pub(crate) knows: &'static str,
}

/// Files that may break one rule.
#[derive(Debug)]
struct Exception {
    /// Relative to the folder `src` of their crate.
    files: &'static [&'static str],
    rule: Rule,
    /// The justification, and the condition for its removal.
    #[expect(dead_code, reason = "documentation in the list")]
    reason: &'static str,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A module only names modules below its own.
    Below,
    /// The layer without transports does not mention HTTP.
    NoHttp,
    /// Public items are not hidden from the documentation, where other crates could use them by
    /// mistake.
    NothingHidden,
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Relative to the workspace root.
    file: PathBuf,
    /// From 1.
    line: usize,
    rule: Rule,
    text: String,
}

/// A source file of a crate under `core/`, other than test code.
#[derive(Debug)]
struct File {
    /// The folder `src` of its crate, relative to the workspace root.
    folder: PathBuf,
    /// Relative to that folder.
    path: PathBuf,
    text: String,
    source: Source,
}

impl File {
    /// Returns the path of its module, from the root of the crate.
    fn module(&self) -> Vec<String> {
        let path = self.path.with_extension("");
        let names = path.iter().map(|part| part.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.pop_if(|name| matches!(name.as_str(), "mod" | "lib"));
        names
    }

    fn finding(&self, line: usize, rule: Rule, text: String) -> Finding {
        Finding { file: self.folder.join(&self.path), line, rule, text }
    }
}

/// A reference from one module to another of its crate.
#[derive(Debug)]
struct Named<'a> {
    file: &'a File,
    line: usize,
    from: String,
    to: String,
}

pub(crate) fn run() -> Result<(), Failure> {
    let errors = errors()?;
    for error in &errors {
        eprintln!("error: {error}");
    }
    if errors.is_empty() {
        println!("each layer under core/ names only those below it");
        return Ok(());
    }
    Err(Failure::Failed(format!("{} violations of the layers", errors.len())))
}

/// Returns all violations in the workspace that have no exception.
fn errors() -> Result<Vec<String>, Failure> {
    let crates = crates::all()?;
    let mut errors = crate_errors(&crates);
    let mut findings = Vec::new();
    for one in crates.iter().filter(|it| it.folder.starts_with("core")) {
        let files = sources(one)?;
        findings.extend(files.iter().flat_map(hidden));
        if one.name == MACHINE {
            errors.extend(unplaced(&files));
            findings.extend(upward(&files));
            findings.extend(files.iter().flat_map(words_of_http));
        }
    }
    findings.dedup();
    errors.extend(unexcused(&findings, EXCEPTIONS));
    Ok(errors)
}

/// Returns the machine crate.
pub(crate) fn machine(crates: &[Crate]) -> Result<&Crate, Failure> {
    let missing = || Failure::Unable(format!("crate `{MACHINE}` not found"));
    crates.iter().find(|it| it.name == MACHINE).ok_or_else(missing)
}

/// Returns which modules of a crate name which others, outside of tests.
pub(crate) fn modules(one: &Crate) -> Result<BTreeSet<(String, String)>, Failure> {
    let files = sources(one)?;
    Ok(named(&files).into_iter().map(|it| (it.from, it.to)).collect())
}

/// Returns the source files of a crate, without those compiled only for tests.
fn sources(one: &Crate) -> Result<Vec<File>, Failure> {
    let folder = one.folder.join("src");
    let within = files::root().join(&folder);
    let mut found = Vec::new();
    for path in files::with_extension(&within, "rs")? {
        let text = std::fs::read_to_string(within.join(&path))?;
        let source = Source::new(&text);
        found.push(File { folder: folder.clone(), path, text, source });
    }
    let tests: Vec<PathBuf> =
        found.iter().flat_map(|file| file.source.test_files(&file.path)).collect();
    found.retain(|file| {
        let module = file.path.with_extension("");
        !tests.iter().any(|test| module.starts_with(test))
    });
    Ok(found)
}

/// Returns dependencies between crates that cargo allows, but the layers do not.
fn crate_errors(crates: &[Crate]) -> Vec<String> {
    let folder = |name: &str| crates.iter().find(|it| it.name == name).map(|it| &it.folder);
    let mut errors = Vec::new();
    for one in crates.iter().filter(|it| it.folder.starts_with("core")) {
        for dependency in &one.dependencies {
            let (from, to) = (&one.name, &dependency.name);
            if folder(to).is_some_and(|folder| !folder.starts_with("core")) {
                errors.push(format!("{from} depends on {to}, which is not under core/"));
            }
            for feature in dependency.features.iter().filter(|it| it.starts_with('_')) {
                errors.push(format!("{from} asks {to} for its private feature `{feature}`"));
            }
        }
    }
    errors
}

/// Returns errors for modules without a layer, and layers without a module.
fn unplaced(files: &[File]) -> Vec<String> {
    let there: BTreeSet<String> =
        files.iter().filter_map(|file| file.module().into_iter().next()).collect();
    let placed = LAYERS.iter().flat_map(|layer| layer.iter().map(|module| module.name));
    let placed: BTreeSet<&str> = placed.chain(FOUNDATION).collect();
    let mut errors = Vec::new();
    for module in &there {
        if !placed.contains(module.as_str()) {
            errors.push(format!("`{module}` has no layer: give it one in {TABLE}"));
        }
    }
    for module in placed {
        if !there.contains(module) {
            errors.push(format!("there is no module `{module}`: remove it from {TABLE}"));
        }
    }
    errors
}

/// Returns references to modules that are not below the referring one.
fn upward(files: &[File]) -> Vec<Finding> {
    let found = named(files).into_iter().filter(|it| !is_below(&it.to, &it.from));
    let finding = |it: Named<'_>| {
        let text = format!(
            "`{}` names `{}`, which is not below it: move what both need below both, or hand it \
             down as a value",
            it.from, it.to
        );
        it.file.finding(it.line, Rule::Below, text)
    };
    found.map(finding).collect()
}

/// Returns whether `upper` may name `lower`.
pub(crate) fn is_below(lower: &str, upper: &str) -> bool {
    let height = |name: &str| {
        let from_top = LAYERS.iter().position(|layer| layer.iter().any(|it| it.name == name));
        from_top.map(|place| LAYERS.len() - place)
    };
    // A module without a layer is reported separately.
    FOUNDATION.contains(&lower) || height(lower) < height(upper)
}

/// Returns references between the top-level modules of a crate.
fn named(files: &[File]) -> Vec<Named<'_>> {
    let modules: BTreeSet<String> =
        files.iter().filter_map(|file| file.module().into_iter().next()).collect();
    let root = files.iter().find(|file| file.path == Path::new("lib.rs"));
    let exports = root.map(|file| references::exports(&file.source)).unwrap_or_default();
    let exports: BTreeMap<String, String> = exports.into_iter().collect();
    let mut found = Vec::new();
    for file in files {
        let path = file.module();
        let Some(from) = path.first() else { continue };
        for reference in references::references(&file.source, &path) {
            let Some(first) = reference.path.first() else { continue };
            // An item of the root itself belongs to no layer.
            let to = modules.get(first).or_else(|| exports.get(first));
            if let Some(to) = to.filter(|to| *to != from) {
                let (from, to) = (from.clone(), to.clone());
                found.push(Named { file, line: reference.line, from, to });
            }
        }
    }
    found
}

/// Returns the places where `peer` mentions HTTP.
fn words_of_http(file: &File) -> Vec<Finding> {
    if file.module().first().is_none_or(|module| module != WITHOUT_HTTP) {
        return Vec::new();
    }
    let words = http_words::find(&file.source, &file.text);
    let finding = |(line, word)| {
        let text = format!(
            "`{WITHOUT_HTTP}` mentions `{word}`: capabilities and failures of a transport are values \
             that the binding brings"
        );
        file.finding(line, Rule::NoHttp, text)
    };
    words.into_iter().map(finding).collect()
}

/// Returns public items that the documentation hides.
fn hidden(file: &File) -> Vec<Finding> {
    let attributes = file.source.attributes.iter().filter(|it| it.text == "doc(hidden)");
    let text = "a hidden item, which another crate could use as if it were public";
    attributes.map(|it| file.finding(it.line, Rule::NothingHidden, text.to_owned())).collect()
}

/// Returns violations without an exception, and exceptions that are no longer needed.
fn unexcused(findings: &[Finding], exceptions: &[Exception]) -> Vec<String> {
    let excuses = |exception: &Exception, file: &str, finding: &Finding| {
        exception.rule == finding.rule && finding.file.ends_with(Path::new("src").join(file))
    };
    let mut errors = Vec::new();
    for finding in findings {
        let excused =
            exceptions.iter().any(|it| it.files.iter().any(|file| excuses(it, file, finding)));
        if !excused {
            let Finding { file, line, text, .. } = finding;
            errors.push(format!("{}:{line}: {text}", file.display()));
        }
    }
    for exception in exceptions {
        for file in exception.files {
            if !findings.iter().any(|finding| excuses(exception, file, finding)) {
                let rule = exception.rule;
                errors.push(format!(
                    "{file} no longer violates {rule:?}: remove its exception in {TABLE}"
                ));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        assert_eq!(errors().unwrap(), [""; 0]);
    }

    /// Returns files of a fictitious crate with the modules of the real one.
    fn files(texts: &[(&str, &str)]) -> Vec<File> {
        let file = |&(path, text): &(&str, &str)| File {
            folder: PathBuf::from("core/machine/src"),
            path: PathBuf::from(path),
            text: text.to_owned(),
            source: Source::new(text),
        };
        let all = ["jsonrpc", "protocol", "catalog", "peer", "http", "instant"];
        let paths = all.map(|module| format!("{module}/mod.rs"));
        paths
            .iter()
            .map(|path| (path.as_str(), ""))
            .chain(texts.iter().copied())
            .map(|it| file(&it))
            .collect()
    }

    fn places(found: Vec<Finding>) -> Vec<String> {
        let place = |it: &Finding| format!("{}:{}", it.file.display(), it.line);
        found.iter().map(|it| format!("{} {:?}", place(it), it.rule)).collect()
    }

    #[test]
    fn a_module_names_only_those_below_it() {
        let found = upward(&files(&[
            ("peer/a.rs", "use crate::protocol::X;\nuse crate::{jsonrpc, http::{Y, Z}};\n"),
            ("peer/b/mod.rs", "use super::super::catalog::X;\nfn f() { super::super::http::g() }"),
            (
                "protocol/c.rs",
                "use crate::peer::X;\n#[cfg(test)]\nmod tests { use crate::http::Y; }",
            ),
            ("jsonrpc/d.rs", "// crate::peer\nuse crate::instant::X;\nuse super::peer::Y;"),
        ]));
        assert_eq!(
            places(found),
            [
                "core/machine/src/peer/a.rs:2 Below",
                "core/machine/src/peer/a.rs:2 Below",
                "core/machine/src/peer/b/mod.rs:2 Below",
                "core/machine/src/protocol/c.rs:1 Below",
            ]
        );
    }

    #[test]
    fn a_name_at_the_root_is_of_the_module_that_it_comes_from() {
        let found = upward(&files(&[
            ("lib.rs", "pub use peer::Connection;\npub use instant::Text;\npub mod peer;"),
            ("protocol/a.rs", "use crate::{Connection, Text};"),
            ("http/b.rs", "use crate::{Connection, Text};"),
        ]));
        assert_eq!(places(found), ["core/machine/src/protocol/a.rs:1 Below"]);
    }

    #[test]
    fn siblings_and_foundations_are_no_layers_below() {
        assert!(is_below("instant", "jsonrpc") && is_below("instant", "principal"));
        assert!(!is_below("framing", "seal") && !is_below("peer", "instant"));
        assert!(is_below("peer", "http") && !is_below("http", "peer") && !is_below("peer", "peer"));
    }

    #[test]
    fn every_module_has_a_layer() {
        let found = unplaced(&files(&[("novel.rs", "")]));
        assert!(found.iter().any(|it| it.starts_with("`novel` has no layer")), "{found:?}");
        assert!(found.iter().any(|it| it.starts_with("there is no module `seal`")), "{found:?}");
        assert!(!found.iter().any(|it| it.contains("`peer`")), "{found:?}");
    }

    #[test]
    fn the_peer_does_not_speak_of_http() {
        let texts = [("peer/a.rs", "\nfn next_post() {}"), ("http/b.rs", "fn next_post() {}")];
        let found = files(&texts).iter().flat_map(words_of_http).collect();
        assert_eq!(places(found), ["core/machine/src/peer/a.rs:2 NoHttp"]);
    }

    #[test]
    fn nothing_public_is_hidden() {
        let found = files(&[("peer/a.rs", "/// A.\n#[doc(hidden)]\npub fn f() {}")]);
        let found = found.iter().flat_map(hidden).collect();
        assert_eq!(places(found), ["core/machine/src/peer/a.rs:2 NothingHidden"]);
    }

    #[test]
    fn an_exception_excuses_one_rule_and_is_needed() {
        let texts = [("peer/a.rs", "use crate::http::X;"), ("peer/b.rs", "use crate::http::X;")];
        let found = upward(&files(&texts));
        let exception = |files, rule| [Exception { files, rule, reason: "" }];
        assert_eq!(unexcused(&found, &[]).len(), 2);
        assert_eq!(unexcused(&found, &exception(&["peer/a.rs"], Rule::Below)).len(), 1);
        assert_eq!(
            unexcused(&found, &exception(&["peer/a.rs", "peer/b.rs"], Rule::Below)),
            [""; 0]
        );
        assert_eq!(unexcused(&found, &exception(&["a.rs"], Rule::Below)).len(), 3);
        assert_eq!(unexcused(&found, &exception(&["peer/a.rs"], Rule::NoHttp)).len(), 3);
    }

    #[test]
    fn a_crate_of_the_core_uses_public_items_of_the_core() {
        let one = |name: &str, folder: &str, on: &str, feature: &str| Crate {
            name: name.to_owned(),
            description: String::new(),
            published: true,
            features: Vec::new(),
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
}
