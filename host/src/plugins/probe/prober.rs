//! [`Prober`]: the near side of a probe.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::{Finding, child};
use crate::plugins::refusal::Refusal;
use crate::{program, tether};

/// What opening one file may take. Far more than any needs, for machines that are busy building.
const LIMIT: Duration = Duration::from_secs(10);
/// How often to see whether a child that says nothing is still there.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of an answer.
const ANSWER: usize = 16 << 20;
/// How much of the child's last words is kept.
const LAST_WORDS: u64 = 4 << 10;

/// Opens files in a child process and tells what they are. The child is started at the first file and takes all
/// others too, unless one ends it.
#[derive(Debug)]
pub(crate) struct Prober {
    limit: Duration,
    child: Option<Running>,
}

/// What came of one file.
#[derive(Debug)]
pub(super) struct Probed {
    pub(super) finding: Finding,
    /// Whether another probe would find the same: a child that was killed or that took too long may have been unlucky.
    pub(super) lasting: bool,
}

#[derive(Debug)]
struct Running {
    child: Child,
    asks: ChildStdin,
    answers: ChildStdout,
    last_words: Option<File>,
    /// Whether it has opened other files before.
    used: bool,
}

/// Why there is no answer.
#[derive(Debug)]
enum Silence {
    /// The child ended.
    Ended(ExitStatus),
    /// The child did not answer in time, and was killed.
    TooLong,
    /// The child could not be asked.
    Failed(io::Error),
}

impl Default for Prober {
    fn default() -> Self {
        Self { limit: LIMIT, child: None }
    }
}

impl Prober {
    pub(super) fn probe(&mut self, file: &Path) -> Probed {
        let Some(program) = program::own() else {
            // A test or bench of the host as a library, over artifacts that it has just built.
            return Probed { finding: child::look(file), lasting: false };
        };
        loop {
            let mut running = match self.child.take() {
                Some(running) => running,
                None => match Running::start(&program) {
                    Ok(running) => running,
                    Err(error) => return no_child(file, &error),
                },
            };
            let answer = running.ask(file, self.limit);
            match answer {
                Ok(finding) => {
                    running.used = true;
                    self.child = Some(running);
                    return Probed { finding, lasting: true };
                }
                // A thread of a file before this one may have done it: this one gets a child of its own.
                Err(_) if running.used => running.end(),
                Err(silence) => {
                    let probed = running.unanswered(file, &silence, self.limit);
                    running.end();
                    return probed;
                }
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if let Some(running) = self.child.take() {
            running.end();
        }
    }
}

impl Running {
    fn start(program: &Path) -> io::Result<Self> {
        let last_words = tempfile::tempfile().ok();
        let stderr = last_words.as_ref().and_then(|file| file.try_clone().ok());
        let mut command = Command::new(program);
        program::hide_settings(&mut command);
        let mut child = command
            .arg0("udf-host")
            .args(["probe", "-", "--host", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr.map_or_else(Stdio::null, Stdio::from))
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(asks), Some(answers)) => {
                Ok(Self { child, asks, answers, last_words, used: false })
            }
            _ => Err(io::Error::other("the child has no pipes")),
        }
    }

    fn ask(&mut self, file: &Path, limit: Duration) -> Result<Finding, Silence> {
        let deadline = Instant::now() + limit;
        let mut question = file.as_os_str().as_bytes().to_vec();
        question.push(0);
        let asked = self.asks.write_all(&question);
        let line = match asked.and_then(|()| self.line(deadline)) {
            Ok(Some(line)) => line,
            Ok(None) => return Err(self.silence(deadline)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Silence::TooLong),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(self.silence(deadline));
            }
            Err(error) => return Err(Silence::Failed(error)),
        };
        serde_json::from_slice(&line).map_err(|error| Silence::Failed(error.into()))
    }

