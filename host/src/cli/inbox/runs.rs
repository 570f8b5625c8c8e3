//! [`Runs`]: open requests of workflow runs, through `run-feedback`.
//!
//! A request is named by its id. Ids are only unique within a run, so `RUN:REQUEST` names one among several.

use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::door::{self, Door};
use super::form::{Choice, Given, pick};
use super::hint::{Hints, Word, remark, shell};
use super::row::{Kind, Place, Row};
use super::source::{Item, Open, Outcome, Past, Source};
use crate::error::HostError;

const PROJECT: &str = "run-feedback";
/// How many runs, newest first, are searched for a request that is no longer open.
const SEARCHED: &str = "500";

/// Open requests of workflow runs.
pub(super) struct Runs {
    door: Rc<dyn Door>,
    /// Where runs live; empty for the operations' own default.
    base: String,
    hints: Hints,
}

/// What an id stands for.
enum Found {
    /// The row of `list_pending`.
    Open(Value),
    /// The run, and the entry of its history if there is one: the request was answered.
    Closed(String, Option<Value>),
    Unknown,
    /// Several runs have an open request of this id.
    Several(Vec<String>),
}

impl Runs {
    pub(super) fn new(door: Rc<dyn Door>, base: &str, hints: Hints) -> Self {
        Self { door, base: base.to_owned(), hints }
    }

    /// What the operation answers, refusals included.
    fn call(&self, op: &str, params: &[(&str, &str)]) -> Result<Value, HostError> {
        let mut params = params.to_vec();
        if !self.base.is_empty() {
            params.push(("base_path", &self.base));
        }
        let reply = self.door.call(PROJECT, op, &params)?;
        serde_json::from_str(&reply).map_err(|error| HostError::Internal {
            message: format!("`{PROJECT}.{op}` did not answer JSON"),
            detail: error.to_string(),
        })
    }

    /// What the operation answers, unless it refuses.
    fn ask(&self, op: &str, params: &[(&str, &str)]) -> Result<Value, HostError> {
        let reply = self.call(op, params)?;
        if reply["status"] == "error" { Err(refusal(&reply)) } else { Ok(reply) }
    }

    /// `list_pending`; `None` where there is no such project.
    fn pending(&self, project: &str) -> Result<Option<Value>, HostError> {
        match self.ask("list_pending", &[("project", project)]) {
            Err(error) if door::is_absent(&error) => Ok(None),
            reply => reply.map(Some),
        }
    }

    fn find(&self, id: &str) -> Result<Found, HostError> {
        let Some(mut reply) = self.pending("")? else { return Ok(Found::Unknown) };
        let (run, request) =
            id.rsplit_once(':').map_or((None, id), |(run, request)| (Some(run), request));
        let mut open = list(&mut reply, "pending");
        open.retain(|row| {
            row["request_id"] == request && run.is_none_or(|run| row["run_id"] == run)
        });
        match open.len() {
            0 => self.find_closed(run, request),
            1 => Ok(Found::Open(open.remove(0))),
            _ => Ok(Found::Several(
                open.iter().map(|row| format!("{}:{request}", word(&row["run_id"]))).collect(),
            )),
        }
    }

    /// Looks for a request that somebody has answered.
    fn find_closed(&self, run: Option<&str>, request: &str) -> Result<Found, HostError> {
        if let Some(run) = run {
            let reply = self.call("get_run", &[("run_id", run)])?;
            return Ok(match reply["status"] == "success" {
                true => Found::Closed(run.to_owned(), entry_of(&reply, request)),
                false => Found::Unknown,
            });
        }
        if !request.starts_with("fr-") {
            return Ok(Found::Unknown); // An id of something else: not worth reading every run.
        }
        let mut runs = self.ask("list_runs", &[("limit", SEARCHED)])?;
        for run in list(&mut runs, "runs") {
            let run = word(&run["run_id"]);
            let reply = self.call("get_run", &[("run_id", &run)])?;
            if let Some(entry) = entry_of(&reply, request) {
                return Ok(Found::Closed(run, Some(entry)));
            }
        }
        Ok(Found::Unknown)
    }

