//! The handed traces on the real host: each turn is a process of its own, so that every turn is also a restart. The
//! model sits behind a socket.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use sdk::workflow::state::FALLBACK_FAILURE;
use sdk::workflow::texts::TRIED_HEADING;
use serde_json::{Value, json};

use crate::support::agent::{Bench, act};
use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::model::{Answer, Asked, ModelService};
use crate::support::{case_folder, checkout, parse};

fn trace(id: &str) -> Value {
    let file = case_folder("CASES_DIR", "workflow").join("traces.json");
    let rows = parse(&std::fs::read_to_string(file).unwrap());
    rows.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone()
}

/// The operations of flow A, built once.
fn flow_operations() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let built = built();
            let udfs = checkout().join("tests/fixtures/flows");
            let mut build = Command::new(&built.host);
            // With those that it will lie beside: the rest is built already.
            build.arg("build").arg("--udfs").arg(&built.udfs).arg("--udfs").arg(&udfs);
            let output = build.env("XDG_CACHE_HOME", &built.cache).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            udfs
        })
        .clone()
}

/// A model whose replies are laid out turn by turn; one that is not laid out fails the flow.
struct Model {
    service: ModelService,
    replies: Arc<Mutex<VecDeque<Answer>>>,
}

impl Model {
    fn start() -> Self {
        let replies = Arc::new(Mutex::new(VecDeque::new()));
        let taken = Arc::clone(&replies);
        let service = ModelService::start(move |_: &Asked| {
            let reply: Option<Answer> = taken.lock().unwrap().pop_front();
            reply.unwrap_or_else(|| Answer::Says("this turn needs no model".into()))
        });
        Self { service, replies }
    }

    fn will(&self, answer: Answer) {
        self.replies.lock().unwrap().push_back(answer);
    }

    fn left(&self) -> usize {
        self.replies.lock().unwrap().len()
    }
}

/// A state as the traces list it: fields that are not default, `at` left out, our sentences as tokens.
fn digest(bench: &Bench, task: &str, workflow: &str, place: &str) -> (Value, Value) {
    let call = ["exec", &format!("workflows.{workflow}"), "call=state"];
    let state_dir = format!("state_dir={place}/{task}");
    let state = bench.json(&[call[0], call[1], call[2], &state_dir]);
    let token = json!(FALLBACK_FAILURE).to_string();
    let text = state["state"].to_string().replace(token.trim_matches('"'), "@fallback_failure");
    (parse(&text), state["phase"].clone())
}

