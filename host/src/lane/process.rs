//! [`Process`]: one worker as the host sees it, from its start to its last words.

mod end;
mod start;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;

pub(super) use self::end::Death;
pub(super) use self::start::Start;
use super::cause::Cause;
use super::link::Link;
use super::output::Output;
use crate::plugins::{Address, Entrance, Loaded, Versions};

/// One worker.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) link: Link,
    pub(super) pid: Pid,
    handle: OwnedFd,
    /// Where it notes which call ends it.
    note: File,
    memory: u64,
    output: Output,
    running: Arc<Mutex<HashMap<u64, Running>>>,
    next_call: AtomicU64,
    /// Calls that ended as calls should.
    completed: AtomicU64,
    /// Takes no more calls; it ends with the last one it has.
    retired: AtomicBool,
    /// Whether processes that it started were there when its last call ended.
    pub(super) leftovers: AtomicBool,
    /// Counts of the operations that it holds builds of; none once it is gone.
    held: Mutex<Option<Vec<Arc<Versions>>>>,
    /// Operations that have been blamed for its end.
    blamed: Mutex<HashSet<Address>>,
    life: Mutex<Life>,
    ended: Condvar,
}

/// A call that runs in a worker.
#[derive(Debug)]
struct Running {
    op: Address,
    began: Instant,
    /// When its answer is due.
    due: Instant,
}

#[derive(Debug)]
struct Life {
    child: Child,
    /// Why the host killed it.
    killed: Option<Cause>,
    status: Option<ExitStatus>,
    /// What ran in it at its end, by the number of the call.
    victims: HashMap<u64, Address>,
    idle_since: Instant,
}

impl Process {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readable once the process has ended.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Whether it may be given another call.
    pub(super) fn takes_calls(&self) -> bool {
        self.takes_more(&self.running())
    }

    /// Not while a call in it is overdue: it is about to be killed, and the next call might wait for a lock that the
    /// overdue one holds. By the clock, since whoever asks next may just have been told that the time is up.
    fn takes_more(&self, running: &HashMap<u64, Running>) -> bool {
        let now = Instant::now();
        !self.is_retired() && !self.link.is_lost() && running.values().all(|call| now < call.due)
    }

    /// Calls that run in it.
    pub(super) fn load(&self) -> usize {
        self.running().len()
    }

    /// Whether a call has been running in it for at least `time`.
    pub(super) fn is_slow(&self, time: Duration) -> bool {
        self.running().values().any(|call| call.began.elapsed() >= time)
    }

    /// Whether it did something before it ended.
    pub(super) fn has_completed_a_call(&self) -> bool {
        self.completed.load(Ordering::Relaxed) > 0
    }

    /// Takes in a call whose answer is due then; its number, or none if it takes no more.
    pub(super) fn enter(&self, op: &Address, due: Instant) -> Option<u64> {
        let mut running = self.running();
        if !self.takes_more(&running) {
            return None;
        }
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.link.take_seat(call);
        running.insert(call, Running { op: op.clone(), began: Instant::now(), due });
        Some(call)
    }

    /// A call is over, in whatever way; how many of its lines for the log were dropped.
    pub(super) fn leave(&self, call: u64, completed: bool) -> usize {
        let dropped = self.link.leave(call);
        if completed {
            self.completed.fetch_add(1, Ordering::Relaxed);
        }
        let mut running = self.running();
        running.remove(&call);
        let empty = running.is_empty();
        drop(running);
        if empty {
            self.life().idle_since = Instant::now();
        }
        if empty && self.is_retired() {
            self.kill(Cause::HostEnds);
        }
        dropped
    }

    /// Whether other calls run beside this one.
    pub(super) fn has_others(&self, call: u64) -> bool {
        self.running().keys().any(|other| *other != call)
    }

    /// How long it has had nothing to do; none while it has.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        (self.load() == 0).then(|| self.life().idle_since.elapsed())
    }

    /// Gives it no more calls; it ends with the last one it has.
    pub(super) fn retire(&self) {
        let running = self.running();
        self.retired.store(true, Ordering::Release);
        let empty = running.is_empty();
        drop(running);
        if empty {
            self.kill(Cause::HostEnds);
        }
    }

    /// Whether it takes no more calls.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Its process id.
    pub(super) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it may be asked for this version of an operation. Not when it has an older one: what was opened is never
    /// closed, but its memory returns with the worker that had it.
    pub(super) fn suits(&self, loaded: &Loaded) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is gone takes no calls; who finds that out looks for another worker.
        let Some(held) = held.as_mut() else { return true };
        match loaded.enter(self.number()) {
            Entrance::First => held.push(Arc::clone(&loaded.versions)),
            Entrance::Open => {}
            Entrance::Outdated => return false,
        }
        true
    }
}
