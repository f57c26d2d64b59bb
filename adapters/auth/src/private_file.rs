//! Files that only their owner reads.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use rustix::fs::OFlags;

/// The longest file that is read, in bytes. 16 MiB: far more than a store writes.
const LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// Why a file is not trusted with secrets, whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UntrustedPath {
    /// It is a symbolic link: whoever made that decides which file is read and replaced.
    #[error("it is a symbolic link; give the path of the file itself")]
    Link,
    /// It belongs to another user, who can read and change it.
    #[error("it belongs to user {owner}, and this program runs as user {user}")]
    Owner {
        /// Whose it is: the number of the user.
        owner: u32,
        /// Who this process acts as.
        user: u32,
    },
    /// Its folder belongs to another user, who can put another file in its place.
    #[error("its folder `{}` belongs to user {owner}; use one of your own", folder.display())]
    FolderOwner {
        /// The folder.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others can write to its folder, and so put another file in its place.
    #[error("others can write to its folder `{}`: `chmod go-w` it, or use another one", .0.display())]
    FolderWritable(PathBuf),
}

/// A file is not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// Others can read it.
    Exposed,
    /// It may be somebody else's.
    Untrusted(UntrustedPath),
    /// It is longer than any that was written here.
    TooLong,
    /// The operating system says so.
    System(io::Error),
}

/// Makes the folder that a file is to be in, for its owner alone, where there is none.
pub(crate) fn create_parent(path: &Path) -> io::Result<()> {
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
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let mut options = OpenOptions::new();
    options.read(true);
    // What is no file may have others write to it, and would be waited for.
    #[cfg(unix)]
    set_flags(&mut options, OFlags::NONBLOCK | OFlags::NOFOLLOW);
    let file = match open(&options, path) {
        Err(ReadError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file").into());
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
        return Err(ReadError::Exposed);
    }
    check_parent(path)?;
    if metadata.len() > LENGTH_MAX {
        return Err(ReadError::TooLong);
    }
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// Opens what is a file of this user's, and no link to one.
pub(crate) fn open(options: &OpenOptions, path: &Path) -> Result<File, ReadError> {
    let file = options.open(path).map_err(|error| match is_link(&error) {
        true => ReadError::Untrusted(UntrustedPath::Link),
        false => ReadError::System(error),
    })?;
    #[cfg(unix)]
    check_owner(std::os::unix::fs::MetadataExt::uid(&file.metadata()?), user())?;
    Ok(file)
}

/// Whether an error says that a link was not followed.
#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    use rustix::io::Errno;

    // The latter on FreeBSD.
    [Errno::LOOP, Errno::MLINK].iter().any(|it| Some(it.raw_os_error()) == error.raw_os_error())
}

#[cfg(not(unix))]
const fn is_link(_: &io::Error) -> bool {
    false
}

/// Who this process acts as.
#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(unix)]
const fn check_owner(owner: u32, user: u32) -> Result<(), ReadError> {
    if owner == user {
        Ok(())
    } else {
        Err(ReadError::Untrusted(UntrustedPath::Owner { owner, user }))
    }
}

/// Checks that nobody but this user and the system can put another file in the place of one.
#[cfg(unix)]
pub(crate) fn check_parent(path: &Path) -> Result<(), ReadError> {
    use std::os::unix::fs::MetadataExt;

    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let metadata = fs::metadata(folder)?;
    check_folder(folder, metadata.uid(), metadata.mode(), user()).map_err(ReadError::Untrusted)
}

#[cfg(not(unix))]
pub(crate) fn check_parent(_: &Path) -> Result<(), ReadError> {
    Ok(())
}

#[cfg(unix)]
fn check_folder(folder: &Path, owner: u32, mode: u32, user: u32) -> Result<(), UntrustedPath> {
    const ROOT: u32 = 0;
    const STICKY: u32 = 0o1000;
    if owner != user && owner != ROOT {
        return Err(UntrustedPath::FolderOwner { folder: folder.to_path_buf(), owner });
    }
    // In a sticky folder nobody removes or renames files of others, and those that others have put
    // there are not theirs to be trusted.
    if mode & 0o022 != 0 && mode & STICKY == 0 {
        return Err(UntrustedPath::FolderWritable(folder.to_path_buf()));
    }
    Ok(())
}

/// Puts a text in the place of what a file had, all or nothing. One process at a time.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = sibling(path, ".new");
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
    sync_parent(path)
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
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(not(unix))]
fn sync_parent(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A path in the same folder, of the same name with something behind it.
pub(crate) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(suffix);
    beside.into()
}

impl From<io::Error> for ReadError {
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

    #[cfg(unix)]
    #[test]
    fn a_file_must_belong_to_the_user_and_its_folder_to_the_user_or_root() {
        let folder = Path::new("folder");
        assert!(check_owner(7, 7).is_ok());
        for (owner, user) in [(7, 8), (0, 7), (7, 0)] {
            let judged = check_owner(owner, user);
            let reason = UntrustedPath::Owner { owner, user };
            assert!(matches!(judged, Err(ReadError::Untrusted(it)) if it == reason), "{owner}");
        }
        for (owner, mode) in [(7, 0o40700), (7, 0o40755), (0, 0o40755), (0, 0o41777)] {
            assert_eq!(check_folder(folder, owner, mode, 7), Ok(()), "{owner} {mode:o}");
        }
        for mode in [0o40700, 0o41777] {
            let reason = UntrustedPath::FolderOwner { folder: folder.into(), owner: 8 };
            assert_eq!(check_folder(folder, 8, mode, 7), Err(reason), "{mode:o}");
        }
        for mode in [0o40770, 0o40702, 0o40777] {
            let reason = UntrustedPath::FolderWritable(folder.into());
            assert_eq!(check_folder(folder, 7, mode, 7), Err(reason), "{mode:o}");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
