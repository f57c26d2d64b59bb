//! The layers under `core/`: which modules and crates may name which others.
//!
//! The compiler enforces the boundaries of crates. This check enforces those inside the machine
//! crate, such as that `peer` does not know `http`, and what a manifest could break.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::crates::{self, Crate};
use crate::source::Source;
use crate::{Failure, files, reject};

/// The file with the layers.
const TABLE: &str = "xtask/src/layers.rs";

/// The machine crate, whose modules are the layers.
pub(crate) const MACHINE: &str = "mcp-sansio";

/// The layers of the machine crate, from the top. A module may name modules of lower layers, but
/// not of its own layer.
pub(crate) const LAYERS: &[&[Module]] = &[
    &[Module { name: "recording", knows: "calls of a machine on a tape, and their replay" }],
    &[Module { name: "recorded", knows: "machines that may have a recorder" }],
    &[
        Module { name: "http", knows: "Streamable HTTP and HTTP+SSE, over exchanges" },
        Module { name: "stream", knows: "byte streams: frames, end of input, when to write" },
    ],
    &[Module { name: "peer", knows: "one connection: eras, ids, deadlines, gate, input rounds" }],
    &[Module {
        name: "catalog",
        knows: "tools, resources and prompts of a server, and their lists",
    }],
    &[Module { name: "protocol", knows: "typed messages, in the form of each revision" }],
    &[
        Module { name: "gate", knows: "revisions, methods, capabilities; refusals of requests" },
        Module { name: "framing", knows: "newline frames, Server-Sent Events" },
        Module { name: "seal", knows: "seals for the states of input rounds" },
        Module { name: "binding", knows: "capabilities and failures of transports" },
    ],
    &[Module { name: "jsonrpc", knows: "messages, ids, errors, batches; JSON passed on as text" }],
    &[Module { name: "envelope", knows: "messages as a frame contains them, without allocation" }],
];

/// Modules below all layers, which are independent of the protocol and may name one another.
pub(crate) const FOUNDATION: [&str; 6] =
    ["backoff", "caller", "instant", "invalid_value", "panic_guard", "printable"];

/// Files with public items that are left out of the documentation, in `core`: methods of
/// traits that only the crate implements or overrides, what only its own handlers make, and macros
/// for the crates of this workspace.
const HIDING: [&str; 5] =
    ["around.rs", "jsonrpc/writer.rs", "machine/src/lib.rs", "protocol/wire.rs", "src/reply.rs"];

/// A module of the machine crate.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    /// Its subject, in a few words.
    pub(crate) knows: &'static str,
}

/// A source file of a crate, other than test code.
struct File {
    /// Relative to the folder `src` of its crate.
    path: PathBuf,
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
}

pub(crate) fn run() -> Result<(), Failure> {
    let errors = errors()?;
    reject(&errors, "violations of the layers")
}

/// Returns all violations in the workspace.
fn errors() -> Result<Vec<String>, Failure> {
    let crates = crates::all()?;
    let mut errors = crate_errors(&crates);
    for one in crates.iter().filter(|it| it.published && it.folder.starts_with("core")) {
        let files = sources(one)?;
        for File { path, source } in &files {
            let code = source.code();
            let hides = code.windows(3).any(|it| it == ["doc", "(", "hidden"]);
            if hides && !HIDING.iter().any(|it| one.folder.join("src").join(path).ends_with(it)) {
                errors.push(format!("{}: {} hides a public item", one.name, path.display()));
            }
            let is_no_std = || code.windows(3).any(|it| it == ["[", "no_std", "]"]);
            if path == Path::new("lib.rs") && !is_no_std() {
                errors.push(format!("{} is not `#![no_std]`", one.name));
            }
        }
        if one.name == MACHINE {
            let placed = LAYERS.iter().flat_map(|layer| layer.iter().map(|it| it.name));
            let placed: BTreeSet<&str> = placed.chain(FOUNDATION).collect();
            let found = files.iter().filter_map(|file| file.module().into_iter().next());
            let found: BTreeSet<String> = found.collect();
            if !found.iter().map(String::as_str).eq(placed.iter().copied()) {
                errors.push(format!("the modules are {found:?}, those in {TABLE} are {placed:?}"));
            }
            errors.extend(upward(&files));
        }
    }
    Ok(errors)
}

