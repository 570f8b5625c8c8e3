use crate::error::{ErrorKind, UdfError};

/// What an operation declared to touch; everything else is refused. This finds mistakes and tells a
/// reader of the catalog what an operation can do; code loaded into the process could go around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Name of the operation, for messages.
    pub op: String,
    /// Collections it reads.
    pub reads: Vec<String>,
    /// Collections it writes, and may read.
    pub writes: Vec<String>,
    /// Operations it calls.
    pub calls: Vec<String>,
    /// Directories of logs.
    pub logs: Vec<String>,
    /// Folders.
    pub folders: bool,
    /// Folders, but neither locked nor written.
    pub folders_read_only: bool,
    /// The network.
    pub net: bool,
}

impl Access {
    /// Whether a collection may be read.
    ///
    /// # Errors
    /// It is not declared; the message says how to declare it.
    pub fn check_read(&self, collection: &str) -> Result<(), UdfError> {
        let declared = self.reads.iter().chain(&self.writes).any(|name| name == collection);
        self.check(
            declared,
            || format!("reads the collection `{collection}`"),
            || format!("reads(\"{collection}\")"),
        )
    }

    /// Whether a transaction may begin on a collection.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_write(&self, collection: &str) -> Result<(), UdfError> {
        let declared = self.writes.iter().any(|name| name == collection);
        self.check(
            declared,
            || format!("writes the collection `{collection}`"),
            || format!("writes(\"{collection}\")"),
        )
    }

    /// Whether a directory of logs may be used.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_logs(&self, directory: &str) -> Result<(), UdfError> {
        let declared = self.logs.iter().any(|name| name == directory);
        self.check(
            declared,
            || format!("uses logs in `{directory}`"),
            || format!("logs(\"{directory}\")"),
        )
    }

    /// Whether folders may be used.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_folders(&self) -> Result<(), UdfError> {
        self.check(self.folders, || "uses folders".to_owned(), || "folders".to_owned())
    }

    /// Whether folders may be locked, written and created.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_folder_writes(&self) -> Result<(), UdfError> {
        let declared = self.folders && !self.folders_read_only;
        self.check(declared, || "writes folders".to_owned(), || "folders".to_owned())
    }

    /// Whether requests over the network may be made.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_net(&self) -> Result<(), UdfError> {
        self.check(self.net, || "uses the network".to_owned(), || "net".to_owned())
    }

    /// Whether an operation may be called. One declared as `project.op` covers any workspace.
    ///
    /// # Errors
    /// As [`Access::check_read`].
    pub fn check_call(&self, op: &str) -> Result<(), UdfError> {
        let declared = self.calls.iter().any(|name| {
            name == op || op.strip_suffix(name.as_str()).is_some_and(|head| head.ends_with('.'))
        });
        self.check(declared, || format!("calls `{op}`"), || format!("calls(\"{op}\")"))
    }

    fn check(
        &self,
        declared: bool,
        what: impl FnOnce() -> String,
        remedy: impl FnOnce() -> String,
    ) -> Result<(), UdfError> {
        if declared {
            return Ok(());
        }
        let (op, what, remedy) = (&self.op, what(), remedy());
        Err(UdfError::new(
            ErrorKind::Refused,
            format!("`{op}` {what} without declaring it: write `#[udf({remedy})]`"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_declared_is_refused_by_name() {
        let access = Access {
            op: "sweep".into(),
            reads: vec!["tasks".into()],
            writes: vec!["cards".into()],
            calls: vec!["feedback.get_card".into()],
            logs: vec!["runs".into()],
            ..Access::default()
        };
        for (outcome, want) in [
            (access.check_read("tasks"), None),
            (access.check_read("cards"), None),
            (access.check_read("runs"), Some("reads the collection `runs`|reads(\"runs\")")),
            (access.check_write("cards"), None),
            (access.check_write("tasks"), Some("writes the collection `tasks`|writes(\"tasks\")")),
            (access.check_logs("runs"), None),
            (access.check_logs("chats"), Some("uses logs in `chats`|logs(\"chats\")")),
            (access.check_folders(), Some("uses folders|folders")),
            (access.check_folder_writes(), Some("writes folders|folders")),
            (access.check_net(), Some("uses the network|net")),
            (access.check_call("feedback.get_card"), None),
            (access.check_call("_core.feedback.get_card"), None),
            (
                access.check_call("other.get_card"),
                Some("calls `other.get_card`|calls(\"other.get_card\")"),
            ),
            (
                access.check_call("xfeedback.get_card"),
                Some("calls `xfeedback.get_card`|calls(\"xfeedback.get_card\")"),
            ),
        ] {
            let want = want.map(|want| {
                let (what, remedy) = want.split_once('|').unwrap();
                format!("`sweep` {what} without declaring it: write `#[udf({remedy})]`")
            });
            assert_eq!(outcome.err().map(|error| error.message().to_owned()), want);
        }
    }
}