    /// The answer that was recorded, or that none was.
    fn faster(id: &str, entry: Option<&Value>) -> Outcome {
        let Some(entry) = entry else {
            return Outcome::Faster {
                said: format!(
                    "`{id}` is no longer open: it was withdrawn or replaced, and has no answer"
                ),
                winner: Value::Null.to_string(),
            };
        };
        let winner = json!({
            "by": entry["provided_by"]["user"],
            "at": entry["received_at"],
            "status": "answered",
            "result": {"response": entry["response"], "comment": entry["comment"]},
        });
        let at = word(&entry["received_at"]);
        Outcome::Faster {
            said: format!("`{id}` is no longer open: {} at {at}", outcome(entry)),
            winner: winner.to_string(),
        }
    }
}

impl Source for Runs {
    fn open(&self, project: &str) -> Result<Open, HostError> {
        let Some(mut reply) = self.pending(project)? else { return Ok(Open::default()) };
        let notes = list(&mut reply, "unreadable");
        let notes: Vec<String> = notes
            .iter()
            .map(|run| format!("the state of run {} cannot be read", word(run)))
            .collect();
        let rows = list(&mut reply, "pending").iter().map(row).collect();
        Ok(Open { rows, unread: !notes.is_empty(), notes })
    }

    fn item(&self, id: &str) -> Result<Option<Item>, HostError> {
        let (run, open) = match self.find(id)? {
            Found::Unknown => return Ok(None),
            Found::Several(ids) => {
                return Err(HostError::BadRequest { message: several(id, &ids) });
            }
            Found::Open(open) => (word(&open["run_id"]), Some(open)),
            Found::Closed(run, _) => (run, None),
        };
        let reply = self.ask("get_run", &[("run_id", &run)])?;
        let hints = open.as_ref().map(|open| ways(&self.hints, id, open)).unwrap_or_default();
        let request = id.rsplit(':').next().unwrap_or(id);
        Ok(Some(Item { hints, ..item(&run, request, &reply, open.as_ref()) }))
    }

    fn answer(&self, id: &str, given: &Given<'_>, by: &str) -> Result<Option<Outcome>, HostError> {
        let open = match self.find(id)? {
            Found::Unknown => return Ok(None),
            Found::Several(ids) => return Ok(Some(Outcome::Misfit(several(id, &ids)))),
            Found::Closed(_, entry) => return Ok(Some(Self::faster(id, entry.as_ref()))),
            Found::Open(open) => open,
        };
        let (response, comment) = match response(&open, given) {
            Ok(answer) => answer,
            Err(fault) => return Ok(Some(Outcome::Misfit(fault))),
        };
        let (run, request) = (word(&open["run_id"]), word(&open["request_id"]));
        let params = [
            ("run_id", run.as_str()),
            ("request_id", request.as_str()),
            ("response", response.as_str()),
            ("comment", comment),
            ("user", by),
        ];
        let reply = self.call("process_response", &params)?;
        if reply["status"] != "error" {
            let action = word(&reply["result"]["action"]);
            let said = format!(
                "`{id}` is answered by {by} with “{response}”: the run's next step is to {action}"
            );
            return Ok(Some(Outcome::Done { said, json: reply["result"].to_string() }));
        }
        match reply["error"]["code"].as_str() {
            Some("NOT_AWAITING_FEEDBACK" | "REQUEST_ID_MISMATCH") => {
                let found = self.ask("get_run", &[("run_id", &run)])?;
                Ok(Some(Self::faster(id, entry_of(&found, &request).as_ref())))
            }
            Some("INVALID_RESPONSE" | "MISSING_FIELDS") => {
                Ok(Some(Outcome::Misfit(word(&reply["error"]["message"]))))
            }
            _ => Err(refusal(&reply)),
        }
    }

    fn dismiss(&self, id: &str) -> Result<Option<Outcome>, HostError> {
        Ok(match self.find(id)? {
            Found::Unknown => None,
            Found::Closed(_, entry) => Some(Self::faster(id, entry.as_ref())),
            Found::Open(_) | Found::Several(_) => {
                let hint = self.hints.line("answer", &[Word::Text(id), Word::Blank("…")]);
                Some(Outcome::Misfit(format!(
                    "a run waits for `{id}`, so it cannot be dismissed: `{hint}`"
                )))
            }
        })
    }
}