    /// The next line of the child; none when it has ended.
    fn line(&mut self, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut piece = [0; 8 << 10];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let slice = Timespec::try_from(left.min(LOOK)).map_err(io::Error::other)?;
            let answers = self.answers.as_fd();
            match poll(&mut [PollFd::new(&answers, PollFlags::IN)], Some(&slice)) {
                Ok(0) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                // A child of the child may hold the pipe open when the child itself is gone.
                Ok(0) if tether::has_ended(&self.child) => return Ok(None),
                Ok(0) => continue,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let read = self.answers.read(&mut piece)?;
            if read == 0 {
                return Ok(None);
            }
            line.extend_from_slice(&piece[..read]);
            if line.last() == Some(&b'\n') {
                return Ok(Some(line));
            }
            if line.len() > ANSWER {
                return Err(io::Error::other("its description of itself has no end"));
            }
        }
    }

    /// Why nothing comes of the child any more. It has ended as a rule, and what it has started ends with it; but it may
    /// have closed its pipes and live.
    fn silence(&mut self, deadline: Instant) -> Silence {
        while !tether::has_ended(&self.child) {
            if Instant::now() >= deadline {
                return Silence::TooLong;
            }
            sleep(LOOK / 20);
        }
        tether::bury(&mut self.child).map_or_else(Silence::Failed, Silence::Ended)
    }

    /// The refusal of a file that the child did not answer about.
    fn unanswered(&mut self, file: &Path, silence: &Silence, limit: Duration) -> Probed {
        let (found, lasting) = match silence {
            Silence::Ended(status) => match status.signal() {
                Some(signal) => {
                    let killed = signal == Signal::KILL.as_raw();
                    (format!("the process ended by {}", signal_name(signal)), !killed)
                }
                None => {
                    let code = status.code().unwrap_or_default();
                    (format!("the process ended with exit code {code}"), true)
                }
            },
            Silence::TooLong => (format!("no answer within {} s", limit.as_secs()), false),
            Silence::Failed(error) => (format!("no answer: {error}"), false),
        };
        let refusal = Refusal::new(
            "its initialisers end or hold up the process that opens it",
            "remove what runs when the library is opened, or what its description of itself does, and build it again",
        )
        .compared("a library that opens and describes itself", found)
        .file(file);
        let refusal = match self.last_words() {
            words if words.is_empty() => refusal,
            words => refusal.detail(words),
        };
        let refusal = if lasting { refusal } else { refusal.passing() };
        Probed { finding: Finding::Refused(refusal), lasting }
    }

    fn last_words(&mut self) -> String {
        let mut words = Vec::new();
        if let Some(file) = &mut self.last_words {
            let length = file.metadata().map_or(0, |facts| facts.len());
            let tail = file
                .seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))
                .and_then(|_| file.take(LAST_WORDS).read_to_end(&mut words));
            if let Err(error) = tail {
                tracing::debug!(%error, "the last words of a probe are lost");
            }
        }
        String::from_utf8_lossy(&words).trim().to_owned()
    }

    /// Ends the child and all that it started.
    fn end(mut self) {
        tether::end(&mut self.child);
    }
}

fn no_child(file: &Path, error: &io::Error) -> Probed {
    let refusal = Refusal::new(
        "it cannot be probed: no child process can be started",
        "raise the limit on processes or memory, and start the host again",
    )
    .file(file)
    .detail(error.to_string())
    .passing();
    Probed { finding: Finding::Refused(refusal), lasting: false }
}

/// The usual name of a signal that ends processes.
fn signal_name(signal: i32) -> String {
    let name = match Signal::from_named_raw(signal) {
        Some(Signal::ABORT) => "SIGABRT",
        Some(Signal::SEGV) => "SIGSEGV",
        Some(Signal::BUS) => "SIGBUS",
        Some(Signal::ILL) => "SIGILL",
        Some(Signal::FPE) => "SIGFPE",
        Some(Signal::KILL) => "SIGKILL",
        Some(Signal::XFSZ) => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
