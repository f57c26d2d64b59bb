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

/// Returns all crates of the workspace, ordered by folder.
pub(crate) fn all() -> Result<Vec<Crate>, Failure> {
    let root = files::root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1"])
        .current_dir(&root)
        .output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Unable(format!("cargo metadata failed: {errors}")));
    }
    let unreadable = |what: &str| Failure::Unable(format!("cargo metadata without {what}"));
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| unreadable("valid JSON"))?;
    let packages = metadata["packages"].as_array().ok_or_else(|| unreadable("packages"))?;
    let mut crates = Vec::new();
    for package in packages {
        crates.push(read(package, &root).ok_or_else(|| unreadable("a package's name or path"))?);
    }
    let names: Vec<String> = crates.iter().map(|it| it.name.clone()).collect();
    for one in &mut crates {
        one.dependencies.retain(|it| names.contains(&it.name) && it.name != one.name);
    }
    crates.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(crates)
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
