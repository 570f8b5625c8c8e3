//! A run on disk: its directory, its lock, its files (§2, §6, §18).

use std::time::Duration;

use sdk::{Context, Folder, FolderGuard, Timestamp};

use crate::codes::{Code, Refusal};
use crate::event::{Event, EventFile, event_file_name, next_event_id};
use crate::outcome::Stop;
use crate::run_id::{RunId, RunPaths};
use crate::state::{State, document};
use crate::surroundings::process_user;

/// The lock of a run; every writer of the run takes it. Never deleted.
const LOCK: &str = "state.json.lock";

/// How long a writer waits for the others.
const LOCK_WAIT: Duration = Duration::from_secs(30);

const STATE: &str = "state.json";
const METADATA: &str = "metadata.json";
const EVENTS: &str = "events";
const COUNTER: &str = "events/.next-id";

/// The directory of one run. Reading needs no lock; every write takes a [`RunGuard`].
#[derive(Debug)]
pub struct RunDir<'c> {
    folder: Folder<'c>,
    run_id: RunId,
    paths: RunPaths,
}

impl<'c> RunDir<'c> {
    /// The place of a run below the base, whether there is a run or not. `base_path` empty is the default.
    ///
    /// # Errors
    /// `INVALID_RUN_ID` if the place leads out of the base through a link.
    pub fn open(ctx: &'c Context, base_path: &str, run_id: &RunId) -> Result<RunDir<'c>, Stop> {
        let folder = ctx.folder(RunPaths::base(base_path), &run_id.to_string(), LOCK)?;
        // Segments of an id are plain names: all that can be wrong with the place is where links on the way lead.
        folder.exists().map_err(|error| Stop::disk(error, Code::InvalidRunId))?;
        Ok(RunDir { folder, run_id: run_id.clone(), paths: RunPaths::new(base_path, run_id) })
    }

    /// Paths as callers see them.
    pub fn paths(&self) -> &RunPaths {
        &self.paths
    }

    /// Whether there is a directory.
    ///
    /// # Errors
    /// `RUN_NOT_FOUND`.
    pub fn check_exists(&self) -> Result<(), Stop> {
        match self.folder.exists().map_err(|error| Stop::disk(error, Code::RunNotFound))? {
            true => Ok(()),
            false => {
                Err(Refusal::new(Code::RunNotFound, format!("there is no run {}", self.run_id))
                    .into())
            }
        }
    }

    /// Creates the directory with its files, all at once; false if there is one already.
    ///
    /// # Errors
    /// `STATE_WRITE_FAILED`.
    pub fn create(&self, files: &[(&str, String)]) -> Result<bool, Stop> {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        self.folder
            .create(&[EVENTS], &files)
            .map_err(|error| Stop::disk(error, Code::StateWriteFailed))
    }

    /// The text of `state.json`.
    ///
    /// # Errors
    /// `unreadable` if the disk refuses or the file is no text.
    fn state_text(&self, unreadable: Code) -> Result<Option<String>, Stop> {
        self.folder.read(STATE).map_err(|error| Stop::disk(error, unreadable))
    }

    /// The state, for operations that only read.
    ///
    /// # Errors
    /// `STATE_CORRUPTED`, and `missing` if there is none.
    pub fn state(&self, missing: Code) -> Result<State, Stop> {
        let text = self.state_text(Code::StateCorrupted)?.ok_or_else(|| self.no_state(missing))?;
        Ok(State::for_reading(&text)?)
    }

    fn no_state(&self, code: Code) -> Refusal {
        Refusal::new(code, format!("run {} has no state.json", self.run_id))
    }

    /// The facts fixed at creation; an empty object if there are none.
    ///
    /// # Errors
    /// `STATE_CORRUPTED` if the file is there but holds no JSON object.
    pub fn metadata(&self) -> Result<State, Stop> {
        let text =
            self.folder.read(METADATA).map_err(|error| Stop::disk(error, Code::StateCorrupted))?;
        let corrupted =
            |why: String| Refusal::new(Code::StateCorrupted, why.replace(STATE, METADATA));
        Ok(match text {
            Some(text) => State::parse(&text).map_err(corrupted)?,
            None => State::default(),
        })
    }

    /// Every event file, in order of number.
    ///
    /// # Errors
    /// `unreadable` if the disk refuses.
    pub fn events(&self, unreadable: Code) -> Result<Vec<EventFile>, Stop> {
        let entries = self.folder.list(EVENTS).map_err(|error| Stop::disk(error, unreadable))?;
        let files = entries.iter().filter(|entry| !entry.is_directory);
        let mut events: Vec<EventFile> =
            files.filter_map(|entry| EventFile::parse(&entry.name)).collect();
        events.sort();
        Ok(events)
    }

    /// Refuses a run without state before anything is locked, so that a wrong id leaves nothing behind.
    ///
    /// # Errors
    /// `STATE_NOT_FOUND`.
    pub fn check_state_exists(&self) -> Result<(), Stop> {
        match self.state_text(Code::StateUpdateFailed)? {
            Some(_) => Ok(()),
            None => Err(self.no_state(Code::StateNotFound).into()),
        }
    }

    /// Waits for the run's lock.
    ///
    /// # Errors
    /// `LOCK_TIMEOUT` after 30 s.
    pub fn lock(&self) -> Result<RunGuard<'_>, Stop> {
        let guard = self
            .folder
            .lock(LOCK_WAIT)
            .map_err(|error| Stop::disk(error, Code::StateUpdateFailed))?;
        let Some(guard) = guard else {
            let waited = LOCK_WAIT.as_secs();
            let message = format!(
                "the lock of run {} was not free within {waited} s; nothing was written",
                self.run_id
            );
            return Err(Refusal::new(Code::LockTimeout, message).into());
        };
        Ok(RunGuard { dir: self, guard })
    }
}

