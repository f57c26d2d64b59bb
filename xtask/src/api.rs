//! The public API of each published crate as text, so that changes to it are visible in review.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crates::{Crate, all};
use crate::{Failure, files};

/// The folder of these texts.
const FOLDER: &str = "docs/api";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let check = files::is_check("api", arguments)?;
    let root = files::root();
    document(&root)?;
    let mut outdated = Vec::new();
    let mut expected = Vec::new();
    for one in all()?.iter().filter(|it| it.published) {
        let text = api(one, &root)?;
        let file = format!("{FOLDER}/{}.txt", one.name);
        expected.push(PathBuf::from(format!("{}.txt", one.name)));
        if std::fs::read_to_string(root.join(&file)).is_ok_and(|found| found == text) {
            continue;
        }
        if check {
            outdated.push(file);
        } else {
            std::fs::create_dir_all(root.join(FOLDER))?;
            std::fs::write(root.join(&file), text)?;
            println!("{file} written");
        }
    }
    for path in files::with_extension(&root.join(FOLDER), "txt")? {
        if !expected.contains(&path) {
            outdated.push(format!("{FOLDER}/{} (no such crate: delete it)", path.display()));
        }
    }
    if outdated.is_empty() {
        return Ok(());
    }
    let remedy = "run `cargo run -p xtask -- api` and commit the difference";
    Err(Failure::Failed(format!("not up to date: {}; {remedy}", outdated.join(", "))))
}

/// Set for this program when cargo runs it as rustdoc.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Runs rustdoc with its unstable options if cargo started this program in its place. Cargo itself runs
/// without them: build scripts look at that variable, and every crate would be checked once more.
pub(crate) fn as_rustdoc(arguments: &[&str]) -> Option<Result<(), Failure>> {
    std::env::var_os(AS_RUSTDOC)?;
    let status = Command::new("rustdoc").args(arguments).env("RUSTC_BOOTSTRAP", "1").status();
    Some(match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Unable(format!("rustdoc: {status}"))),
        Err(error) => Err(error.into()),
    })
}

/// Documents the libraries of all crates as JSON, with all features: what `cargo doc` has checked is
/// not checked again.
fn document(root: &Path) -> Result<(), Failure> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["doc", "--quiet", "--lib", "--workspace", "--no-deps", "--all-features"])
        .env("RUSTDOC", std::env::current_exe()?)
        .env(AS_RUSTDOC, "1")
        .env(
            "RUSTDOCFLAGS",
            "--cfg docsrs --cap-lints allow -Z unstable-options --output-format json",
        )
        .status()?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Unable("rustdoc failed".to_owned()))
}

/// Returns the public items of a documented crate, one per line.
fn api(one: &Crate, root: &Path) -> Result<String, Failure> {
    let json = files::built(root).join("doc").join(format!("{}.json", one.name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| Failure::Unable(format!("{}: {error}", one.name)))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}
