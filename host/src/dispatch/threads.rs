//! [`Threads`]: runs jobs beside their callers, on threads that are kept for a moment.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for another job.
const KEPT: Duration = Duration::from_secs(10);
/// Threads that wait, at most.
const MOST_KEPT: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// Threads for jobs; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads(Arc<Mutex<Idle>>);

/// The way to each thread that waits, the one that has just begun to wait last.
#[derive(Debug, Default)]
struct Idle {
    waiting: Vec<(u64, Sender<Job>)>,
    next: u64,
}

impl Threads {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the job on a thread of its own, which is a waiting one if there is any. The job must not panic.
    ///
    /// # Errors
    /// The system has no thread left; the job is dropped.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut job: Job = Box::new(job);
        loop {
            let Some((_, thread)) = self.idle().waiting.pop() else { break };
            match thread.send(job) {
                Ok(()) => return Ok(()),
                // It ended in a panic of its job, against the rule.
                Err(mpsc::SendError(back)) => job = back,
            }
        }
        let threads = self.clone();
        thread::Builder::new().name("call".to_owned()).spawn(move || threads.work(job)).map(drop)
    }

    fn work(&self, first: Job) {
        let mut job = first;
        loop {
            job();
            let (sender, jobs) = mpsc::channel();
            let Some(number) = self.wait_as(sender) else { return };
            job = match jobs.recv_timeout(KEPT) {
                Ok(job) => job,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.idle().waiting.retain(|(other, _)| *other != number);
                    // Whoever took the way to this thread just before that is about to send, or has sent.
                    match jobs.recv() {
                        Ok(job) => job,
                        Err(mpsc::RecvError) => return,
                    }
                }
            };
        }
    }

    /// Takes a place among those that wait, under a number; none when there are enough.
    fn wait_as(&self, sender: Sender<Job>) -> Option<u64> {
        let mut idle = self.idle();
        if idle.waiting.len() >= MOST_KEPT {
            return None;
        }
        idle.next += 1;
        let number = idle.next;
        idle.waiting.push((number, sender));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_thread_that_waits_is_used_again_and_one_that_is_busy_is_not() {
        let threads = Threads::default();
        let (sender, seen) = mpsc::channel();
        let run = |wait: Arc<Barrier>| {
            let sender = sender.clone();
            threads
                .run(move || {
                    wait.wait();
                    sender.send(thread::current().id()).unwrap();
                })
                .unwrap();
        };
        let wait = Arc::new(Barrier::new(3));
        (0..3).for_each(|_| run(Arc::clone(&wait)));
        let first: HashSet<_> = seen.iter().take(3).collect();
        assert_eq!(first.len(), 3, "all three met, so each had a thread of its own");
        while threads.idle().waiting.len() < 3 {
            thread::yield_now();
        }
        run(Arc::new(Barrier::new(1)));
        assert!(first.contains(&seen.recv().unwrap()));
    }
}
