//! Rows of `list_runs` and `list_pending`, and where `resume_run` goes on (§14).

use std::cmp::Ordering;

use sdk::Column;
use serde_json::{Value, json};

use crate::codes::{Code, Refusal};
use crate::params::plain;
use crate::run_id::RunId;
use crate::state::State;

/// The phases of a run, in order.
pub const PHASES: [&str; 5] = ["frame", "architect", "build", "evaluate", "release"];

/// Columns of the rows of `list_runs`, for SQL.
pub static RUN_COLUMNS: &[Column] = &[
    Column::text("run_id"),
    Column::text("work_id"),
    Column::text("status"),
    Column::text("created_at"),
    Column::text("updated_at"),
    Column::text("completed_at"),
    Column::text("current_phase"),
];

/// Columns of the rows of `list_pending`, for SQL.
pub static PENDING_COLUMNS: &[Column] = &[
    Column::text("run_id"),
    Column::text("work_id"),
    Column::text("phase"),
    Column::text("step"),
    Column::text("request_id"),
    Column::text("type"),
    Column::text("prompt"),
    Column::json("options"),
    Column::text("requested_at"),
    Column::text("comment_url"),
];

/// Which runs are wanted; empty texts want all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// First segment of the id.
    pub org: &'a str,
    /// Second segment of the id.
    pub project: &'a str,
    /// `work_id` of the state.
    pub work_id: &'a str,
    /// `status` of the state.
    pub status: &'a str,
}

impl Filter<'_> {
    /// Whether directories of this organisation are looked into.
    pub fn wants_org(&self, org: &str) -> bool {
        self.org.is_empty() || self.org == org
    }

    /// Whether directories of this project are looked into.
    pub fn wants_project(&self, project: &str) -> bool {
        self.project.is_empty() || self.project == project
    }

    /// Whether a run of this state is wanted.
    pub fn wants(&self, state: &State) -> bool {
        let is = |wanted: &str, name: &str| {
            wanted.is_empty() || state.get(name).is_some_and(|found| plain(found) == wanted)
        };
        is(self.work_id, "work_id") && is(self.status, "status")
    }
}

/// One row of `list_runs`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    run_id: RunId,
    created_at: Value,
    row: Value,
}

impl RunRow {
    /// `{run_id, work_id, status, created_at, updated_at, completed_at, current_phase}`.
    pub fn of(run_id: &RunId, state: &State) -> RunRow {
        let created_at = match state.value("started_at") {
            Value::Null => state.value("updated_at"),
            started => started,
        };
        let row = json!({
            "run_id": run_id.to_string(),
            "work_id": state.value("work_id"),
            "status": state.value("status"),
            "created_at": created_at,
            "updated_at": state.value("updated_at"),
            "completed_at": state.value("completed_at"),
            "current_phase": state.value("current_phase"),
        });
        RunRow { run_id: run_id.clone(), created_at, row }
    }

    /// The row as it stands in the reply.
    pub fn into_json(self) -> Value {
        self.row
    }
}

/// Newest `created_at` first, runs without one last, then by id.
pub fn run_order(a: &RunRow, b: &RunRow) -> Ordering {
    time_of(&b.created_at).cmp(time_of(&a.created_at)).then_with(|| a.run_id.cmp(&b.run_id))
}

/// One row of `list_pending`.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingRow {
    run_id: RunId,
    requested_at: Value,
    row: Value,
}

impl PendingRow {
    /// `{run_id, work_id, phase, step, request_id, type, prompt, options, requested_at, comment_url}`; `None` if nothing
    /// is open.
    pub fn of(run_id: &RunId, state: &State) -> Option<PendingRow> {
        let request = state.open_request()?;
        let member = |name: &str| request.get(name).cloned().unwrap_or(Value::Null);
        let point = state.resume_point();
        let or_null = |text: String| if text.is_empty() { Value::Null } else { text.into() };
        let requested_at = member("requested_at");
        let row = json!({
            "run_id": run_id.to_string(),
            "work_id": state.value("work_id"),
            "phase": or_null(point.phase),
            "step": or_null(point.step),
            "request_id": member("request_id"),
            "type": member("type"),
            "prompt": member("prompt"),
            "options": member("options"),
            "requested_at": requested_at,
            "comment_url": request.get("notification_sent").and_then(|sent| sent.get("comment_url")),
        });
        Some(PendingRow { run_id: run_id.clone(), requested_at, row })
    }

