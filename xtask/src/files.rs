//! The files of the workspace.

use std::io;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Folders without handwritten files.
const SKIPPED: [&str; 3] = ["target", "node_modules", "corpus"];

/// Returns the workspace root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns whether the arguments of a command that writes files ask it to compare them instead.
pub(crate) fn is_check(command: &str, arguments: &[&str]) -> Result<bool, Failure> {
    match arguments {
        [] => Ok(false),
        ["--check"] => Ok(true),
        _ => {
            Err(Failure::Unable(format!("unknown arguments: `{command}` takes --check or nothing")))
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Unable(format!("{}: {error}", path.display())))
}

/// Returns the target directory of the workspace in `folder`.
pub(crate) fn built(folder: &Path) -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR");
    folder.join(chosen.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}

/// Returns all files under `root` whose names end in `.extension`, sorted, as paths relative to
/// `root`. Skips hidden folders, build results and packages.
pub(crate) fn with_extension(root: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = folder.join(&name);
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
