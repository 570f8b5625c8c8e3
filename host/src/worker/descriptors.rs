//! [`Descriptors`]: keeps the descriptors 0, 1 and 2 what they are.
//!
//! An operation may close them. The next file that is opened would get such a number, and what the operation prints
//! would land in that file: in a collection that is just being written, for example.

use std::fs::{self, File};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

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

/// What the host gave this process.
pub(super) struct Taken {
    /// To the host.
    pub(super) socket: OwnedFd,
    /// For the number of the call that ends this process.
    pub(super) note: OwnedFd,
    /// From here on.
    pub(super) descriptors: Descriptors,
}

/// Takes what the host gave off standard input and output. The input is empty from here on, the output goes where the
/// errors go, and whatever else was open is closed: a worker has no use for what its host was started with.
///
/// For a process that has just begun and opened nothing yet.
///
/// # Errors
/// Standard input is no socket, or the system has no descriptors left.
pub(super) fn take() -> io::Result<Taken> {
    let input = stdio::stdin();
    if FileType::from_raw_mode(fstat(input)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("standard input is no socket"));
    }
    close_others()?;
    let socket = fcntl_dupfd_cloexec(input, OURS)?;
    let note = fcntl_dupfd_cloexec(stdio::stdout(), OURS)?;
    let nothing =
        fcntl_dupfd_cloexec(File::options().read(true).write(true).open("/dev/null")?, OURS)?;
    let output = fcntl_dupfd_cloexec(stdio::stderr(), OURS)?;
    stdio::dup2_stdin(&nothing)?;
    stdio::dup2_stdout(&output)?;
    Ok(Taken { socket, note, descriptors: Descriptors { nothing, output } })
}

fn close_others() -> io::Result<()> {
    let names = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name());
    let open: Vec<RawFd> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: only asked about, and not kept.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        // The one of the listing itself is closed already.
        if fcntl_getfd(borrowed).is_ok() {
            // SAFETY: nothing in this process owns it: it has only just begun.
            unsafe { rustix::io::close(descriptor) };
        }
    }
    Ok(())
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
