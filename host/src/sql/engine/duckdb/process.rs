//! [`Processes`]: the engine's processes, seen from the host.
//!
//! A statement can make DuckDB take memory that it does not count, work on after its time, or crash. In a process of its
//! own that ends the statement, and nothing else.

use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cells::blocks;
use super::read_of;
use super::session::GRACE;
use super::wire::{ASK, Ask, BLOCK, END, REPLY, RUN, Reply, Said, other, receive, send};
use crate::sql::answer::Answer;
use crate::sql::engine::{Outcome, Query};
use crate::sql::error::SqlError;
use crate::sql::feed::{Part, Wants};
use crate::{program, tether};

/// Processes that are kept for the next statements.
const KEPT: usize = 2;
/// How long all are kept: statements that come together come again.
const LINGER: Duration = Duration::from_secs(10);
/// What it may take to start one, and to hand over the rows of a table, on a machine that is busy.
const START: Duration = Duration::from_secs(30);

/// The processes that no statement runs in now.
#[derive(Default)]
pub(super) struct Processes(Arc<Mutex<Idle>>);

#[derive(Default)]
struct Idle {
    /// Those that ran a statement last come last.
    processes: Vec<Process>,
    /// Whether a thread waits to end those that are too many.
    watched: bool,
}

/// What came of a statement in a process, and whether that can be used again.
type Ran = (Result<Outcome, SqlError>, bool);

impl Processes {
    /// Runs a statement in one of them.
    ///
    /// # Errors
    /// What is wrong with it, that it takes too much, or that there is no process for it.
    pub(super) fn run(
        &self,
        (program, library): (&Path, &Path),
        query: &Query<'_>,
    ) -> Result<Outcome, SqlError> {
        let mut kept = idle(&self.0).processes.pop();
        loop {
            let used = kept.is_some();
            let mut process = match kept.take() {
                Some(process) => process,
                None => Process::start(program, library, query.limits.memory)?,
            };
            match process.run(query) {
                Ok((outcome, stays)) => {
                    if stays {
                        self.keep(process);
                    }
                    return outcome;
                }
                // It may have ended while nobody needed it, or what others took there left too little for this one.
                Err(silence) if used && !(silence.asked && is_timeout(&silence.error)) => {}
                Err(silence) => return Err(process.explain(&silence, query)),
            }
        }
    }

    fn keep(&self, process: Process) {
        let mut now = idle(&self.0);
        now.processes.push(process);
        if now.processes.len() > KEPT && !now.watched {
            let later = Arc::clone(&self.0);
            let end_surplus = move || {
                thread::sleep(LINGER);
                let mut now = idle(&later);
                now.watched = false;
                let surplus = now.processes.len().saturating_sub(KEPT);
                let ended: Vec<Process> = now.processes.drain(..surplus).collect();
                // To end one takes a moment, for which nobody has to wait.
                drop(now);
                drop(ended);
            };
            // Without a thread it is left to the next one that is kept.
            now.watched =
                thread::Builder::new().name("duckdb".to_owned()).spawn(end_surplus).is_ok();
        }
    }
}

