//! [`Tasks`]: the durable side of the loop. Task documents and event streams below `agent/` of the state folder; its
//! inboxes, owners and ended tasks are in files of their own.
//!
//! A task is driven by one process at a time, which holds its folder's lock. Messages come in beside that, under a lock
//! of their own.

use std::path::PathBuf;
use std::time::Duration;

use core_store::{Folder, FolderGuard, State, Store, StoreError};

use super::decide::Session;
use super::stamp::Stamp;
use super::stream::{Event, Stream, Summary};
use super::task_file::TaskFile;

/// Why the durable side could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TasksError {
    /// No task of this id is known to the loop.
    #[error("no agent task `{0}`")]
    Unknown(String),
    /// The id cannot name a folder.
    #[error("`{0}` cannot be the id of an agent task: letters, digits, `_`, `-` and `.` only")]
    BadId(String),
    /// Another process drives it.
    #[error("task `{0}` is driven by another process")]
    Busy(String),
    /// It came to its end: nobody would read what is said to it.
    #[error("task `{0}` came to its end")]
    Ended(String),
    /// A document is not what it should be. Nothing is written over it.
    #[error("agent/{place} is corrupt ({reason}); inspect or restore it")]
    Corrupt {
        /// Path below `agent/`.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const DOCUMENT: &str = "task.json";
pub(super) const SESSION: &str = "session.json";
pub(super) const DRIVER: &str = ".driver.lock";
pub(super) const LOCK: &str = ".lock";
/// The collection of the task store.
const STORED: &str = "tasks";
/// Whoever holds one of the small locks needs milliseconds.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Tasks of one state folder. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tasks {
    store: Store,
    app_dir: PathBuf,
}

/// A task whose driver this is.
#[derive(Debug)]
pub struct OpenTask {
    /// Its document.
    pub file: TaskFile,
    /// Its conversation with the model.
    pub session: Session,
    /// What happened.
    pub stream: Stream,
    saved: TaskFile,
    saved_session: Session,
    pub(super) guard: FolderGuard,
}

impl OpenTask {
    /// Makes document and conversation durable, what of them changed.
    ///
    /// # Errors
    /// The store refuses.
    pub fn save(&mut self) -> Result<(), TasksError> {
        self.file.summary = self.stream.summary().clone();
        if self.session != self.saved_session || self.file != self.saved {
            self.check()?;
        }
        // The conversation first: its place in the stream is never ahead of what the document knows.
        if self.session != self.saved_session {
            let text = serde_json::to_string(&self.session).expect("a session is plain data");
            self.guard.replace(SESSION, &text)?;
            self.saved_session = self.session.clone();
        }
        if self.file != self.saved {
            let text = serde_json::to_string_pretty(&self.file).expect("a document is plain data");
            self.guard.replace(DOCUMENT, &text)?;
            self.saved = self.file.clone();
        }
        Ok(())
    }
}

impl OpenTask {
    /// Adds an event.
    ///
    /// # Errors
    /// The store refuses.
    pub fn append(&mut self, event: Event) -> Result<(), TasksError> {
        self.check()?;
        Ok(self.stream.append(event)?)
    }