    /// The row as it stands in the reply.
    pub fn into_json(self) -> Value {
        self.row
    }
}

/// Oldest request first, then by run id.
pub fn pending_order(a: &PendingRow, b: &PendingRow) -> Ordering {
    time_of(&a.requested_at).cmp(time_of(&b.requested_at)).then_with(|| a.run_id.cmp(&b.run_id))
}

/// A stored time as a key that sorts by time: seconds and milliseconds forms mix in one folder, and as plain text
/// `10:00:00.500Z` would stand before `10:00:00Z`.
fn time_of(value: &Value) -> &str {
    value.as_str().map_or("", |iso| iso.strip_suffix('Z').unwrap_or(iso))
}

/// `resume_context` of `resume_run`: where the run goes on.
///
/// A waiting run goes on at its resume point, whatever `step` says: nobody walks past an open question. Otherwise
/// `step` (`phase:step`) wins, then the current phase and its first step that is not completed.
///
/// # Errors
/// `NOT_RESUMABLE` for a closed run, `INVALID_STEP`.
pub fn resume_context(state: &State, step: &str, event_count: usize) -> Result<Value, Refusal> {
    if state.is_closed() {
        let status = state.status().unwrap_or_default();
        return Err(Refusal::new(Code::NotResumable, format!("the run is {status}"))
            .with("run_status", status));
    }
    let explicit = match step {
        "" => None,
        step => Some(step.split_once(':').filter(|(phase, _)| PHASES.contains(phase)).ok_or_else(
            || {
                Refusal::new(
                    Code::InvalidStep,
                    format!("step {step:?} is not phase:step with one of: {}", PHASES.join(", ")),
                )
            },
        )?),
    };
    let waiting = state.open_request().is_some();
    let (phase, step) = if waiting {
        let point = state.resume_point();
        (point.phase, point.step)
    } else if let Some((phase, step)) = explicit {
        (phase.to_owned(), step.to_owned())
    } else {
        let phase =
            state.text("current_phase").filter(|phase| !phase.is_empty()).unwrap_or("frame");
        (phase.to_owned(), first_open_step(state, phase))
    };
    let mut context = json!({
        "completed_phases": completed_phases(state),
        "current_phase": phase,
        "current_step": step,
        "artifacts": match state.value("artifacts") { Value::Null => json!({}), artifacts => artifacts },
        "event_count": event_count,
    });
    if waiting {
        context["resume_point"] = state.resume_point().to_json();
        context["feedback_request"] = state.value("feedback_request");
    }
    Ok(context)
}

fn completed_phases(state: &State) -> Vec<&str> {
    let phases = state.get("phases").and_then(Value::as_object);
    phases
        .into_iter()
        .flatten()
        .filter(|(_, entry)| is_completed(entry))
        .map(|(name, _)| name.as_str())
        .collect()
}

