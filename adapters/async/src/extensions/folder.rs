use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mcp_sansio_extensions::skills::{SkillSet, SkillSetBuilder, SkillSetError};

/// Reads a folder of skills from disk: every directory in it that contains a `SKILL.md` is a skill.
///
/// The files are read into memory, so that entries and files always agree; to serve a later state
/// of the folder, read it again and [replace](mcp_sansio_extensions::skills::ServedSkills::replace) the set. Reading
/// blocks: do it at the start, or on a thread that may block.
///
/// ```
/// use mcp_sansio_async::names::skills::{ServedSkills, SkillFolder};
/// use mcp_sansio_handlers::Server;
///
/// # let path = std::env::temp_dir().join(format!("skill-folder-{}", std::process::id()));
/// # std::fs::create_dir_all(path.join("refunds"))?;
/// # std::fs::write(path.join("refunds/SKILL.md"), "---\nname: refunds\ndescription: d\n---\n")?;
/// let skills = ServedSkills::new(SkillFolder::new(&path).read()?);
/// let server = skills.register(Server::new("shop", "1.0.0"));
/// // Later, when the folder has changed:
/// skills.replace(SkillFolder::new(&path).read()?);
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Names that begin with a dot are left out, such as `.git` and `.env`. Symbolic links are refused:
/// they could publish files from outside of the folder. Within the bounds below nothing else is
/// left out, so that a host finds every file that a skill mentions.
#[derive(Clone, Debug)]
#[must_use = "call `read`"]
pub struct SkillFolder {
    path: PathBuf,
    base: Option<String>,
    unlisted: Vec<String>,
    files_max: usize,
    bytes_max: u64,
    depth_max: usize,
}

/// The default of [`SkillFolder::files_max`]. 4,096: eight skills of the largest size, and hundreds
/// of usual ones.
const FILES_MAX: usize = 4096;

/// The default of [`SkillFolder::bytes_max`], in bytes. 64 MiB: four skills of the largest size,
/// and little for the memory of a server.
const BYTES_MAX: u64 = 64 << 20;

/// The default of [`SkillFolder::depth_max`]. 16: some levels for the organization, some in a
/// skill.
const DEPTH_MAX: usize = 16;

/// Why a folder of skills could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFolderError {
    /// A file or a directory could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is a symbolic link, a device, a pipe or a socket. Replace it with a file, or remove
    /// it.
    #[error("{}: neither a file nor a directory; symbolic links are not followed", .0.display())]
    Special(PathBuf),
    /// A name is not UTF-8.
    #[error("{}: the name is not UTF-8", .0.display())]
    Name(PathBuf),
    /// There are more files and directories than [`SkillFolder::files_max`].
    #[error("the folder has more than {0} files and directories")]
    TooManyFiles(usize),
    /// The files are larger than [`SkillFolder::bytes_max`].
    #[error("the folder has more than {0} bytes")]
    TooLarge(u64),
    /// There are more levels of directories than [`SkillFolder::depth_max`].
    #[error("{}: more than {limit} levels of directories", path.display())]
    TooDeep {
        /// The first directory beyond the limit.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// The files are not skills that can be served.
    #[error(transparent)]
    Skills(#[from] SkillSetError),
}

impl SkillFolder {
    /// Creates a reader of the folder at `path`, with URIs that begin with `skill://`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (base, unlisted) = (None, Vec::new());
        let (files_max, bytes_max, depth_max) = (FILES_MAX, BYTES_MAX, DEPTH_MAX);
        Self { path: path.into(), base, unlisted, files_max, bytes_max, depth_max }
    }

    /// Sets the beginning of all URIs: see [`SkillSetBuilder::base`].
    pub fn base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Leaves a skill out of the listing: see [`SkillSetBuilder::unlisted`].
    pub fn unlisted(mut self, skill: impl Into<String>) -> Self {
        self.unlisted.push(skill.into());
        self
    }

    /// Sets the most files and directories. 4,096 by default.
    pub const fn files_max(mut self, files: usize) -> Self {
        self.files_max = files;
        self
    }

    /// Sets the most bytes of all files, which stay in memory. 64 MiB by default.
    pub const fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets the most levels of directories. 16 by default.
    pub const fn depth_max(mut self, levels: usize) -> Self {
        self.depth_max = levels;
        self
    }

    /// Reads the folder. Blocks.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is beyond a bound, or the files are not skills: see
    /// [`SkillFolderError`].
    pub fn read(&self) -> Result<SkillSet, SkillFolderError> {
        let mut reader = Reader { folder: self, files: 0, bytes: 0 };
        let mut builder = SkillSet::builder();
        if let Some(base) = &self.base {
            builder = builder.base(base);
        }
        for skill in &self.unlisted {
            builder = builder.unlisted(skill);
        }
        let root = Directory::open(&self.path).map_err(|source| unreadable(&self.path, source))?;
        builder = reader.directory(builder, &root, &self.path, "", 0)?;
        Ok(builder.build()?)
    }
}

