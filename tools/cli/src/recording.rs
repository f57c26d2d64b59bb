//! Recordings in files.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_sansio::Tape;

/// Creates a file that only its owner can read, since recordings contain secrets. An existing one
/// is emptied.
///
/// # Errors
///
/// Fails if the file cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Creates a tape that writes each line to a new file immediately, so that no line is lost if the
/// process ends.
///
/// # Errors
///
/// Fails if the file cannot be created.
pub fn tape(path: &Path) -> io::Result<Tape> {
    let mut file = create_private(path)?;
    let mut broken = false;
    Ok(Tape::new(move |line| {
        if !broken && let Err(error) = file.write_all(line) {
            // A recording with a missing line in the middle could not be replayed.
            broken = true;
            let _ = writeln!(io::stderr(), "the recording was stopped: {error}");
        }
    }))
}

/// Returns a function that creates a tape for each connection of a server: a numbered file in
/// `folder`.
///
/// # Errors
///
/// Fails if the folder does not exist and cannot be created.
pub fn tapes_in(folder: &Path) -> io::Result<impl Fn(usize) -> Option<Tape> + Send + Sync + use<>> {
    std::fs::create_dir_all(folder)?;
    let folder: PathBuf = folder.into();
    Ok(move |number| opened(&folder.join(format!("connection-{number}.jsonl"))))
}

/// Returns a function that creates a tape for each connection of a host: `path` for the first, and
/// `path` with a number appended for the others.
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
            // The connection continues without a recording.
            let _ = writeln!(io::stderr(), "cannot record to {}: {error}", path.display());
            None
        }
    }
}
