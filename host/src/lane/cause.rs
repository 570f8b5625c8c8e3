//! [`Cause`]: what ended a worker, as far as the system and its last words tell.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::plugins::Address;

/// What ended a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A signal that nobody here sent.
    Signal(i32),
    /// It left with this code.
    Exit(i32),
    /// A thread of it used up its stack.
    Stack,
    /// It asked for more memory than a worker may have.
    Memory {
        /// MiB that a worker may have.
        limit: u64,
    },
    /// It started more processes than a worker may have, and was killed for it.
    Processes {
        /// Processes that a worker may have started.
        limit: usize,
    },
    /// It closed its connection to the host, or spoke what is no frame.
    Disconnected,
    /// It was killed since another call in it did not end in time.
    Neighbour {
        /// The operation that did not end.
        op: String,
    },
    /// The host ended it.
    HostEnds,
}

impl Cause {
    /// From the status of a worker that nobody killed, and the end of what it printed.
    pub(super) fn of(status: ExitStatus, last_words: &str, memory_mib: u64) -> Self {
        let Some(signal) = status.signal() else {
            return match status.code().unwrap_or_default() {
                CUT_OFF => Self::Disconnected,
                code => Self::Exit(code),
            };
        };
        // Both are printed by the runtime of Rust right before it aborts.
        if signal == ABORT && last_words.contains("memory allocation of ") {
            return Self::Memory { limit: memory_mib };
        }
        if signal == ABORT && last_words.contains("has overflowed its stack") {
            return Self::Stack;
        }
        Self::Signal(signal)
    }

    /// Whether this may well have come from outside, so that the operation is not to blame.
    pub(super) fn is_foreign(&self) -> bool {
        match self {
            Self::Signal(signal) => [KILL, TERM, HANGUP, INTERRUPT].contains(signal),
            Self::Neighbour { .. } | Self::HostEnds => true,
            Self::Exit(_)
            | Self::Stack
            | Self::Memory { .. }
            | Self::Processes { .. }
            | Self::Disconnected => false,
        }
    }
}

/// Who else ran in a worker that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Company {
    /// Nobody who has to do with it.
    None,
    /// This operation ended it.
    Culprit(Box<Address>),
    /// So many other calls, any of which may have ended it.
    Suspects(usize),
}

impl fmt::Display for Company {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None | Self::Suspects(0) => Ok(()),
            Self::Culprit(op) => write!(f, "; `{op}`, which ran in the same worker, ended it"),
            Self::Suspects(1) => f.write_str("; another call ran in the same worker"),
            Self::Suspects(many) => write!(f, "; {many} other calls ran in the same worker"),
        }
    }
}

/// Of the last words what says why: a few lines, without the stack that may follow them.
pub(super) fn gist(last_words: &str) -> String {
    const LINES: usize = 6;
    let is_frame = |line: &str| line.starts_with(' ') || line.starts_with("note:");
    let words = match last_words.trim().rsplit_once("\nstack backtrace:\n") {
        Some((words, stack)) if stack.lines().all(is_frame) => words,
        _ => last_words.trim(),
    };
    let lines: Vec<&str> = words.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => match SIGNALS.iter().find(|(number, ..)| number == signal) {
                Some((_, name, words)) => write!(f, "signal {signal} ({name}: {words})"),
                None => write!(f, "signal {signal}"),
            },
            Self::Exit(code) => write!(f, "it left with exit code {code}"),
            Self::Stack => f.write_str("stack overflow (signal 6, SIGABRT)"),
            Self::Memory { limit } => {
                write!(f, "out of memory: a worker may have {limit} MiB (signal 6, SIGABRT)")
            }
            Self::Processes { limit } => {
                write!(f, "it started more than {limit} processes and was killed")
            }
            Self::Disconnected => f.write_str("it closed its connection to the host"),
            Self::Neighbour { op } => {
                write!(f, "it was killed since `{op}`, which ran in it, did not end in time")
            }
            Self::HostEnds => f.write_str("the host is ending"),
        }
    }
}

/// The exit code of a worker that found its socket closed by what ran in it.
pub(crate) const CUT_OFF: i32 = 119;

const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const ABORT: i32 = 6;
const KILL: i32 = 9;
const TERM: i32 = 15;

/// The signals that end processes, by their Linux numbers.
const SIGNALS: [(i32, &str, &str); 13] = [
    (HANGUP, "SIGHUP", "the terminal is gone"),
    (INTERRUPT, "SIGINT", "interrupted"),
    (3, "SIGQUIT", "quit"),
    (4, "SIGILL", "it ran what is no instruction"),
    (5, "SIGTRAP", "it met a breakpoint"),
    (ABORT, "SIGABRT", "it aborted"),
    (7, "SIGBUS", "it used memory that is not there"),
    (8, "SIGFPE", "it calculated the impossible"),
    (KILL, "SIGKILL", "it was killed"),
    (11, "SIGSEGV", "it used memory that is not its own"),
    (13, "SIGPIPE", "nobody read what it wrote"),
    (TERM, "SIGTERM", "it was told to end"),
    (31, "SIGSYS", "it made a system call that is not allowed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_of_last_words_is_the_message_before_the_last_stack() {
        let stack = "stack backtrace:\n   0: a\n             at /x.rs:1\nnote: Some details";
        for (words, want) in [
            ("", ""),
            ("a\nb\n", "a\nb"),
            ("1\n2\n3\n4\n5\n6\n7", "2\n3\n4\n5\n6\n7"),
            (
                &format!("old\n{stack}\nthe message\n{stack}\n"),
                &format!("old\n{stack}\nthe message"),
            ),
            (&format!("the message\n{stack}\nlater"), &format!("the message\n{stack}\nlater")),
        ] {
            assert_eq!(gist(words), want, "{words}");
        }
    }

    #[test]
    fn the_status_and_the_last_words_tell_the_cause() {
        for (status, words, want) in [
            (0, "", "it left with exit code 0"),
            (3 << 8, "", "it left with exit code 3"),
            (CUT_OFF << 8, "", "it closed its connection to the host"),
            (11, "", "signal 11 (SIGSEGV: it used memory that is not its own)"),
            (6, "", "signal 6 (SIGABRT: it aborted)"),
            (
                6,
                "\nthread 'call' has overflowed its stack\nfatal runtime error: stack overflow",
                "stack overflow (signal 6, SIGABRT)",
            ),
            (
                6,
                "memory allocation of 8589934592 bytes failed\n",
                "out of memory: a worker may have 1024 MiB (signal 6, SIGABRT)",
            ),
            (9, "memory allocation of", "signal 9 (SIGKILL: it was killed)"),
            (64, "", "signal 64"),
        ] {
            let cause = Cause::of(ExitStatus::from_raw(status), words, 1024);
            assert_eq!(cause.to_string(), want, "{status}");
        }
    }
}
