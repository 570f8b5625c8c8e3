//! The report itself: a draft and its sources in a folder of their own, apart from the state of the work.

use std::time::Duration;

use sdk::prelude::*;
use sdk::workflow::{Answer, DomainError, Task};

const DRAFT: &str = "draft.md";
const SOURCES: &str = "sources";
const LOCK: &str = ".report.lock";
const WAIT: Duration = Duration::from_secs(10);
/// Characters of the request in a phrase.
const HEADLINE: usize = 80;

/// The documents of one report.
pub(crate) struct Report<'c> {
    folder: Folder<'c>,
}

/// What the task is about: the report it names, else its own. `None` for a task without an id.
pub(crate) fn subject(task: &Task) -> Answer<Option<String>> {
    let subject = task.subject_name();
    if subject.is_empty() {
        return Ok(None);
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    if subject.starts_with('.') || !subject.chars().all(plain) {
        return Err(DomainError::new(format!(
            "`{subject}` cannot name a report: letters, digits, blanks, `_`, `-` and `.` only"
        )));
    }
    Ok(Some(subject.to_owned()))
}

/// Where the state of the work lies.
pub(crate) fn state_dir(subject: &str) -> String {
    format!("workflows/report_writing/{subject}")
}

/// Where the report lies.
pub(crate) fn place(subject: &str) -> String {
    format!("reports/{subject}")
}

/// The first line of the request, cut.
pub(crate) fn headline(query: &str) -> String {
    query.lines().next().unwrap_or_default().chars().take(HEADLINE).collect()
}

/// The brief of the worker.
pub(crate) fn work_brief(query: &str, is_change: bool, sources: &[String]) -> String {
    let order = if is_change {
        "Change the report as asked. Read the draft first and keep what still holds."
    } else {
        "Write the draft of a report. If there is a draft already, read it first and improve it."
    };
    let sources = match sources {
        [] => "There are no sources: write what you are certain of, and mark what would need one."
            .to_owned(),
        names => format!("Sources at hand, to be read and cited by name: {}.", names.join(", ")),
    };
    format!(
        "{order}\n\nThe request:\n{}\n\n{sources}\nEvery claim is either cited or plainly marked as unsourced. Save \
         the whole report with write_draft; what is not saved is lost. Then end with a summary of what you wrote or \
         changed, and why.",
        query.trim()
    )
}

/// The brief of the checker.
pub(crate) fn check_brief(query: &str) -> String {
    format!(
        "Check the draft of a report against its sources and against the request. Read the draft, then every source \
         it cites. Each claim of substance is one feature: it passes if a source or what is commonly known bears it \
         out, and fails if it is wrong, outdated, or neither cited nor marked as unsourced. What the request asks for \
         and the draft leaves out fails too.\n\nThe request:\n{}",
        query.trim()
    )
}

impl<'c> Report<'c> {
    /// The report of a call that is no turn: that of the state directory, else that of the task.
    pub(crate) fn of(ctx: &'c Context, state_dir: &str, task: &Value) -> Result<Self, UdfError> {
        let subject = subject(&Task::of_call(state_dir, task))
            .map_err(|error| UdfError::raised(error.to_string()))?;
        let subject = subject.ok_or_else(|| {
            UdfError::raised("which report: give `state_dir`, or a `task` with `id` or `subject`")
        })?;
        Self::named(ctx, &subject)
    }

    /// The report of this name.
    pub(crate) fn named(ctx: &'c Context, subject: &str) -> Result<Self, UdfError> {
        Ok(Self { folder: ctx.folder("", &place(subject), LOCK)? })
    }

    /// The draft, if there is one.
    pub(crate) fn draft(&self) -> Result<Option<String>, UdfError> {
        self.folder.read(DRAFT)
    }

    /// Names of the sources, in order.
    pub(crate) fn sources(&self) -> Result<Vec<String>, UdfError> {
        let entries = self.folder.list(SOURCES)?.into_iter();
        Ok(entries.filter_map(|entry| Some(entry.name.strip_suffix(".md")?.to_owned())).collect())
    }

    pub(crate) fn write_draft(&self, text: &str) -> Result<Reply, UdfError> {
        if text.trim().is_empty() {
            return Err(UdfError::raised("write_draft needs the whole `text` of the report"));
        }
        self.write(DRAFT, text)?;
        Ok(Reply::value(&json!({"ok": true, "chars": text.chars().count()})))
    }

    pub(crate) fn read_draft(&self) -> Result<Reply, UdfError> {
        Ok(self.draft()?.map_or_else(Reply::not_found, |text| Reply::text(&text)))
    }

    /// What keeps the worker from being done.
    pub(crate) fn problems(&self) -> Result<Reply, UdfError> {
        let problems: &[&str] = match self.draft()? {
            None => &["there is no draft: save the report with write_draft"],
            Some(text) if text.trim().is_empty() => &["the draft is empty"],
            Some(_) => &[],
        };
        Ok(Reply::value(problems))
    }

    pub(crate) fn add_source(&self, name: &str, text: &str) -> Result<Reply, UdfError> {
        let file = source(name)?;
        if text.trim().is_empty() {
            return Err(UdfError::raised("add_source needs the `text` of the source"));
        }
        self.write(&file, text)?;
        Ok(Reply::value(&json!({"ok": true, "name": name})))
    }

    pub(crate) fn list_sources(&self) -> Result<Reply, UdfError> {
        Ok(Reply::value(&self.sources()?))
    }

    pub(crate) fn read_source(&self, name: &str) -> Result<Reply, UdfError> {
        Ok(self
            .folder
            .read(&source(name)?)?
            .map_or_else(Reply::not_found, |text| Reply::text(&text)))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), UdfError> {
        if !self.folder.exists()? {
            self.folder.create(&[SOURCES], &[])?;
        }
        let mut guard = self
            .folder
            .lock(WAIT)?
            .ok_or_else(|| UdfError::raised("the report is being written by another; try again"))?;
        guard.replace(file, text)
    }
}

fn source(name: &str) -> Result<String, UdfError> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(UdfError::raised(format!(
            "`{name}` cannot name a source: letters, digits, blanks, `_`, `-` and `.` only"
        )));
    }
    Ok(format!("{SOURCES}/{name}.md"))
}
