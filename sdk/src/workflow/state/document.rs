//! The state as a JSON document: reads what other versions wrote and writes back what it does not know.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{LastResult, WorkState};

/// Where a kind of state lies and which names its fields had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateClass {
    /// File name below `logs/`.
    pub file_name: &'static str,
    /// Old key, new key: renamed on load where the new key is absent.
    pub legacy_keys: &'static [(&'static str, &'static str)],
}

impl StateClass {
    /// `work_state.json`, no old names.
    pub const WORK: Self = Self { file_name: "work_state.json", legacy_keys: &[] };

    /// The names fields had while the engine knew nothing but app builds.
    pub const BUILD_KEYS: &'static [(&'static str, &'static str)] = &[
        ("fix_rounds", "rounds"),
        ("launched", "staged"),
        ("validated", "verified"),
        ("walk_failures", "check_failures"),
        ("walk_attempts", "check_attempts"),
        ("last_validate", "last_result"),
    ];

    /// Path below the state directory.
    pub fn path(&self) -> String {
        format!("logs/{}", self.file_name)
    }

    /// Path to which the `number`-th corrupt file is renamed: `logs/work_state.corrupt-1.json`.
    pub fn corrupt_path(&self, number: u32) -> String {
        let stem = self.file_name.strip_suffix(".json").unwrap_or(self.file_name);
        format!("logs/{stem}.corrupt-{number}.json")
    }
}

impl Default for StateClass {
    fn default() -> Self {
        Self::WORK
    }
}

/// A state as it came from disk.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the engine works with.
    pub state: WorkState,
    /// Fields that held a value of the wrong type and now hold their default (decision O6).
    pub repaired: Vec<&'static str>,
    /// The text is no JSON object: the caller moves the file aside before anything is saved (decision O6).
    pub corrupt: bool,
}

/// One key of the document, in file order.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Known(Field),
    Unknown(String, Box<RawValue>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Schema,
    Rounds,
    AwaitingUserDecision,
    PendingRound,
    Built,
    Staged,
    Verified,
    CheckFailures,
    CheckAttempts,
    CheckedOk,
    LastResult,
    UserLeads,
    Backlog,
    InfraBlocked,
    NotifyStepIssued,
    PresentationAsked,
    UpdateScope,
    TouchedAreas,
}

/// Every field with its key, in the order in which a new document has them.
const FIELDS: [(Field, &str); 18] = [
    (Field::Schema, "schema"),
    (Field::Rounds, "rounds"),
    (Field::AwaitingUserDecision, "awaiting_user_decision"),
    (Field::PendingRound, "pending_round"),
    (Field::Built, "built"),
    (Field::Staged, "staged"),
    (Field::Verified, "verified"),
    (Field::CheckFailures, "check_failures"),
    (Field::CheckAttempts, "check_attempts"),
    (Field::CheckedOk, "checked_ok"),
    (Field::LastResult, "last_result"),
    (Field::UserLeads, "user_leads"),
    (Field::Backlog, "backlog"),
    (Field::InfraBlocked, "infra_blocked"),
    (Field::NotifyStepIssued, "notify_step_issued"),
    (Field::PresentationAsked, "presentation_asked"),
    (Field::UpdateScope, "update_scope"),
    (Field::TouchedAreas, "touched_areas"),
];

