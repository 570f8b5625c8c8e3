use super::super::workflow::{Answer, Subject, TurnContext};
use super::*;
use crate::params::Json;
use crate::testing::TestHost;
use crate::udf;

struct Essay;

impl Workflow for Essay {
    fn name(&self) -> &str {
        "essay"
    }
    fn system_prompt(&self) -> &str {
        "You look after an essay."
    }
    fn worker_agent(&self) -> &str {
        "writer"
    }
    fn checker_agent(&self) -> Option<&str> {
        Some("reader")
    }
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>> {
        Ok((!task.id.is_empty()).then(|| Subject::new(&task.id)))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        format!("workflows/essay/{}", subject.id)
    }
    fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
        Ok(true)
    }
    fn work_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        Ok(format!("Write: {}", ctx.task.query))
    }
    fn check_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok("Read it.".into())
    }
}

/// The essay.
#[udf(folders)]
fn essay(
    ctx: &Context,
    call: &str,
    #[arg(default)] task: Json<Value>,
    #[arg(default)] message: &str,
    #[arg(default)] state_dir: &str,
    #[arg(default)] arguments: Json<Value>,
) -> Result<Reply, UdfError> {
    let request = Request { call, task: &task, message, state_dir, arguments: &arguments };
    serve(ctx, &Essay, &request)
}

const TASK: &str = r#"{"id": "t1", "query": "on tea"}"#;
const STATE: &str = "workflows/essay/t1/logs/work_state.json";
const JOURNAL: &str = "workflows/essay/t1/logs/workflow_journal.jsonl";

fn call(host: &TestHost, call: &str, arguments: Value) -> Value {
    let arguments = arguments.to_string();
    host.call_json(UDF, &[("call", call), ("task", TASK), ("arguments", &arguments)])
}

#[test]
fn a_whole_run_lies_in_files() {
    let host = TestHost::new();
    let step = call(&host, "step", Value::Null);
    assert_eq!((&step["stage"], &step["kind"]), (&json!("work_round"), &json!("actions")));
    let route = json!({"workflow": "essay", "state_dir": "workflows/essay/t1"});
    assert_eq!((&step["route"], &step["state_dir"]), (&route, &route["state_dir"]));
    let parameters = &step["step"]["actions"][0]["parameters"];
    assert_eq!(
        (&parameters["agent_type"], &parameters["query"]),
        (&json!("writer"), &json!("Write: on tea"))
    );

    let done = json!({"agent": "writer", "status": "completed", "result": "wrote it"});
    assert_eq!(call(&host, "record_outcome", done), json!({"unparks": false, "phase": "checking"}));
    assert_eq!(call(&host, "step", Value::Null)["stage"], "check");
    let refused = call(&host, "task_end_gate", json!({"status": "complete"}));
    assert_eq!(refused["allowed"], false);
    assert_eq!(call(&host, "task_end_gate", json!({"status": "abort"}))["allowed"], true);

    let fail = json!({"agent": "reader", "status": "completed", "result": "VERDICT: FAIL — dull"});
    call(&host, "record_outcome", fail);
    let state = call(&host, "state", Value::Null);
    assert_eq!(state["outcomes"], json!(["check failed"]));
    assert_eq!(state["phase"], "working");
    let lead = host.call_json(
        UDF,
        &[
            ("call", "record_user_lead"),
            ("state_dir", "workflows/essay/t1"),
            ("arguments", r#"{"text": "shorter"}"#),
        ],
    );
    assert_eq!(lead["unparks"], true);
    call(&host, "record_check_outcome", json!({"status": "completed", "report": "VERDICT: PASS"}));
    assert_eq!(
        call(&host, "task_end_gate", Value::Null),
        json!({"allowed": true, "refusal": null})
    );
    let step = call(&host, "step", Value::Null);
    assert_eq!(step["step"]["purpose"], "presentation");

    let events: Vec<Value> =
        call(&host, "journal", json!({"limit": 3})).as_array().unwrap().clone();
    let events: Vec<&Value> = events.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["user_lead", "check_outcome", "step"]);
    assert!(
        host.file("workflows/essay/t1/reference/briefs/.fixlog/work.md")
            .unwrap()
            .contains("Outcome: check failed")
    );
}

