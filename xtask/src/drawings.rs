//! Drawings of the architecture, generated from the code.

mod crates;
mod graph;
mod overview;
mod request;
mod svg;

use std::fs;

use crate::crates::all;
use crate::{Failure, files, layers};

/// Draws `crates.svg`, `overview.svg` and `request.svg` in `docs/guide`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let all = all()?;
    let uses = layers::modules(layers::machine(&all)?)?;
    let drawings = [
        ("docs/guide/crates.svg", crates::drawing(&all, &uses)?),
        ("docs/guide/overview.svg", overview::drawing()),
        ("docs/guide/request.svg", request::drawing(&all)?),
    ];
    for (name, drawing) in &drawings {
        let path = files::root().join(name);
        match arguments {
            [] => fs::write(path, drawing)?,
            ["--check"] => {
                if fs::read_to_string(path)? != *drawing {
                    let remedy = "run `cargo run -p xtask -- drawings`";
                    let text = format!("{name} is not up to date; {remedy}");
                    return Err(Failure::Failed(text));
                }
            }
            _ => {
                return Err(Failure::Unable(String::from(
                    "unknown arguments: `drawings` takes --check or nothing",
                )));
            }
        }
    }
    if arguments == ["--check"] {
        println!("the drawings are up to date");
    }
    Ok(())
}

/// Returns the file or folder of a module directly below `src`, relative to the workspace root.
fn module_file(src: &str, module: &str) -> String {
    if files::root().join(src).join(module).is_dir() {
        format!("{src}/{module}/")
    } else {
        format!("{src}/{module}.rs")
    }
}