/// What a field holds, for writing.
enum View<'a> {
    Flag(bool),
    Count(u32),
    List(&'a [String]),
    Result(Option<&'a LastResult>),
}

impl WorkState {
    /// Reads a stored state; `None` is a missing file, which is the default state.
    pub fn load(stored: Option<&[u8]>, class: &StateClass) -> Loaded {
        let mut loaded = Loaded { state: Self::default(), repaired: Vec::new(), corrupt: false };
        let Some(bytes) = stored else { return loaded };
        let Ok(Document(entries)) = serde_json::from_slice(bytes) else {
            loaded.corrupt = true;
            return loaded;
        };
        let present = |key: &str| entries.iter().any(|(name, _)| name == key);
        let renamed = |key: &str| {
            class
                .legacy_keys
                .iter()
                .find(|(old, new)| *old == key && !present(new))
                .map(|(_, new)| *new)
        };
        for (name, raw) in &entries {
            let key = renamed(name).unwrap_or(name);
            let Some((field, key)) = FIELDS.iter().find(|(_, known)| *known == key) else {
                loaded.state.layout.push(Slot::Unknown(name.clone(), (*raw).to_owned()));
                continue;
            };
            loaded.state.layout.push(Slot::Known(*field));
            if !loaded.state.read(*field, raw) {
                loaded.repaired.push(key);
            }
        }
        loaded
    }

    /// The document, two-space form, no line feed at its end. Keys of the loaded document keep their
    /// place, unknown ones their text.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(640);
        let mut written = [false; FIELDS.len()];
        let mut separator = "{\n  \"";
        for slot in &self.layout {
            out.push_str(separator);
            separator = ",\n  \"";
            match slot {
                Slot::Unknown(key, raw) => {
                    // The opening quote is part of the separator.
                    out.push_str(&quoted(key)[1..]);
                    out.push_str(": ");
                    out.push_str(raw.get());
                }
                Slot::Known(field) => {
                    written[*field as usize] = true;
                    self.write(*field, &mut out);
                }
            }
        }
        for (field, _) in FIELDS.iter().filter(|(field, _)| !written[*field as usize]) {
            out.push_str(separator);
            separator = ",\n  \"";
            self.write(*field, &mut out);
        }
        out.push_str("\n}");
        out
    }

    /// Only what differs from the default, without the version and without the time of the last result;
    /// unknown keys are in it. This is how cases and reports show a state.
    pub fn digest(&self) -> Map<String, Value> {
        let mut map = Map::new();
        for (field, key) in &FIELDS[1..] {
            let value = match self.view(*field) {
                View::Flag(false) | View::Count(0) | View::List([]) | View::Result(None) => {
                    continue;
                }
                View::Flag(flag) => Value::from(flag),
                View::Count(count) => Value::from(count),
                View::List(list) => Value::from(list),
                View::Result(Some(result)) => {
                    let mut result: Value =
                        serde_json::from_str(result.raw.get()).unwrap_or_default();
                    if let Some(fields) = result.as_object_mut() {
                        fields.shift_remove("at");
                    }
                    result
                }
            };
            map.insert((*key).to_owned(), value);
        }
        for slot in &self.layout {
            if let Slot::Unknown(key, raw) = slot {
                map.insert(key.clone(), serde_json::from_str(raw.get()).unwrap_or_default());
            }
        }
        map
    }

    /// Takes over one field; false when its value has the wrong type.
    fn read(&mut self, field: Field, raw: &RawValue) -> bool {
        match field {
            Field::Schema => set(&mut self.schema, raw),
            Field::Rounds => set(&mut self.rounds, raw),
            Field::AwaitingUserDecision => set(&mut self.awaiting_user_decision, raw),
            Field::PendingRound => set(&mut self.pending_round, raw),
            Field::Built => set(&mut self.built, raw),
            Field::Staged => set(&mut self.staged, raw),
            Field::Verified => set(&mut self.verified, raw),
            Field::CheckFailures => set(&mut self.check_failures, raw),
            Field::CheckAttempts => set(&mut self.check_attempts, raw),
            Field::CheckedOk => set(&mut self.checked_ok, raw),
            Field::LastResult => match read_last_result(raw) {
                Some(result) => {
                    self.last_result = result;
                    true
                }
                None => false,
            },
            Field::UserLeads => set(&mut self.user_leads, raw),
            Field::Backlog => set(&mut self.backlog, raw),
            Field::InfraBlocked => set(&mut self.infra_blocked, raw),
            Field::NotifyStepIssued => set(&mut self.notify_step_issued, raw),
            Field::PresentationAsked => set(&mut self.presentation_asked, raw),
            Field::UpdateScope => set(&mut self.update_scope, raw),
            Field::TouchedAreas => set(&mut self.touched_areas, raw),
        }
    }

    fn view(&self, field: Field) -> View<'_> {
        match field {
            Field::Schema => View::Count(self.schema),
            Field::Rounds => View::Count(self.rounds),
            Field::AwaitingUserDecision => View::Flag(self.awaiting_user_decision),
            Field::PendingRound => View::Flag(self.pending_round),
            Field::Built => View::Flag(self.built),
            Field::Staged => View::Flag(self.staged),
            Field::Verified => View::Flag(self.verified),
            Field::CheckFailures => View::List(&self.check_failures),
            Field::CheckAttempts => View::Count(self.check_attempts),
            Field::CheckedOk => View::List(&self.checked_ok),
            Field::LastResult => View::Result(self.last_result.as_ref()),
            Field::UserLeads => View::List(&self.user_leads),
            Field::Backlog => View::List(&self.backlog),
            Field::InfraBlocked => View::Flag(self.infra_blocked),
            Field::NotifyStepIssued => View::Flag(self.notify_step_issued),
            Field::PresentationAsked => View::Flag(self.presentation_asked),
            Field::UpdateScope => View::Flag(self.update_scope),
            Field::TouchedAreas => View::List(&self.touched_areas),
        }
    }

    /// Key without its opening quote, and value.
    fn write(&self, field: Field, out: &mut String) {
        out.push_str(FIELDS[field as usize].1);
        out.push_str("\": ");
        match self.view(field) {
            View::Flag(flag) => out.push_str(if flag { "true" } else { "false" }),
            View::Count(count) => out.push_str(&count.to_string()),
            View::List(list) => write_list(list, "    ", "  ", out),
            View::Result(None) => out.push_str("null"),
            View::Result(Some(result)) => out.push_str(result.raw.get()),
        }
    }
}