struct Reader<'f> {
    folder: &'f SkillFolder,
    files: usize,
    bytes: u64,
}

impl Reader<'_> {
    /// Adds the files below a directory. Each name is opened in the open directory: if a directory
    /// or file is replaced meanwhile, the content of the original or an error is the result, never
    /// a file outside of the folder.
    fn directory(
        &mut self,
        mut builder: SkillSetBuilder,
        directory: &Directory,
        path: &Path,
        above: &str,
        depth: usize,
    ) -> Result<SkillSetBuilder, SkillFolderError> {
        if depth > self.folder.depth_max {
            let (path, limit) = (path.into(), self.folder.depth_max);
            return Err(SkillFolderError::TooDeep { path, limit });
        }
        let rest = self.folder.files_max - self.files;
        let mut names = directory.names(rest).map_err(|source| unreadable(path, source))?;
        if names.len() > rest {
            return Err(SkillFolderError::TooManyFiles(self.folder.files_max));
        }
        self.files += names.len();
        // The order of a directory differs between file systems.
        names.sort_unstable();
        for name in names {
            let path = path.join(&name);
            let entry = directory.entry(&name).map_err(|source| unreadable(&path, source))?;
            let Some(entry) = entry else { return Err(SkillFolderError::Special(path)) };
            let Ok(name) = name.into_string() else { return Err(SkillFolderError::Name(path)) };
            let below = format!("{above}{name}");
            builder = match entry {
                Entry::Directory(inner) => {
                    let builder = builder.directory(&below);
                    self.directory(builder, &inner, &path, &format!("{below}/"), depth + 1)?
                }
                Entry::File(file) => self.file(builder, file, &path, below)?,
            };
        }
        Ok(builder)
    }

    fn file(
        &mut self,
        builder: SkillSetBuilder,
        file: File,
        path: &Path,
        below: String,
    ) -> Result<SkillSetBuilder, SkillFolderError> {
        let limit = self.folder.bytes_max;
        let mut bytes = Vec::new();
        // One byte more than the bound shows that there is more.
        let rest = (limit - self.bytes).saturating_add(1);
        file.take(rest).read_to_end(&mut bytes).map_err(|source| unreadable(path, source))?;
        self.bytes += bytes.len() as u64;
        if self.bytes > limit {
            return Err(SkillFolderError::TooLarge(limit));
        }
        Ok(builder.file(below, bytes))
    }
}

fn unreadable(path: &Path, source: io::Error) -> SkillFolderError {
    SkillFolderError::Io { path: path.into(), source }
}

