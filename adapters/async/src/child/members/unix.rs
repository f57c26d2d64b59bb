use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(not(any(target_os = "openbsd", target_os = "redox")))]
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// The process group that a child leads. Its id stays reserved until the child is waited for, even
/// if the child has exited.
#[derive(Debug)]
pub(in crate::child) struct Members(Pid);

impl Members {
    /// Returns the group of a child that was started as its leader.
    pub(in crate::child) fn of(leader: u32) -> Option<Self> {
        pid(leader).map(Self)
    }

    pub(in crate::child) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(in crate::child) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // A failure means that all have exited.
        let _ = kill_process_group(self.0, signal);
    }

    /// Returns whether a process of the group runs, once the leader has exited.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub(in crate::child) fn others_run(&self) -> bool {
        // The signal 0 also reaches the leader, which has exited and was not waited for.
        let Ok(processes) = std::fs::read_dir("/proc") else { return true };
        let group = self.0.as_raw_nonzero().get().to_string();
        processes.flatten().any(|process| {
            std::fs::read_to_string(process.path().join("stat"))
                .is_ok_and(|stat| is_running_in(&stat, &group))
        })
    }

    /// Returns whether a process of the group may run, once the leader has exited.
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    pub(in crate::child) fn others_run(&self) -> bool {
        rustix::process::test_kill_process_group(self.0).is_ok()
    }
}

/// Reads a line of `/proc/PID/stat`: after the name, which is in parentheses, the state, the parent
/// and the group.
#[cfg(any(target_os = "android", target_os = "linux"))]
fn is_running_in(stat: &str, group: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let (state, _parent) = (fields.next(), fields.next());
    !matches!(state, Some("Z" | "X")) && fields.next() == Some(group)
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Returns whether a child has exited, and leaves it to be waited for.
#[cfg(not(any(target_os = "openbsd", target_os = "redox")))]
pub(in crate::child) fn has_exited(id: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    pid(id).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_))))
}

/// These systems cannot tell without waiting for it.
#[cfg(any(target_os = "openbsd", target_os = "redox"))]
pub(in crate::child) const fn has_exited(_: u32) -> bool {
    false
}

#[cfg(all(test, any(target_os = "android", target_os = "linux")))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_group_whatever_its_name_is() {
        assert!(is_running_in("8 (a) Z 1 (b)) S 1 77 77 0", "77"));
        assert!(!is_running_in("8 (sh) S 77 78 77 0", "77"));
        assert!(!is_running_in("8 (sh) Z 1 77 77 0", "77"));
        assert!(!is_running_in("", "77"));
    }
}
