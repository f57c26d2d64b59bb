use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

/// An open descriptor in non-blocking mode, until it is dropped.
///
/// The mode belongs to the open file description, which other processes may share, such as a shell
/// and the programs that it starts later. Dropping this value restores it.
#[derive(Debug)]
pub(crate) struct Descriptor {
    descriptor: OwnedFd,
    /// The flags to restore, if they were changed.
    before: Option<OFlags>,
    /// Whether the mode is left unchanged, since others rely on blocking.
    shared: bool,
}

/// Bytes per write where a write could block: `PIPE_BUF`, for which a writable pipe has space.
const SHARED_WRITE_MAX: usize = 4096;

impl Descriptor {
    pub(crate) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let flags = fcntl_getfl(&descriptor)?;
        let blocks = !flags.contains(OFlags::NONBLOCK);
        if blocks {
            fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { descriptor, before: blocks.then_some(flags), shared: false })
    }

    /// Creates a descriptor whose mode is left unchanged, for the processes that share it. Use it
    /// only once the system reports it as ready.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub(crate) const fn shared(descriptor: OwnedFd) -> Self {
        Self { descriptor, before: None, shared: true }
    }

    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns how many bytes may be written at once.
    pub(crate) const fn write_max(&self) -> usize {
        if self.shared { SHARED_WRITE_MAX } else { usize::MAX }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if let Some(flags) = self.before {
            // The error cannot be reported, and the peer may well have closed the other end.
            let _ = fcntl_setfl(&self.descriptor, flags);
        }
    }
}

/// Returns whether reading and writing block.
pub(crate) fn blocks(descriptor: impl AsFd) -> io::Result<bool> {
    Ok(!fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK))
}

/// Returns whether the descriptor supports `poll(2)` and can be made non-blocking without harm to
/// others: a pipe or a socket. A regular file always blocks, and a terminal is shared with the
/// shell and with standard error.
pub(crate) fn is_pollable(descriptor: impl AsFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
    Ok(matches!(kind, FileType::Fifo | FileType::Socket))
}
