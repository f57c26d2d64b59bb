//! Directories whose entries are opened without following links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;

/// An entry of a directory, opened.
pub(super) enum Entry {
    Directory(Directory),
    File(File),
}

/// An open directory.
#[cfg(unix)]
pub(super) struct Directory(std::os::fd::OwnedFd);

#[cfg(unix)]
impl Directory {
    /// Opens a directory. Links in the path are followed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};

        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Returns the names that do not begin with a dot, at most one more than `max`.
    pub(super) fn names(&self, max: usize) -> io::Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt;

        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if names.len() > max {
                break;
            }
            if !name.starts_with(b".") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Opens an entry of this directory. Returns `None` for a link, a device, a pipe or a socket.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        use rustix::fs::{AtFlags, FileType, Mode, OFlags};
        use rustix::io::Errno;

        let kind_of = |mode| FileType::from_raw_mode(mode);
        // To open a device may have an effect.
        let listed = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !matches!(kind_of(listed.st_mode), FileType::RegularFile | FileType::Directory) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::openat(&self.0, name, flags | OFlags::CLOEXEC, Mode::empty());
        let opened = match opened {
            // `MLINK` on FreeBSD; `NXIO` for a socket.
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO) => return Ok(None),
            opened => opened?,
        };
        // It may have been replaced since, so the type is read from the open file.
        Ok(match kind_of(rustix::fs::fstat(&opened)?.st_mode) {
            FileType::RegularFile => Some(Entry::File(opened.into())),
            FileType::Directory => Some(Entry::Directory(Self(opened))),
            _ => None,
        })
    }
}

/// A directory by its path, where the system has no open directories.
#[cfg(not(unix))]
pub(super) struct Directory(std::path::PathBuf);

#[cfg(not(unix))]
impl Directory {
    /// Opens a directory. Links in the path are followed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        std::fs::read_dir(path)?;
        Ok(Self(path.into()))
    }

    /// Returns the names that do not begin with a dot, at most one more than `max`.
    pub(super) fn names(&self, max: usize) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            if names.len() > max {
                break;
            }
            if !name.as_encoded_bytes().starts_with(b".") {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens an entry of this directory. Returns `None` for a link, a device, a pipe or a socket.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        let path = self.0.join(name);
        let kind = std::fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() {
            return Ok(Some(Entry::Directory(Self(path))));
        }
        if !kind.is_file() {
            return Ok(None);
        }
        let file = File::open(path)?;
        Ok(file.metadata()?.is_file().then_some(Entry::File(file)))
    }
}