/// A row of `list_pending`.
fn row(pending: &Value) -> Row {
    let run = word(&pending["run_id"]);
    let some = |value: &Value| Some(word(value)).filter(|word| !word.is_empty());
    Row {
        kind: Kind::Question,
        id: word(&pending["request_id"]),
        project: run.rsplit_once('/').map(|(project, _)| project.to_owned()),
        task: some(&pending["work_id"]),
        number: None,
        title: None,
        agent: None,
        effect: some(&pending["type"]),
        body: word(&pending["prompt"]),
        created_at: word(&pending["requested_at"]),
        place: Some(Place { run, phase: word(&pending["phase"]), step: word(&pending["step"]) }),
    }
}

fn item(run: &str, request: &str, reply: &Value, open: Option<&Value>) -> Item {
    let state = &reply["state"];
    let asked = &state["feedback_request"];
    let entry = entry_of(reply, request);
    let (told, point) = match (open, &entry) {
        (Some(open), _) => (
            format!("waits {}", age::shown(&word(&open["requested_at"]), Timestamp::now())),
            open.clone(),
        ),
        (None, Some(entry)) => (outcome(entry), entry["resume_point"].clone()),
        (None, None) => ("no longer open, without an answer".to_owned(), Value::Null),
    };
    let kind = open.map_or_else(
        || entry.as_ref().map(|entry| &entry["request_type"]),
        |open| Some(&open["type"]),
    );
    // What §9 of the contract calls displayed; the rest is for those who want it.
    let mut context = asked["context"].as_object().filter(|_| open.is_some()).cloned();
    let mut shown = |name: &str| {
        let value = context.as_mut().and_then(|members| members.shift_remove(name));
        value.filter(|value| *value != false).as_ref().map(word).unwrap_or_default()
    };
    let (summary, artifact) = (shown("summary"), shown("artifact_path"));
    let facts = vec![
        ("request", request.to_owned()),
        ("state", told),
        ("run", run.to_owned()),
        ("phase", word(&point["phase"])),
        ("step", word(&point["step"])),
        ("issue", word(&state["work_id"])),
        ("type", kind.map(word).unwrap_or_default()),
        ("asked at", open.map(|open| word(&open["requested_at"])).unwrap_or_default()),
        ("artifact", artifact),
    ];
    let mut texts = Vec::new();
    if let Some(open) = open {
        texts.push(("asks", word(&open["prompt"])));
        texts.push(("summary", summary));
        if let Some(rest) = context.filter(|members| !members.is_empty()) {
            texts.push(("context", format!("{:#}", Value::Object(rest))));
        }
    }
    let entries = state["feedback_history"].as_array().map_or(&[][..], Vec::as_slice);
    let history = entries.iter().map(past).collect();
    let json = json!({"run_id": run, "request_id": request, "request": open, "answer": entry, "state": state});
    Item { facts, texts, hints: Vec::new(), history, json: json.to_string() }
}

/// How to answer. The id as it was given: alone, the request's may be one of several.
fn ways(hints: &Hints, id: &str, open: &Value) -> Vec<String> {
    let line = |word: Word<'_>| hints.line("answer", &[Word::Text(id), word]);
    let options = options(open);
    let mut ways: Vec<String> = (1..)
        .zip(&options)
        .map(|(number, option)| {
            line(Word::Option("--action", &option.value)) + &remark(number, None)
        })
        .collect();
    if options.is_empty() || open["type"] == "clarification" {
        ways.push(line(Word::Blank("'your text'")));
    }
    ways
}

fn past(entry: &Value) -> Past {
    let point = &entry["resume_point"];
    Past {
        id: word(&entry["request_id"]),
        created_at: word(&entry["received_at"]),
        outcome: outcome(entry),
        body: format!("{}:{}", word(&point["phase"]), word(&point["step"])),
    }
}

/// An entry of the history, in one line.
fn outcome(entry: &Value) -> String {
    let mut said = format!(
        "answered by {} with “{}”",
        word(&entry["provided_by"]["user"]),
        word(&entry["response"])
    );
    let comment = word(&entry["comment"]);
    if !comment.is_empty() {
        said.push_str(&format!(" and “{comment}”"));
    }
    said
}