fn idle(processes: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    processes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why there is no reply.
struct Silence {
    error: io::Error,
    /// Whether the process had answered anything of this statement.
    asked: bool,
}

struct Process {
    child: Child,
    asks: BufWriter<UnixStream>,
    replies: BufReader<UnixStream>,
    frame: Vec<u8>,
}

impl Drop for Process {
    fn drop(&mut self) {
        tether::end(&mut self.child);
    }
}

impl Process {
    /// Starts one, and waits until it has opened the library.
    fn start(program: &Path, library: &Path, memory: usize) -> Result<Self, SqlError> {
        let mut process = Self::spawn(program, library, memory)
            .map_err(|error| SqlError::Engine(format!("no process for the statement: {error}")))?;
        let why = match process.reply(START) {
            Ok(Reply { said: Said::Ready, .. }) => return Ok(process),
            Ok(Reply { said: Said::Engine(message), .. }) => return Err(SqlError::Engine(message)),
            Ok(_) => "its process speaks out of turn".to_owned(),
            Err(error) => match process.ended(&error) {
                Some(status) => format!("its process ended as it opened it ({})", how(status)),
                None if is_timeout(&error) => {
                    format!("it did not open within {} s", START.as_secs())
                }
                None => format!("its process does not answer: {error}"),
            },
        };
        Err(SqlError::Engine(format!("libduckdb cannot be used: {why}")))
    }

    fn spawn(program: &Path, library: &Path, memory: usize) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_write_timeout(Some(START))?;
        let replies = BufReader::with_capacity(1 << 16, ours.try_clone()?);
        let mut command = Command::new(program);
        program::hide_settings(&mut command);
        let child = command
            .arg0("udf-host")
            .args(["sql-engine", &memory.to_string(), "--"])
            .arg(library)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Nothing may fail from here on: what has started would be left to itself.
        let asks = BufWriter::with_capacity(1 << 16, ours);
        Ok(Self { child, asks, replies, frame: Vec::new() })
    }

    fn run(&mut self, query: &Query<'_>) -> Result<Ran, Silence> {
        let unasked = |error| Silence { error, asked: false };
        let asked = |error| Silence { error, asked: true };
        let reply = self.ask(query).map_err(unasked)?;
        match self.understood(reply, query) {
            Some(ran) => Ok(ran),
            None => {
                self.fill(query).map_err(asked)?;
                self.ran(query).map_err(asked)
            }
        }
    }

    fn ask(&mut self, query: &Query<'_>) -> io::Result<Reply> {
        send(&mut self.asks, ASK, &serde_json::to_vec(&Ask::of(query))?)?;
        self.asks.flush()?;
        self.reply(patience(query))
    }

    fn reply(&mut self, within: Duration) -> io::Result<Reply> {
        self.replies.get_ref().set_read_timeout(Some(within))?;
        match receive(&mut self.replies, &mut self.frame)? {
            Some(REPLY) => Ok(serde_json::from_slice(&self.frame)?),
            Some(_) => Err(other("no reply")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// What the reply says, unless it is that rows are awaited.
    fn understood(&self, Reply { said, last }: Reply, query: &Query<'_>) -> Option<Ran> {
        let outcome = match said {
            Said::Ready => return None,
            Said::Wants { table, part } => {
                let part = part.map(|(column, text)| Part { column, text });
                Ok(Outcome::Wants(Wants { table, part }))
            }
            Said::Refused(message) => Err(SqlError::Refused(message)),
            Said::Timeout => Err(SqlError::Timeout(query.limits.time)),
            Said::Engine(message) => Err(SqlError::Engine(message)),
            Said::Answer { columns, count, cut } => {
                Ok(Outcome::Answer(Answer { columns, rows: String::new(), count, cut }))
            }
        };
        Some((outcome, !last))
    }

    fn fill(&mut self, query: &Query<'_>) -> io::Result<()> {
        for (_, feed) in query.tables {
            for block in blocks(read_of(feed).map_err(io::Error::other)?) {
                send(&mut self.asks, BLOCK, &block)?;
            }
            send(&mut self.asks, END, &[])?;
        }
        send(&mut self.asks, RUN, &[])?;
        self.asks.flush()
    }

    fn ran(&mut self, query: &Query<'_>) -> io::Result<Ran> {
        let reply = self.reply(patience(query))?;
        let Some((mut outcome, stays)) = self.understood(reply, query) else {
            return Err(other("rows were awaited twice"));
        };
        if let Ok(Outcome::Answer(answer)) = &mut outcome {
            self.replies.get_ref().set_read_timeout(Some(START))?;
            let mut rows = Vec::new();
            match receive(&mut self.replies, &mut rows)? {
                Some(REPLY) => answer.rows = String::from_utf8(rows).map_err(io::Error::other)?,
                _ => return Err(other("no rows")),
            }
        }
        Ok((outcome, stays))
    }

    /// Ends it, and says why there is no answer.
    fn explain(mut self, silence: &Silence, query: &Query<'_>) -> SqlError {
        match self.ended(&silence.error) {
            Some(status) => SqlError::Refused(format!(
                "the statement ended DuckDB's own process ({}); it may need far more than {} MiB of memory: narrow it, or \
                 add a LIMIT",
                how(status),
                query.limits.memory >> 20
            )),
            None if is_timeout(&silence.error) => SqlError::Timeout(query.limits.time),
            None => {
                SqlError::Engine(format!("DuckDB's process does not answer: {}", silence.error))
            }
        }
    }

    /// How it has ended by itself, after such an error of the socket.
    fn ended(&mut self, error: &io::Error) -> Option<ExitStatus> {
        // Its end of the socket is closed a moment before it has ended.
        let moment = Instant::now() + GRACE;
        while !is_timeout(error) && !tether::has_ended(&self.child) && Instant::now() < moment {
            thread::sleep(Duration::from_millis(1));
        }
        if tether::has_ended(&self.child) { tether::bury(&mut self.child).ok() } else { None }
    }
}

/// How long a reply is waited for. The process interrupts a statement in time; what is deaf to that is ended with it.
fn patience(query: &Query<'_>) -> Duration {
    query.limits.time + GRACE * 2
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) if signal == Signal::ABORT.as_raw() => "aborted".to_owned(),
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}
