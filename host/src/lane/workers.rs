//! [`Workers`]: the call runs in a child process, so that whatever it does to its process costs one call.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sdk::abi::Method;
use sdk::wire::{CallRequest, HttpAsk, TraceRequest, Wire};
use sdk::{ErrorKind, Reply, UdfError};

use super::cause::{Cause, Company, gist};
use super::frames::{Frame, FromWorker, Run, ToWorker};
use super::link::Next;
use super::outbox::Unsent;
use super::pool::{NoPlace, Pool};
use super::process::{Death, Process, Start};
use super::supervisor::{PATROL, Supervisor};
use super::{Job, Lane};
use crate::error::HostError;
use crate::host_api::{Outside, Within, to_host_error};
use crate::plugins::Address;

/// What a call may take beyond its time before its worker is killed: it sees its deadline by itself.
const GRACE: Duration = Duration::from_millis(500);
/// What other calls in that worker then get to come to an end.
const LINGER: Duration = Duration::from_secs(2);
/// Between two looks at whether anybody still wants the answer.
const LOOK: Duration = Duration::from_millis(50);

/// Runs calls in worker processes.
#[derive(Debug)]
pub(crate) struct Workers {
    supervisor: Supervisor,
    pools: Mutex<HashMap<Key, Arc<Pool>>>,
    cap: usize,
    limit: usize,
}

/// Who shares workers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The operations of one project.
    Project(Arc<str>, Arc<str>),
    /// Nobody: it is in quarantine.
    Alone(Address),
}

/// What workers are started with.
#[derive(Debug, Clone)]
pub(crate) struct WorkerOptions {
    /// The program that knows the command `worker`.
    pub(crate) program: PathBuf,
    /// Most workers of one project.
    pub(crate) cap: usize,
    /// How long one that is not needed stays.
    pub(crate) idle: Duration,
    /// Bytes of memory that one may have.
    pub(crate) memory: u64,
    /// Whether a write is synced before it is acknowledged.
    pub(crate) synced: bool,
    /// How many calls the host runs at a time, for the message of one that finds no room.
    pub(crate) in_flight: usize,
}

impl Workers {
    /// Starts nothing yet but the thread that will.
    ///
    /// # Errors
    /// The system has none.
    pub(crate) fn new(options: WorkerOptions) -> io::Result<Self> {
        let WorkerOptions { program, cap, idle, memory, synced, in_flight } = options;
        Ok(Self {
            supervisor: Supervisor::spawn(Start { program, memory, synced }, idle)?,
            pools: Mutex::default(),
            cap,
            limit: in_flight,
        })
    }

    fn pool(&self, job: &Job<'_>) -> Arc<Pool> {
        let address = &job.entry.address;
        let alone = job.loaded.crashes.is_quarantined();
        let key = if alone {
            Key::Alone(address.clone())
        } else {
            Key::Project(Arc::clone(&address.workspace), Arc::clone(&address.project))
        };
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry(key).or_insert_with(|| {
            let (label, cap) = if alone {
                (address.to_string(), 1)
            } else {
                (format!("{}.{}", address.workspace, address.project), self.cap)
            };
            Arc::new(Pool::new(label, cap))
        }))
    }

    /// Takes note of a worker's end, once for each operation that ran in it.
    fn blame(&self, job: &Job<'_>, worker: &Process, death: &Death) {
        let (op, loaded) = (&job.entry.address, job.loaded);
        let is_suspect = match death.culprit() {
            Some((_, culprit)) => culprit == op,
            None => !death.cause.is_foreign(),
        };
        if !is_suspect || !worker.blame(op) {
            return;
        }
        let cause = &death.cause;
        if loaded.crashes.crashed(cause) {
            tracing::warn!(%op, %cause,
                "it ended its worker three times within a minute and is in quarantine: it gets a worker of its own");
        }
    }
}

