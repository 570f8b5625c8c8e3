//! What happens to agent tasks from outside: runs end, hosts are told to, files break, tasks are removed.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::agent::{Bench, act, ends, is_checker, is_worker, kinds};
use crate::support::fixture::write;
use crate::support::host_process::{HostProcess, wait_until};
use crate::support::model::{Answer, ModelService};

/// A loaded machine is slow.
const LONG: Duration = Duration::from_secs(240);

fn message(host: &HostProcess, body: Value) -> String {
    let url = format!("{}/api/agent/message?t={}", host.origin, host.token);
    let answer = host.request("POST", &url, &body.to_string()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"]["task"].as_str().unwrap().to_owned()
}

/// The view of a task once `is_it`.
#[track_caller]
fn until(host: &HostProcess, task: &str, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let look = || host.get(&format!("/api/agent/tasks/{task}")).json()["data"].clone();
    wait_until(LONG, what, || Some(look()).filter(&is_it))
        .unwrap_or_else(|| panic!("{what}: {} {}", look(), host.stderr()))
}

fn texts<'a>(view: &'a Value, kind: &str) -> Vec<&'a str> {
    let events = view["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["kind"] == kind)
        .map(|event| event["text"].as_str().unwrap())
        .collect()
}

#[test]
fn a_run_that_ends_wakes_the_task_that_waits_for_it() {
    let model = ModelService::start(|asked| match asked.last().contains("[run_finished]") {
        true => act("task_end", json!({"status": "complete"})),
        false => act("wait", json!({"seconds": 9000})),
    });
    let bench = Bench::new(Some(&model));
    let id = "task_waits";
    let project = json!({"id": id, "title": "Build it", "project": "p"});
    let host = bench.serve(&[]);
    host.data("task-management", "create", &project);
    host.data("run-management", "create", &json!({"id": "run_1", "task_id": id, "prompt": "go"}));
    // A task of the store is taken up where it is named.
    let parked = bench.json(&["agent", "run", id, "--json"]);
    assert_eq!(parked["parked"]["runs"], json!(["run_1"]), "{parked}");
    let host = bench.serve(&["--agent"]);
    let done = json!({"id": "run_1", "status": "completed", "summary": "12 files"});
    host.data("run-management", "finish", &done);
    let view = until(&host, id, "the end", |view| view["status"] == "complete");
    assert_eq!(texts(&view, "run_finished"), ["run_1 is completed. 12 files"]);
}

/// A host that is told to end does not wait for a model that thinks; the next one goes on.
#[test]
fn a_host_ends_in_the_middle_of_a_turn() {
    let (began, thinking): (Sender<()>, Receiver<()>) = channel();
    let (told, go_on): (Sender<()>, Receiver<()>) = channel();
    let mut first = true;
    let model = ModelService::start(move |_| {
        if std::mem::take(&mut first) {
            began.send(()).unwrap();
            go_on.recv().unwrap();
            return Answer::Gone;
        }
        act("task_end", json!({"status": "complete"}))
    });
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&[]);
    let task = message(&host, json!({"text": "Think"}));
    let serve = bench.command(&["agent", "serve"]).spawn().unwrap();
    thinking.recv_timeout(LONG).unwrap();
    let pid = rustix::process::Pid::from_child(&serve);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = serve.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    told.send(()).unwrap();
    let resumed = bench.json(&["agent", "resume", "--json"]);
    assert_eq!((&resumed[0]["task"], &resumed[0]["status"]), (&json!(task), &json!("complete")));
}

#[test]
fn a_corrupt_state_and_a_torn_journal_cost_themselves_alone() {
    let model = ModelService::start(|asked| match () {
        () if is_checker(asked) => ends("VERDICT: PASS"),
        () if !is_worker(asked) => act("task_end", json!({"status": "complete"})),
        () if asked.messages.len() == 1 => act("write_draft", json!({"text": "# Tea"})),
        () => ends("written"),
    });
    let bench = Bench::new(Some(&model));
    let words = ["agent", "turn", "--workflow", "report_writing", "--request", "On tea", "--json"];
    let turned = bench.json(&words);
    let task = turned["task"].as_str().unwrap();
    let logs = bench.state_dir(task).join("logs");
    let journal = logs.join("workflow_journal.jsonl");
    let mut lines = std::fs::read(&journal).unwrap();
    lines.truncate(lines.len() - 7);
    let torn = lines.clone();
    write(&journal, &lines);
    write(&logs.join("work_state.json"), b"{\"staged\": true, \"verified\": tr");
    // Nobody takes a half-written `verified` for one: the draft that is there is worked on, and checked.
    let ended = bench.json(&["agent", "run", task, "--json"]);
    assert_eq!(ended["status"], "complete", "{ended}");
    let kept = std::fs::read(logs.join("work_state.corrupt-1.json")).unwrap();
    assert_eq!(kept, b"{\"staged\": true, \"verified\": tr");
    let text = std::fs::read(&journal).unwrap();
    assert!(text.starts_with(&torn) && text[torn.len()] == b'\n', "the torn line is ended first");
    let lines = bench.json(&[
        "exec",
        "workflows.report_writing",
        "call=journal",
        &format!("state_dir=workflows/report_writing/{task}"),
    ]);
    let events: Vec<Value> =
        lines.as_array().unwrap().iter().filter(|line| line["event"] != "step").cloned().collect();
    assert_eq!(kinds(&events), ["state_reset", "work_outcome", "check_outcome"]);
}

#[test]
fn whoever_removes_a_task_from_the_store_ends_it() {
    let (began, working): (Sender<()>, Receiver<()>) = channel();
    let (told, go_on): (Sender<()>, Receiver<()>) = channel();
    let model = ModelService::start(move |asked| {
        if is_worker(asked) {
            began.send(()).unwrap();
            go_on.recv().unwrap();
            return act("list_sources", json!({}));
        }
        act("send_message", json!({"message": "Which one?", "wait_for_user_reply": true}))
    });
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&["--agent"]);
    // One that waits for an answer, and one whose worker is at it.
    let waiting = message(&host, json!({"text": "Paint it"}));
    until(&host, &waiting, "the question", |view| !view["parked"]["card"].is_null());
    let busy = message(&host, json!({"text": "On tea", "workflow": "report_writing"}));
    working.recv_timeout(LONG).unwrap();
    for task in [&waiting, &busy] {
        let removed = host.data("task-management", "delete", &json!({"id": task}));
        assert_eq!(removed["deletedTaskIds"], json!([task]));
    }
    until(&host, &waiting, "its end", |view| view["status"] == "cancelled");
    told.send(()).unwrap();
    until(&host, &busy, "the end of its worker", |view| view["status"] == "cancelled");
    let workers = model.asked().iter().filter(|asked| is_worker(asked)).count();
    assert_eq!((workers, bench.stored("tasks").len()), (1, 0), "and none of it comes back");
    assert!(working.try_recv().is_err());
}
