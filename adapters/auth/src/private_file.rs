//! Files that only their owner reads.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use rustix::fs::OFlags;

/// The longest file that is read, in bytes. 16 MiB: far more than a store writes.
const LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// A file is not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Others can read it.
    Exposed,
    /// It is longer than any that was written here.
    TooLong,
    /// The operating system says so.
    System(io::Error),
}

/// Makes the folder that a file is to be in, for its owner alone, where there is none.
pub(crate) fn create_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)
        }
        _ => Ok(()),
    }
}

/// What is in a file; `None` where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Unread> {
    let mut options = OpenOptions::new();
    options.read(true);
    // What is no file may have others write to it, and would be waited for.
    #[cfg(unix)]
    set_flags(&mut options, OFlags::NONBLOCK);
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file").into());
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
        return Err(Unread::Exposed);
    }
    if metadata.len() > LENGTH_MAX {
        return Err(Unread::TooLong);
    }
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// Puts a text in the place of what a file had, all or nothing. One process at a time.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    // What is left of a process that died. It must not be written to: it may have another mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&new)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // The error that comes before this one is told.
        let _ = fs::remove_file(&new);
        return replaced;
    }
    sync_folder_of(path)
}

/// Has files made for their owner alone, and where they are said to be: no link leads elsewhere.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        set_flags(options, OFlags::NONBLOCK | OFlags::NOFOLLOW);
    }
    options
}

#[cfg(unix)]
fn set_flags(options: &mut OpenOptions, flags: OFlags) {
    let flags = flags.bits().cast_signed();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
}

/// After a loss of power the file is the new one only if its folder knows.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A path in the same folder, of the same name with something behind it.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(suffix);
    beside.into()
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder of a test's own, which goes with it. It is not made.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let name = format!("mcp-sansio-auth-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
