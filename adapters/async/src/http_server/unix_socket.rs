use std::fs::{Metadata, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{fs, io, thread, time::Duration};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// Only processes of the same user connect.
const MODE: u32 = 0o600;
/// Pending connections. 4,096, the default limit of Linux, to which the system reduces it.
const BACKLOG: i32 = 4096;
/// How long another process may hold the lock of the directory, which takes it microseconds to use.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// A Unix-domain socket that a server listens on, and its file.
///
/// Convert it to an HTTP listener with `try_from`. The file is removed when the server stops or the
/// value is dropped. A process that is killed leaves the file behind; the next
/// [`bind`](Self::bind) replaces it.
#[derive(Debug)]
pub struct UnixSocket {
    // Dropped in this order: see `UnixSocketFile`.
    file: UnixSocketFile,
    listener: UnixListener,
}

/// The file of a [`UnixSocket`]. Dropping it removes the file, unless it has been replaced.
///
/// Drop it before the listener: while the socket is open, the system does not give its inode number
/// to another file, so the comparison is reliable.
#[derive(Debug)]
pub(crate) struct UnixSocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Why a server cannot listen on a Unix-domain socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixSocketError {
    /// A process listens on the socket.
    #[error("another server listens on {}", .path.display())]
    InUse {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The path belongs to a file of another kind, which is never removed.
    #[error("{} exists and is not a socket", .path.display())]
    NotASocket {
        /// The path of the file.
        path: PathBuf,
    },
    /// The system refused, for example because the directory is missing or not writable, or the
    /// path exceeds its limit, which is about 100 bytes.
    #[error("cannot listen on {}: {cause}", .path.display())]
    System {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl UnixSocket {
    /// Listens on a new socket at `path`, which only processes of the same user, and of root, can
    /// connect to. A socket that exists there is replaced if no process listens on it.
    ///
    /// Place it in a directory that other users cannot write to, such as the one that
    /// `XDG_RUNTIME_DIR` names: they could put their own socket in its place.
    ///
    /// # Errors
    ///
    /// See [`UnixSocketError`].
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, UnixSocketError> {
        Self::bind_with_mode(path, MODE)
    }

    /// Like [`bind`](Self::bind), with these permissions of the file: connecting requires write
    /// permission. 0o660 admits the group of the file as well.
    ///
    /// # Errors
    ///
    /// See [`UnixSocketError`].
    pub fn bind_with_mode(path: impl AsRef<Path>, mode: u32) -> Result<Self, UnixSocketError> {
        let path = path.as_ref();
        let failed = |cause| UnixSocketError::System { path: path.to_owned(), cause };
        // The current directory may change before the file is removed.
        let absolute = std::path::absolute(path).map_err(failed)?;
        // A socket that is bound and does not listen yet looks stale to others.
        let _lock = lock_directory(&absolute).map_err(failed)?;
        let address = SocketAddrUnix::new(path).map_err(|error| failed(error.into()))?;
        let socket = open_socket().map_err(failed)?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                remove_stale(path, &address)?;
                rustix::net::bind(&socket, &address).map_err(|error| failed(error.into()))?;
            }
            Err(error) => return Err(failed(error.into())),
        }
        // From here on, the file is removed if anything fails.
        let metadata = fs::symlink_metadata(&absolute).map_err(failed)?;
        let file = UnixSocketFile::new(absolute, &metadata);
        // Before anyone can connect.
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        rustix::net::listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
        Ok(Self { file, listener: socket.into() })
    }

    /// Returns the absolute path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the listener, for other servers, and the file.
    #[must_use]
    pub(crate) fn into_parts(self) -> (UnixListener, UnixSocketFile) {
        (self.listener, self.file)
    }
}

impl UnixSocketFile {
    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        Self { path, device: metadata.dev(), inode: metadata.ino() }
    }

    fn is_ours(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|it| (it.dev(), it.ino()) == (self.device, self.inode))
    }
}

impl Drop for UnixSocketFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // The error cannot be reported, and the next server replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open_socket() -> io::Result<OwnedFd> {
    // Children do not inherit it.
    #[cfg(not(target_vendor = "apple"))]
    return Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?);
    #[cfg(target_vendor = "apple")]
    {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        Ok(socket)
    }
}

/// Locks the directory of `path` against other processes that bind sockets in it, until the
/// descriptor is dropped. The lock leaves no file behind.
fn lock_directory(path: &Path) -> io::Result<OwnedFd> {
    let directory = path.parent().unwrap_or(path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => thread::sleep(LOCK_INTERVAL),
            Err(Errno::INTR) => {}
            locked => return Ok(locked.map(|()| directory)?),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds a lock on the directory"))
}

/// Removes a socket that no process listens on.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), UnixSocketError> {
    let failed = |cause| UnixSocketError::System { path: path.to_owned(), cause };
    if !fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
        return Err(UnixSocketError::NotASocket { path: path.to_owned() });
    }
    let probe = open_socket().map_err(failed)?;
    // A full backlog would block the probe.
    rustix::io::ioctl_fionbio(&probe, true).map_err(|error| failed(error.into()))?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed),
        Ok(()) | Err(Errno::AGAIN) => Err(UnixSocketError::InUse { path: path.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}