fn first_open_step(state: &State, phase: &str) -> String {
    let steps = || state.get("phases")?.get(phase)?.get("steps")?.as_array();
    let open = steps().into_iter().flatten().find(|entry| !is_completed(entry));
    open.and_then(|entry| entry.get("name")).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_completed(entry: &Value) -> bool {
    entry.get("status").and_then(Value::as_str) == Some("completed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> State {
        State::parse(text).unwrap()
    }

    fn id(last: char) -> RunId {
        RunId::parse(&format!("acme/widgets/0f0e0d0c-0b0a-4908-8706-05040302010{last}")).unwrap()
    }

    #[test]
    fn runs_are_newest_first() {
        let mut rows = [
            RunRow::of(&id('0'), &state(r#"{"updated_at":"2025-12-01T00:00:00Z"}"#)),
            RunRow::of(
                &id('1'),
                &state(
                    r#"{"started_at":"2025-12-03T00:00:00.250Z","updated_at":"2026-01-01T00:00:00Z"}"#,
                ),
            ),
            RunRow::of(&id('3'), &state("{}")),
            RunRow::of(&id('2'), &state(r#"{"started_at":"2025-12-03T00:00:00Z"}"#)),
            RunRow::of(&id('a'), &state(r#"{"started_at":"2025-12-01T00:00:00Z"}"#)),
        ];
        rows.sort_by(run_order);
        let ids: Vec<String> = rows.iter().map(|row| row.run_id.uuid()[35..].to_owned()).collect();
        assert_eq!(ids, ["1", "2", "0", "a", "3"]);
    }

    #[test]
    fn requests_are_oldest_first_then_by_run() {
        let open = |at: &str| {
            state(&format!(
                r#"{{"status":"awaiting_feedback","feedback_request":{{"requested_at":"{at}"}}}}"#
            ))
        };
        let mut rows: Vec<PendingRow> = [
            ('2', "2025-12-03T00:00:00Z"),
            ('1', "2025-12-03T00:00:00Z"),
            ('0', "2025-12-04T00:00:00Z"),
        ]
        .iter()
        .map(|(last, at)| PendingRow::of(&id(*last), &open(at)).unwrap())
        .collect();
        rows.sort_by(pending_order);
        assert_eq!(
            rows.iter().map(|row| row.run_id.clone()).collect::<Vec<_>>(),
            [id('1'), id('2'), id('0')]
        );
        assert_eq!(
            PendingRow::of(&id('0'), &state(r#"{"status":"failed","feedback_request":{}}"#)),
            None
        );
    }

    #[test]
    fn filters_compare_texts() {
        let run = state(r#"{"work_id":258,"status":"failed"}"#);
        for (filter, want) in [
            (Filter::default(), true),
            (Filter { work_id: "258", ..Filter::default() }, true),
            (Filter { work_id: "25", ..Filter::default() }, false),
            (Filter { status: "failed", ..Filter::default() }, true),
            (Filter { status: "completed", ..Filter::default() }, false),
        ] {
            assert_eq!(filter.wants(&run), want, "{filter:?}");
        }
    }

    #[test]
    fn runs_go_on_where_they_stopped() {
        let building = r#"{"status":"in_progress","current_phase":"build","phases":{"frame":{"status":"completed"},
            "build":{"status":"in_progress","steps":[{"name":"a","status":"completed"},{"name":"b","status":"failed"},{"name":"c"}]}}}"#;
        let waiting = r#"{"status":"awaiting_feedback","current_phase":"x","feedback_request":{"request_id":"r"},"resume_point":{"phase":"build","step":"s","step_index":1}}"#;
        for (text, step, want) in [
            (building, "", json!(["build", "b"])),
            (building, "evaluate:test:1", json!(["evaluate", "test:1"])),
            (r#"{"status":"pending"}"#, "", json!(["frame", ""])),
            (waiting, "", json!(["build", "s"])),
            (waiting, "release:merge", json!(["build", "s"])),
        ] {
            let context = resume_context(&state(text), step, 3).unwrap();
            assert_eq!(
                json!([context["current_phase"], context["current_step"]]),
                want,
                "{text} {step}"
            );
            assert_eq!(context.get("resume_point").is_some(), text == waiting);
        }
        for (text, step, want) in [
            (r#"{"status":"completed"}"#, "build", Code::NotResumable),
            (r#"{"status":"cancelled"}"#, "", Code::NotResumable),
            (building, "build", Code::InvalidStep),
            (building, "deploy:x", Code::InvalidStep),
        ] {
            assert_eq!(
                resume_context(&state(text), step, 0).unwrap_err().code,
                want,
                "{text} {step}"
            );
        }
    }
}
