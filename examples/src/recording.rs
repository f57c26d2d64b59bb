//! Recordings in files.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_sansio::recording::Tape;

/// A tape that is kept in a new file, line by line, so that nothing is lost with the process.
///
/// # Errors
///
/// The file cannot be made.
pub fn tape(path: &Path) -> io::Result<Tape> {
    let mut file = File::create(path)?;
    let mut broken = false;
    Ok(Tape::new(move |line| {
        if !broken && let Err(error) = file.write_all(line) {
            // A line that is missing in the middle would make the rest worthless.
            broken = true;
            let _ = writeln!(io::stderr(), "the recording ends here: {error}");
        }
    }))
}

/// What a server gives each connection that begins: a file in `folder`, by its number.
///
/// # Errors
///
/// The folder is not there, and cannot be made.
pub fn tapes_in(folder: &Path) -> io::Result<impl Fn(usize) -> Option<Tape> + Send + Sync + use<>> {
    std::fs::create_dir_all(folder)?;
    let folder: PathBuf = folder.into();
    Ok(move |number| opened(&folder.join(format!("connection-{number}.jsonl"))))
}

/// What a host gives each connection that begins: `path` for the first one, and the same with a
/// number behind it for others.
pub fn tapes_at(path: &Path) -> impl Fn(usize) -> Option<Tape> + Send + Sync + use<> {
    let path: PathBuf = path.into();
    move |number| match number {
        1 => opened(&path),
        _ => {
            let mut name = path.clone().into_os_string();
            name.push(format!(".{number}"));
            opened(Path::new(&name))
        }
    }
}

fn opened(path: &Path) -> Option<Tape> {
    match tape(path) {
        Ok(tape) => Some(tape),
        Err(error) => {
            // The connection matters more than its recording.
            let _ = writeln!(io::stderr(), "cannot record to {}: {error}", path.display());
            None
        }
    }
}
