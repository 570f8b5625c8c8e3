//! Shows on standard error what a task does, while it does it.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::agent::{Listener, TaskFile};

/// Tells people what goes on.
pub(super) struct Shown;

/// Characters of a result that are shown.
const SHOWN: usize = 160;

fn say(task: &TaskFile, text: &str) {
    // Nobody may be listening there any more.
    let _closed = writeln!(io::stderr(), "{} {text}", task.id);
}

fn brief(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(SHOWN).collect()
}

impl Listener for Shown {
    fn name(&self) -> &str {
        "cli"
    }

    fn user_message_routed(&self, task: &TaskFile, text: &str) {
        say(task, &format!("heard: {}", brief(text)));
    }

    fn action_start(&self, task: &TaskFile, action: &str, parameters: &Map<String, Value>) {
        let what = ["agent_type", "message", "status"]
            .iter()
            .find_map(|key| parameters.get(*key).and_then(Value::as_str))
            .unwrap_or_default();
        say(task, &format!("{action} {}", brief(what)));
    }

    fn action_end(&self, task: &TaskFile, action: &str, result: &str) {
        say(task, &format!("{action} = {}", brief(result)));
    }

    fn parked(&self, task: &TaskFile, note: &str) {
        say(task, &format!("waits: {}", brief(note)));
    }
}
