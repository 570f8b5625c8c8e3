//! [`Serving`]: frames off the socket, each call on a thread of its own.
//!
//! The thread that reads a call runs it, and another takes over the reading: nothing is handed from thread to thread
//! on the way to an answer. There is always one that reads, so that a call can be cancelled and gets its answers from
//! the host, whatever the others do.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use core_store::Store;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, fchdir, umask, waitid};
use sdk::abi::Method;
use sdk::{ErrorKind, UdfError};

use super::call::Call;
use super::culprit;
use super::descriptors::Descriptors;
use super::libraries::Libraries;
use super::wear::Wear;
use crate::lane::CUT_OFF;
use crate::lane::frames::{Frame, FromWorker, Incoming, MAX_FRAME, Run, ToWorker};
use crate::tether;

/// Threads that are kept for calls to come.
const KEPT: usize = 4;

/// Frames off the socket, each call on a thread of its own.
pub(super) struct Serving {
    socket: UnixStream,
    writing: Mutex<()>,
    incoming: Mutex<Incoming>,
    /// Threads that wait for a call.
    idle: AtomicUsize,
    calls: Mutex<HashMap<u64, Arc<Progress>>>,
    pub(super) store: Store,
    pub(super) libraries: Libraries,
    pub(super) descriptors: Descriptors,
    /// Where the host was started.
    place: OwnedFd,
    /// What new files are not open to, as the host was started.
    mask: Mode,
    /// Its process id.
    host: u32,
    wear: Wear,
}

/// What arrives for a call while it runs.
#[derive(Debug, Default)]
pub(super) struct Progress {
    cancelled: AtomicBool,
    answers: Mutex<Answers>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Answers {
    requests: u64,
    waiting: HashMap<u64, Frame>,
}

impl Progress {
    /// Whether nobody wants the answer any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serving {
    /// Serves the socket of the host with this process id; `incoming` is what was read off it already.
    ///
    /// # Errors
    /// The working directory cannot be opened.
    pub(super) fn new(
        host: u32,
        wear: Wear,
        socket: UnixStream,
        incoming: Incoming,
        store: Store,
        descriptors: Descriptors,
    ) -> io::Result<Arc<Self>> {
        // It can only be asked for by setting it; no other thread makes files yet.
        let mask = umask(Mode::from_raw_mode(0o077));
        umask(mask);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Arc::new(Self {
            socket,
            writing: Mutex::default(),
            incoming: Mutex::new(incoming),
            idle: AtomicUsize::new(0),
            calls: Mutex::default(),
            store,
            libraries: Libraries::default(),
            descriptors,
            place: rustix::fs::open(".", flags, Mode::empty())?,
            mask,
            host,
            wear,
        }))
    }

