//! What a model is offered: built-in actions and operations, and how both are written down for it.

use std::fmt::Write as _;

use sdk::workflow::bounds::Availability;

use super::operations::{Operations, Tool, WORKFLOWS};
use crate::plugins::Address;

/// Says something to the human; with `wait_for_user_reply` it is a card and the task parks.
pub(super) const SEND_MESSAGE: &str = "send_message";
/// Starts another task.
pub(super) const TASK_START: &str = "task_start";
/// Ends the task.
pub(super) const TASK_END: &str = "task_end";
/// Runs an agent of one of the workflow's types.
pub(super) const SPAWN_SUBAGENT: &str = "spawn_subagent";
/// Ends a sub-agent.
pub(super) const SUB_TASK_END: &str = "sub_task_end";
/// Parks the task for a time.
pub(super) const WAIT: &str = "wait";

/// The built-in actions of a task, with what a model reads about them.
const BUILT_IN: [(&str, &str); 5] = [
    (
        SEND_MESSAGE,
        "send_message(message, wait_for_user_reply: boolean = false): Says something to the user. With \
         wait_for_user_reply the task waits for the answer.",
    ),
    (
        TASK_START,
        "task_start(request, workflow = \"\", subject = \"\"): Starts another task with this request, of a workflow if one is \
         named; a subject names what stands already and is to be changed.",
    ),
    (TASK_END, "task_end(status: complete|abort, reason = \"\", summary = \"\"): Ends this task."),
    (
        SPAWN_SUBAGENT,
        "spawn_subagent(agent_type, query): Has an agent of this type work on the query and gives its result.",
    ),
    (
        WAIT,
        "wait(seconds: integer = 60): Does nothing for a while, or until a run of this task ends.",
    ),
];

/// Operations that are for people: an agent that could answer its own question would never be stopped by one.
const FOR_PEOPLE: [(&str, &str); 3] = [
    ("feedback-management", "resolve_card"),
    ("feedback-management", "cancel_task_cards"),
    ("feedback-management", "acknowledge_feedback"),
];

/// Whether a model may call the operation. Workflows are the loop's: a model could record its own verdict.
fn is_offered(address: &Address) -> bool {
    &*address.project != WORKFLOWS && !FOR_PEOPLE.contains(&(&*address.project, &*address.op))
}

/// Why a task cannot be given this action as one that it may use.
pub(super) fn refusal(operations: &dyn Operations, action: &str) -> Option<String> {
    if Tools::is_built_in(action) {
        return None;
    }
    let tools = || Tools::of_task(operations, &[]);
    match Address::parse(action) {
        Some(address) if !is_offered(&address) => Some("it is not for tasks".to_owned()),
        Some(address) => operations.lacks(&address, false),
        None => Some(format!("there are {}", known(action, tools().names()))),
    }
}

/// The actions of a task.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    names: Vec<String>,
    lines: Vec<String>,
    reads: Vec<String>,
}

impl Tools {
    /// The built-in actions, and every operation that is offered; only those of `compiled` if that is not empty.
    #[must_use]
    pub fn of_task(operations: &dyn Operations, compiled: &[String]) -> Self {
        let mut tools = Self::default();
        for (name, line) in BUILT_IN {
            tools.push(name.to_owned(), line.to_owned());
        }
        for tool in operations.tools() {
            let name = tool.address.to_string();
            if is_offered(&tool.address) && (compiled.is_empty() || compiled.contains(&name)) {
                if tool.is_read {
                    tools.reads.push(name.clone());
                }
                let line = line(&name, &tool.doc, &tool, |_| true);
                tools.push(name, line);
            }
        }
        tools
    }

    /// Whether the host itself has an action of this name for tasks.
    #[must_use]
    pub fn is_built_in(name: &str) -> bool {
        BUILT_IN.iter().any(|(built_in, _)| *built_in == name)
    }

