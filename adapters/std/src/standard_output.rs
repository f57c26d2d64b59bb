use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// Redirects the standard streams for all other code: descriptor 0 reads nothing, and descriptor 1
/// writes to the standard error. Dropping it restores both.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    input: OwnedFd,
    output: OwnedFd,
}

impl StandardOutput {
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-002]: nothing but messages on the standard
    // output. Programs started by a handler inherit these descriptors, too.
    pub(crate) fn redirect() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        let kept =
            Self { input: stdin().try_clone_to_owned()?, output: stdout().try_clone_to_owned()? };
        // From here on, dropping it restores the descriptors.
        dup2_stdin(&nothing)?;
        dup2_stdout(stderr())?;
        // A partial line that was printed before would otherwise end up between the messages later.
        let _ = io::stdout().flush();
        Ok(kept)
    }
}

impl Drop for StandardOutput {
    fn drop(&mut self) {
        // Errors cannot be reported or handled here.
        let _ = io::stdout().flush();
        let _ = dup2_stdin(&self.input);
        let _ = dup2_stdout(&self.output);
    }
}