    /// Starts the first thread.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<()> {
        let serving = Arc::clone(self);
        self.idle.fetch_add(1, Ordering::AcqRel);
        let started =
            thread::Builder::new().name("call".to_owned()).spawn(move || serving.serve()).map(drop);
        if started.is_err() {
            self.idle.fetch_sub(1, Ordering::AcqRel);
        }
        started
    }

    /// One thread's life; it counts as idle when it comes here.
    fn serve(self: &Arc<Self>) {
        stand_alone();
        loop {
            let (frame, came, progress) = self.next_call();
            if let Ok(ToWorker::Run(run)) = frame.for_worker() {
                self.run(frame.call, &run, came, &progress);
            }
            if self.idle.fetch_add(1, Ordering::AcqRel) >= KEPT {
                self.idle.fetch_sub(1, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Reads until there is a call. On return another thread reads, or is about to.
    fn next_call(self: &Arc<Self>) -> (Frame, Instant, Arc<Progress>) {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let frame = match incoming.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => match incoming.fill(&self.socket) {
                    Ok(1..) => continue,
                    Ok(0) => tether::end_all(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => self.cut_off(&error),
                },
                Err(_) => tether::end_all(),
            };
            match frame.for_worker() {
                Ok(ToWorker::Run(_)) => {
                    let came = Instant::now();
                    let last = self.idle.fetch_sub(1, Ordering::AcqRel) == 1;
                    if last && self.start().is_err() {
                        self.idle.fetch_add(1, Ordering::AcqRel);
                        self.send(&FromWorker::NoRoom, frame.call);
                        continue;
                    }
                    // Known before anything else is read: the next frame may be about it.
                    let progress = Arc::<Progress>::default();
                    self.calls().insert(frame.call, Arc::clone(&progress));
                    return (frame, came, progress);
                }
                Ok(ToWorker::Cancel) => {
                    if let Some(progress) = self.calls().get(&frame.call) {
                        progress.cancelled.store(true, Ordering::Relaxed);
                    }
                }
                Ok(ToWorker::Answer { request, .. }) => {
                    let progress = self.calls().get(&frame.call).cloned();
                    if let Some(progress) = progress {
                        progress.answers().waiting.insert(request, frame);
                        progress.came.notify_all();
                    }
                }
                Ok(ToWorker::Hello { .. }) | Err(_) => tether::end_all(),
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Arc<Progress>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, number: u64, run: &Run<'_>, came: Instant, progress: &Progress) {
        // What an earlier call of the project changed is not this one's affair.
        let _gone = fchdir(&self.place);
        self.restore_mask();
        self.descriptors.restore();
        let deadline = came + Duration::from_micros(run.left_us);
        let call = Call::new(self, number, progress, deadline, run.reading);
        culprit::runs(number);
        let outcome = self
            .libraries
            .get(Path::new(run.artifact))
            .and_then(|library| call.run(&library, run))
            .and_then(|reply| reply.encode())
            .and_then(|reply| match reply.len() {
                length if length < MAX_FRAME - 64 => Ok(reply),
                length => Err(UdfError::new(
                    ErrorKind::Internal,
                    format!("its reply of {length} bytes is larger than {MAX_FRAME}"),
                )),
            })
            .map_err(|error| error.encode());
        culprit::runs(0);
        let reply = FromWorker::Reply {
            outcome: outcome.as_deref().map_err(Vec::as_slice),
            beyond: call.asked_beyond_collections(),
            leftovers: has_children(),
            worn: self.wear.is_worn(&self.place),
        };
        // Before the reply: when the host has it, the call is over on both sides.
        self.calls().remove(&number);
        self.descriptors.restore();
        self.send(&reply, number);
    }

    /// What is made from here on is open to whom the host was started to open it.
    pub(super) fn restore_mask(&self) {
        umask(self.mask);
    }

    /// Sends a frame. A host that does not take it is gone, and the thread that reads will notice.
    pub(super) fn send(&self, frame: &FromWorker<'_>, call: u64) {
        let bytes = frame.encode(call);
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = (&self.socket).write_all(&bytes) {
            self.cut_off(&error);
        }
    }

    /// The end, when the socket cannot be used: the host is gone, or an operation has closed it, as one does that closes
    /// whatever is open.
    fn cut_off(&self, error: &io::Error) -> ! {
        let closed_here = error.raw_os_error() == Some(Errno::BADF.raw_os_error());
        if closed_here && tether::has_parent(self.host) {
            // The host ends what is left here, and learns by this code that it was no kill of somebody's.
            // SAFETY: nothing of this process is used afterwards.
            unsafe { libc::_exit(CUT_OFF) };
        }
        tether::end_all()
    }

    /// Asks the host for something and waits for its answer.
    pub(super) fn ask(
        &self,
        call: u64,
        progress: &Progress,
        method: Method,
        frame: &[u8],
    ) -> Result<Vec<u8>, UdfError> {
        let request = {
            let mut answers = progress.answers();
            answers.requests += 1;
            answers.requests
        };
        self.send(&FromWorker::Request { request, method: method.0, frame }, call);
        let mut answers = progress.answers();
        // The host answers every request of a call that it still waits for; if it dies, so do we.
        let answer = loop {
            match answers.waiting.remove(&request) {
                Some(answer) => break answer,
                None => {
                    answers = progress.came.wait(answers).unwrap_or_else(PoisonError::into_inner)
                }
            }
        };
        drop(answers);
        match answer.for_worker() {
            Ok(ToWorker::Answer { outcome: Ok(reply), .. }) => Ok(reply.to_vec()),
            Ok(ToWorker::Answer { outcome: Err(error), .. }) => Err(UdfError::decode(error)),
            _ => Err(UdfError::new(ErrorKind::Internal, "the host's answer cannot be read")),
        }
    }
}

/// From here on this thread has a working directory and a umask of its own: where one call goes, no other call that runs
/// at that moment goes with it.
fn stand_alone() {
    // SAFETY: it changes nothing but what this thread shares with others, and none of our code counts on sharing that.
    // Where it is forbidden all calls stand in one place, as they do in the host's own process.
    let _forbidden = unsafe { libc::unshare(libc::CLONE_FS) };
}

/// Whether processes that this one started are still there, ended or not.
fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}
