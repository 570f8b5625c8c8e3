//! [`AgentType`]: a kind of sub-agent, read from `agents/<type>.toml` below its workflow's folder.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::operations::{CallError, Operations, texts};
use super::tools;
use crate::plugins::Address;

/// A kind of sub-agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentType {
    /// Its system prompt.
    pub prompt: String,
    /// Turns before it is told to wrap up.
    #[serde(default = "iterations")]
    pub max_iterations: u32,
    /// Seconds it may run, looked at between two turns.
    #[serde(default = "wall_seconds")]
    pub max_wall_seconds: u64,
    /// What it may do besides ending.
    #[serde(default)]
    pub actions: Vec<BoundAction>,
    /// What must find nothing to complain about before it may end as completed.
    #[serde(default)]
    pub exit_checks: Vec<BoundCall>,
}

/// An action of a type: an operation under a name of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundAction {
    /// What the model calls it.
    pub name: String,
    /// What the model reads about it; absent is the operation's own doc.
    pub doc: Option<String>,
    /// `workspace.project.op`.
    pub operation: String,
    /// Parameters the model cannot choose. `{state_dir}`, `{task_id}` and `{workflow_id}` are filled in.
    #[serde(default)]
    pub pinned: BTreeMap<String, String>,
    /// Parameters that are offered; absent are all that are not pinned.
    pub params: Option<Vec<String>>,
}

/// A call without a choice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCall {
    /// `workspace.project.op`.
    pub operation: String,
    /// Its parameters; placeholders as in [`BoundAction::pinned`].
    #[serde(default)]
    pub pinned: BTreeMap<String, String>,
}

fn iterations() -> u32 {
    30
}

fn wall_seconds() -> u64 {
    1800
}

/// What placeholders stand for.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// State directory of the subject; empty without one.
    pub state_dir: String,
    /// The task that spawned it.
    pub task_id: String,
    /// The workflow of that task; empty without one.
    pub workflow_id: String,
}

impl Place {
    fn fill(&self, text: &str) -> String {
        text.replace("{state_dir}", &self.state_dir)
            .replace("{task_id}", &self.task_id)
            .replace("{workflow_id}", &self.workflow_id)
    }

    fn filled(&self, pinned: &BTreeMap<String, String>) -> Vec<(String, String)> {
        pinned.iter().map(|(name, text)| (name.clone(), self.fill(text))).collect()
    }
}

impl AgentType {
    /// Reads the type of this name below a workflow's folder.
    ///
    /// # Errors
    /// There is none, or its file is faulty; the text is for author and model to read.
    pub fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("`{name}` is no agent type"));
        }
        let agents = folder.join("agents");
        let file = agents.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&file)
            .map_err(|_| format!("there is no agent type `{name}`; known: {}", known(&agents)))?;
        let kind: Self = toml::from_str(&text)
            .map_err(|error| format!("agents/{name}.toml is faulty: {}", error.message()))?;
        let operations = kind.actions.iter().map(|action| &action.operation);
        for operation in operations.chain(kind.exit_checks.iter().map(|check| &check.operation)) {
            if Address::parse(operation).is_none() {
                return Err(format!(
                    "agents/{name}.toml names `{operation}`, which is not workspace.project.op"
                ));
            }
        }
        if kind.prompt.trim().is_empty() {
            return Err(format!("agents/{name}.toml has a blank `prompt`"));
        }
        let mut names: Vec<&str> = kind.actions.iter().map(|action| &*action.name).collect();
        names.push(tools::SUB_TASK_END);
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("agents/{name}.toml has two actions `{}`", twice[0]));
        }
        Ok(kind)
    }

    /// Reads a type that can be run: every operation that it names is there. An agent without one of its tools, or
    /// without one of its exit checks, is another agent. `waits` for those that are being built.
    ///
    /// # Errors
    /// As [`AgentType::read`], or an operation is not there; the text names it.
    pub fn usable(
        folder: &Path,
        name: &str,
        operations: &dyn Operations,
        waits: bool,
    ) -> Result<Self, String> {
        let kind = Self::read(folder, name)?;
        let actions = kind.actions.iter().map(|action| &action.operation);
        let named = actions.chain(kind.exit_checks.iter().map(|check| &check.operation));
        let lacking = named
            .filter_map(|operation| Address::parse(operation))
            .find_map(|address| Some((operations.lacks(&address, waits)?, address)));
        match lacking {
            Some((reason, address)) => {
                Err(format!("agents/{name}.toml needs the operation `{address}`: {reason}"))
            }
            None => Ok(kind),
        }
    }

    /// The names of its actions.
    #[must_use]
    pub fn allowed(&self) -> Vec<String> {
        self.actions.iter().map(|action| action.name.clone()).collect()
    }

    /// Its actions as the model reads them.
    #[must_use]
    pub fn text(&self, operations: &dyn Operations) -> String {
        let mut text = String::new();
        for action in &self.actions {
            let tool = Address::parse(&action.operation).and_then(|a| operations.tool(&a));
            let Some(tool) = tool else { continue };
            let offered = |name: &str| {
                !action.pinned.contains_key(name)
                    && action.params.as_ref().is_none_or(|params| params.iter().any(|p| p == name))
            };
            let doc = action.doc.as_deref().unwrap_or(&tool.doc);
            text.push_str("- ");
            text.push_str(&tools::line(&action.name, doc, &tool, offered));
            text.push('\n');
        }
        text.push_str(
            "- sub_task_end(status: completed|failed, result): Ends your work; `result` is all that is read of it.\n",
        );
        text
    }

    /// Carries out one of its actions. Pinned parameters override the model's, those not offered are left out.
    ///
    /// # Errors
    /// The operation's, or that there is no such action.
    pub fn call(
        &self,
        operations: &dyn Operations,
        place: &Place,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Result<Value, CallError> {
        let action = self.actions.iter().find(|action| action.name == name);
        let action = action.ok_or_else(|| CallError(format!("there is no action `{name}`")))?;
        let address = address(&action.operation)?;
        let mut params = texts(parameters);
        params.retain(|(name, _)| {
            !action.pinned.contains_key(name)
                && action.params.as_ref().is_none_or(|offered| offered.contains(name))
        });
        params.extend(place.filled(&action.pinned));
        operations.call(&address, params)
    }

    /// Every problem its exit checks find. A check answers a list of problems, one text, or
    /// `{"ok": false, "error"}`; one that fails itself is passed over.
    #[must_use]
    pub fn problems(&self, operations: &dyn Operations, place: &Place) -> Vec<String> {
        let mut problems = Vec::new();
        for check in &self.exit_checks {
            let answer = address(&check.operation)
                .and_then(|address| operations.call(&address, place.filled(&check.pinned)));
            match answer {
                Ok(answer) => problems.extend(complaints(&answer)),
                Err(error) => {
                    tracing::warn!(target: "udf_host::agent", check = %check.operation, "an exit check failed: {error}");
                }
            }
        }
        problems
    }
}

