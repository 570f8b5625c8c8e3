//! [`Link`]: the host's end of a worker's socket, shared by the calls that run in that worker.
//!
//! No thread of its own reads it: whoever waits for an answer and finds nobody reading reads for all, and when it has
//! its own it wakes the next. So the answer to a single call wakes one thread, the one that waits for it.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frames::{Frame, Incoming};
use super::outbox::{Outbox, Unsent};

/// Frames that want no answer, and that a call has not come to yet. What a worker says beyond that is dropped: it must
/// not fill the host's memory.
const MOST_UNREAD: usize = 256;

/// The host's end of a worker's socket.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    outbox: Outbox,
    incoming: Mutex<Incoming>,
    state: Mutex<State>,
    /// Nothing is sent any more, and nothing comes but what is in the socket already.
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    seats: HashMap<u64, Seat>,
    /// Whether somebody reads the socket.
    read: bool,
    /// It has been read to its end.
    ended: bool,
}

/// Where the frames of one call wait for its thread.
#[derive(Debug, Default)]
struct Seat {
    inbox: VecDeque<Frame>,
    /// Frames of the call that were dropped.
    dropped: usize,
    waiting: bool,
    wake: Arc<Condvar>,
}

/// What a wait ended with.
#[derive(Debug)]
pub(super) enum Next {
    /// A frame of the call's.
    Frame(Frame),
    /// The time was up.
    Late,
    /// The worker is gone or no longer speaks.
    Lost,
}

impl Link {
    /// Both ends; the second one is the worker's.
    ///
    /// # Errors
    /// The system gives no socket.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let link = Self {
            socket: ours,
            outbox: Outbox::default(),
            incoming: Mutex::default(),
            state: Mutex::default(),
            closed: AtomicBool::new(false),
        };
        Ok((link, OwnedFd::from(theirs)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for the frames of a call; before its first frame is sent.
    pub(super) fn take_seat(&self, call: u64) {
        self.state().seats.insert(call, Seat::default());
    }

    /// Frames of the call that still come are dropped; how many were while it had its seat.
    pub(super) fn leave(&self, call: u64) -> usize {
        let mut state = self.state();
        let seat = state.seats.remove(&call);
        state.hand_over();
        seat.map_or(0, |seat| seat.dropped)
    }

    /// Whether the worker was found to be gone, or the link to it was closed.
    pub(super) fn is_lost(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Says that the worker is gone, to everybody who waits. What it had sent by then still arrives.
    pub(super) fn lose(&self) {
        self.closed.store(true, Ordering::Release);
        // Whoever reads finds what is in there already, then the end. It fails only when that is so anyway.
        let _ended = self.socket.shutdown(Shutdown::Both);
    }

    /// Sends a frame, or nothing of it when the worker does not take it by `until`.
    pub(super) fn send(&self, frame: &[u8], until: Instant) -> Result<(), Unsent> {
        let sent = self.outbox.send(&self.socket, frame, until);
        if matches!(sent, Err(Unsent::Lost)) {
            self.lose();
        }
        sent
    }

    /// The next frame of the call.
    pub(super) fn next(&self, call: u64, until: Instant) -> Next {
        let mut state = self.state();
        loop {
            let (ended, read) = (state.ended, state.read);
            let Some(seat) = state.seats.get_mut(&call) else { return Next::Lost };
            if let Some(frame) = seat.inbox.pop_front() {
                state.hand_over();
                return Next::Frame(frame);
            }
            if ended {
                return Next::Lost;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.hand_over();
                return Next::Late;
            }
            if read {
                let wake = Arc::clone(&seat.wake);
                seat.waiting = true;
                state = wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                if let Some(seat) = state.seats.get_mut(&call) {
                    seat.waiting = false;
                }
                continue;
            }
            state.read = true;
            drop(state);
            let read = self.read(until);
            state = self.state();
            state.read = false;
            match read {
                Ok(frames) => state.deliver(frames, call),
                Err(_) => {
                    self.closed.store(true, Ordering::Release);
                    state.ended = true;
                    for seat in state.seats.values() {
                        seat.wake.notify_all();
                    }
                }
            }
        }
    }

    /// Waits for bytes and cuts frames out of them; none when the time was up.
    fn read(&self, until: Instant) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        if !ready(&self.socket, PollFlags::IN, until) {
            return Ok(frames);
        }
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        match incoming.fill(&self.socket) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        while let Some(frame) = incoming.next()? {
            frames.push(frame);
        }
        Ok(frames)
    }
}

/// Waits until the socket can be used; false when the time was up. A socket in trouble counts as usable: using it then
/// tells the trouble.
pub(super) fn ready(socket: &UnixStream, what: PollFlags, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(socket, what)], Some(&wait)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

impl State {
    /// When nobody reads, wakes one who could.
    fn hand_over(&self) {
        if !self.read
            && let Some(seat) = self.seats.values().find(|seat| seat.waiting)
        {
            seat.wake.notify_one();
        }
    }

    /// Puts each frame to its call and wakes the threads that wait for them, except the one that read.
    fn deliver(&mut self, frames: Vec<Frame>, reader: u64) {
        for frame in frames {
            let call = frame.call;
            if let Some(seat) = self.seats.get_mut(&call) {
                if seat.inbox.len() >= MOST_UNREAD && frame.wants_no_answer() {
                    seat.dropped += 1;
                    continue;
                }
                seat.inbox.push_back(frame);
                if call != reader {
                    seat.wake.notify_one();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
