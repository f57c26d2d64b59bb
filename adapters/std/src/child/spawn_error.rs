use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Why a server did not start. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program: the fault of the configuration, or of the installation.
    #[error(
        "there is no program `{}` in the search path, or its folder is missing: install it, or \
         give its full path",
        .program.display()
    )]
    NotFound {
        /// The program as it was given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses to run the program: the fault of its installation.
    #[error(
        "`{}` may not be run: make it executable, or check who may run it",
        .program.display()
    )]
    NotPermitted {
        /// The program as it was given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder to run it in is not there: the fault of the configuration.
    #[error(
        "`{}` cannot run in `{}`, which is no folder: create it, or name another",
        .program.display(), .folder.display()
    )]
    NoFolder {
        /// The program as it was given.
        program: PathBuf,
        /// The folder as it was given.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else: a file that is no program, or a system that is out of processes, threads or
    /// descriptors.
    #[error("`{}` cannot be started: {source}", .program.display())]
    System {
        /// The program as it was given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SpawnError {
    pub(super) fn of(command: &Command, source: io::Error) -> Self {
        let program = PathBuf::from(command.get_program());
        if let Some(folder) = command.get_current_dir().filter(|folder| !folder.is_dir()) {
            return Self::NoFolder { program, folder: folder.into(), source };
        }
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program, source },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { program, source },
            _ => Self::System { program, source },
        }
    }

    pub(super) fn system(command: &Command, source: io::Error) -> Self {
        Self::System { program: command.get_program().into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChildServer;

    #[test]
    fn a_failure_names_the_program_and_says_what_to_do() {
        // Rule: [STDIO-007].
        let error = ChildServer::spawn(Command::new("no-such-server")).unwrap_err();
        assert!(matches!(&error, SpawnError::NotFound { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("`no-such-server`") && text.contains("install it"), "{text}");

        let error = ChildServer::spawn(Command::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert!(matches!(&error, SpawnError::NotPermitted { .. }), "{error:?}");

        let mut command = Command::new("true");
        command.current_dir("/no/such/folder");
        let error = ChildServer::spawn(command).unwrap_err();
        assert!(error.to_string().contains("`/no/such/folder`"), "{error}");
    }
}
