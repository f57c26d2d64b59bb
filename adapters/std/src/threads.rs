use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an idle thread waits for another job. 10 s: a burst of work reuses the threads of the
/// last one, and superfluous threads end soon.
const IDLE_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Threads for blocking jobs, each job on its own thread, so that none waits for another below the
/// limit of threads. Clones share the threads.
///
/// An idle thread ends after a while.
#[derive(Clone)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    threads_max: usize,
    /// Whether jobs beyond the limit wait for a thread.
    queues: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Idle threads, most recently idle last.
    idle: Vec<(u64, SyncSender<Job>)>,
    threads: usize,
    begun: u64,
    queue: VecDeque<Job>,
}

impl Threads {
    pub(crate) fn new(name: &'static str, threads_max: usize) -> Self {
        Self::with_queue(name, threads_max, false)
    }

    /// Creates threads whose jobs beyond the limit wait for a thread.
    pub(crate) fn queueing(name: &'static str, threads_max: usize) -> Self {
        Self::with_queue(name, threads_max, true)
    }

    fn with_queue(name: &'static str, threads_max: usize, queues: bool) -> Self {
        Self { shared: Arc::new(Shared { name, threads_max, queues, state: Mutex::default() }) }
    }

    /// Runs a job. A panic in it only ends its thread.
    ///
    /// # Errors
    ///
    /// The limit of jobs is reached, or the system is out of threads. The job is dropped.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.run_boxed(Box::new(job))
    }

    fn run_boxed(&self, mut job: Job) -> io::Result<()> {
        let mut state = self.shared.lock();
        while let Some((_, thread)) = state.idle.pop() {
            match thread.try_send(job) {
                Ok(()) => return Ok(()),
                // The thread has ended in the meantime.
                Err(refused) => job = into_job(refused),
            }
        }
        if state.threads >= self.shared.threads_max {
            if self.shared.queues {
                state.queue.push_back(job);
                return Ok(());
            }
            return Err(io::Error::other("the limit of threads is reached"));
        }
        state.threads += 1;
        state.begun += 1;
        let number = state.begun;
        drop(state);
        let counted = Counted(Arc::clone(&self.shared));
        let work = move || counted.work(number, job);
        thread::Builder::new().name(self.shared.name.into()).spawn(work).map(drop)
    }
}

fn into_job(refused: std::sync::mpsc::TrySendError<Job>) -> Job {
    use std::sync::mpsc::TrySendError::{Disconnected, Full};

    match refused {
        Full(job) | Disconnected(job) => job,
    }
}

impl Shared {
    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a thread until it ends.
struct Counted(Arc<Shared>);

impl Counted {
    fn work(&self, number: u64, first: Job) {
        let (sender, receiver) = sync_channel(1);
        first();
        loop {
            let mut state = self.0.lock();
            let queued = state.queue.pop_front();
            if queued.is_none() {
                state.idle.push((number, sender.clone()));
            }
            drop(state);
            let Some(job) = queued.or_else(|| self.next(number, &receiver)) else { return };
            job();
        }
    }

    fn next(&self, number: u64, jobs: &Receiver<Job>) -> Option<Job> {
        match jobs.recv_timeout(IDLE_TIME) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let mut state = self.0.lock();
                let place = state.idle.iter().position(|(other, _)| *other == number);
                place.map(|place| state.idle.remove(place));
                drop(state);
                // A job that arrived at the last moment.
                jobs.try_recv().ok()
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.threads -= 1;
        // After a panic, or a job that was queued when this thread was about to end.
        let queued = state.queue.pop_front();
        drop(state);
        if let Some(job) = queued {
            // Without a thread the job is dropped, which answers its request.
            let _started = Threads { shared: Arc::clone(&self.0) }.run_boxed(job);
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_run_side_by_side_up_to_the_bound() {
        let threads = Threads::new("test", 2);
        let (told, tell) = channel();
        let release: Vec<_> = (0..2)
            .map(|_| {
                let (release, released) = channel::<()>();
                let told = told.clone();
                let job = move || {
                    told.send(()).unwrap();
                    let _released = released.recv();
                };
                threads.run(job).unwrap();
                release
            })
            .collect();
        // Both have begun, and neither has ended.
        for _ in 0..2 {
            tell.recv().unwrap();
        }
        assert!(threads.run(|| ()).is_err());
        drop(release);
    }

    #[test]
    fn queued_jobs_run_in_order_even_after_a_panic() {
        let threads = Threads::queueing("test", 1);
        let (told, tell) = channel();
        for number in 0..4 {
            let told = told.clone();
            let job = move || {
                told.send(number).unwrap();
                if number % 2 == 0 {
                    std::panic::resume_unwind(Box::new(()));
                }
            };
            threads.run(job).unwrap();
        }
        drop(told);
        assert_eq!(tell.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_panicking_job_frees_its_slot() {
        let threads = Threads::new("test", 1);
        let (told, tell) = channel::<()>();
        threads
            .run(move || {
                let _dropped_by_the_panic = told;
                std::panic::resume_unwind(Box::new(()));
            })
            .unwrap();
        assert!(tell.recv().is_err());
        while threads.run(|| ()).is_err() {
            thread::yield_now();
        }
    }
}
