//! The crates of the workspace and their dependencies, according to cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Failure, files};

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether the crate is published to a registry.
    pub(crate) published: bool,
    /// Its folder, relative to the workspace root.
    pub(crate) folder: PathBuf,
    /// Its features, in order.
    pub(crate) features: Vec<String>,
    /// Its dependencies in the workspace, without dev-dependencies.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency of a crate.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether a feature enables it.
    pub(crate) optional: bool,
    /// The features that are requested.
    pub(crate) features: Vec<String>,
}

/// A target of a crate, which `cargo test` builds or reads.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) package: String,
    pub(crate) name: String,
    /// `lib`, `proc-macro`, `bin`, `test`, `example`, `bench` or `custom-build`.
    pub(crate) kind: String,
    /// The file of its root module, relative to the workspace root.
    pub(crate) source: PathBuf,
    /// Whether its tests are built.
    pub(crate) tested: bool,
    /// Whether the examples of its documentation are built.
    pub(crate) doctested: bool,
}

/// Returns all crates of the workspace, ordered by folder.
pub(crate) fn all() -> Result<Vec<Crate>, Failure> {
    let root = files::root();
    let mut crates = Vec::new();
    for package in packages(&root)? {
        let read = read(&package, &root);
        crates.push(read.ok_or_else(|| unreadable("a package's name or path"))?);
    }
    let names: Vec<String> = crates.iter().map(|it| it.name.clone()).collect();
    for one in &mut crates {
        one.dependencies.retain(|it| names.contains(&it.name) && it.name != one.name);
    }
    crates.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(crates)
}

/// Returns the targets of all crates of the workspace.
pub(crate) fn targets() -> Result<Vec<Target>, Failure> {
    let root = files::root();
    let mut all = Vec::new();
    for package in packages(&root)? {
        let targets = package["targets"].as_array().ok_or_else(|| unreadable("targets"))?;
        for target in targets {
            let target = target_of(&package, target, &root);
            all.push(target.ok_or_else(|| unreadable("a target's name or path"))?);
        }
    }
    Ok(all)
}

fn packages(root: &Path) -> Result<Vec<Value>, Failure> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Unable(format!("cargo metadata failed: {errors}")));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| unreadable("valid JSON"))?;
    metadata["packages"].as_array().cloned().ok_or_else(|| unreadable("packages"))
}

fn unreadable(what: &str) -> Failure {
    Failure::Unable(format!("cargo metadata without {what}"))
}

fn target_of(package: &Value, target: &Value, root: &Path) -> Option<Target> {
    let source = Path::new(target["src_path"].as_str()?);
    Some(Target {
        package: package["name"].as_str()?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        kind: target["kind"][0].as_str()?.to_owned(),
        source: source.strip_prefix(root).ok()?.to_path_buf(),
        tested: target["test"].as_bool()?,
        doctested: target["doctest"].as_bool()?,
    })
}

fn read(package: &Value, root: &Path) -> Option<Crate> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let mut dependencies: Vec<Dependency> = Vec::new();
    for dependency in package["dependencies"].as_array()? {
        if !dependency["kind"].is_null() {
            continue;
        }
        let name = dependency["name"].as_str()?.to_owned();
        let optional = dependency["optional"].as_bool()?;
        let features = dependency["features"].as_array()?.iter();
        let features = features.filter_map(|it| it.as_str().map(String::from)).collect();
        dependencies.push(Dependency { name, optional, features });
    }
    Some(Crate {
        name: package["name"].as_str()?.to_owned(),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        published: package["publish"].is_null(),
        features: package["features"].as_object()?.keys().cloned().collect(),
        folder: manifest.parent()?.strip_prefix(root).ok()?.to_path_buf(),
        dependencies,
    })
}
