use std::os::windows::io::RawHandle;
use std::sync::{Arc, Weak};

use win32job::{ExtendedLimitInfo, Job};

/// A job object, whose processes end when it is closed, also when this process ends.
#[derive(Debug)]
pub(in crate::child) struct Members(Option<Arc<Job>>);

impl Members {
    /// Creates a job object for a child and all the processes that it starts from now on. `None` if
    /// the child has already exited, or the system refuses.
    pub(in crate::child) fn of(child: RawHandle) -> Option<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).ok()?;
        job.assign_process(child as isize).ok()?;
        Some(Self(Some(Arc::new(job))))
    }

    /// Windows has no signal that asks a process to end.
    pub(in crate::child) const fn terminate(&self) {}

    pub(in crate::child) fn kill(&mut self) {
        self.0 = None;
    }

    /// Returns a check whether a process of the job runs.
    pub(in crate::child) fn others_run(&self) -> impl Fn() -> Option<bool> + Clone + Send + use<> {
        // The last handle ends the job.
        let job = self.0.as_ref().map(Arc::downgrade);
        move || {
            let job = job.as_ref().and_then(Weak::upgrade);
            let ids = job.map(|job| job.query_process_id_list());
            Some(ids.is_some_and(|ids| ids.is_ok_and(|ids| !ids.is_empty())))
        }
    }
}
