//! Whose the subjects of a workflow are: one document for each workflow, under one lock.

use super::task_file::Owners;
use super::tasks::{LOCK, Tasks, TasksError, WAIT, checked, parse};
use core_store::StoreError;

impl Tasks {
    /// The ids under which workflows have had a subject.
    ///
    /// # Errors
    /// The store refuses.
    pub fn workflows(&self) -> Result<Vec<String>, TasksError> {
        let entries = self.folder("owners", LOCK)?.list("")?.into_iter();
        Ok(entries.filter_map(|entry| Some(entry.name.strip_suffix(".json")?.to_owned())).collect())
    }

    /// Owners of a workflow's subjects; `None` if none is on record.
    ///
    /// # Errors
    /// The document is corrupt, or the store refuses.
    pub fn owners(&self, workflow_id: &str) -> Result<Option<Owners>, TasksError> {
        let name = format!("{}.json", checked(workflow_id)?);
        let place = || format!("owners/{name}");
        match self.folder("owners", LOCK)?.read(&name) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => parse(&text, place).map(Some),
            Err(StoreError::NotUtf8 { .. }) => {
                Err(TasksError::Corrupt { place: place(), reason: "not UTF-8 text".to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a task the owner of a subject, whoever owned it before.
    ///
    /// # Errors
    /// As [`Tasks::owners`].
    pub fn bind(&self, workflow_id: &str, subject: &str, task: &str) -> Result<(), TasksError> {
        self.change_owner(workflow_id, subject, task, true).map(|_| ())
    }

    /// Makes a task the owner of a subject that has none; gives the owner.
    ///
    /// # Errors
    /// As [`Tasks::owners`].
    pub fn claim(
        &self,
        workflow_id: &str,
        subject: &str,
        task: &str,
    ) -> Result<String, TasksError> {
        self.change_owner(workflow_id, subject, task, false)
    }

    fn change_owner(
        &self,
        workflow_id: &str,
        subject: &str,
        task: &str,
        is_forced: bool,
    ) -> Result<String, TasksError> {
        let name = format!("{}.json", checked(workflow_id)?);
        let folder = self.folder("owners", LOCK)?;
        if !folder.exists()? {
            folder.create(|_| Ok(()))?;
        }
        let guard = folder.lock(WAIT)?;
        let mut owners = self.owners(workflow_id)?.unwrap_or_default();
        match owners.get(subject) {
            Some(owner) if owner == task || !is_forced => return Ok(owner.clone()),
            Some(_) | None => {}
        }
        owners.insert(subject.to_owned(), task.to_owned());
        let text = serde_json::to_string_pretty(&owners).expect("owners are plain data");
        guard.replace(&name, &text)?;
        Ok(task.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use core_store::{Durability, Store, StoreOptions};

    use super::*;

    #[test]
    fn owners_change_hands_and_corrupt_ones_judge_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions { durability: Durability::Os });
        let tasks = Tasks::new(store, folder.path().to_owned());
        assert_eq!(tasks.owners("w").unwrap(), None, "nobody is on record");
        assert_eq!(tasks.claim("w", "s", "t1").unwrap(), "t1");
        assert_eq!(tasks.claim("w", "s", "t2").unwrap(), "t1", "it has an owner");
        tasks.bind("w", "s", "t2").unwrap();
        assert_eq!(tasks.owners("w").unwrap().unwrap()["s"], "t2");
        #[expect(clippy::disallowed_methods, reason = "a test breaks a file")]
        std::fs::write(folder.path().join("agent/owners/w.json"), "{").unwrap();
        assert!(matches!(tasks.owners("w"), Err(TasksError::Corrupt { .. })));
        assert!(tasks.bind("w", "s", "t3").is_err(), "nothing is written over it");
    }
}
