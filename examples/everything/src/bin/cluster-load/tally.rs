use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How calls ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By outcome.
    ends: Mutex<BTreeMap<String, usize>>,
    pub(crate) ok: AtomicUsize,
    pub(crate) failed: AtomicUsize,
    /// Broken promises.
    pub(crate) wrong: AtomicUsize,
    pub(crate) sessions_lost: AtomicUsize,
    pub(crate) reconnected: AtomicUsize,
}

impl Tally {
    pub(crate) fn succeed(&self) {
        self.ok.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that ended with an error that says so.
    pub(crate) fn fail(&self, why: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.ends.lock().expect("no panic").entry(why).or_default() += 1;
    }

    /// Counts a broken promise.
    pub(crate) fn break_promise(&self, what: String) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        *self.ends.lock().expect("no panic").entry(format!("WRONG: {what}")).or_default() += 1;
    }

    /// Returns one line with the counts, and one for each kind of error.
    pub(crate) fn report(&self) -> String {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let mut text = format!(
            "ok {} failed {} wrong {} sessions-lost {} reconnected {}\n",
            read(&self.ok),
            read(&self.failed),
            read(&self.wrong),
            read(&self.sessions_lost),
            read(&self.reconnected),
        );
        for (why, count) in &*self.ends.lock().expect("no panic") {
            text.push_str(&format!("  {count} {why}\n"));
        }
        text
    }
}
