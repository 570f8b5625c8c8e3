//! `udf-host run-feedback answer`: many runs in one text (the run-feedback contract §16), a line `#258: approve` each.

use std::io::{self, Read};

use clap::Args;
use serde_json::{Value, json};

use super::project::{Params, Project};
use super::{is_refusal, pretty, print, say};
use crate::cli::Exit;
use crate::error::HostError;

/// Said of every answer that came this way.
const SOURCE: &str = "parallel_coordination";

const HELP: &str = "\
A line answers the run that waits for the work item: `#258: approve`, `258: 1`, `Run #258: reject: too slow`. An answer
is understood as on an issue. Instead of the work item a line may name the run. Lines answer one after another.

Exit codes: 0 every line that names a waiting run was recorded; a line that names none is a warning. Otherwise the number
of the first refusal: 3 somebody was faster, 4 several runs wait for the item, 5 not an option, 7 state not written or the
host failed.";

/// Answer the open requests of many runs at once.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Answers {
    /// The lines; without them, standard input is read
    #[arg(value_name = "LINE")]
    lines: Vec<String>,
    /// Who answers [default: the name that git knows, else that of the user]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Where runs live [default: .fractary/plugins/faber/runs]
    #[arg(long, value_name = "DIR")]
    base_path: Option<String>,
}

impl Answers {
    pub(super) fn run(self, project: &Project) -> Result<Exit, HostError> {
        let text = match self.lines.is_empty() {
            true => standard_input()?,
            false => self.lines.join("\n"),
        };
        // Waits for its build, if need be, before the time of a call begins to count.
        project.flags("process_response")?;
        let named = |name: &str, text: &Option<String>| {
            text.as_ref().map(|text| (name.to_owned(), text.clone()))
        };
        let base: Params = named("base_path", &self.base_path).into_iter().collect();
        let user = named("user", &self.user);
        let (mut answers, mut warnings, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        for said in text.lines().filter(|line| !line.trim().is_empty()) {
            match answer(project, &base, user.as_ref(), said)? {
                Outcome::Recorded(row) => answers.push(row),
                Outcome::Nobody(row) => warnings.push(row),
                Outcome::Refused(row) => refusals.push(row),
            }
        }
        for row in warnings.iter().chain(&refusals) {
            say(&format!("{}\n", super::banner::one_line(&row["message"])));
        }
        let exit = refusals.first().and_then(|row| row["number"].as_u64());
        let exit = exit.map(|number| Exit::Operation(u8::try_from(number).unwrap_or(1).max(1)));
        print(&pretty(&json!({
            "status": if exit.is_some() { "error" } else { "success" },
            "operation": "answer",
            "answers": answers,
            "warnings": warnings,
            "refusals": refusals,
        }))?)?;
        Ok(exit.unwrap_or(Exit::Done))
    }
}

/// What became of a line.
enum Outcome {
    Recorded(Value),
    /// It names nobody who waits.
    Nobody(Value),
    Refused(Value),
}

fn answer(
    project: &Project,
    base: &Params,
    user: Option<&(String, String)>,
    said: &str,
) -> Result<Outcome, HostError> {
    let row = |code: &str, number: u64, message: String| json!({"line": said, "code": code, "number": number, "message": message});
    let Some(line) = Line::parse(said) else {
        let message = format!("{said:?} is no answer: `#258: approve`, one a line");
        return Ok(Outcome::Nobody(row("INVALID_LINE", 1, message)));
    };
    let mut pending = project.call_json("list_pending", base)?;
    if is_refusal(&pending) {
        return Ok(Outcome::Refused(refused(said, &pending)));
    }
    let mut open = match pending["pending"].take() {
        Value::Array(open) => open,
        _ => Vec::new(),
    };
    open.retain(|request| line.names(request));
    let request = match &open[..] {
        [] => {
            let mut message = format!("no run waits for an answer about {:?}", line.item);
            let entry = last_answer(project, base, line.item)?;
            if let Some(entry) = &entry {
                message.push_str(&format!(
                    "; the last one was {:?} by {:?} at {}",
                    text_of(&entry["response"]),
                    text_of(&entry["provided_by"]["user"]),
                    text_of(&entry["received_at"])
                ));
            }
            let mut row = row("NOT_AWAITING_FEEDBACK", 3, message);
            row["already_answered"] = entry.unwrap_or(Value::Null);
            return Ok(Outcome::Nobody(row));
        }
        [one] => one,
        several => {
            let runs: Vec<String> = several
                .iter()
                .map(|request| {
                    let text = |name: &str| text_of(&request[name]);
                    format!("{} ({}:{})", text("run_id"), text("phase"), text("step"))
                })
                .collect();
            let message =
                format!("several runs wait for {:?}; name one of: {}", line.item, runs.join(", "));
            return Ok(Outcome::Refused(row("SEVERAL_RUNS", 4, message)));
        }
    };
    let understood = project.call_json(
        "parse_issue_reply",
        &[
            ("body".to_owned(), format!("{}\n@faber resume", line.answer)),
            ("type".to_owned(), text_of(&request["type"])),
            ("options".to_owned(), text_of(&request["options"])),
        ],
    )?;
    // What is not understood is refused by the operation, with the options.
    let response = understood["response"].as_str().unwrap_or(line.answer);
    let mut params = base.clone();
    for (name, text) in [
        ("run_id", text_of(&request["run_id"])),
        ("request_id", text_of(&request["request_id"])),
        ("response", response.to_owned()),
        (
            "comment",
            understood["response"]
                .as_str()
                .map_or_else(String::new, |_| text_of(&understood["comment"])),
        ),
        ("source", SOURCE.to_owned()),
    ] {
        params.push((name.to_owned(), text));
    }
    params.extend(user.cloned());
    let reply = project.call_json("process_response", &params)?;
    if is_refusal(&reply) {
        return Ok(Outcome::Refused(refused(said, &reply)));
    }
    let result = &reply["result"];
    Ok(Outcome::Recorded(json!({
        "line": said,
        "run_id": request["run_id"],
        "request_id": request["request_id"],
        "response": result["response"],
        "action": result["action"],
        "resume_point": result["resume_point"],
    })))
}

/// The last answer that a run of this item got, if any.
fn last_answer(project: &Project, base: &Params, item: &str) -> Result<Option<Value>, HostError> {
    let with = |name: &str, text: &str| {
        let mut params = base.clone();
        params.push((name.to_owned(), text.to_owned()));
        params
    };
    let runs = if item.contains('/') {
        vec![item.to_owned()]
    } else {
        let mut listed = project.call_json("list_runs", &with("work_id", item))?;
        match listed["runs"].take() {
            Value::Array(runs) => runs.iter().map(|run| text_of(&run["run_id"])).collect(),
            _ => Vec::new(),
        }
    };
    let mut last: Option<Value> = None;
    for run in runs {
        let run = project.call_json("get_run", &with("run_id", &run))?;
        let entries = run["state"]["feedback_history"].as_array();
        if let Some(entry) = entries.and_then(|entries| entries.last())
            && last
                .as_ref()
                .is_none_or(|last| text_of(&last["received_at"]) <= text_of(&entry["received_at"]))
        {
            last = Some(entry.clone());
        }
    }
    Ok(last)
}

/// What an operation refuses, of a line.
fn refused(said: &str, reply: &Value) -> Value {
    let mut row = reply["error"].clone();
    row["line"] = said.into();
    row
}

/// A text as it is, other JSON as its text.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `#258: approve`.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    /// The work item, or the run.
    item: &'a str,
    answer: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Line<'a>> {
        let line = line.trim();
        let line = line.strip_prefix(['-', '*']).map_or(line, str::trim_start);
        let named = match line.get(..3) {
            Some(word) if word.eq_ignore_ascii_case("run") => {
                let rest = &line[3..];
                if rest.starts_with([' ', '\t', '#']) { rest.trim_start() } else { line }
            }
            _ => line,
        };
        let (item, answer) = named.split_once(':')?;
        let (item, answer) = (item.trim(), answer.trim());
        let item = item.strip_prefix('#').unwrap_or(item);
        let plain = !item.is_empty() && !item.contains(char::is_whitespace);
        (plain && !answer.is_empty()).then_some(Line { item, answer })
    }

    /// Whether a row of `list_pending` is meant.
    fn names(&self, request: &Value) -> bool {
        let work_id = text_of(&request["work_id"]);
        let run = text_of(&request["run_id"]);
        work_id.strip_prefix('#').unwrap_or(&work_id) == self.item
            || run == self.item
            || run.rsplit('/').next() == Some(self.item)
    }
}