fn address(text: &str) -> Result<Address, CallError> {
    Address::parse(text).ok_or_else(|| CallError(format!("`{text}` is no operation")))
}

fn complaints(answer: &Value) -> Vec<String> {
    match answer {
        Value::String(text) if !text.trim().is_empty() => vec![text.clone()],
        Value::Array(list) => list
            .iter()
            .map(|entry| entry.as_str().map_or_else(|| entry.to_string(), str::to_owned))
            .collect(),
        Value::Object(map) if map.get("ok") == Some(&Value::Bool(false)) => {
            let error = map.get("error").and_then(Value::as_str).unwrap_or("a check says no");
            vec![error.to_owned()]
        }
        Value::String(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            Vec::new()
        }
    }
}

fn known(agents: &Path) -> String {
    let entries = std::fs::read_dir(agents).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("agents")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(folder.path().join("agents/writer.toml"), text).unwrap();
        folder
    }

    fn read(text: &str) -> Result<AgentType, String> {
        AgentType::read(written(text).path(), "writer")
    }

    #[test]
    fn a_type_is_data() {
        let kind = read(
            "prompt = \"Write.\"\nmax_iterations = 3\n[[actions]]\nname = \"save\"\n\
             operation = \"_core.workflows.x\"\nparams = [\"text\"]\n[actions.pinned]\nstate_dir = \"{state_dir}/a\"\n",
        )
        .unwrap();
        assert_eq!((kind.max_iterations, kind.max_wall_seconds), (3, 1800));
        assert_eq!(kind.allowed(), ["save"]);
        let place = Place { state_dir: "d".into(), ..Place::default() };
        assert_eq!(place.filled(&kind.actions[0].pinned), [("state_dir".into(), "d/a".into())]);
    }

    #[test]
    fn a_faulty_type_says_what_is_wrong() {
        for (text, want) in [
            ("prompt = \" \"", "blank"),
            ("prompt = \"x\"\nmax_iteration = 3", "unknown field"),
            ("prompt = \"x\"\n[[exit_checks]]\noperation = \"x\"", "workspace.project.op"),
            (
                "prompt = \"x\"\n[[actions]]\nname = \"sub_task_end\"\noperation = \"a.b.c\"",
                "two actions `sub_task_end`",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["../x", "", "gone"] {
            assert!(AgentType::read(folder.path(), name).is_err());
        }
    }

    struct Only(&'static str);

    impl Operations for Only {
        fn call(&self, _: &Address, _: Vec<(String, String)>) -> Result<Value, CallError> {
            Ok(Value::Null)
        }
        fn tool(&self, address: &Address) -> Option<super::super::Tool> {
            (&*address.op == self.0).then(|| super::super::Tool {
                address: address.clone(),
                doc: String::new(),
                params: vec![],
                is_read: true,
            })
        }
        fn tools(&self) -> Vec<super::super::Tool> {
            vec![]
        }
        fn workflow(&self, _: &str) -> Option<super::super::WorkflowPlace> {
            None
        }
    }

    #[test]
    fn a_type_needs_all_its_operations() {
        let text = "prompt = \"x\"\n[[actions]]\nname = \"a\"\noperation = \"a.b.save\"\n\
                    [[exit_checks]]\noperation = \"a.b.check\"";
        for (there, text, missing) in [
            ("check", text, "a.b.save"),
            ("save", text, "a.b.check"),
            ("none", "prompt = \"x\"", ""),
        ] {
            let folder = written(text);
            let usable = AgentType::usable(folder.path(), "writer", &Only(there), false);
            match (missing, usable) {
                ("", usable) => assert!(usable.is_ok()),
                (missing, usable) => {
                    let error = usable.unwrap_err();
                    let named = format!("agents/writer.toml needs the operation `{missing}`");
                    assert!(error.contains(&named), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_check_complains_in_several_forms() {
        for (answer, want) in [
            (json!(null), 0),
            (json!([]), 0),
            (json!(" "), 0),
            (json!({"ok": true}), 0),
            (json!("no draft"), 1),
            (json!(["a", 1]), 2),
            (json!({"ok": false, "error": "no"}), 1),
        ] {
            assert_eq!(complaints(&answer).len(), want, "{answer}");
        }
    }
}