#[test]
fn a_torn_journal_and_a_corrupt_state_cost_themselves_alone() {
    let host = TestHost::new();
    host.seed_file(STATE, "{\"rounds\": 3");
    host.seed_file(JOURNAL, "{\"event\":\"a\"}\n{\"ev");
    assert_eq!(call(&host, "step", Value::Null)["round"], 1);
    assert_eq!(
        host.file("workflows/essay/t1/logs/work_state.corrupt-1.json").unwrap(),
        "{\"rounds\": 3"
    );
    let journal = host.file(JOURNAL).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    assert_eq!(lines[..2], ["{\"event\":\"a\"}", "{\"ev"]);
    assert!(lines[2].contains("\"state_reset\"") && journal.ends_with('\n'), "{journal}");
    // Bytes that are no text are set aside as they are.
    std::fs::create_dir_all(host.app_dir().join("workflows/essay/t1/logs")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test lays out a broken state by hand")]
    std::fs::write(host.app_dir().join(STATE), b"\xff\xfe").unwrap();
    assert_eq!(call(&host, "step", Value::Null)["stage"], "work_round");
    let kept = host.app_dir().join("workflows/essay/t1/logs/work_state.corrupt-2.json");
    assert_eq!(std::fs::read(kept).unwrap(), b"\xff\xfe");
}

#[test]
fn bytes_that_are_no_text_cost_their_own_line_alone() {
    const LEDGER: &str = "workflows/essay/t1/reference/briefs/.fixlog/work.md";
    let host = TestHost::new();
    let done = json!({"agent": "writer", "status": "completed", "result": "first"});
    call(&host, "record_outcome", done.clone());
    // A character was torn: by a crash at the end of the journal, by somebody's editor in the ledger.
    for (path, bytes) in [(JOURNAL, &b"{\"event\":\"caf\xc3"[..]), (LEDGER, b"\n\ncaf\xc3\n")] {
        let path = host.app_dir().join(path);
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
    }
    let lines = call(&host, "journal", Value::Null);
    assert_eq!(lines.as_array().unwrap().len(), 1, "{lines}");
    let state = call(&host, "state", Value::Null);
    assert!(state["ledger"].as_str().unwrap().contains("first\nOutcome: pending"), "{state}");
    // What is recorded next stands behind both, and nothing of before is lost.
    call(&host, "record_outcome", done);
    let lines = call(&host, "journal", Value::Null);
    assert_eq!(lines.as_array().unwrap().len(), 2, "{lines}");
    let ledger = host.file(LEDGER).unwrap();
    assert!(ledger.contains("## Attempt 1 |") && ledger.contains("## Attempt 2 |"), "{ledger}");
    // A state that is no text reads as it does for a turn: as none.
    #[expect(clippy::disallowed_methods, reason = "a test breaks a file")]
    std::fs::write(host.app_dir().join(STATE), b"\xff").unwrap();
    assert_eq!(call(&host, "state", Value::Null)["state"], json!({}));
    // A ledger that is no file is not written over, and stops nothing.
    std::fs::remove_file(host.app_dir().join(LEDGER)).unwrap();
    std::fs::create_dir(host.app_dir().join(LEDGER)).unwrap();
    assert_eq!(call(&host, "step", Value::Null)["stage"], "work_round");
    assert!(host.lines().iter().any(|line| line.contains("the ledger cannot be read")));
}

#[test]
fn an_absolute_directory_is_taken_as_it_is() {
    let host = TestHost::new();
    let elsewhere = host.app_dir().join("products/kanban");
    let dir = elsewhere.to_str().unwrap();
    let arguments = r#"{"text": "x"}"#;
    let params = [("call", "record_user_lead"), ("state_dir", dir), ("arguments", arguments)];
    host.call_json(UDF, &params);
    assert!(elsewhere.join("logs/work_state.json").is_file());
    let outside = [("call", "record_user_lead"), ("state_dir", "../x"), ("arguments", arguments)];
    assert!(host.call(UDF, &outside).is_err());
}

#[test]
fn what_cannot_be_answered_says_why() {
    let host = TestHost::new();
    let error = host.call(UDF, &[("call", "record_weather")]).unwrap_err();
    assert!(error.message().contains("record_user_lead"), "{error}");
    let error = host.call(UDF, &[("call", "state")]).unwrap_err();
    assert!(error.message().contains("no subject"), "{error}");
    // A misspelt outcome is none: nothing is recorded, and no budget is given back.
    for arguments in ["null", r#"{"txt": "shorter"}"#, r#"{"text": ["shorter"]}"#, "[1]"] {
        let params = [("call", "record_user_lead"), ("task", TASK), ("arguments", arguments)];
        assert!(host.call(UDF, &params).is_err(), "{arguments}");
    }
    assert!(host.file(JOURNAL).is_none());
    assert_eq!(host.call_json(UDF, &[("call", "step")]), json!({"subject": false, "step": null}));
    assert_eq!(host.call_json(UDF, &[("call", "subject")]), Value::Null);
    assert_eq!(host.call_json(UDF, &[("call", "task_end_gate")])["allowed"], true);
    assert_eq!(host.call_json(UDF, &[("call", "describe")])["worker_agent"], "writer");
}

#[test]
fn recorders_of_many_callers_all_count() {
    let host = TestHost::new();
    std::thread::scope(|scope| {
        for at in 0..4 {
            let host = &host;
            scope.spawn(move || {
                call(host, "record_user_lead", json!({"text": format!("lead {at}")}))
            });
        }
    });
    let leads = call(&host, "state", Value::Null)["state"]["user_leads"].as_array().unwrap().len();
    assert_eq!(leads, 4);
}

#[test]
fn a_journal_that_leads_elsewhere_is_not_written_and_stops_nothing() {
    let host = TestHost::new();
    host.seed_file("secret", "untouched");
    let journal = host.app_dir().join(JOURNAL);
    std::fs::create_dir_all(journal.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(host.app_dir().join("secret"), &journal).unwrap();
    assert_eq!(call(&host, "step", Value::Null)["stage"], "work_round");
    call(&host, "record_user_lead", json!({"text": "x"}));
    assert_eq!(host.file("secret").unwrap(), "untouched");
    assert!(host.lines().iter().any(|line| line.contains("the journal was not written")));
}
