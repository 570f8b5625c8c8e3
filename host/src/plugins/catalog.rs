//! [`Catalog`]: which operations there are, what state each is in, and why one cannot be called.
//!
//! The set of operations is an [`Index`] that is replaced whole; the state of each changes inside its [`Entry`].
//! Whoever waits (a call for its operation, a command for the build) is woken by every change.

mod entry;
mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;

use super::Address;
use super::loaded::Loaded;
use super::lossy;
use super::refusal::Refusal;
use crate::error::HostError;

use entry::Condition;
pub use entry::{Entry, EntryState, Update};
pub use view::EntryView;

/// An operation and the version of it to call.
pub type Callable = (Arc<Entry>, Arc<Loaded>);

/// Which operations there are. One per host; shared by everything that calls, lists or loads.
#[derive(Debug)]
pub struct Catalog {
    index: RwLock<Arc<Index>>,
    progress: watch::Sender<Progress>,
    changes: Mutex<u64>,
    changed: Condvar,
}

/// Something that is wrong and belongs to no operation, for example a search folder that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file or folder.
    #[serde(serialize_with = "lossy::path")]
    pub place: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// How far the host is with getting everything ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Whether the folders have been walked, so that an unknown operation is unknown for good.
    pub discovered: bool,
    /// Whether nothing is left to build or load.
    pub settled: bool,
    /// Operations found.
    pub total: usize,
    /// Operations that can be called.
    pub ready: usize,
    /// Operations that cannot.
    pub refused: usize,
    /// What is going on, for people: "building 3 of 40 operations", "waiting for another cargo …".
    pub note: String,
}

type Ops = BTreeMap<Arc<str>, Arc<Entry>>;
type Projects = BTreeMap<Arc<str>, Ops>;

/// Every operation at one moment.
#[derive(Debug, Default)]
pub(crate) struct Index {
    workspaces: BTreeMap<Arc<str>, Projects>,
    problems: Vec<Problem>,
}

impl Index {
    pub(crate) fn new(
        entries: impl IntoIterator<Item = Arc<Entry>>,
        problems: Vec<Problem>,
    ) -> Self {
        let mut index = Self { problems, ..Self::default() };
        for entry in entries {
            let Address { workspace, project, op } = entry.address.clone();
            let ops = index.workspaces.entry(workspace).or_default().entry(project).or_default();
            // Of two folders that claim one address the one that answers keeps it.
            if ops.get(&op).is_none_or(|other| other.ready().is_none()) {
                ops.insert(op, entry);
            }
        }
        index
    }

    fn find(&self, workspace: &str, project: &str, op: &str) -> Result<Arc<Entry>, HostError> {
        fn known<T>(map: &BTreeMap<Arc<str>, T>) -> Vec<String> {
            map.keys().map(|key| key.to_string()).collect()
        }
        let projects =
            self.workspaces.get(workspace).ok_or_else(|| HostError::UnknownWorkspace {
                workspace: workspace.to_owned(),
                known: known(&self.workspaces),
            })?;
        let ops = projects.get(project).ok_or_else(|| HostError::UnknownProject {
            workspace: workspace.to_owned(),
            project: project.to_owned(),
            known: known(projects),
        })?;
        ops.get(op).cloned().ok_or_else(|| HostError::UnknownOp {
            workspace: workspace.to_owned(),
            project: project.to_owned(),
            op: op.to_owned(),
            known: known(ops),
        })
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.workspaces.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            index: RwLock::default(),
            progress: watch::Sender::new(Progress::default()),
            changes: Mutex::new(0),
            changed: Condvar::new(),
        }
    }
}

impl Catalog {
    /// Every operation in the order of its address.
    #[must_use]
    pub fn list(&self) -> Vec<EntryView> {
        self.index().entries().map(|entry| entry.view()).collect()
    }

