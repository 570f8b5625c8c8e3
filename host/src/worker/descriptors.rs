//! [`Descriptors`]: keeps the descriptors 0, 1 and 2 what they are.
//!
//! An operation may close them. The next file that is opened would get such a number, and what the operation prints
//! would land in that file: in a collection that is just being written, for example.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fstat};
use rustix::io::{fcntl_dupfd_cloexec, fcntl_getfd};
use rustix::stdio;

/// Ours are above what a program that closes "the first few" hits.
const OURS: i32 = 64;

/// Copies of what 0, 1 and 2 should be.
#[derive(Debug)]
pub(super) struct Descriptors {
    nothing: OwnedFd,
    output: OwnedFd,
}

/// Takes the socket off standard input, which is empty from here on.
///
/// # Errors
/// Standard input is no socket, or the system has no descriptors left.
pub(super) fn take() -> io::Result<(OwnedFd, Descriptors)> {
    let input = stdio::stdin();
    if FileType::from_raw_mode(fstat(input)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("standard input is no socket"));
    }
    let socket = fcntl_dupfd_cloexec(input, OURS)?;
    let nothing =
        fcntl_dupfd_cloexec(File::options().read(true).write(true).open("/dev/null")?, OURS)?;
    let output = fcntl_dupfd_cloexec(stdio::stderr(), OURS)?;
    stdio::dup2_stdin(&nothing)?;
    Ok((socket, Descriptors { nothing, output }))
}

impl Descriptors {
    /// Opens again what was closed. Costs well under a microsecond when nothing was.
    pub(super) fn restore(&self) {
        // When the system has none left, the operation's own next step fails for the same reason.
        if fcntl_getfd(stdio::stdin()).is_err() {
            let _full = stdio::dup2_stdin(&self.nothing);
        }
        if fcntl_getfd(stdio::stdout()).is_err() {
            let _full = stdio::dup2_stdout(&self.output);
        }
        if fcntl_getfd(stdio::stderr()).is_err() {
            let _full = stdio::dup2_stderr(&self.output);
        }
    }
}
