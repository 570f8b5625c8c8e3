//! Many callers of one run at once, callers that repeat themselves, scripts that delete the lock, ids that lead astray.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::support::fixture::snapshot;
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::runs::{RunFolder, call, names, question};

fn host(folder: &RunFolder) -> HostProcess {
    HostProcess::start(&HostOptions::new().cwd(&folder.root).env("RUN_FEEDBACK_POSTER", "none"))
}

/// Calls all at once; the replies.
fn at_once(host: &HostProcess, op: &str, calls: &[Value]) -> Vec<Value> {
    thread::scope(|scope| {
        let calls: Vec<_> =
            calls.iter().map(|overrides| scope.spawn(move || call(host, op, overrides))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

fn emits(run: &str, count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| json!({"run_id": run, "type": "checkpoint", "message": format!("number {n}")}))
        .collect()
}

/// Every message has one event, numbered without a gap from `first`.
#[track_caller]
fn check_events(folder: &RunFolder, run: &str, count: usize) {
    let events = folder.events(run);
    let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
    let messages: HashSet<&str> =
        events.iter().filter_map(|(_, event)| event["message"].as_str()).collect();
    assert_eq!(messages.len(), count, "every emitter has its event");
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), events.len());
    assert_eq!(folder.state(run)["last_event_id"], *numbers.last().unwrap());
}

#[test]
fn forty_emitters_on_two_hosts_have_forty_numbers() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let hosts = [host(&folder), host(&folder)];
    let calls = emits(&run, 40);
    let replies: Vec<Value> = thread::scope(|scope| {
        let halves = [
            scope.spawn(|| at_once(&hosts[0], "emit_event", &calls[..20])),
            scope.spawn(|| at_once(&hosts[1], "emit_event", &calls[20..])),
        ];
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply["status"] == "success"), "{replies:?}");
    let numbers: HashSet<u64> =
        replies.iter().map(|reply| reply["event_id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=40).collect());
    check_events(&folder, &run, 40);
}

#[test]
fn scripts_that_delete_the_lock_may_run_beside() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let host = host(&folder);
    call(&host, "list_pending", &json!({}));
    let lock = folder.dir(&run).join("state.json.lock");
    // As the old scripts do: take the lock, hold it for a moment, delete its file.
    let script = "while [ ! -e \"$0.stop\" ]; do exec 9>>\"$0\"; flock -w 5 9; rm -f \"$0\"; exec 9>&-; done";
    let mut scripts: Vec<_> = (0..2)
        .map(|_| {
            Command::new("bash")
                .args(["-c", script])
                .arg(&lock)
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut replies = Vec::new();
    for round in 0..4 {
        let calls: Vec<Value> = (0..10)
            .map(
                |n| json!({"run_id": run, "type": "checkpoint", "message": format!("{round}.{n}")}),
            )
            .collect();
        replies.extend(at_once(&host, "emit_event", &calls));
    }
    crate::support::fixture::write(&lock.with_extension("lock.stop"), b"");
    for script in &mut scripts {
        assert!(script.wait().unwrap().success());
    }
    assert!(replies.iter().all(|reply| reply["status"] == "success"), "{replies:?}");
    check_events(&folder, &run, 40);
}

#[test]
fn of_twenty_equal_answers_one_counts_and_the_others_are_told() {
    let folder = RunFolder::new();
    let run = folder.add_waiting(1, "7");
    let request = folder.state(&run)["feedback_request"]["request_id"].clone();
    let host = host(&folder);
    let answer =
        json!({"run_id": run, "request_id": request, "response": "approve", "user": "sam"});
    let replies = at_once(&host, "process_response", &vec![answer; 20]);
    let (won, lost): (Vec<_>, Vec<_>) =
        replies.iter().partition(|reply| reply["status"] == "success");
    assert_eq!((won.len(), lost.len()), (1, 19), "{replies:?}");
    for reply in lost {
        assert_eq!(reply["error"]["number"], 3);
        assert_eq!(reply["error"]["already_answered"]["response"], "approve");
    }
    let state = folder.state(&run);
    assert_eq!(state["feedback_history"].as_array().unwrap().len(), 1);
    assert_eq!(state["status"], "in_progress");
    assert_eq!(folder.count(&run, "feedback_received"), 1);
}

#[test]
fn a_question_that_is_repeated_is_asked_once() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let host = host(&folder);
    let replies = at_once(&host, "request_feedback", &vec![question(&run); 12]);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for reply in &replies {
        let code = reply["error"]["code"].as_str().unwrap_or("success").to_owned();
        *counts.entry(code).or_default() += 1;
    }
    assert_eq!(json!(counts), json!({"REQUEST_PENDING": 11, "success": 1}));
    let open = folder.state(&run)["feedback_request"]["request_id"].clone();
    for reply in replies.iter().filter(|reply| reply["status"] == "error") {
        assert_eq!(reply["error"]["pending_request_id"], open, "a retry learns which one is open");
    }
    assert_eq!(folder.count(&run, "decision_point"), 1);
}

#[test]
fn ids_that_lead_astray_touch_nothing() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let outside = folder.root.join("outside");
    let elsewhere = RunFolder::id(2);
    let uuid = elsewhere.rsplit('/').next().unwrap();
    crate::support::fixture::write(
        &outside.join(uuid).join("state.json"),
        b"{\"status\": \"awaiting_feedback\", \"feedback_request\": {\"request_id\": \"r\", \"options\": [\"approve\"]}}",
    );
    symlink(outside.join(uuid), folder.dir(&elsewhere)).unwrap();
    symlink(&outside, folder.dir(&run).parent().unwrap().parent().unwrap().join("linked")).unwrap();
    let before = snapshot(&folder.root);
    let host = host(&folder);
    for id in [
        elsewhere.clone(),
        format!("acme/linked/{uuid}"),
        format!("../../../../outside/{uuid}"),
        format!("acme/../{uuid}"),
        format!("/{run}"),
        format!("{run}/"),
        format!("{run}\n"),
        format!("../../x\n{run}"),
        format!("{run}\n../../x"),
        run.to_uppercase(),
        "acme/widgets/abc-123".to_owned(),
        String::from("acme/widgets/\u{0}"),
    ] {
        let answer = json!({"run_id": id, "request_id": "r", "response": "approve", "user": "sam"});
        let event = json!({"run_id": id, "type": "checkpoint"});
        let made = json!({"run_id": id, "work_id": "7"});
        let update =
            json!({"run_id": id, "operation": "clear-awaiting", "phase": "a", "step": "b"});
        for (op, overrides) in [
            ("request_feedback", question(&id)),
            ("process_response", answer),
            ("emit_event", event),
            ("update_feedback_state", update),
            ("get_run", json!({"run_id": id})),
            ("resume_run", json!({"run_id": id})),
            ("init_run", made),
        ] {
            let reply = call(&host, op, &overrides);
            let code = reply["error"]["code"].as_str().unwrap_or_default();
            let refused = code == "INVALID_RUN_ID" || (op == "init_run" && code == "RUN_EXISTS");
            assert!(refused, "{op} {id:?}: {reply}");
        }
    }
    assert_eq!(snapshot(&folder.root), before, "nothing was written anywhere");
    let pending = call(&host, "list_pending", &json!({}));
    assert_eq!(pending["total"], 0, "what a link leads to is not listed: {pending}");
    assert!(!names(&outside.join(uuid)).iter().any(|name| name.ends_with(".lock")));
}
