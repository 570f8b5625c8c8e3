//! A host that is killed by SIGKILL at every change of the disk, while it asks and while it answers: whatever is left,
//! the run goes on where it should.
//!
//! The host ends itself at the n-th change (a switch that only builds with debug assertions have). Nothing of it runs
//! afterwards, so what is on disk is what a kill at that moment leaves.

use serde_json::{Value, json};

use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::runs::{RunFolder, call, question};
use crate::support::skipped;

/// A host that dies at a change, `7` before the seventh, `7+` in the middle of it.
fn mortal(folder: &RunFolder, at: &str) -> HostProcess {
    HostProcess::start(&options(folder).env("UDF_HOST_TEST_KILL_AT_CHANGE", at))
}

fn options(folder: &RunFolder) -> HostOptions {
    HostOptions::new().cwd(&folder.root).env("RUN_FEEDBACK_POSTER", "none")
}

/// Calls an operation of a host that may die of it; its reply, if it lived.
fn try_call(host: &mut HostProcess, op: &str, overrides: &Value) -> Option<Value> {
    let body = json!({"udf": op, "overrides": overrides}).to_string();
    match host.post("/api/exec/udf", "_core", "run-feedback", &body) {
        Ok(answer) => Some(answer.json()["data"].clone()),
        Err(_) => {
            use std::os::unix::process::ExitStatusExt;
            let status = host.wait(std::time::Duration::from_secs(60));
            assert_eq!(status.signal(), Some(9), "{status}: {}", host.stderr());
            None
        }
    }
}

/// Kills a host at every change of `op` on a fresh run, and lets `check` look at what is left, on a host that
/// lives.
fn kill_everywhere(
    folder: &RunFolder,
    prepare: impl Fn(&RunFolder, usize) -> String,
    op: &str,
    overrides: impl Fn(&str) -> Value,
    check: impl Fn(&HostProcess, &str),
) {
    if !cfg!(debug_assertions) {
        skipped("hosts of release builds cannot be told to die");
        return;
    }
    let survivor = HostProcess::start(&options(folder));
    let mut kills = 0;
    for change in 1..100 {
        let mut lived = false;
        for (number, half) in ["", "+"].into_iter().enumerate() {
            let run = prepare(folder, 2 * change + number);
            let mut host = mortal(folder, &format!("{change}{half}"));
            if let Some(reply) = try_call(&mut host, op, &overrides(&run)) {
                assert_eq!(reply["status"], "success", "{reply}");
                lived = true;
            } else {
                kills += 1;
            }
            check(&survivor, &run);
        }
        if lived {
            assert!(kills > 12, "only {kills} kills");
            println!("{op}: killed at {kills} places");
            return;
        }
    }
    panic!("there is no end of changes");
}

#[test]
fn a_host_killed_while_it_asks_leaves_no_question_or_a_whole_one() {
    let folder = RunFolder::new();
    let ask = |run: &str| {
        let mut overrides = question(run);
        overrides["cli_prompt"] = json!(true);
        overrides
    };
    kill_everywhere(
        &folder,
        |folder, number| folder.add(number, "7"),
        "request_feedback",
        ask,
        |host, run| {
            let resumed = call(host, "resume_run", &json!({"run_id": run}));
            assert_eq!(resumed["status"], "success", "{resumed}");
            let open = folder.state(run)["feedback_request"]["request_id"].clone();
            // Whoever does not know what became of the question asks again.
            let again = call(host, "request_feedback", &ask(run));
            if open.is_null() {
                assert_eq!(resumed["run_status"], "in_progress", "{resumed}");
                assert_eq!(again["status"], "success", "{again}");
            } else {
                let point = json!({"phase": "build", "step": "review", "step_index": null});
                assert_eq!(resumed["resume_context"]["resume_point"], point, "{resumed}");
                assert_eq!(resumed["resume_context"]["feedback_request"]["request_id"], open);
                assert_eq!(again["error"]["pending_request_id"], open, "{again}");
            }
            let state = folder.state(run);
            let id = &state["feedback_request"]["request_id"];
            let events = folder.events(run);
            let own = |event: &Value| {
                event["type"] == "decision_point" && event["metadata"]["request_id"] == *id
            };
            assert_eq!(events.iter().filter(|(_, event)| own(event)).count(), 1, "{events:?}");
            assert_eq!(state["last_event_id"], events.last().unwrap().0);
            check_tidy(&folder, run);
        },
    );
}

#[test]
fn a_host_killed_while_it_answers_leaves_the_question_open_or_answered_once() {
    let folder = RunFolder::new();
    let answer = |run: &str| {
        let request = folder_request(&folder, run);
        json!({"run_id": run, "request_id": request, "response": "approve", "user": "sam"})
    };
    kill_everywhere(
        &folder,
        |folder, number| folder.add_waiting(number, "7"),
        "process_response",
        answer,
        |host, run| {
            let resumed = call(host, "resume_run", &json!({"run_id": run}));
            assert_eq!(resumed["status"], "success", "{resumed}");
            assert_eq!(resumed["resume_context"]["current_phase"], "build");
            if folder.state(run)["status"] == "awaiting_feedback" {
                // Not acknowledged: whoever answered answers again.
                let point = json!({"phase": "build", "step": "review", "step_index": null});
                assert_eq!(resumed["resume_context"]["resume_point"], point, "{resumed}");
                let again = call(host, "process_response", &answer(run));
                assert_eq!(again["status"], "success", "{again}");
            }
            let state = folder.state(run);
            let history = state["feedback_history"].as_array().unwrap();
            assert_eq!(history.len(), 1, "{state}");
            // What the caller needs to go on, if the reply never reached it.
            assert_eq!(history[0]["action"], "continue");
            assert_eq!(history[0]["resume_point"]["step"], "review");
            assert_eq!(state["status"], "in_progress");
            assert_eq!(state.get("feedback_request"), None);
            let events = folder.events(run);
            assert!(folder.count(run, "feedback_received") >= 1);
            assert_eq!(state["last_event_id"], events.last().unwrap().0);
            let late = json!({"run_id": run, "request_id": history[0]["request_id"], "response": "reject", "user": "kim"});
            let late = call(host, "process_response", &late);
            assert_eq!(late["error"]["already_answered"]["response"], "approve", "{late}");
            check_tidy(&folder, run);
        },
    );
}

/// The request of a run, open or answered.
fn folder_request(folder: &RunFolder, run: &str) -> Value {
    let state = folder.state(run);
    match &state["feedback_request"]["request_id"] {
        Value::Null => state["feedback_history"][0]["request_id"].clone(),
        open => open.clone(),
    }
}

/// The next writer has removed what the crash left behind.
fn check_tidy(folder: &RunFolder, run: &str) {
    for place in ["", "events"] {
        let names = crate::support::runs::names(&folder.dir(run).join(place));
        let left: Vec<_> = names.iter().filter(|name| name.ends_with(".tmp")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
