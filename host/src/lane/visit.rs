//! [`Visit`]: one call in its worker, from its request to its end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sdk::abi::Method;
use sdk::wire::{CallRequest, HttpAsk, TraceRequest, Wire};
use sdk::{ErrorKind, Reply, UdfError};

use super::Job;
use super::cause::Cause;
use super::frames::{Frame, FromWorker, Run, ToWorker};
use super::link::Next;
use super::outbox::Unsent;
use super::process::{Death, Process};
use super::supervisor::{PATROL, Supervisor};
use crate::host_api::{Outside, Within};

/// What a call may take beyond its time before its worker is killed: it sees its deadline by itself.
const GRACE: Duration = Duration::from_millis(500);
/// What other calls in that worker then get to come to an end.
const LINGER: Duration = Duration::from_secs(2);
/// Between two looks at whether anybody still wants the answer.
const LOOK: Duration = Duration::from_millis(50);

/// One call in its worker.
pub(super) struct Visit<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) job: &'a Job<'a>,
    pub(super) worker: &'a Arc<Process>,
    /// Its number there.
    pub(super) call: u64,
}

/// How it ended.
pub(super) enum Ended {
    /// By itself.
    Reply(Result<Reply, UdfError>),
    /// Its time was up, and it has been killed if it still ran.
    Late,
    /// The worker was gone before it had the whole request, or had no room for it.
    NotBegun,
    /// The worker ended during it.
    Dead(Death),
}

impl Visit<'_> {
    /// Has it run, and serves it until its end.
    pub(super) fn run(&self) -> Ended {
        let (job, link) = (self.job, &self.worker.link);
        let app_dir = job.dispatcher.app_dir(job.call.app_dir.as_deref());
        // From where the host stands: where a worker stands is what operations make of it.
        let app_dir = std::path::absolute(&app_dir).unwrap_or(app_dir);
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
        let mut look = Instant::now() + PATROL;
        loop {
            match link.next(self.call, look.min(job.deadline + GRACE)) {
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
            if now < look {
                continue;
            }
            if job.call.cancel.is_cancelled() && !told {
                told = true;
                // One that cannot be told is killed in its time.
                let _full = link.send(&ToWorker::Cancel.encode(self.call), now + LOOK);
            }
            // From here on it counts as slow, and what it starts is looked at.
            self.supervisor.wake();
            look = now + LOOK;
        }
    }

    /// A frame of the worker's: its reply, or something it wants.
    fn take(&self, frame: &Frame) -> Result<Option<Result<Reply, UdfError>>, Ended> {
        match frame.of_worker() {
            Ok(FromWorker::NoRoom) => {
                self.replace("it has no thread left for a call");
                Err(Ended::NotBegun)
            }
            Ok(FromWorker::Reply { outcome, beyond, leftovers, worn }) => {
                if beyond && let Some(reading) = &self.job.call.reading {
                    reading.note_beyond();
                }
                if leftovers {
                    self.worker.leftovers.store(true, Ordering::Relaxed);
                    self.supervisor.wake();
                }
                if worn {
                    self.replace(
                        "what operations left behind in it, memory or open files, is too much",
                    );
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

    /// Gives the worker no more calls; a fresh one takes the next.
    fn replace(&self, why: &str) {
        if self.worker.is_retired() {
            return;
        }
        tracing::warn!(op = %self.job.entry.address, request = %self.job.call.request_id,
            worker = self.worker.number(), "its worker is replaced: {why}");
        self.worker.retire();
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
            self.supervisor.lost(self.worker);
        }
        Ended::Dead(self.worker.death())
    }
}

fn texts<'a>(app_dir: &'a Path, artifact: &'a Path) -> Option<(&'a str, &'a str)> {
    Some((app_dir.to_str()?, artifact.to_str()?))
}
