//! [`Catalog`]: which operations there are, what state each is in, and why one cannot be called.
//!
//! The set of operations is an [`Index`] that is replaced whole; the state of each changes inside its [`Entry`].
//! Whoever waits (a call for its operation, a command for the build) is woken by every change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;

use super::Address;
use super::loaded::Loaded;
use super::lossy;
use super::manifest::{LaneChoice, OpSettings};
use super::refusal::Refusal;
use super::versions::Versions;
use crate::dispatch::Pace;
use crate::error::HostError;
use crate::stats::OpStats;

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

/// One operation.
#[derive(Debug)]
pub struct Entry {
    /// What it is called by.
    pub address: Address,
    /// Where its folder is, as the author knows it.
    pub folder: PathBuf,
    /// The text of its `spec.md`; empty when there is none.
    pub spec: String,
    /// What its `project.toml` says of it.
    pub settings: OpSettings,
    /// How its calls went; a newer version of the operation goes on counting here.
    pub stats: Arc<OpStats>,
    /// Whether it has proven fast enough to run without a thread of its own.
    pub(crate) pace: Arc<Pace>,
    /// Which builds of it are open; a newer version goes on counting here.
    pub(crate) versions: Arc<Versions>,
    condition: RwLock<Condition>,
}

/// What an operation is like now.
#[derive(Debug, Clone)]
struct Condition {
    state: EntryState,
    /// What became of a newer version, while the one in `state` answers.
    update: Option<Update>,
}

/// What becomes of a newer version of an operation whose older one answers.
#[derive(Debug, Clone)]
pub enum Update {
    /// It is being built or checked.
    Building,
    /// It cannot be called; the older one goes on answering.
    Failed(Arc<Refusal>),
}

/// Whether an operation can be called.
#[derive(Debug, Clone)]
pub enum EntryState {
    /// Found; its turn to be built, checked or loaded has not come or is now.
    Building,
    /// It can be called.
    Ready(Arc<Loaded>),
    /// It cannot be called.
    Refused(Arc<Refusal>),
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

/// An operation as `list`, `describe` and `GET /api/udfs` show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntryView {
    /// The first part of the address.
    pub workspace: String,
    /// The second part of the address.
    pub project: String,
    /// The third part of the address.
    pub op: String,
    /// `building`, `ready` or `refused`.
    pub state: &'static str,
    /// Why it was refused, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would have been right, when something was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was there instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The files or folders at fault.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "lossy::paths")]
    pub files: Vec<PathBuf>,
    /// What to do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The whole story, for example the compiler's message, with the author's paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the plugin says of itself: doc, params, declared access, columns. Absent until it is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<serde_json::Value>,
    /// Where its calls run.
    pub lane: &'static str,
    /// Set while its calls run elsewhere than it was meant to: why, and what that means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_note: Option<String>,
    /// What a call may take, if `project.toml` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a result may be reused, in seconds, if `project.toml` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_max_age: Option<u64>,
    /// The operation's folder.
    #[serde(serialize_with = "lossy::path")]
    pub folder: PathBuf,
    /// What became of a newer version, while the older one answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateView>,
    /// How many builds of it are open, in the host's process and its workers; they stay so until that process ends.
    pub versions: usize,
    /// The bytes of their files.
    pub version_bytes: u64,
    /// The version of its package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// SHA-256 of the loaded artifact, lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// When the artifact was built, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_at: Option<u64>,
    /// Calls since the host started.
    pub calls: u64,
    /// Those that ended in an error.
    pub errors: u64,
    /// Half of the calls took at most this many microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// 99 of 100 calls took at most this many microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
    /// Calls that were answered "timeout" and are still running.
    pub stuck: usize,
}

/// A newer version that is not the one that answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpdateView {
    /// `building` or `failed`.
    pub state: &'static str,
    /// Why it failed: reason, remedy, files and, as `detail`, the compiler's message.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
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

impl Entry {
    pub(crate) fn new(
        address: Address,
        folder: PathBuf,
        spec: String,
        settings: OpSettings,
        versions: Versions,
        state: EntryState,
    ) -> Self {
        Self {
            address,
            folder,
            spec,
            settings,
            stats: Arc::default(),
            pace: Arc::default(),
            versions: Arc::new(versions),
            condition: RwLock::new(Condition { state, update: None }),
        }
    }

    /// The same operation with another address, spec or settings: it goes on counting and answering.
    pub(crate) fn renewed(&self, address: Address, spec: String, settings: OpSettings) -> Self {
        let condition = self.condition().clone();
        Self {
            address,
            folder: self.folder.clone(),
            spec,
            settings,
            stats: Arc::clone(&self.stats),
            pace: Arc::clone(&self.pace),
            versions: Arc::clone(&self.versions),
            condition: RwLock::new(condition),
        }
    }

    fn condition(&self) -> RwLockReadGuard<'_, Condition> {
        self.condition.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> EntryState {
        self.condition().state.clone()
    }

    /// What became of a newer version, while an older one answers.
    #[must_use]
    pub fn update(&self) -> Option<Update> {
        self.condition().update.clone()
    }

    /// Whether a version of it is being built or checked.
    pub(crate) fn is_pending(&self) -> bool {
        let condition = self.condition();
        matches!(condition.state, EntryState::Building)
            || matches!(condition.update, Some(Update::Building))
    }

    /// Where its calls run.
    #[must_use]
    pub fn lane(&self) -> LaneChoice {
        match self.ready() {
            Some(loaded) => self.lane_of(&loaded),
            None => crate::lane::runs_in(self.settings.lane_of(&self.address)),
        }
    }

