//! [`Entry`]: one operation, the version of it that answers, and what becomes of a newer one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::dispatch::Pace;
use crate::error::HostError;
use crate::plugins::Address;
use crate::plugins::loaded::Loaded;
use crate::plugins::manifest::{LaneChoice, OpSettings};
use crate::plugins::refusal::Refusal;
use crate::plugins::versions::Versions;
use crate::stats::OpStats;

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
    /// Whether a call has waited for it to be built.
    wanted: AtomicBool,
    pub(super) condition: RwLock<Condition>,
}

/// What an operation is like now.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) state: EntryState,
    /// What became of a newer version, while the one in `state` answers.
    pub(super) update: Option<Update>,
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
            wanted: AtomicBool::new(false),
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
            wanted: AtomicBool::new(self.is_wanted()),
            condition: RwLock::new(condition),
        }
    }

    pub(super) fn condition(&self) -> RwLockReadGuard<'_, Condition> {
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

    /// Whether a call has waited for it to be built.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Forgets who waited for it once nobody has to.
    pub(super) fn settle_wish(&self, condition: &Condition) {
        if !matches!(condition.state, EntryState::Building) {
            self.wanted.store(false, Ordering::Relaxed);
        }
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

    /// Whether it can be called or was refused. While it is neither, it is being built, and waited for from now on.
    pub(crate) fn is_decided(&self) -> bool {
        self.outcome().is_some()
    }

    /// The plugin, an error if it was refused, or neither while it is being built, which is then waited for.
    pub(super) fn outcome(&self) -> Option<Result<Arc<Loaded>, HostError>> {
        // Held until it is marked: what comes to its end meanwhile would be taken for waited for next time.
        let condition = self.condition();
        match &condition.state {
            EntryState::Building => {
                self.wanted.store(true, Ordering::Relaxed);
                None
            }
            EntryState::Ready(loaded) => Some(Ok(Arc::clone(loaded))),
            EntryState::Refused(refusal) => Some(Err(HostError::Refused {
                op: self.address.clone(),
                reason: refusal.reason.clone(),
                remedy: refusal.remedy.clone(),
            })),
        }
    }
}
