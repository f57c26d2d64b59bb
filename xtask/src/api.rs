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

/// Returns the public items of a crate, one per line.
fn api(one: &Crate, root: &Path) -> Result<String, Failure> {
    // Features that start with an underscore are for tests.
    let features: Vec<&str> =
        one.features.iter().map(String::as_str).filter(|name| !name.starts_with('_')).collect();
    let target = root.join("target/api");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["rustdoc", "--quiet", "--lib", "--package", &one.name])
        .args(["--no-default-features", "--features", &features.join(",")])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "--cfg", "docsrs", "--cap-lints", "allow"])
        .args(["-Z", "unstable-options", "--output-format", "json"])
        // JSON output is unstable; this enables it on a stable compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .status()?;
    if !status.success() {
        return Err(Failure::Unable(format!("rustdoc failed for {}", one.name)));
    }
    let json = target.join("doc").join(format!("{}.json", one.name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| Failure::Unable(format!("{}: {error}", one.name)))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}
