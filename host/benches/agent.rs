//! The budgets of the agent loop: an engine turn with durable state, and a start with a thousand parked tasks.
//!
//! A turn is the `step` call of the shipped workflow through the dispatcher, which settles a round, chooses, and writes
//! state and journal (`--durability os`). `cargo bench -p host --bench agent` builds the operations on its first run.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::agent::provider::Absent;
use host::agent::{AgentLoop, Parked, TaskFile, Why};
use host::config::{Durability, Settings};
use host::{Address, Call, Config, Host};
use serde_json::{Value, json};

const TURNS: usize = 2000;
const TURN_BAR_MS: f64 = 2.0;
const TASKS: usize = 1000;
const RESTORE_BAR_S: f64 = 1.0;
const REPEATS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = Settings { durability: Some(Durability::Os), ..Settings::default() };
    let mut config = Config::from_process(settings).expect("a configuration");
    config.app_dir = Some(folder.path().to_owned());
    let host = Host::start(config).expect("a host");
    host.catalog.wait_settled(Instant::now() + Duration::from_secs(3600));
    turns(&host);
    restore(&host, folder.path());
}

fn call(host: &Host, call: &str, arguments: &Value) -> Value {
    let task = json!({"id": "bench", "query": "A report on tea"});
    let address = Address::new("_core", "workflows", "report_writing");
    let call = Call::new(address)
        .param("call", call)
        .param("task", &task.to_string())
        .param("arguments", &arguments.to_string());
    let reply = host.dispatcher.call(call).expect("the workflow answers");
    serde_json::from_str(&reply.to_json()).expect("JSON")
}

fn turns(host: &Host) {
    let failed = json!({"result": {"status": "error", "step": "build", "errors": ["one", "two"]}});
    let (mut steps, mut records) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let began = Instant::now();
        call(host, "record_work_outcome", &failed);
        records.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let turn = call(host, "step", &Value::Null);
        steps.push(began.elapsed().as_secs_f64() * 1e3);
        if turn["stage"] == "budget_gate" {
            call(host, "record_user_lead", &json!({"text": "look again"}));
        }
    }
    let (step, record) = (median(&mut steps), median(&mut records));
    println!("engine turn with durable state: {step:.3} ms (bar: at most {TURN_BAR_MS})");
    println!("a recorded outcome:             {record:.3} ms");
}

/// From nothing remembered to every task looked at: documents, inboxes, cards.
fn restore(host: &Host, app_dir: &Path) {
    let agent = AgentLoop::of_host(host, Arc::new(Absent));
    let cards: Vec<Value> = (0..TASKS)
        .map(|number| {
            json!({
                "id": format!("card_{number:012x}"), "project": "p", "taskId": format!("task_{number}"),
                "effect": "reply", "status": "pending", "continuationPolicy": "wake_assignee",
                "idempotencyKey": null, "summary": "s", "payload": {"message": "m"}, "result": null,
                "createdBy": "agent", "sourceRunId": "", "resolvedBy": null,
                "createdAt": "2026-11-30T09:00:00.000Z", "resolvedAt": null
            })
        })
        .collect();
    write(&app_dir.join("state/cards.json"), &serde_json::to_string_pretty(&cards).expect("JSON"));
    for number in 0..TASKS {
        let file = TaskFile {
            id: format!("task_{number}"),
            workflow_id: "report_writing".into(),
            registered: true,
            parked: Some(Parked {
                why: Why::User,
                note: "n".into(),
                wake_at: u64::MAX,
                card: Some(format!("card_{number:012x}")),
                ..Parked::default()
            }),
            ..TaskFile::default()
        };
        agent.tasks().create(&file).expect("a task");
    }
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let began = Instant::now();
            let fresh = AgentLoop::of_host(host, Arc::new(Absent));
            let standing = fresh.restore().expect("the tasks");
            assert_eq!(standing.len(), TASKS);
            for task in &standing {
                assert!(!fresh.is_ready(&task.file).expect("a look"), "it stays parked");
            }
            began.elapsed().as_secs_f64()
        })
        .collect();
    let median = median(&mut times);
    println!("{TASKS} parked tasks restored:    {median:.3} s (bar: at most {RESTORE_BAR_S})");
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "state laid out before anything reads it")]
fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}
