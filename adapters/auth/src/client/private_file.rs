//! Files that only their owner can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, fs, io, thread};

#[cfg(unix)]
use rustix::fs::OFlags;

use super::sign::KeyError;

/// The longest file that is read, in bytes. 16 MiB: far more than a store writes.
const LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// A file with credentials or a key could not be read or written. No error contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// Other users can read the file, and may have done so.
    #[error(
        "other users can read `{}`: make it private (`chmod 600`); if they may have done so, remove \
         it, and sign in again",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file, or its lock (which ends in `.lock`), may belong to another user: it is a symbolic
    /// link, or has another owner, or others can write to its folder. Its content is not used.
    #[error("`{}` is not trusted: {reason}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why it is not trusted, and what to do.
        reason: String,
    },
    /// The content of the file was not written by a store. The file is moved aside, so that the
    /// next call starts with an empty one.
    #[error("`{}` is damaged{}", path.display(), DisplayAside(aside.as_deref()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The new path of the file; `None` if it was not moved, because too many were moved
        /// before.
        aside: Option<PathBuf>,
    },
    /// The file was written by a newer version of this store. It is left unchanged.
    #[error("`{}` was written by a newer version of this program", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The core uses a kind of credential that is unknown to this store, which is older than the
    /// core.
    #[error("unknown kind of credential; update this store to the version of the core")]
    UnknownKey,
    /// The file does not contain a usable key. It is left unchanged.
    #[error("`{}`: {fault}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why its content is invalid.
        fault: KeyError,
    },
    /// The operating system failed, or another process has held the lock for too long.
    #[error("`{}`: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl PrivateFileError {
    pub(super) fn system(path: &Path, error: io::Error) -> Self {
        Self::System { path: path.to_path_buf(), error }
    }

    /// Creates the error for the file at `path`.
    pub(super) fn from_read_error(path: &Path, why: ReadError) -> Self {
        let path = path.to_path_buf();
        match why {
            ReadError::Exposed => Self::Exposed { path },
            ReadError::Untrusted(reason) => Self::Untrusted { path, reason: reason.to_string() },
            ReadError::TooLong => Self::Damaged { path, aside: None },
            ReadError::System(error) => Self::System { path, error },
        }
    }
}

struct DisplayAside<'a>(Option<&'a Path>);

impl fmt::Display for DisplayAside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(aside) => write!(f, " and was moved to `{}`", aside.display()),
            None => {
                f.write_str("; too many files were moved aside before: inspect and remove them")
            }
        }
    }
}

/// Why a file is not trusted with secrets, whatever its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(unix), expect(dead_code, reason = "files have no owners there"))]
pub(crate) enum UntrustedPath {
    /// It is a symbolic link, whose creator decides which file is read and replaced.
    #[error("it is a symbolic link; give the path of the file itself")]
    Link,
    /// It belongs to another user, who can read and change it.
    #[error("it belongs to user {owner}, and this program runs as user {user}")]
    Owner {
        /// The user id of its owner.
        owner: u32,
        /// The effective user id of this process.
        user: u32,
    },
    /// Its folder belongs to another user, who can replace the file.
    #[error("its folder `{}` belongs to user {owner}; use one of your own", folder.display())]
    FolderOwner {
        /// The folder.
        folder: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// Other users can write to its folder, and so replace the file.
    #[error("others can write to its folder `{}`: `chmod go-w` it, or use another one", .0.display())]
    FolderWritable(PathBuf),
}

/// Why a file could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// Other users can read it.
    #[cfg_attr(not(unix), expect(dead_code, reason = "files have no modes there"))]
    Exposed,
    /// It may belong to another user.
    Untrusted(UntrustedPath),
    /// It is longer than any file written by a store.
    TooLong,
    /// The operating system failed.
    System(io::Error),
}

/// Creates the folder of a file, accessible to its owner only, if it does not exist.
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

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let mut options = OpenOptions::new();
    options.read(true);
    // A FIFO or device would block, and may be writable by others.
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
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file").into());
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

