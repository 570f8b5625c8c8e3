//! One turn, one recorder, one question at the end gate: each loads the state, changes it and hands the
//! change to its keeper (workflow-engine contract §3 to §6).
//!
//! The engine does no I/O of its own. A [`Place`] does, for one subject, under one lock that its caller
//! holds from before [`Engine::turn`] or [`Engine::record`] until after it (decision O7).

use super::event::Event;
use super::journal::{self, JournalLine};
use super::ledger::LedgerEffect;
use super::moment::Moment;
use super::recorders::{self, Hook, Recorded, Rules};
use super::stages::{Consultation, Stage};
use super::state::WorkState;
use super::step::{EndStatus, Step};
use super::tap::Route;
use super::texts;
use super::workflow::{DomainError, Task, Workflow};

/// How many engine errors in a row park a task (decision O9).
pub const ERRORS_BEFORE_PARKING: u32 = 3;

/// What is on disk for one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of the state file; `None` if there is none.
    pub state: Option<Vec<u8>>,
    /// Text of the ledger; empty if there is none.
    pub ledger: String,
}

/// What is to be written for one subject. In this order: move the corrupt state aside, replace the
/// state, replace the ledger, append to the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The state file is no JSON object: rename it to the first free
    /// [`StateClass::corrupt_path`](super::state::StateClass::corrupt_path).
    pub quarantine: bool,
    /// New text of the state file, if it changed.
    pub state: Option<String>,
    /// New text of the ledger, if it changed.
    pub ledger: Option<String>,
    /// Lines to append to the journal.
    pub journal: Vec<JournalLine>,
    /// Time of the change.
    pub at: Moment,
}

impl Change {
    /// What one write appends to the journal; see [`journal::appendix`].
    pub fn journal_text(&self, last_byte: Option<u8>) -> String {
        journal::appendix(&self.journal, self.at, last_byte)
    }

    fn is_empty(&self) -> bool {
        !self.quarantine && self.state.is_none() && self.ledger.is_none() && self.journal.is_empty()
    }
}

/// Keeper of one subject's files, held under its lock.
pub trait Place {
    /// Reads what is there.
    ///
    /// # Errors
    /// The files cannot be read. A missing file is no error.
    fn load(&mut self) -> Result<Stored, DomainError>;

    /// Writes a change: the state whole or not at all. A journal that cannot be written is no error.
    ///
    /// # Errors
    /// The state could not be saved; it is then as it was.
    fn commit(&mut self, change: &Change) -> Result<(), DomainError>;
}

impl<P: Place + ?Sized> Place for &mut P {
    fn load(&mut self) -> Result<Stored, DomainError> {
        (**self).load()
    }

    fn commit(&mut self, change: &Change) -> Result<(), DomainError> {
        (**self).commit(change)
    }
}

/// Why a turn or a recorder could not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// The stored state could not be read.
    Load(DomainError),
    /// The changed state could not be saved; nothing was recorded.
    Save(DomainError),
    /// A question to the domain failed.
    Domain(DomainError),
}

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Load(error) => write!(f, "the state of the work could not be read: {error}"),
            Self::Save(error) => write!(f, "the state of the work could not be saved: {error}"),
            Self::Domain(error) => write!(f, "the workflow could not answer: {error}"),
        }
    }
}

impl std::error::Error for EngineError {}

/// What one turn amounts to.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The stage that answered.
    pub stage: Stage,
    /// The step; `None` leaves the turn to the model.
    pub step: Option<Step>,
    /// The round as labels and traces show it.
    pub round: u32,
    /// Where the outcomes of spawned agents go; kept out of the parameters a model could make up
    /// (decision O8).
    pub route: Option<Route>,
    /// A save that failed; to be logged, the turn goes on.
    pub fault: Option<String>,
}

/// What the loop does about an engine error in a workflow task (decision O9).
#[derive(Clone, Debug, PartialEq)]
pub enum AfterError {
    /// One error event, and the task waits for its next trigger.
    Wait(Step),
    /// The task parks and shows this message.
    Park(String),
}

/// Decides about an error that is the `in_a_row`-th since the last turn that ran.
pub fn after_error(error: &EngineError, in_a_row: u32) -> AfterError {
    if in_a_row >= ERRORS_BEFORE_PARKING {
        AfterError::Park(texts::parked_after_errors(&error.to_string()))
    } else {
        AfterError::Wait(Step::Wait { label: error.to_string() })
    }
}

/// The engine for one workflow.
#[derive(Clone, Copy)]
pub struct Engine<'a> {
    workflow: &'a dyn Workflow,
}

impl<'a> Engine<'a> {
    /// The engine for `workflow`.
    pub fn new(workflow: &'a dyn Workflow) -> Self {
        Self { workflow }
    }