fn journal(bench: &Bench, task: &str, place: &str) -> Vec<Value> {
    let path = bench.folder.path().join(format!("{place}/{task}/logs/workflow_journal.jsonl"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(parse).filter(|line| line["event"] != "step");
    lines
        .map(|mut line| {
            line.as_object_mut().unwrap().shift_remove("ts");
            line
        })
        .collect()
}

fn events(bench: &Bench, task: &str) -> Vec<Value> {
    bench.events(task).lines().map(parse).collect()
}

/// What the model and the actions are to say, so that this is recorded.
fn prepare(bench: &Bench, model: &Model, turn: &Value, saves_draft: bool) {
    if let Some(reply) = turn["llm_reply"].as_str() {
        model.will(Answer::Says(reply.into()));
    }
    for tap in turn["after_step"].as_array().into_iter().flatten() {
        let ends = |result: &str| {
            let parameters = json!({"status": tap["status"], "result": tap[result]});
            model.will(act("sub_task_end", parameters));
        };
        match tap["tap"].as_str().unwrap() {
            "record_spawn" => {
                if saves_draft {
                    model.will(act("write_draft", json!({"text": "# A draft"})));
                }
                ends("result");
            }
            "record_check_outcome" => ends("report"),
            "record_work_outcome" => {
                let stage = bench.folder.path().join("app_build/stage.json");
                write(&stage, tap["result"].to_string().as_bytes());
            }
            other => panic!("a trace records {other}"),
        }
    }
}

/// Names and parameters of the actions of these events.
fn carried_out(events: &[Value]) -> Vec<(String, Value)> {
    let starts = events.iter().filter(|event| event["kind"] == "action_start");
    starts
        .map(|event| {
            let name = event["action"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
            (name, parse(event["text"].as_str().unwrap()))
        })
        .collect()
}

fn compare_step(at: &str, want: &Value, done: &[(String, Value)]) {
    if want["kind"] != "actions" {
        return;
    }
    let wanted = want["actions"].as_array().unwrap();
    assert_eq!(wanted.len(), done.len(), "{at}");
    for (want, (name, parameters)) in wanted.iter().zip(done) {
        assert_eq!(want["action_name"], name.as_str(), "{at}");
        if let Some(agent) = want.get("agent_type") {
            assert_eq!(&parameters["agent_type"], agent, "{at}");
        }
    }
    let query = done[0].1["query"].as_str().unwrap_or_default();
    for (key, contains) in [("query_contains", true), ("query_lacks", false)] {
        for part in want[key].as_array().into_iter().flatten() {
            let part = part.as_str().unwrap().replace("@ledger", TRIED_HEADING);
            // The brief of a shipped workflow is its own.
            if part != "draft" {
                assert_eq!(query.contains(&part), contains, "{at}: `{part}` in {query}");
            }
        }
    }
}

/// Creates the task in the task store and lets the loop have it.
fn task(bench: &Bench, id: &str) -> String {
    let id = format!("flow_{id}");
    let new =
        ["exec", "task-management.create", &format!("id={id}"), "title=Do it", "project=flows"];
    assert!(bench.run(&new).status.success());
    id
}

fn run(id: &str, workflow: &str, place: &str) {
    let row = trace(id);
    let model = Model::start();
    let bench = Bench::new(Some(&model.service)).beside(flow_operations());
    let first = &row["turns"][0]["state_before"];
    let task = &task(&bench, id);
    if first.as_object().is_some_and(|state| !state.is_empty()) {
        let state = bench.folder.path().join(format!("{place}/{task}/logs/work_state.json"));
        write(&state, first.to_string().as_bytes());
    }
    let (mut seen_events, mut seen_journal, mut started) = (0, 0, false);
    for turn in row["turns"].as_array().unwrap() {
        let at = format!("{id}, turn {}", turn["turn"]);
        let flag = bench.folder.path().join("app_build/bootstrapped");
        if turn["input"]["bootstrapped"].as_bool().unwrap_or(true) {
            write(&flag, b"yes");
        }
        if let Some(message) = turn["input"]["user_message"].as_str() {
            assert!(bench.run(&["agent", "say", task, message]).status.success(), "{at}");
        }
        prepare(&bench, &model, turn, workflow == "report_writing");
        let words: &[&str] = if started {
            &["agent", "turn", task, "--json"]
        } else {
            &["agent", "turn", task, "--workflow", workflow, "--json"]
        };
        started = true;
        let file = bench.json(words);
        assert_eq!(model.left(), 0, "{at}: a reply was not asked for");
        let all = events(&bench, task);
        let done = carried_out(&all[seen_events..]);
        seen_events = all.len();
        compare_step(&at, &turn["expect_step"], &done);
        if let Some(want) = turn.get("decisions").and_then(Value::as_array) {
            assert_eq!(want.len(), done.len(), "{at}");
            for (want, (name, parameters)) in want.iter().zip(&done) {
                assert_eq!(want["action_name"], name.as_str(), "{at}");
                for (key, value) in want["parameters"].as_object().unwrap() {
                    assert_eq!(&parameters[key], value, "{at}");
                }
            }
        }
        let (state, phase) = digest(&bench, task, workflow, place);
        assert_eq!((&state, &phase), (&turn["state_after"], &turn["phase_after"]), "{at}");
        assert_eq!(!file["parked"].is_null(), turn["waiting_after"] == true, "{at}: {file}");
        let lines = journal(&bench, task, place);
        assert_eq!(Value::from(lines[seen_journal..].to_vec()), turn["journal"], "{at}");
        seen_journal = lines.len();
        let shown = bench.json(&["agent", "show", task, "--json"]);
        assert_eq!(shown["phase"], turn["phase_after"], "{at}");
        assert_eq!(shown["step"]["stage"], turn["expect_step"]["stage"], "{at}");
    }
    let stored = bench.stored("tasks");
    assert_eq!(stored[0]["status"], "done", "{id}");
    if workflow == "app_build" {
        assert_eq!(bench.folder.path().join("app_build/notified").exists(), id == "A");
    }
}

#[test]
fn flow_a_turn_by_turn() {
    run("A", "app_build", "app_build/state");
}

#[test]
fn flow_a_is_ended_by_code_when_the_model_did_not() {
    run("A-tail", "app_build", "app_build/state");
}

#[test]
fn flow_c_turn_by_turn() {
    run("C", "report_writing", "workflows/report_writing");
}

#[test]
fn flow_b_turn_by_turn() {
    let row = trace("B");
    let model = Model::start();
    let bench = Bench::new(Some(&model.service));
    let task = &task(&bench, "B");
    let mut seen = 0;
    for turn in row["turns"].as_array().unwrap() {
        let at = format!("B, turn {}", turn["turn"]);
        if turn["note"].as_str().is_some_and(|note| note.contains("was summarised")) {
            // As the loop does with a long stream.
            let path = bench.folder.path().join(format!("agent/tasks/{task}/task.json"));
            let mut file = parse(&std::fs::read_to_string(&path).unwrap());
            file["summary"] = json!({"upto": seen, "text": "Earlier, in short:\n- two searches\n"});
            write(&path, file.to_string().as_bytes());
        }
        // The shipped host has other operations than the trace.
        let reply = turn["llm_reply"].as_str().unwrap();
        let reply = reply.replace("search_gmail", "_core.task-management.read");
        let reply = reply.replace("\"query\"", "\"project\"");
        let reply = reply.replace("get_message", "_core.feedback-management.get_card");
        model.will(Answer::Says(reply.into()));
        let file = bench.json(&["agent", "turn", task, "--json"]);
        let asked = model.service.asked().last().unwrap().clone();
        let form = if asked.messages.len() == 1 { "full" } else { "delta" };
        assert_eq!(turn["expect_prompt"], form, "{at}");
        assert_eq!(asked.last().contains("# Request"), form == "full", "{at}");
        let all = events(&bench, task);
        let shown: Vec<String> = all[seen..]
            .iter()
            .map(|event| match event["action"].as_str().unwrap_or_default() {
                "" => event["kind"].as_str().unwrap().to_owned(),
                action => {
                    let action = match action.rsplit('.').next().unwrap() {
                        "read" => "search_gmail",
                        "get_card" => "get_message",
                        other => other,
                    };
                    format!("{} {action}", event["kind"].as_str().unwrap())
                }
            })
            .collect();
        assert_eq!(json!(shown), turn["events_appended"], "{at}");
        seen = all.len();
        let last = turn["turn"] == 4;
        assert_eq!(file["status"] == "complete", last, "{at}");
    }
    assert_eq!(bench.stored("comments")[0]["body"], "4 invoices, total 1,210");
    assert_eq!(bench.stored("tasks")[0]["status"], "done");
}
