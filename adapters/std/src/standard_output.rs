use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// Keeps everybody else off the standard streams: descriptor 0 reads nothing, and what is written
/// to descriptor 1 goes to the standard error. Dropped, it puts both back.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    input: OwnedFd,
    output: OwnedFd,
}

impl StandardOutput {
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-002]: nothing but messages on the standard
    // output. Also the programs that a handler starts inherit these descriptors.
    pub(crate) fn redirect() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        let kept =
            Self { input: stdin().try_clone_to_owned()?, output: stdout().try_clone_to_owned()? };
        // From here on dropping it puts back what was.
        dup2_stdin(&nothing)?;
        dup2_stdout(stderr())?;
        // Half a line that was printed before would end up between the messages later.
        let _ = io::stdout().flush();
        Ok(kept)
    }
}

impl Drop for StandardOutput {
    fn drop(&mut self) {
        // There is nobody to tell, and nothing better to do.
        let _ = io::stdout().flush();
        let _ = dup2_stdin(&self.input);
        let _ = dup2_stdout(&self.output);
    }
}
