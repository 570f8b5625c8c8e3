//! [`Link`]: the host's end of a worker's socket, shared by the calls that run in that worker.
//!
//! No thread of its own reads it: whoever waits for an answer and finds nobody reading reads for all, and when it has
//! its own it wakes the next. So the answer to a single call wakes one thread, the one that waits for it.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frames::{Frame, Incoming};

/// The host's end of a worker's socket.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    writing: Mutex<()>,
    incoming: Mutex<Incoming>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seats: HashMap<u64, Seat>,
    /// Whether somebody reads the socket.
    read: bool,
    /// Nothing will come any more.
    lost: bool,
}

/// Where the frames of one call wait for its thread.
#[derive(Debug, Default)]
struct Seat {
    inbox: VecDeque<Frame>,
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

/// Why a frame was not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The time was up before the worker took the first byte.
    Late,
    /// The worker is gone, or took half a frame.
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
            writing: Mutex::default(),
            incoming: Mutex::default(),
            state: Mutex::default(),
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

    /// Frames of the call that still come are dropped.
    pub(super) fn leave(&self, call: u64) {
        let mut state = self.state();
        state.seats.remove(&call);
        state.hand_over();
    }

    /// Whether the worker was found to be gone.
    pub(super) fn is_lost(&self) -> bool {
        self.state().lost
    }

    /// Says that the worker is gone, to everybody who waits.
    pub(super) fn lose(&self) {
        let mut state = self.state();
        state.lost = true;
        for seat in state.seats.values() {
            seat.wake.notify_all();
        }
    }

    /// Sends a frame, or nothing of it when the worker does not take it by `until`.
    pub(super) fn send(&self, frame: &[u8], until: Instant) -> Result<(), Unsent> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = frame;
        while !rest.is_empty() {
            match (&self.socket).write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.ready(PollFlags::OUT, until) {
                        let untouched = rest.len() == frame.len();
                        return Err(if untouched { Unsent::Late } else { Unsent::Lost });
                    }
                }
                Err(_) => return Err(Unsent::Lost),
            }
        }
        Ok(())
    }

    /// The next frame of the call.
    pub(super) fn next(&self, call: u64, until: Instant) -> Next {
        let mut state = self.state();
        loop {
            let (lost, read) = (state.lost, state.read);
            let Some(seat) = state.seats.get_mut(&call) else { return Next::Lost };
            if let Some(frame) = seat.inbox.pop_front() {
                state.hand_over();
                return Next::Frame(frame);
            }
            if lost {
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
                    state.lost = true;
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
        if !self.ready(PollFlags::IN, until) {
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

    /// Waits until the socket can be used; false when the time was up. A socket in trouble counts as usable: using it
    /// then tells the trouble.
    fn ready(&self, what: PollFlags, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wait = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&self.socket, what)], Some(&wait)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
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
                seat.inbox.push_back(frame);
                if call != reader {
                    seat.wake.notify_one();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;
    use std::time::Duration;

    use super::super::frames::FromWorker;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn pair() -> (Link, UnixStream) {
        let (link, theirs) = Link::pair().unwrap();
        (link, UnixStream::from(theirs))
    }

    fn reply(call: u64) -> Vec<u8> {
        FromWorker::Reply { outcome: Ok(&call.to_le_bytes()), beyond: false, leftovers: false }
            .encode(call)
    }

    #[test]
    fn every_call_gets_its_own_frames_whoever_reads_them() {
        let (link, mut theirs) = pair();
        const CALLS: u64 = 8;
        const ROUNDS: usize = 200;
        (0..CALLS).for_each(|call| link.take_seat(call));
        let link = &link;
        thread::scope(|scope| {
            for call in 0..CALLS {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let Next::Frame(frame) = link.next(call, Instant::now() + LONG) else {
                            panic!("no frame for {call}")
                        };
                        let FromWorker::Reply { outcome, .. } = frame.of_worker().unwrap() else {
                            panic!("not a reply")
                        };
                        assert_eq!(outcome, Ok(&call.to_le_bytes()[..]));
                    }
                    link.leave(call);
                });
            }
            for round in 0..ROUNDS as u64 {
                for call in 0..CALLS {
                    theirs.write_all(&reply((call + round) % CALLS)).unwrap();
                }
            }
        });
    }

    #[test]
    fn a_wait_ends_at_its_time_and_at_the_end_of_the_worker() {
        let (link, theirs) = pair();
        link.take_seat(1);
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(matches!(link.next(1, soon), Next::Late));
        thread::scope(|scope| {
            scope.spawn(|| assert!(matches!(link.next(1, Instant::now() + LONG), Next::Lost)));
            drop(theirs);
        });
        assert!(link.is_lost());
        assert!(matches!(link.send(b"x", Instant::now() + LONG), Err(Unsent::Lost)));
    }

    #[test]
    fn a_worker_that_does_not_read_holds_nobody_up_for_longer_than_the_call_has() {
        let (link, mut theirs) = pair();
        let frame = vec![7; 1 << 20];
        let soon = || Instant::now() + Duration::from_millis(30);
        assert!(
            matches!(link.send(&frame, soon()), Err(Unsent::Lost)),
            "half of it is in the socket"
        );
        assert!(matches!(link.send(b"x", soon()), Err(Unsent::Late)), "nothing of it is");
        let mut some = vec![0; 4096];
        theirs.read_exact(&mut some).unwrap();
    }
}