    /// Every operation in the order of its address.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.index().entries().cloned().collect()
    }

    /// What is wrong beside the operations.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.index().problems.clone()
    }

    /// The operation of exactly this address, as far as the folders have been walked.
    #[must_use]
    pub fn entry(&self, address: &Address) -> Option<Arc<Entry>> {
        self.find(&address.workspace, &address.project, &address.op).ok()
    }

    /// The operation, as far as the folders have been walked.
    ///
    /// # Errors
    /// `UnknownWorkspace`, `UnknownProject` or `UnknownOp`, with the names that exist.
    pub fn find(&self, workspace: &str, project: &str, op: &str) -> Result<Arc<Entry>, HostError> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).find(workspace, project, op)
    }

    /// How far the host is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Tells of every change of [`Catalog::progress`].
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The operation and its plugin; waits, on this thread, until it is ready or `deadline`.
    ///
    /// # Errors
    /// Unknown, refused, or still being built at `deadline`.
    pub fn wait_ready(&self, address: &Address, deadline: Instant) -> Result<Callable, HostError> {
        let began = Instant::now();
        let mut seen = *self.changes();
        loop {
            if let Some(outcome) = self.attempt(address) {
                return outcome;
            }
            if !self.wait_change(&mut seen, deadline) {
                return Err(still_building(address, began));
            }
        }
    }

    /// [`Catalog::wait_ready`] without holding a thread.
    ///
    /// # Errors
    /// As [`Catalog::wait_ready`].
    pub async fn ready(&self, address: &Address, deadline: Instant) -> Result<Callable, HostError> {
        let began = Instant::now();
        // Subscribed before the first look: a change between look and wait is then seen as a change.
        let mut receiver = self.subscribe();
        loop {
            receiver.mark_unchanged();
            if let Some(outcome) = self.attempt(address) {
                return outcome;
            }
            let waited = tokio::time::timeout_at(deadline.into(), receiver.changed()).await;
            if !matches!(waited, Ok(Ok(()))) {
                return Err(still_building(address, began));
            }
        }
    }

    /// Waits, on this thread, until nothing is left to build or load; false when `deadline` came first.
    pub fn wait_settled(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |progress| progress.settled)
    }

    /// Waits, on this thread, until the folders have been walked; false when `deadline` came first.
    pub fn wait_discovered(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |progress| progress.discovered)
    }

    fn wait_until(&self, deadline: Instant, done: impl Fn(&Progress) -> bool) -> bool {
        let mut seen = *self.changes();
        loop {
            if done(&self.progress.borrow()) {
                return true;
            }
            if !self.wait_change(&mut seen, deadline) {
                return false;
            }
        }
    }

    fn attempt(&self, address: &Address) -> Option<Result<Callable, HostError>> {
        // Read before the look-up: if discovery ends in between, "unknown" is looked at once more.
        let discovered = self.progress.borrow().discovered;
        match self.find(&address.workspace, &address.project, &address.op) {
            Ok(entry) => entry.outcome().map(|outcome| outcome.map(|loaded| (entry, loaded))),
            Err(unknown) => discovered.then_some(Err(unknown)),
        }
    }

    fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn changes(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when `deadline` came before a change later than `seen`.
    fn wait_change(&self, seen: &mut u64, deadline: Instant) -> bool {
        let mut changes = self.changes();
        while *changes == *seen {
            let Some(left) =
                deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                return false;
            };
            changes =
                self.changed.wait_timeout(changes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *seen = *changes;
        true
    }

    /// Publishes a new set of operations.
    pub(crate) fn publish(&self, index: Index) {
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(index);
        self.announce(|progress| progress.discovered = true);
    }

    /// A version of it is about to be built or checked. An older one goes on answering; without one, calls wait.
    pub(crate) fn begin(&self, entry: &Entry) {
        self.change(entry, |condition| match condition.state {
            EntryState::Ready(_) => condition.update = Some(Update::Building),
            EntryState::Building | EntryState::Refused(_) => condition.state = EntryState::Building,
        });
    }

    /// This version answers from the next call on.
    pub(crate) fn accept(&self, entry: &Entry, loaded: Arc<Loaded>) {
        self.change(entry, |condition| {
            *condition = Condition { state: EntryState::Ready(loaded), update: None };
        });
    }

    /// The version that was looked at cannot be called. An older one goes on answering.
    pub(crate) fn refuse(&self, entry: &Entry, refusal: Arc<Refusal>) {
        self.change(entry, |condition| match condition.state {
            EntryState::Ready(_) => condition.update = Some(Update::Failed(refusal)),
            EntryState::Building | EntryState::Refused(_) => {
                condition.state = EntryState::Refused(refusal);
            }
        });
    }

    /// The operation cannot be called any more, not even in the version that answered so far.
    pub(crate) fn withdraw(&self, entry: &Entry, refusal: Arc<Refusal>) {
        self.change(entry, |condition| {
            *condition = Condition { state: EntryState::Refused(refusal), update: None };
        });
    }

    fn change(&self, entry: &Entry, change: impl FnOnce(&mut Condition)) {
        {
            let mut condition = entry.condition.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut condition);
            entry.settle_wish(&condition);
        }
        self.announce(|_| {});
    }

    /// Says what is going on.
    pub(crate) fn note(&self, note: impl Into<String>) {
        let note = note.into();
        self.announce(|progress| progress.note = note);
    }

    /// Says that there is something to build.
    pub(crate) fn unsettle(&self) {
        self.announce(|progress| progress.settled = false);
    }

    /// Says that nothing is left to build or load.
    pub(crate) fn settle(&self) {
        self.announce(|progress| {
            progress.settled = true;
            progress.note.clear();
        });
    }

    fn announce(&self, change: impl FnOnce(&mut Progress)) {
        let index = self.index();
        let (mut total, mut ready, mut refused) = (0, 0, 0);
        for entry in index.entries() {
            total += 1;
            match &entry.condition().state {
                EntryState::Building => {}
                EntryState::Ready(_) => ready += 1,
                EntryState::Refused(_) => refused += 1,
            }
        }
        self.progress.send_modify(|progress| {
            (progress.total, progress.ready, progress.refused) = (total, ready, refused);
            change(progress);
        });
        *self.changes() += 1;
        self.changed.notify_all();
    }
}

fn still_building(address: &Address, began: Instant) -> HostError {
    HostError::StillBuilding { op: address.clone(), waited: began.elapsed() }
}
