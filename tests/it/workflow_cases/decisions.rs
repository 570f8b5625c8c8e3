//! A model's raw reply: actions and reasoning, or the error.

use sdk::workflow::decision::{Driver, parse};
use serde_json::{Value, json};

use super::{Report, text_at};

pub(super) fn run(row: &Value, report: &mut Report) {
    let expect = &row["expect"];
    report.known_keys("expect", expect, &["actions", "reasoning", "error"]);
    let driver = match text_at(row, "driver") {
        "task" => Driver::Task,
        "sub" => Driver::Sub,
        other => return report.add("driver", format_args!("no such driver: {other}")),
    };
    let got = match parse(text_at(row, "raw"), driver) {
        Err(error) => json!({"error": error.to_string()}),
        Ok(decisions) => {
            let reasoning = decisions
                .first()
                .map(|decision| decision.reasoning.to_string())
                .unwrap_or_default();
            let actions: Vec<Value> = decisions
                .into_iter()
                .map(|decision| json!({"action_name": decision.action_name, "parameters": decision.parameters}))
                .collect();
            let mut got = json!({"actions": actions});
            // Reasoning is optional in a case; a task's is listed whenever it is not empty.
            if expect.get("reasoning").is_some()
                || (driver == Driver::Task && !reasoning.is_empty())
            {
                got["reasoning"] = reasoning.into();
            }
            got
        }
    };
    report.compare("expect", expect, &got);
}
