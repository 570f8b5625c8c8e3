//! [`Workers`]: the call runs in a child process, so that whatever it does to its process costs one call.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sdk::Reply;

use super::cause::{Cause, Company, gist};
use super::pool::{NoPlace, Pool};
use super::process::{Death, Process, Start};
use super::supervisor::Supervisor;
use super::visit::{Ended, Visit};
use super::{Job, Lane};
use crate::error::HostError;
use crate::host_api::to_host_error;
use crate::plugins::Address;

/// Before a call that a worker could not begin is given to another one.
const PAUSE: Duration = Duration::from_millis(10);

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
            let visit = Visit { supervisor: &self.supervisor, job, worker: &worker, call };
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
                Ended::NotBegun if Instant::now() < job.deadline => {
                    // Where no worker has room, this must not start one after the other.
                    thread::sleep(PAUSE);
                    continue;
                }
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