impl Lane for Workers {
    fn run(&self, job: &Job<'_>) -> Result<Reply, HostError> {
        let op = &job.entry.address;
        // What only reads can be done again: whoever asked has seen nothing of it.
        let mut may_retry = job.loaded.is_read_only() && job.loaded.descriptor.calls.is_empty();
        loop {
            let pool = self.pool(job);
            let placed = pool.place(&self.supervisor, op, job.loaded, job.deadline);
            let (worker, call) = match placed {
                Ok(placed) => placed,
                Err(NoPlace::Late) => return Err(job.timeout()),
                Err(NoPlace::Failed(detail)) => {
                    let message = format!("no worker could be started for `{op}`");
                    return Err(HostError::Internal { message, detail });
                }
            };
            let visit = Visit { workers: self, job, worker: &worker, call };
            let ended = visit.run();
            let lines = worker.leave(call, matches!(ended, Ended::Reply(_)));
            if lines > 0 {
                tracing::warn!(%op, request = %job.call.request_id, lines,
                    "it says more than the host can log; the rest was dropped");
            }
            let death = match ended {
                Ended::Reply(reply) => {
                    return reply.map_err(|error| to_host_error(&error, job, self.limit));
                }
                Ended::Late => return Err(job.timeout()),
                Ended::NotBegun if Instant::now() < job.deadline => continue,
                Ended::NotBegun => return Err(job.timeout()),
                Ended::Dead(death) => death,
            };
            self.blame(job, &worker, &death);
            let others = death.victims.len().saturating_sub(1);
            let culprit = death.culprit();
            let is_culprit = match culprit {
                Some((number, _)) => number == call,
                None => others == 0 && !death.cause.is_foreign(),
            };
            if may_retry
                && !is_culprit
                && death.cause != Cause::HostEnds
                && Instant::now() < job.deadline
            {
                tracing::info!(%op, request = %job.call.request_id, cause = %death.cause, "its worker ended; it is run again");
                may_retry = false;
                continue;
            }
            let company = match culprit {
                Some((number, _)) if number == call => Company::None,
                Some((_, other)) => Company::Culprit(Box::new(other.clone())),
                None => Company::Suspects(others),
            };
            let detail = gist(&death.last_words);
            return Err(HostError::Crashed { op: op.clone(), cause: death.cause, company, detail });
        }
    }
}

/// One call in its worker.
struct Visit<'a> {
    workers: &'a Workers,
    job: &'a Job<'a>,
    worker: &'a Arc<Process>,
    call: u64,
}

/// How it ended.
enum Ended {
    Reply(Result<Reply, UdfError>),
    /// Its time was up, and it has been killed if it still ran.
    Late,
    /// The worker was gone before it had the whole request.
    NotBegun,
    Dead(Death),
}

