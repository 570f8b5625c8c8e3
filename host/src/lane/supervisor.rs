//! [`Supervisor`]: the thread that starts workers, sees them end and looks after those that run.
//!
//! One thread for the whole life of the host, since the system ends a worker together with the thread that started it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::cause::Cause;
use super::pool::Pool;
use super::process::{Process, Start};
use crate::processes::{has_children, in_session, is_ending, tasks};

/// Processes that a worker may have started, all at one time.
pub(super) const MOST_PROCESSES: usize = 64;
/// A worker's processes are counted when there are so many more in the whole system than at the last time,
const FEW: u64 = 16;
/// and every so often.
const COUNT: Duration = Duration::from_secs(1);
/// Between two looks at what a worker has started, while it is busy with something slow.
pub(super) const PATROL: Duration = Duration::from_millis(25);
/// The longest time between two looks at who is idle.
const SWEEP: Duration = Duration::from_secs(5);
/// How long a worker that closed its socket may take to end by itself.
const LAST_BREATH: Duration = Duration::from_millis(100);
/// How long the end of one that has begun to end may take.
const LONGEST_BREATH: Duration = Duration::from_secs(10);

/// What the supervisor is asked for.
#[derive(Debug)]
enum Order {
    /// Another worker for the pool.
    Start(Arc<Pool>),
    /// Its socket is closed.
    Lost(Arc<Process>),
    /// End everything.
    End,
}

/// The near end of the thread.
#[derive(Debug)]
pub(super) struct Supervisor {
    orders: Sender<Order>,
    bell: File,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Supervisor {
    /// Starts the thread; `idle` is how long workers that are not needed stay.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn spawn(start: Start, idle: Duration) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let theirs = bell.try_clone()?;
        let (orders, received) = mpsc::channel();
        let mut watch = Watch {
            start,
            idle,
            orders: received,
            bell: File::from(theirs),
            workers: Vec::new(),
            wanted: Vec::new(),
            lost: Vec::new(),
            patrolled: Instant::now(),
            counted: None,
            swept: Instant::now(),
            ending: false,
        };
        let thread =
            thread::Builder::new().name("workers".to_owned()).spawn(move || watch.run())?;
        Ok(Self { orders, bell: File::from(bell), thread: Mutex::new(Some(thread)) })
    }

    fn order(&self, order: Order) {
        // A supervisor that is gone has ended every worker; whoever waits for one is told so by its own deadline.
        if self.orders.send(order).is_ok() {
            self.wake();
        }
    }

    /// Has it look now at what runs.
    pub(super) fn wake(&self) {
        // Full means that it is awake as it is.
        let _awake = (&self.bell).write(&1_u64.to_ne_bytes());
    }

    /// Asks for another worker.
    pub(super) fn start(&self, pool: &Arc<Pool>) {
        self.order(Order::Start(Arc::clone(pool)));
    }

    /// Tells that a worker's socket is closed.
    pub(super) fn lost(&self, worker: &Arc<Process>) {
        self.order(Order::Lost(Arc::clone(worker)));
    }

    /// Ends all workers and the thread.
    pub(super) fn end(&self) {
        self.order(Order::End);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread that looks after the workers failed");
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}

/// The far end: everything the thread knows.
struct Watch {
    start: Start,
    idle: Duration,
    orders: Receiver<Order>,
    bell: File,
    workers: Vec<(Arc<Process>, Arc<Pool>)>,
    /// Starts that wait for their time.
    wanted: Vec<Arc<Pool>>,
    lost: Vec<(Arc<Process>, Instant)>,
    patrolled: Instant,
    /// When processes were counted, and how many there were in the whole system.
    counted: Option<(Instant, u64)>,
    swept: Instant,
    ending: bool,
}

impl Watch {
    fn run(&mut self) {
        while !(self.ending && self.workers.is_empty()) {
            self.wait();
            self.take_orders();
            let ended = self.bury();
            self.start_wanted();
            // After that: whoever waits for a new worker need not wait for this.
            ended.iter().for_each(|worker| worker.reap());
            self.close_lost();
            self.patrol();
            self.sweep();
        }
    }

    /// Until a worker ends, an order comes, or something is due.
    fn wait(&mut self) {
        let now = Instant::now();
        let mut due = now + Duration::from_secs(3600);
        if self.workers.iter().any(|(worker, _)| needs_patrol(worker)) {
            due = due.min(self.patrolled + PATROL);
        }
        if !self.workers.is_empty() {
            due = due.min(self.swept + self.sweep_pause());
        }
        for pool in &self.wanted {
            due = due.min(pool.not_before().unwrap_or(now));
        }
        for (_, since) in &self.lost {
            due = due.min((*since + LAST_BREATH).max(now + LAST_BREATH / 10));
        }
        let left = due.saturating_duration_since(now);
        let wait = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut watched = vec![PollFd::new(&self.bell, PollFlags::IN)];
        let handles: Vec<_> = self.workers.iter().map(|(worker, _)| worker.handle()).collect();
        watched.extend(handles.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
        match poll(&mut watched, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "cannot wait for the workers");
                thread::sleep(PATROL);
            }
        }
    }

