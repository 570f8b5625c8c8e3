//! Recorders of one subject, called by many at once over two hosts, equal some serial order: that of the journal.

use std::thread;

use sdk::workflow::recorders::{Rules, apply};
use sdk::workflow::{Event, Moment, WorkState};
use serde_json::{Map, Value, json};

use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::parse;

const STATE: &str = "workflows/report_writing/t1";
const CALLERS: usize = 8;
const EACH: usize = 12;

/// The calls of one caller, each with something in it by which its journal line is known, but for the checks.
fn calls(caller: usize) -> Vec<(&'static str, Value)> {
    (0..EACH)
        .map(|n| {
            let unique = caller * EACH + n;
            match n % 4 {
                0 => ("record_user_lead", json!({"text": "x".repeat(unique + 1)})),
                1 => {
                    let result = json!({"status": "error", "step": format!("step {unique}"), "errors": ["e"]});
                    ("record_work_outcome", json!({"result": result}))
                }
                // All alike, as nothing in their line tells one from another.
                2 => {
                    let report = "VERDICT: FAIL\n- Claim 1 — PASS\n- Claim 2 — FAIL — wrong\n";
                    ("record_check_outcome", json!({"status": "completed", "report": report}))
                }
                _ => ("record_work_outcome", json!({"result": {"status": "error", "step": format!("again {unique}")}})),
            }
        })
        .collect()
}

/// How the journal shows a call.
fn shown(recorder: &str, arguments: &Value) -> String {
    match recorder {
        "record_user_lead" => {
            format!("lead {}", arguments["text"].as_str().unwrap().chars().count())
        }
        "record_work_outcome" => format!("work {}", arguments["result"]["step"].as_str().unwrap()),
        _ => "check".to_owned(),
    }
}

fn line(line: &Value) -> String {
    match line["event"].as_str().unwrap() {
        "user_lead" => format!("lead {}", line["chars"]),
        "work_outcome" => format!("work {}", line["step"].as_str().unwrap()),
        "check_outcome" => "check".to_owned(),
        other => panic!("a line about {other}"),
    }
}

#[test]
fn recorders_under_concurrent_callers_equal_a_serial_order() {
    let folder = tempfile::tempdir().unwrap();
    let start = || HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder.path()));
    let hosts = [start(), start()];
    let record = |host: &HostProcess, recorder: &str, arguments: &Value| {
        let overrides = json!({"call": recorder, "state_dir": STATE, "arguments": arguments});
        host.data("workflows", "report_writing", &overrides);
    };
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let host = &hosts[caller % hosts.len()];
            scope.spawn(move || {
                for (recorder, arguments) in calls(caller) {
                    record(host, recorder, &arguments);
                }
            });
        }
    });
    let read = |path: &str| std::fs::read_to_string(folder.path().join(STATE).join(path)).unwrap();
    let journal: Vec<Value> = read("logs/workflow_journal.jsonl").lines().map(parse).collect();
    assert_eq!(journal.len(), CALLERS * EACH, "every call once");
    let made: Vec<(String, &str, Value)> = (0..CALLERS)
        .flat_map(calls)
        .map(|(recorder, arguments)| (shown(recorder, &arguments), recorder, arguments))
        .collect();
    // What each caller did stands in its own order.
    let at = |name: &str| {
        journal.iter().position(|it| line(it) == name).unwrap_or_else(|| panic!("no line {name}"))
    };
    for caller in 0..CALLERS {
        let names = calls(caller).into_iter().map(|(recorder, it)| shown(recorder, &it));
        let own: Vec<usize> = names.filter(|name| name != "check").map(|name| at(&name)).collect();
        assert!(own.is_sorted(), "{own:?}");
    }
    let rules = Rules {
        worker_agent: "research_agent",
        has_stage_action: false,
        round_budget: 3,
        check_attempt_budget: 3,
        tool_markers: &[],
    };
    let mut state = WorkState::default();
    for stood in &journal {
        let name = line(stood);
        let (_, recorder, arguments) = made.iter().find(|(it, ..)| *it == name).unwrap();
        let arguments: &Map<String, Value> = arguments.as_object().unwrap();
        let event = Event::from_call(recorder, arguments).unwrap();
        let recorded = apply(&mut state, &event, &rules, Moment(0));
        let mut wanted = recorded.journal[0].to_value();
        wanted["ts"] = stood["ts"].clone();
        assert_eq!(&wanted, stood, "the line as this order gives it");
    }
    let (status, envelope) = hosts[0].exec(
        "_core",
        "workflows",
        "report_writing",
        &json!({"call": "state", "state_dir": STATE}),
    );
    assert_eq!(status, 200);
    assert_eq!(
        envelope["data"]["state"],
        Value::Object(state.digest()),
        "and the state is what it comes to"
    );
}