/// Opens a regular file of this user, without following links.
pub(crate) fn open(options: &OpenOptions, path: &Path) -> Result<File, ReadError> {
    let file = options.open(path).map_err(|error| match is_link(&error) {
        true => ReadError::Untrusted(UntrustedPath::Link),
        false => ReadError::System(error),
    })?;
    #[cfg(unix)]
    check_owner(std::os::unix::fs::MetadataExt::uid(&file.metadata()?), user())?;
    Ok(file)
}

/// Returns whether an error means that a link was not followed.
#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    use rustix::io::Errno;

    // `MLINK` on FreeBSD.
    [Errno::LOOP, Errno::MLINK].iter().any(|it| Some(it.raw_os_error()) == error.raw_os_error())
}

#[cfg(not(unix))]
const fn is_link(_: &io::Error) -> bool {
    false
}

/// Returns the effective user id of this process.
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

/// Checks that only this user and root can replace the file.
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
    // In a sticky folder no user can remove or rename files of others, and files created by others
    // fail the owner check.
    if mode & 0o022 != 0 && mode & STICKY == 0 {
        return Err(UntrustedPath::FolderWritable(folder.to_path_buf()));
    }
    Ok(())
}

/// Atomically replaces the content of a file. Not to be called concurrently.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = sibling(path, ".new");
    // Remove a leftover of a process that died instead of writing to it, as it may have another
    // mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&new)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // The earlier error is returned.
        let _ = fs::remove_file(&new);
        return replaced;
    }
    sync_parent(path)
}

/// Makes new files accessible to their owner only, and does not follow links.
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

/// Syncs the folder, so that the replacement survives a power failure.
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

/// Returns a path in the same folder, with a suffix appended to the name.
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

    /// A temporary folder of a test, removed on drop. It is not created here.
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

// ------------------------------------------------------------------ lock

/// How long to wait for another process that writes. Two seconds: a write takes milliseconds, so a
/// longer holder is stuck, and waiting blocks a thread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The first pause between attempts: about the duration of a write.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause between attempts: an exchange with a server takes about as long.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Exclusive access to a file until it is dropped. It is released when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on the file at `path`, which others hold while they write.
    pub(crate) fn acquire(path: &Path) -> Result<Self, ReadError> {
        Self::acquire_within(path, WRITE_TIMEOUT, || true)
    }

    /// Waits for the lock on the file at `path`, as long as `waits` returns true and at most for
    /// `patience`. The lock file is not removed: otherwise two processes could each hold a file of
    /// that name.
    #[allow(clippy::disallowed_methods, reason = "only the core must not read the time")]
    pub(crate) fn acquire_within(
        path: &Path,
        patience: Duration,
        waits: impl Fn() -> bool,
    ) -> Result<Self, ReadError> {
        let until = Instant::now() + patience;
        let mut pause = PAUSE_MIN;
        loop {
            if let Some(file) = try_lock(path)? {
                return Ok(Self { _file: file });
            }
            if !waits() || Instant::now() >= until {
                break;
            }
            thread::sleep(pause);
            // The pause grows with the time that has passed.
            pause = (pause + pause / 16).min(PAUSE_MAX);
        }
        let reason = "another process has held the lock for too long";
        Err(io::Error::new(io::ErrorKind::TimedOut, reason).into())
    }
}

#[cfg(not(windows))]
fn open_lock(path: &Path) -> Result<File, ReadError> {
    let mut options = OpenOptions::new();
    open(private(options.write(true).create(true).truncate(false)), path)
}

// The standard library has file locks since 1.89.
#[cfg(unix)]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let file = open_lock(path)?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

/// A file without sharing cannot be opened twice.
#[cfg(windows)]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    use std::os::windows::fs::OpenOptionsExt;

    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = OpenOptions::new();
    private(options.write(true).create(true).truncate(false).share_mode(0));
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// On other systems the file is only read again right before it is written.
#[cfg(not(any(unix, windows)))]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    open_lock(path).map(Some)
}
