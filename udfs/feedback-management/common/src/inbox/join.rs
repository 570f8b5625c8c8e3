use std::collections::HashMap;

use sdk::prelude::*;

/// What records are joined by: the value of an id field. A missing field equals null, a number never
/// equals a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(String),
    /// Any other value, in canonical form.
    Other(String),
}

impl Key {
    pub(super) fn of(id: Option<JsonRef<'_>>) -> Self {
        match id {
            None => Self::Other("null".to_owned()),
            Some(id) => match id.as_str_exact() {
                Some(plain) => Self::Text(plain.into_owned()),
                None => Self::Other(text::canonical(id)),
            },
        }
    }
}

/// The tasks, found by id as often as needed.
pub(super) struct Tasks<'c> {
    tasks: Collection<'c>,
    joined: HashMap<Key, Option<Record>>,
}

impl<'c> Tasks<'c> {
    pub(super) fn new(tasks: Collection<'c>) -> Self {
        Self { tasks, joined: HashMap::new() }
    }

    /// The task with this id; of several the last in the file.
    pub(super) fn joined(&mut self, id: &Key) -> Option<Record> {
        if !self.joined.contains_key(id) {
            let task = with_value(&self.tasks, "id", id).pop();
            self.joined.insert(id.clone(), task);
        }
        self.joined.get(id).cloned().flatten()
    }

    /// Tasks that are completed or failed, in file order.
    pub(super) fn finished(&self) -> Vec<Record> {
        self.tasks.matching_any("status", &["completed".to_owned(), "failed".to_owned()])
    }

    pub(super) fn pending(&self) -> Vec<Record> {
        self.tasks.matching("status", "pending")
    }
}

/// The runs of a task, in file order.
pub(super) fn runs_of(runs: &Collection<'_>, task_id: &Key) -> Vec<Record> {
    with_value(runs, "taskId", task_id)
}

/// By the store's index for texts; ids of other kinds are rare enough to look at every record.
fn with_value(collection: &Collection<'_>, field: &str, value: &Key) -> Vec<Record> {
    match value {
        Key::Text(plain) => collection.matching(field, plain),
        Key::Other(_) => {
            let mut records = collection.objects();
            records.retain(|record| Key::of(record.get(field)) == *value);
            records
        }
    }
}
