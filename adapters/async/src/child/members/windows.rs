use std::os::windows::io::RawHandle;

use win32job::{ExtendedLimitInfo, Job};

/// A job object, whose processes end when it is closed, also when this process ends.
#[derive(Debug)]
pub(in crate::child) struct Members(Option<Job>);

impl Members {
    /// Creates a job object for a child and all the processes that it starts from now on. `None` if
    /// the child has already exited, or the system refuses.
    pub(in crate::child) fn of(child: RawHandle) -> Option<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).ok()?;
        job.assign_process(child as isize).ok()?;
        Some(Self(Some(job)))
    }

    /// Windows has no signal that asks a process to end.
    pub(in crate::child) const fn terminate(&self) {}

    pub(in crate::child) fn kill(&mut self) {
        self.0 = None;
    }

    /// Returns whether a process of the job runs.
    pub(in crate::child) fn others_run(&self) -> bool {
        let ids = self.0.as_ref().map(Job::query_process_id_list);
        ids.is_some_and(|ids| ids.is_ok_and(|ids| !ids.is_empty()))
    }
}
