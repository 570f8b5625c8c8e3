//! How a worker ends, and what is known of that.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::PoisonError;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid,
};

use super::Process;
use crate::lane::cause::Cause;
use crate::plugins::Address;
use crate::processes::end_session;

/// What is known of a worker that is gone.
#[derive(Debug, Clone)]
pub(in crate::lane) struct Death {
    pub(in crate::lane) cause: Cause,
    /// The end of what it printed, for the log.
    pub(in crate::lane) last_words: String,
    /// What ran in it, by the number of the call.
    pub(in crate::lane) victims: HashMap<u64, Address>,
    /// Which of them ended it, if it could note that.
    pub(in crate::lane) culprit: Option<u64>,
}

impl Death {
    /// The call that ended it, and its operation, if that is known.
    pub(in crate::lane) fn culprit(&self) -> Option<(u64, &Address)> {
        let call = self.culprit?;
        Some((call, self.victims.get(&call)?))
    }
}

impl Process {
    /// Kills it and everything it started; the first one who does says why.
    pub(in crate::lane) fn kill(&self, why: Cause) {
        let mut life = self.life();
        if life.status.is_none() {
            life.killed.get_or_insert(why);
            end(self.pid);
        }
    }

    /// Takes its status when it has ended, and tells everybody who waits for that. It is not taken from the system yet.
    pub(in crate::lane) fn bury(&self) {
        let mut life = self.life();
        if life.status.is_some() {
            return;
        }
        end(self.pid);
        // Before the system may give its number to another.
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.into_iter().flatten().for_each(|versions| versions.leave(self.number()));
        // All who wait for an answer wait for this; one whose answer is still in the socket counts as well.
        life.victims =
            self.running().iter().map(|(call, running)| (*call, running.op.clone())).collect();
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        life.status = Some(match waitid(WaitId::Pid(self.pid), look) {
            Ok(Some(status)) => exit_status(&status),
            other => {
                tracing::error!(?other, worker = self.number(), "a worker's end cannot be read");
                ExitStatus::default()
            }
        });
        drop(life);
        self.ended.notify_all();
        self.link.lose();
    }

    /// What ended one in which nothing ran, unless the host did; nobody else tells of it.
    pub(in crate::lane) fn quiet_end(&self) -> Option<Cause> {
        let life = self.life();
        let status = life.status.filter(|_| life.killed.is_none() && life.victims.is_empty())?;
        Some(Cause::of(status, "", self.memory >> 20))
    }

    /// Ends what it has started, and takes it from the system, so that nothing of it stays.
    pub(in crate::lane) fn reap(&self) {
        // Before the system may give its number to another.
        end_session(self.pid);
        if let Err(error) = self.life().child.wait() {
            tracing::error!(%error, worker = self.number(), "a worker that has ended stays behind");
        }
    }

    /// Whether it has been buried.
    pub(in crate::lane) fn is_gone(&self) -> bool {
        self.life().status.is_some()
    }

    /// Whether this is the first call of the operation to ask, so that one end counts once for each operation.
    pub(in crate::lane) fn blame(&self, op: &Address) -> bool {
        self.blamed.lock().unwrap_or_else(PoisonError::into_inner).insert(op.clone())
    }

    /// Waits for its end, which the caller has caused.
    pub(in crate::lane) fn wait_end(&self) {
        let mut life = self.life();
        while life.status.is_none() {
            life = self.ended.wait(life).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What ended it; waits for its end, which the caller has seen coming.
    pub(in crate::lane) fn death(&self) -> Death {
        let mut life = self.life();
        let status = loop {
            match life.status {
                Some(status) => break status,
                None => life = self.ended.wait(life).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let (killed, victims) = (life.killed.clone(), life.victims.clone());
        drop(life);
        let last_words = self.output.last_words();
        // It may have ended in its own way a moment before it was killed.
        let cause = match killed {
            Some(why) if status.signal() == Some(Signal::KILL.as_raw()) => why,
            _ => Cause::of(status, &last_words, self.memory >> 20),
        };
        let mut note = [0; 8];
        // A worker that ended in another way has left none.
        let noted = self.note.read_exact_at(&mut note, 0).is_ok();
        let culprit =
            noted.then(|| u64::from_le_bytes(note)).filter(|call| victims.contains_key(call));
        Death { cause, last_words, victims, culprit }
    }
}

/// Kills a worker that has not been waited for yet, so that the number is still its own, and its group. It makes the
/// group before it opens the first plugin.
pub(super) fn end(pid: Pid) {
    // Either may be gone already.
    let _group = kill_process_group(pid, Signal::KILL);
    let _worker = kill_process(pid, Signal::KILL);
}

fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    const DUMPED: i32 = 0x80;
    let signal = status.terminating_signal().map(|signal| match status.dumped() {
        true => signal | DUMPED,
        false => signal,
    });
    ExitStatus::from_raw(signal.unwrap_or_else(|| status.exit_status().unwrap_or_default() << 8))
}
