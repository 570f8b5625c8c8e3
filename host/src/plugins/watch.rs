//! [`Watch`]: tells that something in the roots has changed. What it was, a look finds out.
//!
//! Folders are watched one by one, not recursively: `target/`, `.git/` and their like would take more watches than the
//! system has, and a build that writes into one would never let the host rest. An event is only a reason to look, so
//! renames, copies that come file by file and checkouts of hundreds of files need no care of their own.

mod interest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::build::Running;
use interest::{FolderId, Interest};

/// No event for this long, and whoever wrote is done for now.
const QUIET: Duration = Duration::from_millis(50);
/// A look comes this long after the first event, even if they go on and on.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often to look where the system cannot tell of changes.
const POLL: Duration = Duration::from_secs(2);

/// A reason to look again, or to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nudge {
    Changed,
    Stop,
}

/// What is to be watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Folders of operations, with all that is in them.
    pub(crate) roots: Vec<PathBuf>,
    /// Paths that may appear, go or be replaced.
    pub(crate) awaited: Vec<PathBuf>,
}

/// Tells of changes.
pub(crate) struct Watch {
    told: Receiver<Nudge>,
    /// None where the system cannot tell: then every [`POLL`] is a reason to look.
    system: Option<System>,
}

struct System {
    watcher: RecommendedWatcher,
    /// What is watched now.
    folders: BTreeMap<PathBuf, FolderId>,
    interest: Arc<Mutex<Interest>>,
}

impl Watch {
    /// Watches nothing yet; `running` is told of every change too, for what is in the way of a look.
    pub(crate) fn start(nudges: Sender<Nudge>, told: Receiver<Nudge>, running: Running) -> Self {
        let interest = Arc::new(Mutex::new(Interest::default()));
        let seen = Arc::clone(&interest);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let matters = match event {
                Ok(event) => seen.lock().unwrap_or_else(PoisonError::into_inner).takes(&event),
                Err(error) => {
                    tracing::debug!(%error, "watching");
                    true
                }
            };
            if matters {
                running.note_change();
                // Whoever looked is gone, and the process with it in a moment.
                let _ended = nudges.send(Nudge::Changed);
            }
        });
        let system = match watcher {
            Ok(watcher) => Some(System { watcher, folders: BTreeMap::new(), interest }),
            Err(error) => {
                fall_back(&error);
                None
            }
        };
        Self { told, system }
    }

    /// Brings what is watched to what there is now. True when something is watched that was not before: a look is due
    /// then, since nobody saw what came into it earlier.
    pub(crate) fn follow(&mut self, watched: &Watched) -> bool {
        let Some(system) = &mut self.system else { return false };
        match system.follow(watched) {
            Ok(more) => more,
            Err(error) => {
                fall_back(&error);
                self.system = None;
                // What changed since the last look was perhaps not seen.
                true
            }
        }
    }

    /// Waits for a change and then for the changes to pause, or until this moment. False when told to stop.
    pub(crate) fn wait(&self, until: Instant) -> bool {
        let most = until.saturating_duration_since(Instant::now());
        let most = if self.system.is_some() { most } else { most.min(POLL) };
        match self.told.recv_timeout(most) {
            Ok(Nudge::Changed) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(Nudge::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
        self.settle()
    }

    /// Waits for that long after what has changed so far, or for something that changes after it. False when told to
    /// stop.
    pub(crate) fn rest(&self, pause: Duration) -> bool {
        if !self.settle() {
            return false;
        }
        match self.told.recv_timeout(pause) {
            Ok(Nudge::Changed) => self.settle(),
            Err(RecvTimeoutError::Timeout) => true,
            Ok(Nudge::Stop) | Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Waits for the changes to pause. False when told to stop.
    fn settle(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(QUIET.min(left)) {
                Ok(Nudge::Changed) if !left.is_zero() => {}
                Ok(Nudge::Changed) | Err(RecvTimeoutError::Timeout) => return true,
                Ok(Nudge::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}

impl System {
    fn follow(&mut self, watched: &Watched) -> notify::Result<bool> {
        let wanted = Interest::of(watched);
        let lost = {
            let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
            let lost = interest.take_lost();
            *interest = wanted.clone();
            lost
        };
        // First those that are gone: a folder that was renamed has one watch under two names, and giving up the old
        // name would end the watch of the new one.
        self.folders.retain(|path, id| {
            let stays = wanted.folders.get(path) == Some(id) && !lost.contains(path);
            if !stays {
                // Its watch went with the folder.
                let _gone = self.watcher.unwatch(path);
            }
            stays
        });
        let mut more = false;
        for (path, id) in &wanted.folders {
            if self.folders.contains_key(path) {
                continue;
            }
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.folders.insert(path.clone(), *id);
                    more = true;
                }
                Err(error) if is_gone(&error, path) => more = true,
                Err(error) => return Err(error),
            }
        }
        Ok(more)
    }
}

/// Whether the folder is not there any more, or not ours to see: nothing that a watch could tell of.
fn is_gone(error: &notify::Error, path: &Path) -> bool {
    matches!(error.kind, notify::ErrorKind::PathNotFound) || std::fs::read_dir(path).is_err()
}

fn fall_back(error: &notify::Error) {
    let every = POLL.as_secs();
    let remedy = match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "raise fs.inotify.max_user_watches, or serve fewer folders with --only"
        }
        _ => "raise fs.inotify.max_user_instances if other programs watch a lot",
    };
    tracing::warn!(%error, remedy, "the system cannot watch the folders of operations: they are looked at every {every} s instead");
}

#[cfg(test)]
mod tests;