    fn push(&mut self, name: String, line: String) {
        self.names.push(name);
        self.lines.push(line);
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The list as a model reads it, of these names only if there is a bound.
    #[must_use]
    pub fn text(&self, bound: Option<&[&str]>) -> String {
        let mut text = String::new();
        for (name, line) in self.names.iter().zip(&self.lines) {
            if bound.is_none_or(|bound| bound.contains(&name.as_str())) {
                let _infallible = writeln!(text, "- {line}");
            }
        }
        text
    }

    /// Whether an action changes nothing, so that several of its kind can run side by side.
    #[must_use]
    pub fn is_read(&self, name: &str) -> bool {
        self.reads.iter().any(|read| read == name)
    }

    /// Whether an action can run.
    #[must_use]
    pub fn availability(&self, name: &str) -> Availability {
        if self.names.iter().any(|known| known == name) {
            Availability::Ready
        } else if name == SUB_TASK_END || Address::parse(name).is_some_and(|a| !is_offered(&a)) {
            Availability::Hidden
        } else {
            Availability::Unknown
        }
    }
}

/// What there is instead of a name that is not there, as a person reads it; the names most like it first.
pub(super) fn known<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    fn last(name: &str) -> std::str::Chars<'_> {
        name.rsplit('.').next().unwrap_or_default().chars()
    }
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|known| {
        std::cmp::Reverse(last(known).zip(last(name)).take_while(|(a, b)| a == b).count())
    });
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`"));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _infallible = write!(text, " and {more} more");
    }
    text
}

/// `name(a, b: integer = 3, c?): what it does`.
pub(super) fn line(name: &str, doc: &str, tool: &Tool, shown: impl Fn(&str) -> bool) -> String {
    let params: Vec<String> = tool
        .params
        .iter()
        .filter(|param| shown(&param.name))
        .map(|param| {
            let mut text = param.name.clone();
            if param.json_type != "string" {
                let _infallible = write!(text, ": {}", param.json_type);
            }
            match &param.default {
                _ if param.required => {}
                Some(default) if !default.is_empty() => {
                    let _infallible = write!(text, " = {default}");
                }
                Some(_) | None => text.push('?'),
            }
            text
        })
        .collect();
    let doc = doc.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    format!("{name}({}): {}", params.join(", "), doc.trim())
}

#[cfg(test)]
mod tests {
    use sdk::host::ParamDescriptor;
    use serde_json::Value;

    use super::super::operations::{CallError, WorkflowPlace};
    use super::*;

    struct Three;

    fn tool(address: &str) -> Tool {
        let param =
            |name: &str, json_type: &str, default: Option<&str>, required| ParamDescriptor {
                name: name.into(),
                doc: String::new(),
                json_type: json_type.into(),
                default: default.map(str::to_owned),
                required,
                filters: None,
            };
        Tool {
            address: Address::parse(address).unwrap(),
            doc: "Does\nit.\n\nMore of it.".into(),
            params: vec![
                param("a", "string", None, true),
                param("b", "integer", Some("3"), false),
                param("c", "string", Some(""), false),
            ],
            is_read: address.ends_with("add"),
        }
    }

    impl Operations for Three {
        fn call(&self, _: &Address, _: Vec<(String, String)>) -> Result<Value, CallError> {
            Ok(Value::Null)
        }
        fn tool(&self, _: &Address) -> Option<Tool> {
            None
        }
        fn tools(&self) -> Vec<Tool> {
            let names =
                ["_core.workflows.x", "_core.feedback-management.resolve_card", "_core.notes.add"];
            names.map(tool).into()
        }
        fn workflow(&self, _: &str) -> Option<WorkflowPlace> {
            None
        }
    }

    #[test]
    fn of_what_is_known_the_most_alike_comes_first_and_not_all_is_said() {
        let names = ["send_message", "wait", "_core.notes.add"];
        assert_eq!(
            known("_core.note.adds", names.into_iter()),
            "`_core.notes.add`, `send_message`, `wait`"
        );
        let many: Vec<String> = (0..14).map(|at| format!("x{at}")).collect();
        let text = known("é", many.iter().map(String::as_str));
        assert!(text.ends_with("`x11` and 2 more"), "{text}");
        assert_eq!(known("a", std::iter::empty()), "");
    }

    #[test]
    fn operations_are_offered_but_for_those_of_others() {
        let tools = Tools::of_task(&Three, &[]);
        assert_eq!(tools.names().count(), BUILT_IN.len() + 1);
        assert_eq!(
            tools.text(Some(&["_core.notes.add"])),
            "- _core.notes.add(a, b: integer = 3, c?): Does it.\n"
        );
        assert_eq!(tools.text(None).lines().count(), BUILT_IN.len() + 1);
        for (name, want) in [
            ("_core.notes.add", Availability::Ready),
            ("send_message", Availability::Ready),
            ("sub_task_end", Availability::Hidden),
            ("_core.workflows.x", Availability::Hidden),
            ("_core.feedback-management.resolve_card", Availability::Hidden),
            ("_core.notes.remove", Availability::Unknown),
            ("", Availability::Unknown),
        ] {
            assert_eq!(tools.availability(name), want, "{name}");
        }
        assert!(tools.is_read("_core.notes.add") && !tools.is_read("send_message"));
        let bound = Tools::of_task(&Three, &["_core.notes.remove".to_owned()]);
        assert_eq!(bound.names().count(), BUILT_IN.len());
    }
}
