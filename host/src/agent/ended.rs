//! Tasks that came to their end, moved aside: what a host looks at when it starts does not grow with what is done.
//!
//! The folder of such a task is `agent/ended/<id>/`: its document and its events, and its inbox as `inbox/`. Its
//! conversation with the model is not kept.

use core_store::Folder;

use super::tasks::{DRIVER, OpenTask, SESSION, Tasks, TasksError, WAIT, checked};

impl Tasks {
    pub(super) fn ended_folder(&self, id: &str) -> Result<Folder, TasksError> {
        Ok(self.folder(&format!("ended/{}", checked(id)?), DRIVER)?)
    }

    /// Moves a task aside that came to its end, and of whose end everybody knows.
    ///
    /// # Errors
    /// The store refuses; the task stays where it is.
    pub fn put_aside(&self, task: OpenTask) -> Result<(), TasksError> {
        let OpenTask { file, guard, .. } = task;
        guard.remove(SESSION)?;
        guard.move_to(&self.ended_folder(&file.id)?)?;
        // Nobody posts any more. A host that dies here leaves a few bytes that nobody looks at.
        let inbox = self.inbox(&file.id)?;
        if inbox.exists()? {
            let place = self.folder(&format!("ended/{}/inbox", file.id), DRIVER)?;
            inbox.lock(WAIT)?.move_to(&place)?;
        }
        Ok(())
    }

    /// Ids of the tasks that were moved aside.
    ///
    /// # Errors
    /// The store refuses.
    pub fn ended_ids(&self) -> Result<Vec<String>, TasksError> {
        self.ids_at("ended")
    }
}
