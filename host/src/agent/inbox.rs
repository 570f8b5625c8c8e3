//! The inbox of a task: messages of people, in order, and the wish to have it ended. Under a lock of its own, so that
//! whoever drives the task is not waited for.

use core_store::{Folder, FolderGuard};

use super::task_file::TaskFile;
use super::tasks::{LOCK, OpenTask, Tasks, TasksError, WAIT, checked};

const CANCEL: &str = "cancel";

impl Tasks {
    pub(super) fn inbox(&self, id: &str) -> Result<Folder, TasksError> {
        Ok(self.folder(&format!("inbox/{}", checked(id)?), LOCK)?)
    }

    /// The lock of a task's inbox, which is made if need be.
    fn lock_inbox(&self, id: &str) -> Result<FolderGuard, TasksError> {
        let inbox = self.inbox(id)?;
        if !inbox.exists()? {
            inbox.create(|_| Ok(()))?;
        }
        Ok(inbox.lock(WAIT)?)
    }

    /// Puts a message into the inbox of a task; it is durable when this returns. Needs no driver.
    ///
    /// # Errors
    /// The task is unknown or at its end, or the store refuses.
    pub fn post(&self, id: &str, text: &str) -> Result<String, TasksError> {
        let is_open = |file: Option<TaskFile>| match file {
            None => Err(TasksError::Unknown(id.to_owned())),
            Some(file) if file.is_ended() => Err(TasksError::Ended(id.to_owned())),
            Some(_) => Ok(()),
        };
        is_open(self.read(id)?)?;
        let guard = self.lock_inbox(id)?;
        // The end is written under this lock too: whoever gets here first is known to the other.
        is_open(self.read(id)?)?;
        // Numbers are not used again: a served message may still be listed in the task's document.
        let last = guard.read(".last")?.and_then(|text| text.trim().parse::<u64>().ok());
        let listed = guard.list("")?.iter().filter_map(|entry| number(&entry.name)).max();
        let next = last.max(listed).unwrap_or(0) + 1;
        guard.replace(".last", &next.to_string())?;
        let name = format!("{next:08}.txt");
        guard.create_new(&name, text)?;
        Ok(name)
    }

    /// Makes the end of a task durable: from then on nobody posts to it. False, and nothing is saved: `unheard` is to
    /// be heard first, and there is a message that the task did not take.
    ///
    /// # Errors
    /// The store refuses.
    pub fn seal(&self, task: &mut OpenTask, unheard: bool) -> Result<bool, TasksError> {
        let id = task.file.id.clone();
        let _inbox = self.lock_inbox(&id)?;
        let mut served = task.file.served.clone();
        served.extend(task.file.message.as_ref().map(|message| message.name.clone()));
        if unheard && self.oldest(&id, &served)?.is_some() {
            return Ok(false);
        }
        task.save()?;
        Ok(true)
    }

    /// The oldest message that is not among `served`: its name and text. Looks without a lock.
    ///
    /// # Errors
    /// The store refuses.
    pub fn oldest(
        &self,
        id: &str,
        served: &[String],
    ) -> Result<Option<(String, String)>, TasksError> {
        let inbox = self.inbox(id)?;
        for entry in inbox.list("")? {
            if number(&entry.name).is_none() || served.contains(&entry.name) {
                continue;
            }
            match inbox.read(&entry.name) {
                Ok(Some(text)) => return Ok(Some((entry.name, text))),
                Ok(None) => {}
                // Nobody of ours wrote it; the others are not to wait for it.
                Err(error) => {
                    tracing::error!(target: "udf_host::agent", task = id, "a message cannot be read: {error}");
                }
            }
        }
        Ok(None)
    }

    /// Number of the newest message; 0 if there is none.
    ///
    /// # Errors
    /// The store refuses.
    pub fn newest(&self, id: &str) -> Result<u64, TasksError> {
        let entries = self.inbox(id)?.list("")?;
        Ok(entries.iter().filter_map(|entry| number(&entry.name)).max().unwrap_or(0))
    }

    /// Asks whoever drives a task, now or later, to cancel it. Durable when this returns.
    ///
    /// # Errors
    /// The store refuses.
    pub fn request_cancel(&self, id: &str) -> Result<(), TasksError> {
        self.lock_inbox(id)?.create_new(CANCEL, "")?;
        Ok(())
    }

    /// Whether somebody asked to cancel a task.
    ///
    /// # Errors
    /// The store refuses.
    pub fn is_cancelled(&self, id: &str) -> Result<bool, TasksError> {
        Ok(self.inbox(id)?.read(CANCEL)?.is_some())
    }

    /// Removes a message that was served.
    ///
    /// # Errors
    /// The store refuses.
    pub fn remove(&self, id: &str, name: &str) -> Result<(), TasksError> {
        let inbox = self.inbox(id)?;
        if inbox.exists()? {
            inbox.lock(WAIT)?.remove(name)?;
        }
        Ok(())
    }
}

pub(super) fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".txt")?.parse().ok()
}
