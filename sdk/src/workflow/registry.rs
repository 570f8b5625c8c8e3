//! The workflows that are there, by id (workflow-engine contract §10). The engine knows no domain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::texts;
use super::workflow::Workflow;

/// A registered workflow.
pub type Registered = Arc<dyn Workflow + Send + Sync>;

/// Why a workflow was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// Its name is blank.
    BlankName,
    /// Another workflow has this name, or this alias.
    DuplicateName(String),
    /// Its system prompt is blank.
    BlankSystemPrompt(String),
    /// It names no worker.
    MissingWorker(String),
    /// An alias is blank, or belongs to another workflow.
    TakenAlias(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlankName => f.write_str("a workflow needs a name"),
            Self::DuplicateName(name) => write!(f, "there is a workflow `{name}` already"),
            Self::BlankSystemPrompt(name) => write!(f, "workflow `{name}` needs a system prompt"),
            Self::MissingWorker(name) => write!(f, "workflow `{name}` needs a worker agent"),
            Self::TakenAlias(alias) => {
                write!(f, "the alias `{alias}` is taken or blank; choose another")
            }
        }
    }
}

impl std::error::Error for RegisterError {}

/// Something to tell the author about a workflow that was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Without a checker every staged result counts as verified.
    NoChecker,
}

/// What an id of a task leads to.
pub enum Found<'a> {
    /// The task has no workflow.
    Plain,
    /// Its workflow.
    Workflow(&'a Registered),
    /// Its workflow is not there: the task parks and shows this message (decision O9).
    Unknown(String),
}

/// Workflows by name and alias.
#[derive(Clone, Default)]
pub struct Registry {
    workflows: BTreeMap<String, Registered>,
    aliases: BTreeMap<String, String>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a workflow under its name and `aliases`, the ids it had before.
    ///
    /// # Errors
    /// One of [`RegisterError`]; nothing is registered then.
    pub fn register(
        &mut self,
        workflow: Registered,
        aliases: &[&str],
    ) -> Result<Vec<Warning>, RegisterError> {
        let name = workflow.name().to_owned();
        if name.trim().is_empty() {
            return Err(RegisterError::BlankName);
        }
        if self.is_taken(&name) {
            return Err(RegisterError::DuplicateName(name));
        }
        if workflow.system_prompt().trim().is_empty() {
            return Err(RegisterError::BlankSystemPrompt(name));
        }
        if workflow.worker_agent().trim().is_empty() {
            return Err(RegisterError::MissingWorker(name));
        }
        for (at, alias) in aliases.iter().enumerate() {
            if alias.trim().is_empty()
                || *alias == name
                || self.is_taken(alias)
                || aliases[..at].contains(alias)
            {
                return Err(RegisterError::TakenAlias((*alias).to_owned()));
            }
        }
        let warnings =
            if workflow.checker_agent().is_none() { vec![Warning::NoChecker] } else { Vec::new() };
        for alias in aliases {
            self.aliases.insert((*alias).to_owned(), name.clone());
        }
        self.workflows.insert(name, workflow);
        Ok(warnings)
    }

    /// Looks up the workflow id of a task; none and the empty id are a plain task.
    pub fn get(&self, id: Option<&str>) -> Found<'_> {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return Found::Plain };
        let name = self.aliases.get(id).map_or(id, String::as_str);
        match self.workflows.get(name) {
            Some(workflow) => Found::Workflow(workflow),
            None => Found::Unknown(texts::unknown_workflow(id)),
        }
    }

    /// Names in order, without aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.workflows.keys().map(String::as_str)
    }

    fn is_taken(&self, id: &str) -> bool {
        self.workflows.contains_key(id) || self.aliases.contains_key(id)
    }
}

/// A task that was running when the host stopped.
#[derive(Clone, Copy, Debug)]
pub struct Restored<'a> {
    /// Id of the task.
    pub task_id: &'a str,
    /// Its workflow id, if any.
    pub workflow_id: Option<&'a str>,
}

