//! A subject's files in a folder of the call, held under its lock.

use std::time::Duration;

use crate::context::Context;
use crate::error::UdfError;
use crate::folder::{Folder, FolderGuard};
use crate::workflow::engine::{Change, Place, Stored};
use crate::workflow::state::{StateClass, WorkState};
use crate::workflow::workflow::{Answer, DomainError, Workflow};
use crate::workflow::{journal, ledger};

/// Lock file of a state directory.
const LOCK: &str = ".workflow.lock";
/// A turn takes milliseconds; whoever holds the lock longer hangs.
const WAIT: Duration = Duration::from_secs(10);
/// Corrupt states that are kept.
const CORRUPT_FILES: u32 = 1000;

/// The folder of a state directory, not created. An absolute path is the directory itself, a relative one
/// lies below the app directory.
pub(super) fn look<'c>(ctx: &'c Context, state_dir: &str) -> Result<Folder<'c>, UdfError> {
    let (root, path) = if state_dir.starts_with('/') { (state_dir, "") } else { ("", state_dir) };
    ctx.folder(root, path, LOCK)
}

/// The folder of a state directory, created if need be.
pub(super) fn open<'c>(ctx: &'c Context, state_dir: &str) -> Answer<Folder<'c>> {
    let folder = look(ctx, state_dir)?;
    if !folder.exists()? {
        folder.create(&["logs"], &[])?;
    }
    Ok(folder)
}

/// Bytes of the state file. Those that are no text are no JSON either: the engine treats the file as corrupt.
pub(super) fn state_bytes(
    folder: &Folder<'_>,
    class: &StateClass,
) -> Result<Option<Vec<u8>>, UdfError> {
    match folder.read(&class.path()) {
        Ok(text) => Ok(text.map(String::into_bytes)),
        Err(error) if error.message().contains("is not UTF-8 text") => Ok(Some(vec![0xff])),
        Err(error) => Err(error),
    }
}

/// The files of one subject; nobody else writes them while this lives (decision O7).
pub(super) struct FolderPlace<'f> {
    ctx: &'f Context,
    folder: &'f Folder<'f>,
    guard: FolderGuard<'f>,
    class: StateClass,
    ledger: String,
    has_ledger: bool,
}

impl<'f> FolderPlace<'f> {
    pub(super) fn lock(
        ctx: &'f Context,
        folder: &'f Folder<'f>,
        workflow: &dyn Workflow,
    ) -> Answer<Self> {
        let guard = folder.lock(WAIT)?.ok_or_else(|| {
            DomainError::new("another process holds the state of the work; try again")
        })?;
        let (class, ledger) = (workflow.state_class(), ledger::path(workflow.ledger_key()));
        Ok(Self { ctx, folder, guard, class, ledger, has_ledger: false })
    }

    pub(super) fn work_state(&mut self) -> Answer<WorkState> {
        let stored = self.load()?;
        Ok(WorkState::load(stored.state.as_deref(), &self.class).state)
    }

    /// Moves the corrupt state file to the first name that is free (decision O6).
    fn quarantine(&mut self) -> Answer<()> {
        for number in 1..=CORRUPT_FILES {
            if self.guard.rename(&self.class.path(), &self.class.corrupt_path(number))? {
                return Ok(());
            }
        }
        Err(DomainError::new(format!(
            "{CORRUPT_FILES} corrupt states are kept already; remove some of logs/*.corrupt-*"
        )))
    }
}

impl Place for FolderPlace<'_> {
    fn load(&mut self) -> Answer<Stored> {
        let state = state_bytes(self.folder, &self.class)?;
        // A ledger that cannot be read costs the worker its history, not the turn; nothing is written over it.
        let ledger = self.folder.read_lossy(&self.ledger);
        self.has_ledger = ledger.is_ok();
        let ledger = ledger.unwrap_or_else(|error| {
            self.ctx.warn(&format!("the ledger cannot be read: {error}"));
            None
        });
        Ok(Stored { state, ledger: ledger.unwrap_or_default() })
    }

    fn commit(&mut self, change: &Change) -> Answer<()> {
        if change.quarantine {
            self.quarantine()?;
        }
        if let Some(state) = &change.state {
            self.guard.replace(&self.class.path(), state)?;
        }
        // From here on the change is recorded: what fails now is told to the log.
        if let Some(ledger) = change.ledger.as_ref().filter(|_| self.has_ledger)
            && let Err(error) = self.guard.replace(&self.ledger, ledger)
        {
            self.ctx.warn(&format!("the ledger was not written: {error}"));
        }
        if !change.journal.is_empty() {
            // The host ends a torn line before it appends.
            let lines = change.journal_text(None);
            if let Err(error) = self.guard.append(journal::PATH, &lines) {
                self.ctx.warn(&format!("the journal was not written: {error}"));
            }
        }
        Ok(())
    }
}
