//! The crates of the workspace and their dependencies, according to cargo.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::toolchain::Toolchain;
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
    let packages = packages()?;
    let names: Vec<&str> = packages.iter().filter_map(|it| it["name"].as_str()).collect();
    let mut crates = Vec::new();
    for package in &packages {
        crates.push(read(package, &names).ok_or_else(unreadable)?);
    }
    crates.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(crates)
}

/// Returns the targets of all crates of the workspace.
pub(crate) fn targets() -> Result<Vec<Target>, Failure> {
    let mut all = Vec::new();
    for package in packages()? {
        for target in package["targets"].as_array().ok_or_else(unreadable)? {
            all.push(target_of(&package, target).ok_or_else(unreadable)?);
        }
    }
    Ok(all)
}

fn packages() -> Result<Vec<Value>, Failure> {
    let mut command = Toolchain::Own.cargo();
    command.args(["metadata", "--no-deps", "--format-version=1"]).current_dir(files::root());
    let output = command.output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Unable(format!("cargo metadata failed: {errors}")));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|_| unreadable())?;
    metadata["packages"].as_array().cloned().ok_or_else(unreadable)
}

fn unreadable() -> Failure {
    Failure::Unable("cargo metadata without a package's name, path, targets or dependencies".into())
}

fn target_of(package: &Value, target: &Value) -> Option<Target> {
    Some(Target {
        package: package["name"].as_str()?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        kind: target["kind"][0].as_str()?.to_owned(),
        source: relative(&target["src_path"])?,
        tested: target["test"].as_bool()?,
        doctested: target["doctest"].as_bool()?,
    })
}

/// Returns a path relative to the workspace root.
fn relative(path: &Value) -> Option<PathBuf> {
    Some(Path::new(path.as_str()?).strip_prefix(files::root()).ok()?.to_path_buf())
}

/// Reads a package; `names` are those of the workspace.
fn read(package: &Value, names: &[&str]) -> Option<Crate> {
    let name = package["name"].as_str()?;
    let mut dependencies: Vec<Dependency> = Vec::new();
    for dependency in package["dependencies"].as_array()?.iter().filter(|it| it["kind"].is_null()) {
        let features = dependency["features"].as_array()?.iter();
        dependencies.push(Dependency {
            name: dependency["name"].as_str()?.to_owned(),
            optional: dependency["optional"].as_bool()?,
            features: features.filter_map(|it| it.as_str().map(String::from)).collect(),
        });
    }
    dependencies.retain(|it| names.contains(&it.name.as_str()) && it.name != name);
    Some(Crate {
        name: name.to_owned(),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        published: package["publish"].is_null(),
        folder: relative(&package["manifest_path"])?.parent()?.to_path_buf(),
        dependencies,
    })
}
