//! The prompts of both drivers. What a model reads about the form of its reply is here and nowhere else.

use std::fmt::Write as _;

/// The general system prompt of a task without a workflow.
pub(super) const SYSTEM: &str = "You are an agent that gets tasks done by choosing actions. You act through the listed actions only, \
one decision at a time, and you learn what they did from the events. Be truthful about what happened.";

const TASK_FORM: &str = "Reply with one JSON object and nothing around it:\n\
{\"reasoning\": \"why, in a sentence\", \"actions\": [{\"action_name\": \"name\", \"parameters\": {\"name\": \"value\"}}]}\n\
At most ten actions, carried out in order. Names as listed; what is not listed does not exist.";

const SUB_FORM: &str = "Reply with one JSON object and nothing around it:\n\
{\"reasoning\": \"why, in a sentence\", \"actions\": [{\"action_name\": \"name\", \"parameters\": {\"name\": \"value\"}}]}\n\
At most four actions, carried out in order. When you are done, or cannot go on, call sub_task_end.";

const OBJECTIVE: &str = "Choose the actions that bring the request forward. When it is done, say so to the user and end the task.";

/// What makes up the full prompt of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskPrompt<'a> {
    /// The task's id: some operations ask for it.
    pub(super) id: &'a str,
    /// What was asked for.
    pub(super) query: &'a str,
    /// The workflow's own block; may be empty.
    pub(super) task_state: &'a str,
    /// The events so far.
    pub(super) events: &'a str,
    /// The actions.
    pub(super) actions: &'a str,
    /// What this turn is about, if a step says so.
    pub(super) directive: Option<&'a str>,
    /// The workflow's own text about the form of the reply.
    pub(super) form: Option<&'a str>,
}

impl TaskPrompt<'_> {
    /// The whole text. The directive stands in the place of the objective.
    pub(super) fn full(&self) -> String {
        let mut text = format!("# Request\n{}\n\n(This is task {}.)\n", self.query.trim(), self.id);
        if !self.task_state.trim().is_empty() {
            let _infallible = write!(text, "\n# Where it stands\n{}\n", self.task_state.trim());
        }
        let events = if self.events.is_empty() { "(nothing yet)\n" } else { self.events };
        let _infallible = write!(text, "\n# What happened so far\n{events}");
        let _infallible = write!(text, "\n# Actions\n{}", self.actions);
        let objective = self.directive.unwrap_or(OBJECTIVE);
        let _infallible = write!(text, "\n# Objective\n{objective}\n");
        let _infallible =
            write!(text, "\n# Form of your reply\n{}", self.form.unwrap_or(TASK_FORM));
        text
    }
}

/// What follows a decision: the events since, and the actions if only some of them may be chosen.
#[must_use]
pub(super) fn delta(events: &str, bound: Option<&str>) -> String {
    let mut text = format!("# What happened since\n{events}");
    if let Some(actions) = bound {
        let _infallible = write!(text, "\n# The only actions of this turn\n{actions}");
    }
    text.push_str("\nReply in the form described.");
    text
}

/// The full prompt of a sub-agent.
#[must_use]
pub(super) fn sub_agent(query: &str, actions: &str, events: &str) -> String {
    let mut text = format!("# Your assignment\n{}\n\n# Actions\n{actions}", query.trim());
    if !events.is_empty() {
        let _infallible = write!(text, "\n# What happened so far\n{events}");
    }
    let _infallible = write!(text, "\n# Form of your reply\n{SUB_FORM}");
    text
}

/// What a sub-agent is told when its turns are used up.
pub(super) const WRAP_UP: &str = "Your turns are used up. End now: call sub_task_end with status and the result as far as it got. \
No other action counts.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_takes_the_place_of_the_objective() {
        let prompt = TaskPrompt {
            id: "t",
            query: "q",
            task_state: " ",
            events: "",
            actions: "- a(): A.\n",
            directive: None,
            form: None,
        };
        assert!(prompt.full().contains(OBJECTIVE) && !prompt.full().contains("Where it stands"));
        let directed =
            TaskPrompt { directive: Some("ask once"), form: Some("FORM"), ..prompt }.full();
        assert!(directed.contains("# Objective\nask once\n") && !directed.contains(OBJECTIVE));
        assert!(directed.ends_with("# Form of your reply\nFORM"));
        assert!(delta("- e\n", Some("- a\n")).contains("The only actions of this turn\n- a\n"));
    }
}