// ------------------------------------------------------------------ directories whose entries are opened without following links

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
pub(super) struct Directory(PathBuf);

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("skills-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn with(self, path: &str, text: &str) -> Self {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        fn skill(self, path: &str) -> Self {
            let name = path.rsplit('/').next().unwrap();
            let text = format!("---\nname: {name}\ndescription: About {name}\n---\n");
            self.with(&format!("{path}/SKILL.md"), &text)
        }

        fn reader(&self) -> SkillFolder {
            SkillFolder::new(&self.0)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn every_directory_with_a_skill_file_is_a_skill() {
        let folder = Folder::new()
            .skill("billing/refunds")
            .with("billing/refunds/examples/email.md", "Dear customer")
            .with("billing/refunds/.env", "SECRET=1")
            .with("README.md", "About this folder")
            .skill("git-workflow");
        fs::create_dir(folder.0.join("git-workflow/empty")).unwrap();
        let skills = folder.reader().unlisted("git-workflow/SKILL.md").read().unwrap();
        let uris: Vec<_> = skills.skills().map(|skill| skill.uri.as_str()).collect();
        assert_eq!(uris, ["skill://billing/refunds/SKILL.md", "skill://git-workflow/SKILL.md"]);
        let files = skills.get(uris[0]).unwrap().files();
        let files: Vec<_> = files.iter().map(|file| file.uri.as_str()).collect();
        assert_eq!(files, [uris[0], "skill://billing/refunds/examples/email.md"]);
        assert_eq!(skills.paths_outside(), ["README.md"]);
        let other = folder.reader().base("github://o/r").read().unwrap();
        assert!(other.get("github://o/r/git-workflow/SKILL.md").is_some());
    }

    #[test]
    fn what_cannot_be_served_is_named() {
        let folder = Folder::new().with("refunds/SKILL.md", "no frontmatter");
        let error = folder.reader().read().unwrap_err();
        assert!(matches!(&error, SkillFolderError::Skills(_)), "{error:?}");
        assert!(error.to_string().contains("refunds/SKILL.md"), "{error}");
        let missing = SkillFolder::new(folder.0.join("missing")).read().unwrap_err();
        assert!(matches!(missing, SkillFolderError::Io { .. }), "{missing:?}");
    }

    #[test]
    fn a_folder_is_read_within_its_bounds() {
        let folder = Folder::new().skill("a").with("a/b/c/d.md", "12345");
        let length = fs::metadata(folder.0.join("a/SKILL.md")).unwrap().len();
        assert!(folder.reader().files_max(5).bytes_max(length + 5).depth_max(3).read().is_ok());
        let error = folder.reader().files_max(4).read().unwrap_err();
        assert!(matches!(error, SkillFolderError::TooManyFiles(4)), "{error:?}");
        let error = folder.reader().bytes_max(length + 4).read().unwrap_err();
        assert!(matches!(error, SkillFolderError::TooLarge(_)), "{error:?}");
        let error = folder.reader().depth_max(2).read().unwrap_err();
        assert!(matches!(error, SkillFolderError::TooDeep { limit: 2, .. }), "{error:?}");
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_refused() {
        let folder = Folder::new().skill("a");
        let link = folder.0.join("a/passwd");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        let error = folder.reader().read().unwrap_err();
        assert!(matches!(&error, SkillFolderError::Special(path) if *path == link), "{error:?}");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(folder.0.join("a"), folder.0.join("b")).unwrap();
        assert!(matches!(folder.reader().read(), Err(SkillFolderError::Special(_))));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_replaced_by_a_link_after_it_was_listed_is_not_followed() {
        let outside = Folder::new().skill("secret").with("passwd", "secret");
        let folder = Folder::new().skill("a").with("a/b/c.md", "original");
        let root = Directory::open(&folder.0.join("a")).unwrap();
        let names = root.names(10).unwrap();
        assert!(names.iter().any(|it| it == "SKILL.md") && names.len() == 2, "{names:?}");
        let Some(Entry::Directory(inner)) = root.entry("b".as_ref()).unwrap() else {
            panic!("a directory")
        };
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(outside.0.join(to), folder.0.join(at)).unwrap();
        };
        fs::remove_file(folder.0.join("a/SKILL.md")).unwrap();
        link("passwd", "a/SKILL.md");
        assert!(root.entry("SKILL.md".as_ref()).unwrap().is_none());
        // An open directory is still the same directory after it was renamed.
        fs::rename(folder.0.join("a/b"), folder.0.join("moved")).unwrap();
        link("secret", "a/b");
        assert!(root.entry("b".as_ref()).unwrap().is_none());
        assert_eq!(inner.names(10).unwrap(), ["c.md"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pipes_are_refused_without_waiting_for_a_writer() {
        let folder = Folder::new().skill("a");
        let pipe = folder.0.join("a/pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = folder.reader().read().unwrap_err();
        assert!(matches!(&error, SkillFolderError::Special(path) if *path == pipe), "{error:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_text_are_refused() {
        use std::os::unix::ffi::OsStrExt;

        let folder = Folder::new().skill("a");
        let name = OsStr::from_bytes(b"a/\xff.md");
        fs::write(folder.0.join(name), "").unwrap();
        assert!(matches!(folder.reader().read(), Err(SkillFolderError::Name(_))));
    }
}