/// The exclusive right to change a run.
#[derive(Debug)]
pub struct RunGuard<'d> {
    dir: &'d RunDir<'d>,
    guard: FolderGuard<'d>,
}

impl RunGuard<'_> {
    /// The state, to be changed; `None` if there is none.
    ///
    /// # Errors
    /// `STATE_UPDATE_FAILED` if the file holds anything but one JSON object: it is not written over.
    pub fn state_if_any(&self) -> Result<Option<State>, Stop> {
        let text = self.dir.state_text(Code::StateUpdateFailed)?;
        Ok(text.map(|text| State::for_update(&text)).transpose()?)
    }

    /// As [`RunGuard::state_if_any`], for operations that need one.
    ///
    /// # Errors
    /// As there, and `STATE_NOT_FOUND`.
    pub fn state(&self) -> Result<State, Stop> {
        let state = self.state_if_any()?;
        Ok(state.ok_or_else(|| self.dir.no_state(Code::StateNotFound))?)
    }

    /// Writes the event under the next free number, then the counter; gives number and file name. What is in `state` counts for
    /// the number, but the caller writes it.
    ///
    /// # Errors
    /// `EVENT_WRITE_ERROR`.
    pub fn write_event(
        &mut self,
        event: &Event,
        state: Option<&State>,
        now: &Timestamp,
    ) -> Result<(u64, String), Stop> {
        let failed = |error| Stop::disk(error, Code::EventWriteError);
        // A counter that cannot be read counts for as little as one that makes no sense.
        let counter = self.dir.folder.read(COUNTER).unwrap_or_default();
        let highest = self.dir.events(Code::EventWriteError)?.last().map(|file| file.event_id);
        let mut event_id =
            next_event_id(counter.as_deref(), highest, state.map_or(0, State::last_event_id));
        let user = process_user();
        let name = loop {
            let name = event_file_name(event_id, &event.kind);
            let text = document(&event.to_json(event_id, &self.dir.run_id, now, &user));
            if self.guard.create_new(&format!("{EVENTS}/{name}"), &text).map_err(failed)? {
                break name;
            }
            // Somebody without our lock was here; what stands is never written over.
            event_id += 1;
        };
        self.guard.replace(COUNTER, &format!("{}\n", event_id + 1)).map_err(failed)?;
        Ok((event_id, name))
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// `STATE_UPDATE_FAILED`; the old state stays.
    pub fn write_state(&mut self, state: &State) -> Result<(), Stop> {
        self.guard
            .replace(STATE, &state.render())
            .map_err(|error| Stop::disk(error, Code::StateUpdateFailed))
    }
}