/// Tasks to cancel at start: those of a domain (`is_ours`) that own no subject any more.
///
/// `owners` are the owners of all its subjects, whatever their status; `None` is an unreadable record,
/// which judges nobody.
pub fn ghosts<'a>(
    running: &[Restored<'a>],
    owners: Option<&[&str]>,
    is_ours: impl Fn(&str) -> bool,
) -> Vec<&'a str> {
    let Some(owners) = owners else { return Vec::new() };
    running
        .iter()
        .filter(|task| task.workflow_id.is_some_and(&is_ours) && !owners.contains(&task.task_id))
        .map(|task| task.task_id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::workflow::{Answer, Subject, Task, TurnContext};
    use super::*;

    struct Named(&'static str, &'static str, &'static str, Option<&'static str>);

    impl Workflow for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn system_prompt(&self) -> &str {
            self.1
        }
        fn worker_agent(&self) -> &str {
            self.2
        }
        fn checker_agent(&self) -> Option<&str> {
            self.3
        }
        fn resolve_subject(&self, _: &Task) -> Answer<Option<Subject>> {
            Ok(None)
        }
        fn state_dir(&self, subject: &Subject) -> String {
            subject.id.clone()
        }
        fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
            Ok(true)
        }
        fn work_query(&self, _: &TurnContext<'_>) -> Answer<String> {
            Ok(String::new())
        }
        fn check_query(&self, _: &TurnContext<'_>) -> Answer<String> {
            Ok(String::new())
        }
    }

    fn named(name: &'static str) -> Registered {
        Arc::new(Named(name, "prompt", "w", Some("c")))
    }

    #[test]
    fn ids_lead_to_workflows() {
        let mut registry = Registry::new();
        assert_eq!(
            registry.register(named("living_ui_creation"), &["living_ui_development"]),
            Ok(vec![])
        );
        let lone = Arc::new(Named("lone", "p", "w", None));
        assert_eq!(registry.register(lone, &[]), Ok(vec![Warning::NoChecker]));
        for (id, want) in [
            (None, "plain"),
            (Some(""), "plain"),
            (Some("lone"), "lone"),
            (Some("living_ui_creation"), "living_ui_creation"),
            (Some("living_ui_development"), "living_ui_creation"),
            (Some(" "), "unknown"),
            (Some("gone"), "unknown"),
        ] {
            let found = match registry.get(id) {
                Found::Plain => "plain",
                Found::Workflow(workflow) => workflow.name(),
                Found::Unknown(message) => {
                    assert!(message.contains(id.unwrap()));
                    "unknown"
                }
            };
            assert_eq!(found, want, "{id:?}");
        }
        assert_eq!(registry.names().collect::<Vec<_>>(), ["living_ui_creation", "lone"]);
    }

    #[test]
    fn what_cannot_be_registered() {
        let mut registry = Registry::new();
        registry.register(named("a"), &["old"]).unwrap();
        for (workflow, aliases, want) in [
            (named(" "), &[][..], RegisterError::BlankName),
            (named("a"), &[], RegisterError::DuplicateName("a".into())),
            (named("old"), &[], RegisterError::DuplicateName("old".into())),
            (
                Arc::new(Named("b", "\n", "w", None)),
                &[],
                RegisterError::BlankSystemPrompt("b".into()),
            ),
            (Arc::new(Named("b", "p", " ", None)), &[], RegisterError::MissingWorker("b".into())),
            (named("b"), &["new", "old"], RegisterError::TakenAlias("old".into())),
            (named("b"), &["a"], RegisterError::TakenAlias("a".into())),
            (named("b"), &["b"], RegisterError::TakenAlias("b".into())),
            (named("b"), &["x", "x"], RegisterError::TakenAlias("x".into())),
            (named("b"), &[""], RegisterError::TakenAlias(String::new())),
        ] {
            assert_eq!(registry.register(workflow, aliases), Err(want));
        }
        assert_eq!(registry.names().collect::<Vec<_>>(), ["a"], "a refusal registers nothing");
        assert!(matches!(registry.get(Some("new")), Found::Unknown(_)));
    }

    #[test]
    fn ghosts_are_those_without_a_subject() {
        let task = |task_id, workflow_id| Restored { task_id, workflow_id };
        let running =
            [task("t1", Some("a")), task("t2", Some("a")), task("t3", Some("b")), task("t4", None)];
        let ours = |id: &str| id == "a";
        assert_eq!(ghosts(&running, Some(&["t2", "t9"]), ours), ["t1"]);
        assert_eq!(ghosts(&running, Some(&[]), ours), ["t1", "t2"]);
        assert!(ghosts(&running, None, ours).is_empty());
    }
}