    fn take_orders(&mut self) {
        let _silent = (&self.bell).read(&mut [0; 8]);
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Start(pool) => self.wanted.push(pool),
                Order::Lost(worker) => self.lost.push((worker, Instant::now())),
                Order::End => {
                    self.ending = true;
                    for (worker, _) in &self.workers {
                        worker.kill(Cause::HostEnds);
                    }
                }
            }
        }
    }

    /// Takes leave of the workers that have ended.
    fn bury(&mut self) -> Vec<Arc<Process>> {
        let ended = |worker: &Process| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut handle = [PollFd::from_borrowed_fd(worker.handle(), PollFlags::IN)];
            matches!(poll(&mut handle, Some(&now)), Ok(1..))
        };
        let gone: Vec<_> = self.workers.extract_if(.., |(worker, _)| ended(worker)).collect();
        for (worker, pool) in &gone {
            worker.bury();
            pool.went(worker);
            if let Some(cause) = worker.quiet_end() {
                tracing::warn!(worker = worker.number(), pool = pool.label, %cause,
                    "it ended while no call ran in it, as by a thread that an operation left behind");
            }
        }
        gone.into_iter().map(|(worker, _)| worker).collect()
    }

    fn start_wanted(&mut self) {
        let now = Instant::now();
        let ready: Vec<_> = self
            .wanted
            .extract_if(.., |pool| pool.not_before().is_none_or(|moment| moment <= now))
            .collect();
        for pool in ready {
            let started = if self.ending {
                Err(io::Error::other("the host is ending"))
            } else {
                Process::start(&self.start, &pool.label)
            };
            match started {
                Ok(worker) => {
                    let worker = Arc::new(worker);
                    tracing::debug!(worker = worker.number(), pool = pool.label, "started");
                    self.workers.push((Arc::clone(&worker), Arc::clone(&pool)));
                    pool.came(Ok(worker));
                }
                Err(error) => {
                    tracing::error!(%error, pool = pool.label, "a worker cannot be started");
                    pool.came(Err(error.to_string()));
                }
            }
        }
    }

    /// A worker that closed its socket is of no use, even if it lives. One that is ending already is let end, so that
    /// nobody takes its end for one that came from here.
    fn close_lost(&mut self) {
        self.lost.retain(|(worker, since)| {
            if worker.is_gone() {
                return false;
            }
            let waited = since.elapsed();
            if waited < LAST_BREATH || (waited < LONGEST_BREATH && is_ending(worker.pid)) {
                return true;
            }
            worker.kill(Cause::Disconnected);
            false
        });
    }

    /// Looks at what busy workers have started.
    fn patrol(&mut self) {
        if self.patrolled.elapsed() < PATROL {
            return;
        }
        self.patrolled = Instant::now();
        let with_children = |worker: &Process| {
            let with = has_children(worker.pid) != Some(false);
            if !with {
                worker.leftovers.store(false, std::sync::atomic::Ordering::Relaxed);
            }
            with
        };
        let looked_at = self.workers.iter().map(|(worker, _)| worker);
        let mut looked_at =
            looked_at.filter(|worker| needs_patrol(worker) && with_children(worker)).peekable();
        if looked_at.peek().is_none() {
            return;
        }
        let tasks = tasks().unwrap_or(u64::MAX);
        if self.counted.is_some_and(|(at, then)| at.elapsed() < COUNT && tasks < then + FEW) {
            return;
        }
        for worker in looked_at {
            if in_session(worker.pid, MOST_PROCESSES + 1) > MOST_PROCESSES {
                worker.kill(Cause::Processes { limit: MOST_PROCESSES });
            }
        }
        self.counted = Some((Instant::now(), tasks));
    }

    fn sweep(&mut self) {
        if self.swept.elapsed() < self.sweep_pause() {
            return;
        }
        self.swept = Instant::now();
        let mut pools: Vec<_> = self.workers.iter().map(|(_, pool)| pool).collect();
        pools.sort_by_key(|pool| Arc::as_ptr(pool));
        pools.dedup_by_key(|pool| Arc::as_ptr(pool));
        for pool in pools {
            pool.shrink(self.idle);
        }
    }

    fn sweep_pause(&self) -> Duration {
        SWEEP.min(self.idle / 2)
    }
}

/// Whether there may be more processes than a worker's own.
fn needs_patrol(worker: &Process) -> bool {
    worker.leftovers.load(std::sync::atomic::Ordering::Relaxed) || worker.is_slow(PATROL)
}
