//! [`Outbox`]: the sending half of a worker's socket, for one call after the other.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use rustix::event::PollFlags;

use super::link::ready;

/// Lets one frame out at a time. Nobody waits for longer than he has time, whoever is before him.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Why a frame was not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The time was up before the worker took the first byte.
    Late,
    /// The worker is gone, or took half a frame.
    Lost,
}

impl Outbox {
    /// Sends a frame, or nothing of it when the worker does not take it by `until`. After half of one the socket is of no
    /// use any more.
    pub(super) fn send(
        &self,
        mut socket: &UnixStream,
        frame: &[u8],
        until: Instant,
    ) -> Result<(), Unsent> {
        let _turn = self.turn(until).ok_or(Unsent::Late)?;
        let mut rest = frame;
        while !rest.is_empty() {
            match socket.write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !ready(socket, PollFlags::OUT, until) {
                        let untouched = rest.len() == frame.len();
                        return Err(if untouched { Unsent::Late } else { Unsent::Lost });
                    }
                }
                Err(_) => return Err(Unsent::Lost),
            }
        }
        Ok(())
    }

    fn turn(&self, until: Instant) -> Option<Turn<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let (mut taken, _) = self
            .free
            .wait_timeout_while(taken, left, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        (!std::mem::replace(&mut *taken, true)).then_some(Turn(self))
    }
}

/// The right to send, until it is dropped.
struct Turn<'a>(&'a Outbox);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
    }
}
