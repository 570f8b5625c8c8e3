//! [`Running`]: a cargo that runs, for whoever has to stop it or waits for it.

use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tether;

/// A running cargo, for whoever has to stop it, and whether somebody waits for its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    child: Option<Child>,
    stopped: bool,
}

impl Running {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the running build, and lets no other begin.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        if let Some(mut child) = state.child.take() {
            tether::end(&mut child);
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Says that something has changed since the folders were looked at.
    pub(crate) fn note_change(&self) {
        self.0.changed.store(true, Ordering::Release);
    }

    /// Says that the folders are looked at now.
    pub(crate) fn forget_changes(&self) {
        self.0.changed.store(false, Ordering::Release);
    }

    /// Whether something has changed since the folders were looked at.
    pub(crate) fn has_changes(&self) -> bool {
        self.0.changed.load(Ordering::Acquire)
    }

    /// Starts it, unless no other may begin; its streams, and its process id, which is that of its session too.
    pub(super) fn start(&self, command: &mut Command) -> std::io::Result<Option<Started>> {
        let mut state = self.state();
        if state.stopped {
            return Ok(None);
        }
        let mut child = command.spawn()?;
        let streams = child.stdout.take().zip(child.stderr.take());
        let session = child.id();
        let (stdout, stderr) = match streams {
            Some((stdout, stderr)) => (Box::new(stdout) as _, Box::new(stderr) as _),
            None => (Box::new(std::io::empty()) as _, Box::new(std::io::empty()) as _),
        };
        state.child = Some(child);
        Ok(Some(Started { session, stdout, stderr }))
    }

    /// Ends the running build alone.
    pub(super) fn kill(&self) {
        if let Some(child) = self.state().child.as_mut() {
            tether::end(child);
        }
    }

    /// How it ended; none if it was stopped.
    pub(super) fn end(&self) -> std::io::Result<Option<ExitStatus>> {
        let child = self.state().child.take();
        child.map(|mut child| child.wait()).transpose()
    }
}

/// A build that runs.
pub(super) struct Started {
    pub(super) session: u32,
    pub(super) stdout: Box<dyn Read + Send>,
    pub(super) stderr: Box<dyn Read + Send>,
}
