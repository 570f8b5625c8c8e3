//! [`Output`]: what a worker prints, line by line into the log. What is beyond the budget is read all the same, so that
//! nobody blocks on printing.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::logging::budget::Budget;

/// A line longer than this is cut into several.
const LINE: usize = 8 << 10;
/// How much of the end is kept: a runtime that aborts says why in its last lines, before it shows its stack.
const TAIL: usize = 32 << 10;
/// How long the end of the output is waited for. It comes at once when every holder of the pipe is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker prints.
#[derive(Debug, Clone, Default)]
pub(super) struct Output(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tail: Vec<u8>,
    ended: bool,
}

impl Output {
    /// Reads the pipe to its end on a thread of its own. `running` names what runs in the worker at that moment.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn follow(
        &self,
        pipe: OwnedFd,
        worker: u32,
        running: impl Fn() -> String + Send + 'static,
    ) -> io::Result<()> {
        let output = self.clone();
        let follow = move || {
            output.read(File::from(pipe), worker, &running);
            output.state().ended = true;
            output.0.changed.notify_all();
        };
        thread::Builder::new().name("worker-output".to_owned()).spawn(follow).map(drop)
    }

    /// The end of it, once the worker is gone.
    pub(super) fn last_words(&self) -> String {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state =
                self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        String::from_utf8_lossy(&state.tail).into_owned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut pipe: File, worker: u32, running: &impl Fn() -> String) {
        let mut piece = vec![0; 64 << 10];
        let mut log = Log { worker, budget: Budget::default(), line: Vec::new() };
        loop {
            match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    let piece = &piece[..read];
                    self.keep_tail(piece);
                    log.take(piece, running);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        log.end(running);
    }

    fn keep_tail(&self, piece: &[u8]) {
        let tail = &mut self.state().tail;
        tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL)..]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}

/// Lines on their way to the log.
struct Log {
    worker: u32,
    budget: Budget,
    line: Vec<u8>,
}

impl Log {
    fn take(&mut self, mut piece: &[u8], running: &impl Fn() -> String) {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&piece[..end]);
            piece = &piece[end + 1..];
            self.say(running);
        }
        self.line.extend_from_slice(piece);
        if self.line.len() >= LINE {
            self.say(running);
        }
    }

    fn say(&mut self, running: &impl Fn() -> String) {
        // An empty line is one, too.
        for part in self.line.chunks(LINE).chain(self.line.is_empty().then_some(&[][..])) {
            let (logged, dropped) = self.budget.spend(part.len());
            self.tell(dropped);
            if logged {
                let (op, text) = (running(), String::from_utf8_lossy(part));
                let text: String =
                    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                tracing::info!(target: "output", op, worker = self.worker, "{text}");
            }
        }
        self.line.clear();
    }

    fn tell(&self, dropped: usize) {
        if dropped > 0 {
            tracing::warn!(target: "output", worker = self.worker, bytes = dropped,
                "it prints more than is logged; the rest was dropped");
        }
    }

    fn end(&mut self, running: &impl Fn() -> String) {
        if !self.line.is_empty() {
            self.say(running);
        }
        self.tell(self.budget.dropped());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_tail_is_the_end_of_what_was_printed() {
        let (read, mut write) = io::pipe().unwrap();
        let output = Output::default();
        output.follow(OwnedFd::from(read), 1, String::new).unwrap();
        for n in 0..100_000 {
            writeln!(write, "line {n}").unwrap();
        }
        write.write_all(b"the last words").unwrap();
        drop(write);
        let words = output.last_words();
        assert!(words.ends_with("line 99999\nthe last words"), "{words}");
        assert!(words.len() <= TAIL);
    }
}
