//! [`Process`]: one worker as the host sees it, from its start to its last words.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group,
    pidfd_open, waitid,
};

use super::cause::Cause;
use super::frames::ToWorker;
use super::link::Link;
use super::output::Output;
use super::processes::end_session;
use crate::plugins::{Address, Entrance, Loaded, Versions};
use crate::program;

/// How a worker is started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// The program that knows the command `worker`.
    pub(super) program: PathBuf,
    /// Bytes of memory it may have.
    pub(super) memory: u64,
    /// Whether a write is synced before it is acknowledged.
    pub(super) synced: bool,
}

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
    /// Calls whose time is up.
    overdue: AtomicUsize,
    /// Whether processes that it started were there when its last call ended.
    pub(super) leftovers: AtomicBool,
    /// Counts of the operations that it holds builds of; none once it is gone.
    held: Mutex<Option<Vec<Arc<Versions>>>>,
    /// Operations that have been blamed for its end.
    blamed: Mutex<HashSet<Address>>,
    life: Mutex<Life>,
    ended: Condvar,
}

/// A call whose time is up.
#[derive(Debug)]
pub(super) struct Overdue<'a>(&'a Process);

impl Drop for Overdue<'_> {
    fn drop(&mut self) {
        self.0.overdue.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A call that runs in a worker.
#[derive(Debug)]
struct Running {
    op: Address,
    began: Instant,
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

/// What is known of a worker that is gone.
#[derive(Debug, Clone)]
pub(super) struct Death {
    pub(super) cause: Cause,
    /// The end of what it printed, for the log.
    pub(super) last_words: String,
    /// What ran in it, by the number of the call.
    pub(super) victims: HashMap<u64, Address>,
    /// Which of them ended it, if it could note that.
    pub(super) culprit: Option<u64>,
}

impl Death {
    /// The call that ended it, and its operation, if that is known.
    pub(super) fn culprit(&self) -> Option<(u64, &Address)> {
        let call = self.culprit?;
        Some((call, self.victims.get(&call)?))
    }
}

impl Process {
    /// Starts a worker. On a thread that lives as long as the host: the system ends a worker with the thread that
    /// started it.
    ///
    /// # Errors
    /// The system refuses a socket, a pipe, a process.
    pub(super) fn start(start: &Start, label: &str) -> io::Result<Self> {
        let (link, theirs) = Link::pair()?;
        let (read, write) = io::pipe()?;
        let note = File::from(memfd_create("udf-host worker", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(&start.program);
        command.arg0("udf-host").args(["worker", label]);
        program::hide_settings(&mut command);
        command.stdin(theirs).stdout(note.try_clone()?).stderr(write);
        let child = command.spawn()?;
        // Our copies of its ends: without them the pipe ends with the worker.
        drop(command);
        let pid = Pid::from_child(&child);
        let mut life = Life {
            child,
            killed: None,
            status: None,
            victims: HashMap::new(),
            idle_since: Instant::now(),
        };
        let followed = || -> io::Result<_> {
            let handle = pidfd_open(pid, PidfdFlags::empty())?;
            let output = Output::default();
            let running = Arc::<Mutex<HashMap<u64, Running>>>::default();
            let names = Arc::clone(&running);
            output.follow(
                OwnedFd::from(read),
                pid.as_raw_nonzero().get().cast_unsigned(),
                move || names_of(&names.lock().unwrap_or_else(PoisonError::into_inner)),
            )?;
            let hello = ToWorker::Hello {
                host: std::process::id(),
                memory: start.memory,
                synced: start.synced,
            };
            // The socket is empty and takes it at once.
            let soon = Instant::now() + Duration::from_secs(1);
            // One that has ended already is buried like any other.
            let _ended = link.send(&hello.encode(0), soon);
            Ok((handle, output, running))
        };
        let (handle, output, running) = match followed() {
            Ok(followed) => followed,
            Err(error) => {
                end(pid);
                let _status = life.child.wait();
                return Err(error);
            }
        };
        Ok(Self {
            link,
            pid,
            handle,
            note,
            memory: start.memory,
            output,
            running,
            next_call: AtomicU64::new(1),
            completed: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            overdue: AtomicUsize::new(0),
            leftovers: AtomicBool::new(false),
            held: Mutex::new(Some(Vec::new())),
            blamed: Mutex::default(),
            life: Mutex::new(life),
            ended: Condvar::new(),
        })
    }

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

    /// Whether it may be given another call. Not while one in it is overdue: it is about to be killed, and the next call
    /// might wait for a lock that the overdue one holds.
    pub(super) fn takes_calls(&self) -> bool {
        !self.is_retired() && !self.link.is_lost() && self.overdue.load(Ordering::Acquire) == 0
    }

    /// The time of a call in it is up; until the guard is dropped.
    pub(super) fn overdue(&self) -> Overdue<'_> {
        self.overdue.fetch_add(1, Ordering::AcqRel);
        Overdue(self)
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

    /// Takes in a call; its number, or none if it takes no more.
    pub(super) fn enter(&self, op: &Address) -> Option<u64> {
        let mut running = self.running();
        if !self.takes_calls() {
            return None;
        }
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.link.take_seat(call);
        running.insert(call, Running { op: op.clone(), began: Instant::now() });
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

    /// Kills it and everything it started; the first one who does says why.
    pub(super) fn kill(&self, why: Cause) {
        let mut life = self.life();
        if life.status.is_none() {
            life.killed.get_or_insert(why);
            end(self.pid);
        }
    }

    /// Takes its status when it has ended, and tells everybody who waits for that. It is not taken from the system yet.
    pub(super) fn bury(&self) {
        let mut life = self.life();
        if life.status.is_some() {
            return;
        }
        end(self.pid);
        // Before the system may give its number to another.
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.into_iter().flatten().for_each(|versions| versions.leave(self.number()));
        // Nobody has left yet: all who wait for an answer wait for this.
        life.victims =
            self.running().iter().map(|(call, running)| (*call, running.op.clone())).collect();
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        life.status = Some(match waitid(WaitId::Pid(self.pid), look) {
            Ok(Some(status)) => exit_status(&status),
            other => {
                tracing::error!(?other, worker = self.number(), "a worker's end cannot be read");
                ExitStatus::default()
            }
        });
        drop(life);
        self.ended.notify_all();
        self.link.lose();
    }

    /// Ends what it has started, and takes it from the system, so that nothing of it stays.
    pub(super) fn reap(&self) {
        // Before the system may give its number to another.
        end_session(self.pid);
        if let Err(error) = self.life().child.wait() {
            tracing::error!(%error, worker = self.number(), "a worker that has ended stays behind");
        }
    }

    /// Whether it has been buried.
    pub(super) fn is_gone(&self) -> bool {
        self.life().status.is_some()
    }

    /// Whether this is the first call of the operation to ask, so that one end counts once for each operation.
    pub(super) fn blame(&self, op: &Address) -> bool {
        self.blamed.lock().unwrap_or_else(PoisonError::into_inner).insert(op.clone())
    }

    /// Waits for its end, which the caller has caused.
    pub(super) fn wait_end(&self) {
        let mut life = self.life();
        while life.status.is_none() {
            life = self.ended.wait(life).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What ended it; waits for its end, which the caller has seen coming.
    pub(super) fn death(&self) -> Death {
        let mut life = self.life();
        let status = loop {
            match life.status {
                Some(status) => break status,
                None => life = self.ended.wait(life).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let (killed, victims) = (life.killed.clone(), life.victims.clone());
        drop(life);
        let last_words = self.output.last_words();
        // It may have ended in its own way a moment before it was killed.
        let cause = match killed {
            Some(why) if status.signal() == Some(Signal::KILL.as_raw()) => why,
            _ => Cause::of(status, &last_words, self.memory >> 20),
        };
        let mut note = [0; 8];
        // A worker that ended in another way has left none.
        let noted = self.note.read_exact_at(&mut note, 0).is_ok();
        let culprit =
            noted.then(|| u64::from_le_bytes(note)).filter(|call| victims.contains_key(call));
        Death { cause, last_words, victims, culprit }
    }
}

/// Kills a worker that has not been waited for yet, so that the number is still its own, and its group. It makes the
/// group before it opens the first plugin.
fn end(pid: Pid) {
    // Either may be gone already.
    let _group = kill_process_group(pid, Signal::KILL);
    let _worker = kill_process(pid, Signal::KILL);
}

fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    const DUMPED: i32 = 0x80;
    let signal = status.terminating_signal().map(|signal| match status.dumped() {
        true => signal | DUMPED,
        false => signal,
    });
    ExitStatus::from_raw(signal.unwrap_or_else(|| status.exit_status().unwrap_or_default() << 8))
}

/// What runs in a worker, for a line that it prints: one name, or how many.
fn names_of(running: &HashMap<u64, Running>) -> String {
    let names: BTreeSet<&Address> = running.values().map(|call| &call.op).collect();
    match names.into_iter().collect::<Vec<_>>()[..] {
        [] => "none".to_owned(),
        [only] => only.to_string(),
        [first, ..] => format!("{first} or one of {} others", running.len() - 1),
    }
}
