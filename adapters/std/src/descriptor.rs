use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};

/// An open descriptor that does not block, as long as it is held here.
///
/// The flag belongs to what the descriptor refers to, which other processes may share: a shell and
/// the programs after this one. It is put back at the end.
#[derive(Debug)]
pub(crate) struct Descriptor {
    descriptor: OwnedFd,
    /// The flags to put back, if they were changed.
    before: Option<OFlags>,
    /// It is left as it is: others count on its blocking.
    shared: bool,
}

/// What is written at once where that could block, in bytes: `PIPE_BUF`, for which there is room
/// in a pipe that is ready.
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

    /// One that goes on blocking, if it does, for those who share it. It is to be used when the
    /// system says that it is ready, and not before.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub(crate) const fn shared(descriptor: OwnedFd) -> Self {
        Self { descriptor, before: None, shared: true }
    }

    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// How many bytes may be written at once.
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
            // Nobody is left to be told, and the descriptor may well have lost its other side.
            let _ = fcntl_setfl(&self.descriptor, flags);
        }
    }
}

/// Whether reading and writing wait.
pub(crate) fn blocks(descriptor: impl AsFd) -> io::Result<bool> {
    Ok(!fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK))
}

/// Whether `poll(2)` can wait for the descriptor, and it can be kept from blocking without harm to
/// others: a pipe or a socket. A regular file always blocks, and a terminal is shared with the
/// shell and with standard error.
pub(crate) fn is_pollable(descriptor: impl AsFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
    Ok(matches!(kind, FileType::Fifo | FileType::Socket))
}