fn standard_input() -> Result<String, HostError> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|error| HostError::BadRequest {
        message: format!("cannot read the answers from standard input: {error}"),
    })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_an_item_and_an_answer() {
        for (line, want) in [
            ("#258: approve", Some(("258", "approve"))),
            ("258: approve", Some(("258", "approve"))),
            ("  - Run #258: reject: too slow ", Some(("258", "reject: too slow"))),
            ("run 258:approve", Some(("258", "approve"))),
            ("* PROJ-12: 2", Some(("PROJ-12", "2"))),
            ("run: approve", Some(("run", "approve"))),
            ("rerun: approve", Some(("rerun", "approve"))),
            ("a/b/0f0e: approve", Some(("a/b/0f0e", "approve"))),
            ("#258 approve", None),
            ("I think: approve", None),
            ("#: approve", None),
            ("#258:", None),
            ("", None),
            ("é", None),
        ] {
            let got = Line::parse(line).map(|line| (line.item, line.answer));
            assert_eq!(got, want, "{line:?}");
        }
    }

    #[test]
    fn an_item_is_that_of_a_run_or_the_run() {
        let request = json!({"work_id": "#258", "run_id": "a/b/0f0e"});
        for (item, want) in
            [("258", true), ("a/b/0f0e", true), ("0f0e", true), ("25", false), ("b", false)]
        {
            assert_eq!(Line { item, answer: "x" }.names(&request), want, "{item}");
        }
        assert!(Line { item: "7", answer: "x" }.names(&json!({"work_id": 7, "run_id": "r"})));
    }
}
