#[cfg(any(target_os = "android", target_os = "linux"))]
use std::{
    fs,
    sync::Arc,
    sync::atomic::{AtomicU32, Ordering},
};

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

    /// Returns a check whether a process of the group runs once the leader has exited. It reads many
    /// files, and returns `None` if the system does not tell.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub(in crate::child) fn others_run(&self) -> impl Fn() -> Option<bool> + Clone + Send + use<> {
        let group = self.0.as_raw_nonzero().get().to_string();
        // The process that was found last: while it runs, no other file is read.
        let known = Arc::new(AtomicU32::new(0));
        move || {
            // The signal 0 also reaches the leader, which has exited and was not waited for.
            let is_member = |id: &u32| {
                let stat = fs::read_to_string(format!("/proc/{id}/stat"));
                stat.is_ok_and(|stat| is_running_in(&stat, &group))
            };
            if is_member(&known.load(Ordering::Relaxed)) {
                return Some(true);
            }
            let names = fs::read_dir("/proc").ok()?.flatten().map(|process| process.file_name());
            let mut ids = names.filter_map(|name| name.to_str()?.parse().ok());
            let found = ids.find(is_member);
            known.store(found.unwrap_or(0), Ordering::Relaxed);
            Some(found.is_some())
        }
    }

    /// As on Linux.
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    pub(in crate::child) fn others_run(&self) -> impl Fn() -> Option<bool> + Clone + Send + use<> {
        let group = self.0;
        move || match rustix::process::test_kill_process_group(group) {
            // Apple's systems leave out a process that has exited; others count the leader.
            Ok(()) if !cfg!(target_vendor = "apple") => None,
            reached => Some(reached.is_ok()),
        }
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

    #[test]
    fn the_others_of_a_group_do_not_include_its_leader_that_has_exited() {
        for (script, expected) in [("exit", false), ("sleep 1000 & exit", true)] {
            let mut leader = std::process::Command::new("sh");
            std::os::unix::process::CommandExt::process_group(&mut leader, 0);
            let mut leader = leader.args(["-c", script]).spawn().unwrap();
            while !has_exited(leader.id()) {
                std::thread::yield_now();
            }
            let mut members = Members::of(leader.id()).unwrap();
            let others_run = members.others_run();
            for _ in 0..2 {
                assert_eq!(others_run(), Some(expected), "{script}");
            }
            members.kill();
            while others_run() != Some(false) {
                std::thread::yield_now();
            }
            leader.wait().unwrap();
        }
    }
}