    /// Chooses the step of one turn of `task`: settle, `on_turn`, stages. An empty message counts as none.
    ///
    /// `Ok(None)`: the task has no subject yet, the turn is the model's. `open` gives the place of a
    /// state directory, its lock held. Every change is committed before this returns.
    ///
    /// # Errors
    /// The state cannot be read, or the domain cannot answer; see [`after_error`].
    pub fn turn<P: Place>(
        &self,
        task: &Task,
        user_message: Option<&str>,
        at: Moment,
        open: impl FnOnce(&str) -> Result<P, DomainError>,
    ) -> Result<Option<Turn>, EngineError> {
        let Some(subject) = self.workflow.resolve_subject(task).map_err(EngineError::Domain)?
        else {
            return Ok(None);
        };
        let state_dir = self.workflow.state_dir(&subject);
        let mut place = open(&state_dir).map_err(EngineError::Load)?;
        let mut work = Work::load(self.workflow, &mut place, at)?;
        let mut fault = None;
        let (line, settled) = recorders::settle(&mut work.state, self.workflow.round_budget());
        work.journal.extend(line);
        work.changed |= settled;
        if work.changed {
            fault = work.save(&mut place).err();
        }
        let ledger = std::mem::take(&mut work.ledger);
        let mut consultation = Consultation {
            workflow: self.workflow,
            subject: &subject,
            task,
            state_dir: &state_dir,
            user_message: user_message.filter(|message| !message.is_empty()),
            ledger: &ledger,
            state: std::mem::take(&mut work.state),
            marked: false,
            effects: Vec::new(),
            hooks: Vec::new(),
        };
        self.workflow.on_turn(&consultation.context());
        let chosen = consultation.choose();
        let round = consultation.state.round();
        let route = self.workflow.spawn_context(&consultation.context());
        let Consultation { state, marked, effects, hooks, .. } = consultation;
        let (stage, step) = chosen.map_err(EngineError::Domain)?;
        work.state = state;
        work.ledger = ledger;
        work.changed |= marked;
        work.ledger_effects(&effects);
        let kind = step.as_ref().map_or("none", Step::kind);
        work.journal.push(
            JournalLine::new("step")
                .with("stage", stage.word())
                .with("kind", kind)
                .with("round", round),
        );
        fault = work.save(&mut place).err().or(fault);
        self.run_hooks(&state_dir, &hooks);
        Ok(Some(Turn { stage, step, round, route, fault: fault.map(|error| error.to_string()) }))
    }

    /// Records one event into the state kept at `place`. Gives back what it left to the caller: only
    /// `unparks` is still to be acted on.
    ///
    /// # Errors
    /// The state cannot be read or saved; nothing is journaled then.
    pub fn record(
        &self,
        state_dir: &str,
        event: &Event,
        at: Moment,
        place: &mut impl Place,
    ) -> Result<Recorded, EngineError> {
        let mut work = Work::load(self.workflow, place, at)?;
        let before = work.state.to_text();
        let recorded = recorders::apply(&mut work.state, event, &Rules::of(self.workflow), at);
        work.changed |= before != work.state.to_text();
        work.ledger_effects(&recorded.ledger);
        work.journal.extend(recorded.journal.iter().cloned());
        work.save(place).map_err(EngineError::Save)?;
        self.run_hooks(state_dir, &recorded.hooks);
        Ok(recorded)
    }

    /// Whether a task may end; `Some` is the refusal (decision O4). Reads the durable state only.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn end_gate(
        &self,
        status: EndStatus,
        place: &mut impl Place,
    ) -> Result<Option<&'static str>, EngineError> {
        if status == EndStatus::Abort {
            return Ok(None);
        }
        let stored = place.load().map_err(EngineError::Load)?;
        let state = WorkState::load(stored.state.as_deref(), &self.workflow.state_class()).state;
        Ok((!state.verified).then_some(texts::END_REFUSED))
    }

    fn run_hooks(&self, state_dir: &str, hooks: &[Hook]) {
        for hook in hooks {
            match hook {
                Hook::Verified => self.workflow.on_verified(state_dir),
                Hook::WorkFailed(step) => self.workflow.on_work_failed(state_dir, step),
                Hook::CheckFailed => self.workflow.on_check_failed(state_dir),
            }
        }
    }
}

/// A state at work, and what of it is still to be saved.
struct Work {
    state: WorkState,
    changed: bool,
    ledger: String,
    ledger_changed: bool,
    journal: Vec<JournalLine>,
    quarantine: bool,
    at: Moment,
}

impl Work {
    fn load(
        workflow: &dyn Workflow,
        place: &mut impl Place,
        at: Moment,
    ) -> Result<Self, EngineError> {
        let stored = place.load().map_err(EngineError::Load)?;
        let loaded = WorkState::load(stored.state.as_deref(), &workflow.state_class());
        let mut journal = Vec::new();
        if loaded.corrupt {
            journal.push(JournalLine::new("state_reset"));
        }
        let repaired = !loaded.repaired.is_empty();
        if repaired {
            journal.push(JournalLine::new("state_repaired").with("fields", loaded.repaired));
        }
        Ok(Self {
            state: loaded.state,
            // A repair is saved, or it would be journaled again and again.
            changed: repaired || loaded.corrupt,
            ledger: stored.ledger,
            ledger_changed: false,
            journal,
            quarantine: loaded.corrupt,
            at,
        })
    }

    fn ledger_effects(&mut self, effects: &[LedgerEffect]) {
        for effect in effects {
            let text = effect.applied(&self.ledger, &self.at.to_string());
            self.ledger_changed |= text != self.ledger;
            self.ledger = text;
        }
    }

    /// Commits what changed since the last save; what could not be saved stays to be saved.
    fn save(&mut self, place: &mut impl Place) -> Result<(), DomainError> {
        let change = Change {
            quarantine: self.quarantine,
            state: self.changed.then(|| self.state.to_text()),
            ledger: self.ledger_changed.then(|| self.ledger.clone()),
            journal: std::mem::take(&mut self.journal),
            at: self.at,
        };
        if change.is_empty() {
            return Ok(());
        }
        if let Err(error) = place.commit(&change) {
            self.journal = change.journal;
            return Err(error);
        }
        self.quarantine = false;
        self.changed = false;
        self.ledger_changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