impl Visit<'_> {
    fn run(&self) -> Ended {
        let (job, link) = (self.job, &self.worker.link);
        let app_dir = job.dispatcher.app_dir(job.call.app_dir.as_deref());
        let Some((app_dir, artifact)) = texts(&app_dir, &job.loaded.artifact) else {
            let message =
                "its state folder has a name that is not UTF-8, which a worker cannot be told";
            return Ended::Reply(Err(UdfError::new(ErrorKind::BadParameter, message)));
        };
        let left = job.deadline.saturating_duration_since(Instant::now());
        let run = ToWorker::Run(Run {
            op: &job.entry.address.to_string(),
            artifact,
            app_dir,
            left_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX),
            reading: job.call.reading.is_some(),
            params: job.call.params.iter().map(|(name, text)| (&**name, &**text)).collect(),
        });
        match link.send(&run.encode(self.call), job.deadline) {
            Ok(()) => self.follow(),
            Err(Unsent::Late) => Ended::Late,
            Err(Unsent::Lost) => {
                let _why = self.mourn();
                Ended::NotBegun
            }
        }
    }

    /// Serves the call until its end.
    fn follow(&self) -> Ended {
        let (job, link) = (self.job, &self.worker.link);
        let mut told = false;
        let mut overdue = None;
        let mut look = Instant::now() + PATROL;
        loop {
            let end = if overdue.is_none() { job.deadline } else { job.deadline + GRACE };
            match link.next(self.call, look.min(end)) {
                Next::Frame(frame) => match self.take(&frame) {
                    Ok(None) => {}
                    Ok(Some(reply)) => return Ended::Reply(reply),
                    Err(ended) => return ended,
                },
                Next::Lost => return self.mourn(),
                Next::Late => {}
            }
            // Also after a frame: one that talks without end is no less late.
            let now = Instant::now();
            if now >= job.deadline + GRACE {
                return self.give_up();
            }
            if now >= job.deadline && overdue.is_none() {
                overdue = Some(self.worker.overdue());
            }
            if now < look {
                continue;
            }
            if job.call.cancel.is_cancelled() && !told {
                told = true;
                // One that cannot be told is killed in its time.
                let _full = link.send(&ToWorker::Cancel.encode(self.call), now + LOOK);
            }
            // From here on it counts as slow, and what it starts is looked at.
            self.workers.supervisor.wake();
            look = now + LOOK;
        }
    }

    /// A frame of the worker's: its reply, or something it wants.
    fn take(&self, frame: &Frame) -> Result<Option<Result<Reply, UdfError>>, Ended> {
        match frame.of_worker() {
            Ok(FromWorker::Reply { outcome, beyond, leftovers }) => {
                if beyond && let Some(reading) = &self.job.call.reading {
                    reading.note_beyond();
                }
                if leftovers {
                    self.worker.leftovers.store(true, std::sync::atomic::Ordering::Relaxed);
                    self.workers.supervisor.wake();
                }
                Ok(Some(match outcome {
                    Ok(reply) => Reply::decode(reply),
                    Err(error) => Err(UdfError::decode(error)),
                }))
            }
            Ok(FromWorker::Request { request, method, frame }) => {
                let outcome = self.serve(Method(method), frame);
                if request == 0 {
                    return Ok(None);
                }
                let outcome = outcome.map_err(|error| error.encode());
                let answer = ToWorker::Answer {
                    request,
                    outcome: outcome.as_deref().map_err(Vec::as_slice),
                };
                match self.worker.link.send(&answer.encode(self.call), self.job.deadline + GRACE) {
                    Ok(()) => Ok(None),
                    Err(Unsent::Late) => Err(self.give_up()),
                    Err(Unsent::Lost) => Err(self.mourn()),
                }
            }
            Err(_) => {
                self.worker.kill(Cause::Disconnected);
                Err(self.mourn())
            }
        }
    }

    /// What only the host can do.
    fn serve(&self, method: Method, frame: &[u8]) -> Result<Vec<u8>, UdfError> {
        let outside = Within(self.job);
        match method {
            Method::TRACE => {
                let TraceRequest { level, message } = TraceRequest::decode(frame)?;
                outside.trace(level, message);
                Ok(().encode())
            }
            Method::CALL => {
                let CallRequest { op, params } = CallRequest::decode(frame)?;
                // The worker has checked it as well; but what a worker says is only what a plugin's process says.
                self.job.loaded.access.check_call(op)?;
                outside.call_other(op, &params)
            }
            Method::HTTP => {
                self.job.loaded.access.check_net()?;
                outside.http(&HttpAsk::decode(frame)?)
            }
            Method::SETTING => Ok(outside.setting(<&str>::decode(frame)?)?.as_deref().encode()),
            _ => Err(UdfError::new(ErrorKind::Unsupported, "a worker serves that by itself")),
        }
    }

    /// Its time and grace are over: ends the worker, after the other calls in it have had a moment.
    fn give_up(&self) -> Ended {
        let op = self.job.entry.address.to_string();
        self.worker.retire();
        let until = Instant::now() + LINGER;
        while self.worker.has_others(self.call) && Instant::now() < until {
            match self.worker.link.next(self.call, (Instant::now() + LOOK).min(until)) {
                Next::Frame(frame) => {
                    if let Ok(Some(reply)) = self.take(&frame) {
                        return Ended::Reply(reply);
                    }
                }
                Next::Late => {}
                Next::Lost => break,
            }
        }
        tracing::warn!(%op, request = %self.job.call.request_id, worker = self.worker.number(),
            "it did not end in time; its worker is killed");
        self.worker.kill(Cause::Neighbour { op });
        // Until then it may hold a lock.
        self.worker.wait_end();
        Ended::Late
    }

    /// The worker is gone, or might as well be.
    fn mourn(&self) -> Ended {
        if !self.worker.is_gone() {
            self.workers.supervisor.lost(self.worker);
        }
        Ended::Dead(self.worker.death())
    }
}

fn texts<'a>(app_dir: &'a Path, artifact: &'a Path) -> Option<(&'a str, &'a str)> {
    Some((app_dir.to_str()?, artifact.to_str()?))
}
