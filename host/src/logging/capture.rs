//! Keeps standard output to its one line, and standard error from stopping a call.
//!
//! Plugins share the process, so a `println!` in one would follow the handshake, and a panic hook that writes to a full
//! standard error would block the call. Once serving, both descriptors lead into a pipe that this thread reads into
//! the log, line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

/// A line longer than this is cut into several.
const LINE: usize = 8 << 10;

/// A second descriptor of standard error, for the log itself.
pub(crate) fn stderr_copy() -> io::Result<File> {
    Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?))
}

/// Leads standard output and standard error into the log from here on.
///
/// # Errors
/// No pipe or thread could be made; both descriptors are as before then.
pub(crate) fn start() -> io::Result<()> {
    let (read, write) = io::pipe()?;
    let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
    thread::Builder::new().name("output".to_owned()).spawn(move || forward(File::from(read)))?;
    rustix::stdio::dup2_stdout(&write)?;
    rustix::stdio::dup2_stderr(&write)?;
    Ok(())
}

fn forward(from: File) {
    let mut from = BufReader::with_capacity(LINE, from);
    let mut line = Vec::new();
    loop {
        let (take, ended) = match from.fill_buf() {
            Ok([]) => return,
            Ok(piece) => match piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    line.extend_from_slice(&piece[..end]);
                    (end + 1, true)
                }
                None => {
                    line.extend_from_slice(piece);
                    (piece.len(), line.len() >= LINE)
                }
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        from.consume(take);
        if ended {
            if !line.is_empty() {
                tracing::info!(target: "output", "{}", String::from_utf8_lossy(&line));
            }
            line.clear();
        }
    }
}