    /// Where calls of this version of it run: in a worker also when it is in quarantine.
    pub(crate) fn lane_of(&self, loaded: &Loaded) -> LaneChoice {
        match self.lane_for(&loaded.hash) {
            LaneChoice::Inline if loaded.crashes.is_quarantined() => {
                crate::lane::runs_in(LaneChoice::Worker)
            }
            lane => lane,
        }
    }

    /// Where calls of this build of it run as long as it behaves: in a worker when the host has opened as many of its builds as it may.
    pub(crate) fn lane_for(&self, hash: &str) -> LaneChoice {
        let wanted = self.settings.lane_of(&self.address);
        let stays = wanted == LaneChoice::Inline && self.versions.admits(hash);
        crate::lane::runs_in(if stays { LaneChoice::Inline } else { LaneChoice::Worker })
    }

    /// Said while its calls run in a worker only because the host has opened as many of its builds as it may.
    pub(crate) fn moved(&self, loaded: &Loaded) -> Option<String> {
        let moved = self.settings.lane_of(&self.address) == LaneChoice::Inline
            && !self.versions.admits(&loaded.hash)
            && self.lane_for(&loaded.hash) == LaneChoice::Worker;
        moved.then(|| {
            format!(
                "the host has {} versions of it open, which is the most (--max-versions): newer ones run in a worker \
                 until the host is restarted",
                self.versions.most()
            )
        })
    }

    /// Whether this build may run where its calls run.
    pub(crate) fn admit(&self, hash: &str) -> Result<(), Box<Refusal>> {
        if self.lane_for(hash) == LaneChoice::Worker || self.versions.admits(hash) {
            return Ok(());
        }
        let most = self.versions.most();
        Err(Refusal::new(
            "the host has as many versions of it open as it may",
            "restart the host, or allow it more with --max-versions",
        )
        .compared(format!("at most {most} versions"), "one more"))
    }

    /// Why the newest version of it cannot be called, if that is so.
    pub(crate) fn failure(&self) -> Option<Arc<Refusal>> {
        let condition = self.condition();
        match (&condition.state, &condition.update) {
            (EntryState::Refused(refusal), _) | (_, Some(Update::Failed(refusal))) => {
                Some(Arc::clone(refusal))
            }
            (EntryState::Building | EntryState::Ready(_), _) => None,
        }
    }

    /// The plugin, if it can be called right now. This is the hot path of every call.
    pub(crate) fn ready(&self) -> Option<Arc<Loaded>> {
        match &self.condition().state {
            EntryState::Ready(loaded) => Some(Arc::clone(loaded)),
            EntryState::Building | EntryState::Refused(_) => None,
        }
    }

    /// The plugin, an error if it was refused, or neither while it is being built.
    fn outcome(&self) -> Option<Result<Arc<Loaded>, HostError>> {
        match self.state() {
            EntryState::Building => None,
            EntryState::Ready(loaded) => Some(Ok(loaded)),
            EntryState::Refused(refusal) => Some(Err(HostError::Refused {
                op: self.address.clone(),
                reason: refusal.reason.clone(),
                remedy: refusal.remedy.clone(),
            })),
        }
    }

    /// The operation as it is shown.
    #[must_use]
    pub fn view(&self) -> EntryView {
        let state = match self.state() {
            EntryState::Ready(loaded) => match loaded.open_failure() {
                Some(refusal) => EntryState::Refused(refusal),
                None => EntryState::Ready(loaded),
            },
            other => other,
        };
        let (loaded, refusal) = match &state {
            EntryState::Building => (None, None),
            EntryState::Ready(loaded) => (Some(loaded), None),
            EntryState::Refused(refusal) => (None, Some(refusal)),
        };
        let counts = self.stats.counts();
        let (versions, version_bytes) = self.versions.count();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        EntryView {
            workspace: self.address.workspace.to_string(),
            project: self.address.project.to_string(),
            op: self.address.op.to_string(),
            state: match &state {
                EntryState::Building => "building",
                EntryState::Ready(_) => "ready",
                EntryState::Refused(_) => "refused",
            },
            reason: refusal.map(|refusal| refusal.reason.clone()),
            expected: refusal.and_then(|refusal| refusal.expected.clone()),
            found: refusal.and_then(|refusal| refusal.found.clone()),
            files: refusal.map(|refusal| refusal.files.clone()).unwrap_or_default(),
            remedy: refusal.map(|refusal| refusal.remedy.clone()),
            detail: refusal.and_then(|refusal| refusal.detail.clone()),
            descriptor: loaded.map(|loaded| loaded.descriptor_json.clone()),
            lane: self.lane().name(),
            lane_note: loaded.and_then(|loaded| {
                let quarantine = loaded.crashes.quarantine().map(|it| it.to_string());
                quarantine.or_else(|| self.moved(loaded))
            }),
            timeout_ms: self.settings.timeout.and_then(|time| u64::try_from(time.as_millis()).ok()),
            cache_max_age: self.settings.cache_max_age.map(|time| time.as_secs()),
            folder: self.folder.clone(),
            update: self.update().map(|update| match update {
                Update::Building => UpdateView { state: "building", refusal: None },
                Update::Failed(refusal) => {
                    UpdateView { state: "failed", refusal: Some(Refusal::clone(&refusal)) }
                }
            }),
            versions,
            version_bytes,
            version: loaded.and_then(|loaded| loaded.descriptor.version.clone()),
            hash: loaded.map(|loaded| loaded.hash.clone()),
            built_at: loaded
                .and_then(|loaded| loaded.built_at.duration_since(std::time::UNIX_EPOCH).ok())
                .map(|since| since.as_secs()),
            calls: counts.calls,
            errors: counts.errors,
            p50_us: counts.p50.map(micros),
            p99_us: counts.p99.map(micros),
            stuck: counts.stuck,
        }
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
        change(&mut entry.condition.write().unwrap_or_else(PoisonError::into_inner));
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