    /// A task whose document somebody removed is gone: it does not come back by being written.
    fn check(&self) -> Result<(), TasksError> {
        match self.guard.read(DOCUMENT) {
            Ok(None) => Err(TasksError::Unknown(self.file.id.clone())),
            Ok(Some(_)) | Err(StoreError::NotUtf8 { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Tasks {
    /// Those below `agent/` of a state folder.
    #[must_use]
    pub fn new(store: Store, app_dir: PathBuf) -> Self {
        Self { store, app_dir }
    }

    pub(super) fn folder(&self, path: &str, lock: &str) -> Result<Folder, StoreError> {
        self.store.folder(&self.app_dir, &format!("agent/{path}"), lock)
    }

    fn task_folder(&self, id: &str) -> Result<Folder, TasksError> {
        Ok(self.folder(&format!("tasks/{}", checked(id)?), DRIVER)?)
    }

    /// A new task; false if there is one of this id, or was.
    ///
    /// # Errors
    /// The store refuses.
    pub fn create(&self, file: &TaskFile) -> Result<bool, TasksError> {
        if self.ended_folder(&file.id)?.exists()? {
            return Ok(false);
        }
        let text = serde_json::to_string_pretty(file).expect("a document is plain data");
        Ok(self.task_folder(&file.id)?.create(|draft| draft.file(DOCUMENT, &text))?)
    }

    /// The document of a task, as it is; `None` if there is none.
    ///
    /// # Errors
    /// It is corrupt, or the store refuses.
    pub fn read(&self, id: &str) -> Result<Option<TaskFile>, TasksError> {
        match document(&self.task_folder(id)?, &format!("tasks/{id}"))? {
            None => document(&self.ended_folder(id)?, &format!("ended/{id}")),
            found => Ok(found),
        }
    }

    /// Takes a task in order to drive it.
    ///
    /// # Errors
    /// It is unknown, corrupt, or driven by another.
    pub fn open(&self, id: &str) -> Result<OpenTask, TasksError> {
        let folder = self.task_folder(id)?;
        if !folder.exists()? {
            return Err(TasksError::Unknown(id.to_owned()));
        }
        let guard = match folder.lock(Duration::ZERO) {
            Ok(guard) => guard,
            Err(StoreError::LockTimeout { .. }) => return Err(TasksError::Busy(id.to_owned())),
            Err(error) => return Err(error.into()),
        };
        let file = self.read(id)?.ok_or_else(|| TasksError::Unknown(id.to_owned()))?;
        // A conversation that cannot be read is begun anew.
        let session = match guard.read(SESSION) {
            Ok(text) => text.and_then(|text| serde_json::from_str(&text).ok()),
            Err(StoreError::NotUtf8 { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let session: Session = session.unwrap_or_default();
        let log = self.store.app(&self.app_dir).log(&format!("agent/tasks/{id}"), "events");
        let log = log.ok_or_else(|| TasksError::BadId(id.to_owned()))?;
        let stream = Stream::open(log, file.summary.clone())?;
        Ok(OpenTask {
            saved: file.clone(),
            saved_session: session.clone(),
            file,
            session,
            stream,
            guard,
        })
    }

    /// Events of a task so far. Needs no driver.
    ///
    /// # Errors
    /// The store refuses.
    pub fn events(&self, id: &str) -> Result<Vec<Event>, TasksError> {
        // One that ends meanwhile is moved once; then it is found at its new place.
        let has_ended = self.ended_folder(id)?.exists()?;
        for place in ["tasks", "ended"].into_iter().skip(usize::from(has_ended)) {
            let log = self.store.app(&self.app_dir).log(&format!("agent/{place}/{id}"), "events");
            let log = log.ok_or_else(|| TasksError::BadId(id.to_owned()))?;
            let events = Stream::open(log, Summary::default())?.into_events();
            if !events.is_empty() {
                return Ok(events);
            }
        }
        Ok(Vec::new())
    }

    /// Ids of the tasks that did not end, and of those that ended just now.
    ///
    /// # Errors
    /// The store refuses.
    pub fn ids(&self) -> Result<Vec<String>, TasksError> {
        self.ids_at("tasks")
    }

    pub(super) fn ids_at(&self, place: &str) -> Result<Vec<String>, TasksError> {
        let entries = self.folder(place, LOCK)?.list("")?;
        Ok(entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect())
    }

    /// Whether the task store has no task of this id. One that cannot be read, or is not there, forgets nobody.
    #[must_use]
    pub fn is_forgotten(&self, id: &str) -> bool {
        let stored = self.store.app(&self.app_dir).read(STORED);
        stored.is_ok_and(|tasks| *tasks.state() == State::Stored && tasks.find("id", id).is_none())
    }

    /// What changes with the documents, messages and outcomes of a task: compared, never read.
    #[must_use]
    pub fn stamps(&self, id: &str, state_dir: &str) -> [Stamp; 3] {
        let agent = self.app_dir.join("agent");
        let mut state = self.app_dir.join(state_dir);
        state.push("logs");
        [
            Stamp::of(&agent.join("tasks").join(id).join(DOCUMENT)),
            Stamp::of(&agent.join("inbox").join(id)),
            if state_dir.is_empty() { Stamp::default() } else { Stamp::of(&state) },
        ]
    }

    /// What changes with the set of tasks, with cards, with runs, and with the task store.
    #[must_use]
    pub fn common_stamps(&self) -> [Stamp; 4] {
        let state = self.app_dir.join("state");
        [
            Stamp::of(&self.app_dir.join("agent/tasks")),
            Stamp::of(&state.join("cards.json")),
            Stamp::of(&state.join("runs.json")),
            Stamp::of(&state.join(format!("{STORED}.json"))),
        ]
    }
}

/// The document in a task's folder; `place` names that folder.
fn document(folder: &Folder, place: &str) -> Result<Option<TaskFile>, TasksError> {
    let place = || format!("{place}/{DOCUMENT}");
    match folder.read(DOCUMENT) {
        Ok(None) => Ok(None),
        Ok(Some(text)) => parse(&text, place).map(Some),
        Err(StoreError::NotUtf8 { .. }) => {
            Err(TasksError::Corrupt { place: place(), reason: "not UTF-8 text".to_owned() })
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(
    text: &str,
    place: impl Fn() -> String,
) -> Result<T, TasksError> {
    serde_json::from_str(text)
        .map_err(|error| TasksError::Corrupt { place: place(), reason: error.to_string() })
}

pub(super) fn checked(id: &str) -> Result<&str, TasksError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if id.is_empty() || id.starts_with('.') || id.len() > 200 || !id.chars().all(plain) {
        return Err(TasksError::BadId(id.to_owned()));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use core_store::{Durability, StoreOptions};

    use super::*;

    fn tasks(folder: &std::path::Path) -> Tasks {
        Tasks::new(Store::open(StoreOptions { durability: Durability::Os }), folder.to_owned())
    }

    fn file(id: &str) -> TaskFile {
        TaskFile { id: id.into(), query: "q".into(), ..TaskFile::default() }
    }

    #[test]
    fn a_task_has_one_driver_and_takes_messages_all_the_while() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        assert!(tasks.create(&file("t")).unwrap());
        assert!(!tasks.create(&file("t")).unwrap());
        let mut open = tasks.open("t").unwrap();
        assert!(matches!(tasks.open("t"), Err(TasksError::Busy(_))));
        for text in ["one", "two"] {
            tasks.post("t", text).unwrap();
        }
        let (name, text) = tasks.oldest("t", &[]).unwrap().unwrap();
        assert_eq!(text, "one");
        let second = tasks.oldest("t", std::slice::from_ref(&name)).unwrap().unwrap();
        assert_eq!(second.1, "two");
        open.file.turns = 3;
        open.session.seen = Some(2);
        open.save().unwrap();
        drop(open);
        for name in [&name, &second.0] {
            tasks.remove("t", name).unwrap();
        }
        assert_eq!(tasks.post("t", "three").unwrap(), "00000003.txt", "a name is used once");
        let open = tasks.open("t").unwrap();
        assert_eq!((open.file.turns, open.session.seen), (3, Some(2)));
        assert_eq!(tasks.ids().unwrap(), ["t"]);
        assert!(matches!(tasks.read("../x"), Err(TasksError::BadId(_))));
        assert!(matches!(tasks.open("gone"), Err(TasksError::Unknown(_))));
        assert!(matches!(tasks.post("gone", "x"), Err(TasksError::Unknown(_))));
    }
}
