//! Run feedback by way of HTTP, SQL and `exec`: the same answers, and a refusal is data everywhere.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::parse;
use crate::support::runs::{RunFolder, call};

fn host(folder: &RunFolder) -> HostProcess {
    HostProcess::start(&HostOptions::new().cwd(&folder.root).env("RUN_FEEDBACK_POSTER", "none"))
}

/// The rows of a statement, read from a host.
#[track_caller]
fn rows(host: &HostProcess, project: &str, sql: &str) -> Value {
    let body = json!({ "sql": sql }).to_string();
    let answer = host.post("/api/exec/sql", "_core", project, &body).unwrap();
    assert_eq!(answer.status, 200, "{sql}: {}", answer.text);
    answer.json()["data"]["q0"]["rows"].clone()
}

/// `udf-host exec`: exit status and what it printed.
fn exec(folder: &RunFolder, words: &[&str]) -> (i32, Value) {
    let output = Command::new(&built().host)
        .arg("exec")
        .args(words)
        .args(["--only", "--udfs"])
        .arg(&built().udfs)
        .current_dir(&folder.root)
        .env("XDG_CACHE_HOME", &built().cache)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), parse(text.trim()))
}

#[test]
fn runs_and_open_requests_are_tables() {
    let folder = RunFolder::new();
    for number in 0..3 {
        folder.add(number, "7");
    }
    folder.add_waiting(3, "258");
    folder.add_waiting(4, "7");
    let host = host(&folder);
    assert_eq!(
        rows(
            &host,
            "run-feedback",
            "SELECT status, count(*) AS runs FROM {{list_runs}} GROUP BY status ORDER BY status"
        ),
        json!([{"status": "awaiting_feedback", "runs": 2}, {"status": "in_progress", "runs": 3}])
    );
    // Named from another project, with a parameter, and joined.
    assert_eq!(
        rows(
            &host,
            "feedback-management",
            "SELECT p.request_id, p.step, p.prompt, json_extract(p.options, '$[1]') AS second, r.current_phase \
             FROM {{run-feedback.list_pending?work_id=258}} p JOIN {{run-feedback.list_runs}} r USING (run_id)"
        ),
        json!([{"request_id": "fr-20260101-000003", "step": "review", "prompt": "Ship it?", "second": "reject", "current_phase": "build"}])
    );
    // Columns are there without rows.
    assert_eq!(
        rows(
            &host,
            "run-feedback",
            "SELECT count(*) AS n, max(requested_at) AS last FROM {{list_pending?org=nobody}}"
        ),
        json!([{"n": 0, "last": null}])
    );
    let answered = json!({"run_id": RunFolder::id(3), "request_id": "fr-20260101-000003", "response": "approve", "user": "sam"});
    assert_eq!(call(&host, "process_response", &answered)["status"], "success");
    assert_eq!(
        rows(&host, "run-feedback", "SELECT count(*) AS n FROM {{list_pending}}"),
        json!([{"n": 1}]),
        "a statement sees what a call has changed"
    );
    // Any other reply is a row of its own, a refusal as well.
    assert_eq!(
        rows(
            &host,
            "run-feedback",
            "SELECT status, json_extract(error, '$.code') AS code FROM {{get_run?run_id=nonsense}}"
        ),
        json!([{"status": "error", "code": "INVALID_RUN_ID"}])
    );
    // Only reading.
    let body = json!({"sql": "SELECT * FROM {{emit_event}}"}).to_string();
    let refused = host.post("/api/exec/sql", "_core", "run-feedback", &body).unwrap();
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[test]
fn a_refusal_is_data_and_its_number_the_exit_code() {
    let folder = RunFolder::new();
    let run = folder.add_waiting(1, "7");
    let host = host(&folder);
    let of_run = format!("run_id={run}");
    for (op, params, exit, code) in [
        ("process_response", vec![&*of_run], 1, "MISSING_FIELDS"),
        (
            "process_response",
            vec![&*of_run, "request_id=fr-0", "response=x"],
            4,
            "REQUEST_ID_MISMATCH",
        ),
        (
            "process_response",
            vec![&*of_run, "request_id=fr-20260101-000001", "response=maybe"],
            5,
            "INVALID_RESPONSE",
        ),
        ("emit_event", vec![&*of_run, "type=feedback"], 1, "INVALID_EVENT_TYPE"),
        (
            "request_feedback",
            vec![&*of_run, "phase=a", "step=b", "prompt=c", "feedback_type=vote"],
            2,
            "INVALID_FEEDBACK_TYPE",
        ),
        (
            "request_feedback",
            vec![&*of_run, "phase=a", "step=b", "prompt=c", "feedback_type=approval"],
            7,
            "REQUEST_PENDING",
        ),
    ] {
        let name = format!("run-feedback.{op}");
        let (status, data) = exec(&folder, &[&[name.as_str()], &params[..]].concat());
        assert_eq!((status, &data["error"]["code"]), (exit, &json!(code)), "{op}: {data}");
        let overrides: serde_json::Map<String, Value> = params
            .iter()
            .filter_map(|param| param.split_once('='))
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let body = json!({"udf": op, "overrides": overrides}).to_string();
        let answer = host.post("/api/exec/udf", "_core", "run-feedback", &body).unwrap();
        let envelope = answer.json();
        assert_eq!((answer.status, &envelope["error"]), (200, &Value::Null), "{op}: {envelope}");
        assert_eq!(envelope["data"], data, "{op}");
    }
    let (status, envelope) = exec(&folder, &["run-feedback.get_run", "run_id=x", "--json"]);
    assert_eq!((status, &envelope["error"]), (1, &Value::Null));
    let (status, text) = exec(&folder, &["run-feedback.generate_request_id"]);
    assert!(status == 0 && text.as_str().is_some_and(|id| id.starts_with("fr-")), "{text}");
    assert_eq!(exec(&folder, &["run-feedback.list_pending"]).1["total"], 1);
}
