//! Where log lines go: a bounded buffer that one thread empties into standard error.
//!
//! No caller ever waits for a reader. A closed standard error swallows the lines, a full one makes the buffer fill and
//! then lines are counted instead of kept; the host goes on in both cases.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes kept for a reader that lags.
const CAPACITY: usize = 1 << 20;
/// Lines of one moment are written together, so that a busy host wakes the writer a hundred times a second at most.
const PAUSE: Duration = Duration::from_millis(10);

/// The near end of the buffer; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Sink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    buffer: Mutex<Buffer>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Buffer {
    lines: Vec<u8>,
    dropped: u64,
    writing: bool,
    waiting: bool,
}

impl Sink {
    /// A sink whose thread writes to `out`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(out: File) -> io::Result<Sink> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("log".to_owned()).spawn(move || theirs.write_all_to(out))?;
        Ok(Sink(shared))
    }

    /// Adds whole lines, or counts them as dropped when the reader is too far behind.
    pub(crate) fn push(&self, lines: &[u8]) {
        let mut buffer = self.0.lock();
        if buffer.lines.len() + lines.len() > CAPACITY {
            buffer.dropped += 1;
            return;
        }
        buffer.lines.extend_from_slice(lines);
        if buffer.waiting {
            self.0.changed.notify_all();
        }
    }

    /// Waits until everything is written, at most `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut buffer = self.0.lock();
        while !buffer.lines.is_empty() || buffer.writing {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            buffer =
                self.0.changed.wait_timeout(buffer, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Write for &Sink {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all_to(&self, mut out: File) {
        let mut taken = Vec::new();
        loop {
            {
                let mut buffer = self.lock();
                buffer.writing = false;
                self.changed.notify_all();
                while buffer.lines.is_empty() {
                    buffer.waiting = true;
                    buffer = self.changed.wait(buffer).unwrap_or_else(PoisonError::into_inner);
                }
                buffer.waiting = false;
                buffer.writing = true;
                std::mem::swap(&mut buffer.lines, &mut taken);
                if buffer.dropped > 0 {
                    let note = format!(
                        "… {} log lines dropped: the reader of standard error lags\n",
                        buffer.dropped
                    );
                    taken.extend_from_slice(note.as_bytes());
                    buffer.dropped = 0;
                }
            }
            write_patiently(&mut out, &taken);
            taken.clear();
            thread::sleep(PAUSE);
        }
    }
}

/// Writes through interruptions and a full non-blocking pipe; gives up on any other failure, since a log that cannot
/// be written has nowhere to say so.
fn write_patiently(out: &mut File, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    fn pipe() -> (File, File) {
        let (read, write) = io::pipe().unwrap();
        (File::from(OwnedFd::from(read)), File::from(OwnedFd::from(write)))
    }

    #[test]
    fn lines_arrive_whole_and_in_order() {
        let (mut read, write) = pipe();
        let sink = Sink::start(write).unwrap();
        for line in 0..1000 {
            sink.push(format!("{line}\n").as_bytes());
        }
        sink.flush(Duration::from_secs(5));
        let mut text = vec![0; 3890];
        read.read_exact(&mut text).unwrap();
        let want: String = (0..1000).map(|line| format!("{line}\n")).collect();
        assert_eq!(String::from_utf8(text).unwrap(), want);
    }

    #[test]
    fn a_reader_that_never_reads_stops_nobody_and_a_late_one_hears_of_the_loss() {
        let (mut read, write) = pipe();
        let sink = Sink::start(write).unwrap();
        let line = [b'x'; 1023].into_iter().chain(*b"\n").collect::<Vec<u8>>();
        for _ in 0..10_000 {
            sink.push(&line);
        }
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            let mut piece = [0; 65536];
            while !String::from_utf8_lossy(&seen).contains("log lines dropped") {
                let read = read.read(&mut piece).unwrap();
                seen.extend_from_slice(&piece[..read]);
            }
        });
        reader.join().unwrap();
    }

    #[test]
    fn a_closed_reader_is_survived() {
        let (read, write) = pipe();
        let sink = Sink::start(write).unwrap();
        drop(read);
        sink.push(b"one\n");
        sink.flush(Duration::from_secs(5));
        sink.push(b"two\n");
        sink.flush(Duration::from_secs(5));
        assert!(sink.0.lock().lines.is_empty());
    }
}
