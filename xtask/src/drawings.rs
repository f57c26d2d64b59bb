//! Drawings of the architecture, generated from the code.

mod crates;
mod graph;
mod request;
mod svg;

use std::fs;

use crate::crates::all;
use crate::{Failure, files, layers};

/// Draws `crates.svg` and `request.svg` in `docs/guide`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let check = files::is_check("drawings", arguments)?;
    let all = all()?;
    let uses = layers::modules(layers::machine(&all)?)?;
    let drawings = [
        ("docs/guide/crates.svg", crates::drawing(&all, &uses)?),
        ("docs/guide/request.svg", request::drawing()?),
    ];
    for (name, drawing) in &drawings {
        let path = files::root().join(name);
        if !check {
            fs::write(path, drawing)?;
        } else if fs::read_to_string(path)? != *drawing {
            let remedy = "run `cargo run -p xtask -- drawings`";
            return Err(Failure::Failed(format!("{name} is not up to date; {remedy}")));
        }
    }
    Ok(())
}