/// Response and comment. Words and numbers become options here; the operation takes options alone.
fn response<'a>(open: &Value, given: &Given<'a>) -> Result<(String, &'a str), String> {
    if given.params.is_some() {
        return Err("a request of a run takes no `--params`: give an action or a text".to_owned());
    }
    let filled = |text: Option<&'a str>| text.filter(|text| !text.trim().is_empty());
    let (said, comment) = match (filled(given.action), filled(given.text)) {
        (Some(action), text) => (action, text.unwrap_or_default()),
        (None, Some(text)) => (text, ""),
        (None, None) => ("", ""),
    };
    let options = options(open);
    let names = || {
        options.iter().map(|option| format!("`{}`", option.value)).collect::<Vec<_>>().join(", ")
    };
    if said.is_empty() {
        return Err(if options.is_empty() {
            "the answer is empty: give a text".to_owned()
        } else {
            format!("choose one of the options: {}", names())
        });
    }
    if options.is_empty() || open["type"] == "clarification" {
        return Ok((said.to_owned(), comment));
    }
    match pick(&options, said) {
        Some(option) => Ok((option.value.clone(), comment)),
        None => Err(format!("`{said}` is not among the options: {}", names())),
    }
}

fn options(open: &Value) -> Vec<Choice> {
    let listed = open["options"].as_array().map_or(&[][..], Vec::as_slice);
    listed.iter().map(|option| Choice { value: word(option), label: None }).collect()
}

/// The answer to a request, in the history of its run.
fn entry_of(run: &Value, request: &str) -> Option<Value> {
    let history = run["state"]["feedback_history"].as_array()?;
    history.iter().rev().find(|entry| entry["request_id"] == request).cloned()
}

fn several(id: &str, ids: &[String]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| shell(id)).collect();
    format!("several runs have an open request `{id}`: name one as {}", ids.join(" or "))
}

fn refusal(reply: &Value) -> HostError {
    let (code, message) = (word(&reply["error"]["code"]), word(&reply["error"]["message"]));
    HostError::Raised { message: format!("{message} ({code})") }
}

fn list(reply: &mut Value, name: &str) -> Vec<Value> {
    match reply.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// A text, or any other value as JSON; null is nothing.
fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_become_options() {
        let approval = json!({"type": "approval", "options": ["approve", "reject"]});
        let clarification = json!({"type": "clarification", "options": ["a"]});
        let given = |action: &'static str, text: &'static str| Given {
            action: Some(action),
            text: Some(text),
            params: None,
        };
        for (open, given, want) in [
            (&approval, given("approve", ""), Ok(("approve", ""))),
            (&approval, given("", "Reject"), Ok(("reject", ""))),
            (&approval, given("2", "too complex"), Ok(("reject", "too complex"))),
            (&approval, given("", ""), Err("choose one of the options: `approve`, `reject`")),
            (&approval, given("maybe", "x"), Err("`maybe` is not among the options")),
            (&clarification, given("", "1"), Ok(("1", ""))),
            (&clarification, given("", " "), Err("choose one of")),
            (
                &json!({"type": "clarification", "options": []}),
                given("", ""),
                Err("the answer is empty"),
            ),
        ] {
            match (response(open, &given), want) {
                (Ok((response, comment)), Ok(want)) => {
                    assert_eq!((response.as_str(), comment), want)
                }
                (Err(said), Err(want)) => assert!(said.contains(want), "{said}"),
                (got, want) => panic!("{got:?}, wanted {want:?}"),
            }
        }
        let with_params = Given { params: Some("{}"), ..given("approve", "") };
        assert!(response(&approval, &with_params).is_err());
    }

    #[test]
    fn a_lost_race_names_the_winner() {
        let entry = json!({"response": "reject", "comment": "no", "received_at": "2026-03-01T00:00:00Z",
            "provided_by": {"user": "ann", "source": "cli"}});
        let Outcome::Faster { said, winner } = Runs::faster("fr-1", Some(&entry)) else {
            panic!("somebody was faster")
        };
        assert_eq!(
            said,
            "`fr-1` is no longer open: answered by ann with “reject” and “no” at 2026-03-01T00:00:00Z"
        );
        let winner: Value = serde_json::from_str(&winner).unwrap();
        assert_eq!(
            winner,
            json!({"by": "ann", "at": "2026-03-01T00:00:00Z", "status": "answered",
            "result": {"response": "reject", "comment": "no"}})
        );
        let Outcome::Faster { said, .. } = Runs::faster("fr-1", None) else {
            panic!("it is closed")
        };
        assert!(said.contains("withdrawn or replaced"), "{said}");
    }
}
