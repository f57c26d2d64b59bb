use std::fmt;
use std::fmt::Write;

use mcp_sansio::Instant;

/// A log of the schedule: always as a digest, and as text on request.
#[derive(Debug)]
pub(crate) struct Transcript {
    digest: u64,
    line: String,
    /// Whether lines are printed at once, so that those before a failure are visible.
    prints: bool,
}

impl Transcript {
    pub(crate) fn new(prints: bool) -> Self {
        // FNV-1a's offset basis.
        Self { digest: 0xcbf2_9ce4_8422_2325, line: String::new(), prints }
    }

    #[allow(clippy::print_stderr, reason = "requested by `MCP_SIM_TRACE`")]
    pub(crate) fn note(&mut self, now: Instant, what: fmt::Arguments<'_>) {
        self.line.clear();
        let micros = now.as_nanos() / 1000;
        let written =
            write!(self.line, "{:>7}.{:06} {what}", micros / 1_000_000, micros % 1_000_000);
        written.expect("writing to a string cannot fail");
        for byte in self.line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.prints {
            eprintln!("{}", self.line);
        }
    }

    /// Returns a digest that is equal for equal transcripts, and for others with probability 2^-64.
    pub(crate) const fn digest(&self) -> u64 {
        self.digest
    }
}