fn set<T: DeserializeOwned>(target: &mut T, raw: &RawValue) -> bool {
    match serde_json::from_str(raw.get()) {
        Ok(value) => {
            *target = value;
            true
        }
        Err(_) => false,
    }
}

/// `Some(None)` for null, `None` for the wrong type.
fn read_last_result(raw: &RawValue) -> Option<Option<LastResult>> {
    #[derive(Deserialize)]
    struct Stored {
        step: String,
        errors: Option<Vec<String>>,
    }
    let stored: Option<Stored> = serde_json::from_str(raw.get()).ok()?;
    Some(stored.map(|stored| LastResult {
        step: stored.step,
        errors: stored.errors.unwrap_or_default(),
        raw: raw.to_owned(),
    }))
}

/// The text of a last result as it stands inside the document.
pub(super) fn last_result_text(step: &str, at: &str, errors: Option<&[String]>) -> String {
    let mut out = format!("{{\n    \"step\": {},\n    \"at\": {at}", quoted(step));
    if let Some(errors) = errors {
        out.push_str(",\n    \"errors\": ");
        write_list(errors, "      ", "    ", &mut out);
    }
    out.push_str("\n  }");
    out
}

fn write_list(list: &[String], inner: &str, outer: &str, out: &mut String) {
    if list.is_empty() {
        out.push_str("[]");
        return;
    }
    let mut open = '[';
    for item in list {
        out.push(open);
        open = ',';
        out.push('\n');
        out.push_str(inner);
        json_text::quote(item, out);
    }
    out.push('\n');
    out.push_str(outer);
    out.push(']');
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    json_text::quote(text, &mut out);
    out
}

/// The entries of an object in file order; a repeated key keeps its first place and its last value.
struct Document<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Document<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Document<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, &'de RawValue)> = Vec::with_capacity(FIELDS.len());
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    match entries.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, last)) => *last = value,
                        None => entries.push((key, value)),
                    }
                }
                Ok(Document(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
