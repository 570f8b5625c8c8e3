//! A subject's files in memory, kept as bytes between any two calls: every turn and every recorder
//! starts from what a restarted host would find.

use sdk::workflow::{Change, DomainError, Place, StateClass, Stored, WorkState, journal};
use serde_json::Value;

use super::tokens;

/// The class under which the cases' states are read: all old names are known.
pub(super) const CLASS: StateClass =
    StateClass { file_name: "work_state.json", legacy_keys: StateClass::BUILD_KEYS };

#[derive(Default)]
pub(super) struct Files {
    pub(super) state: Option<Vec<u8>>,
    pub(super) ledger: String,
    journal: Vec<u8>,
}

impl Files {
    /// The files as a case describes them: an object is the state, a text the bytes of its file.
    pub(super) fn new(state: Option<&Value>) -> Self {
        let state = match state {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone().into_bytes()),
            Some(state) => Some(tokens::to_texts(state).to_string().into_bytes()),
        };
        Self { state, ..Self::default() }
    }

    pub(super) fn work_state(&self) -> WorkState {
        WorkState::load(self.state.as_deref(), &CLASS).state
    }

    /// The state as cases show it.
    pub(super) fn digest(&self) -> Value {
        tokens::to_tokens(&Value::Object(self.work_state().digest()))
    }

    /// The journal since the last call, without times and without `step` lines.
    pub(super) fn take_journal(&mut self) -> Value {
        let lines = journal::read(&std::mem::take(&mut self.journal)).into_iter();
        let lines = lines.filter(|line| line["event"] != "step").map(|mut line| {
            line.shift_remove("ts");
            Value::Object(line)
        });
        lines.collect()
    }
}

impl Place for Files {
    fn load(&mut self) -> Result<Stored, DomainError> {
        Ok(Stored { state: self.state.clone(), ledger: self.ledger.clone() })
    }

    fn commit(&mut self, change: &Change) -> Result<(), DomainError> {
        if change.quarantine {
            self.state = None;
        }
        if let Some(text) = &change.state {
            self.state = Some(text.clone().into_bytes());
        }
        if let Some(text) = &change.ledger {
            self.ledger.clone_from(text);
        }
        let text = change.journal_text(self.journal.last().copied());
        self.journal.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
