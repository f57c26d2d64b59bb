use std::process::Child;
use std::time::Duration;

/// A server process that is killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Returns the CPU time of all threads so far, including system time.
    pub(crate) fn cpu(&self) -> Duration {
        let pid = self.0.id().cast_signed();
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both calls write to valid local variables.
        let failed = unsafe {
            libc::clock_getcpuclockid(pid, &raw mut clock) != 0
                || libc::clock_gettime(clock, &raw mut time) != 0
        };
        assert!(!failed, "the server has ended");
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32)
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("the server has not ended");
        let (_, rest) = status.split_once("VmRSS:").expect("Linux reports VmRSS");
        let kibibytes = rest.split_whitespace().next().expect("a number");
        kibibytes.parse::<f64>().expect("a number") * 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // `kill` fails for a process that has already exited, which only needs to be reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