/// Returns the machine crate.
pub(crate) fn machine(crates: &[Crate]) -> Result<&Crate, Failure> {
    let missing = || Failure::Unable(format!("crate `{MACHINE}` not found"));
    crates.iter().find(|it| it.name == MACHINE).ok_or_else(missing)
}

/// Returns which modules of a crate name which others, outside of tests.
pub(crate) fn modules(one: &Crate) -> Result<BTreeSet<(String, String)>, Failure> {
    Ok(named(&sources(one)?).into_iter().map(|(_, from, to)| (from, to)).collect())
}

/// Returns the source files of a crate, without those compiled only for tests.
fn sources(one: &Crate) -> Result<Vec<File>, Failure> {
    let within = files::root().join(&one.folder).join("src");
    let mut found = Vec::new();
    for path in files::with_extension(&within, "rs")? {
        let source = Source::new(&std::fs::read_to_string(within.join(&path))?);
        found.push(File { path, source });
    }
    let tests = found.iter().flat_map(|file| file.source.test_files(&file.path));
    let tests: Vec<PathBuf> = tests.collect();
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

/// Returns references to modules that are not below the one that names them.
fn upward(files: &[File]) -> Vec<String> {
    let found = named(files).into_iter().filter(|(_, from, to)| !is_below(to, from));
    let error = |(file, from, to): (&File, String, String)| {
        format!(
            "{}: `{from}` names `{to}`, which is not below it: move what both need below both, or \
             hand it down as a value",
            file.path.display()
        )
    };
    found.map(error).collect()
}

/// Returns whether `upper` may name `lower`.
pub(crate) fn is_below(lower: &str, upper: &str) -> bool {
    let height = |name: &str| {
        let from_top = LAYERS.iter().position(|layer| layer.iter().any(|it| it.name == name));
        from_top.map(|place| LAYERS.len() - place)
    };
    FOUNDATION.contains(&lower) || height(lower) < height(upper)
}

/// Returns the references between the top-level modules of a crate: the file, its module, and the
/// other.
fn named(files: &[File]) -> Vec<(&File, String, String)> {
    let modules: BTreeSet<String> =
        files.iter().filter_map(|file| file.module().into_iter().next()).collect();
    let root = files.iter().find(|file| file.path == Path::new("lib.rs"));
    let exports = root.map(|file| exports(&file.source.code())).unwrap_or_default();
    let mut found = Vec::new();
    for file in files {
        let path = file.module();
        let Some(from) = path.first() else { continue };
        let names = at_root(&file.source.code(), path.len());
        let to = names.iter().filter_map(|name| modules.get(name).or_else(|| exports.get(name)));
        let others: BTreeSet<&String> = to.filter(|to| *to != from).collect();
        found.extend(others.into_iter().map(|to| (file, from.clone(), to.clone())));
    }
    found
}

/// Returns the names after `crate::`, and after as many `super::` as lead to the root from a module
/// at this depth.
fn at_root(code: &[&str], depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for at in 0..code.len() {
        let mut rest = &code[at..];
        let mut supers = 0;
        while let ["super", ":", ":", after @ ..] = rest {
            (rest, supers) = (after, supers + 1);
        }
        if let ["crate", ":", ":", after @ ..] = rest {
            (rest, supers) = (after, depth);
        }
        if supers != depth || depth == 0 {
            continue;
        }
        let mut inside = 0;
        for (place, token) in rest.iter().enumerate() {
            match *token {
                "{" => inside += 1,
                "}" => inside -= 1,
                name if place == 0 || inside == 1 && matches!(rest[place - 1], "{" | ",") => {
                    found.insert(name.to_owned());
                }
                _ => {}
            }
            if inside == 0 {
                break;
            }
        }
    }
    found
}

/// Returns the names that `pub use` in the root file gives to items of modules, each with its
/// module.
fn exports(code: &[&str]) -> BTreeMap<String, String> {
    let uses = code.split(|it| *it == ";").filter_map(|statement| {
        let start = statement.windows(2).position(|it| it == ["pub", "use"])?;
        let names = &statement[start + 2..];
        Some(names.iter().map(|name| ((*name).to_owned(), names[0].to_owned())))
    });
    uses.flatten().filter(|(name, module)| name != module).collect()
}

#[cfg(test)]
mod tests;
