//! Files that no friend has put there: whatever lies below the base, a call ends with a refusal that says so, the
//! other runs go on, and nothing outside is touched.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::fixture::{snapshot, write};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::runs::{RunFolder, call, names, question};

fn host(folder: &RunFolder) -> HostProcess {
    HostProcess::start(&HostOptions::new().cwd(&folder.root).env("RUN_FEEDBACK_POSTER", "none"))
}

fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

/// Every operation that takes a run, with parameters that fit.
fn calls(run: &str) -> Vec<(&'static str, Value)> {
    let update = |operation: &str| json!({"run_id": run, "operation": operation, "phase": "a", "step": "b", "request_id": "fr-1", "type": "approval", "prompt": "p", "response": "approve", "cli": true});
    let mut again = question(run);
    again["replace"] = json!(true);
    vec![
        ("get_run", json!({"run_id": run, "include_events": true})),
        ("resume_run", json!({"run_id": run})),
        ("emit_event", json!({"run_id": run, "type": "checkpoint"})),
        (
            "process_response",
            json!({"run_id": run, "request_id": "fr-1", "response": "approve", "user": "sam"}),
        ),
        ("update_feedback_state", update("add-history")),
        ("update_feedback_state", update("mark-notified")),
        ("update_feedback_state", update("set-awaiting")),
        ("update_feedback_state", update("clear-awaiting")),
        ("request_feedback", question(run)),
        ("request_feedback", again),
        ("list_runs", json!({})),
        ("list_pending", json!({})),
        (
            "receive_reply",
            json!({"issue": "7", "comment_id": "77", "author": "kim", "association": "MEMBER",
            "body": "approve @faber resume", "created_at": "2999-01-01T00:00:00Z"}),
        ),
    ]
}

/// A number of §11, or none for a success.
fn outcome(reply: &Value) -> Option<u64> {
    match reply["status"].as_str() {
        Some("success") => None,
        Some("error") => {
            assert!(
                reply["error"]["message"].as_str().is_some_and(|text| !text.is_empty()),
                "{reply}"
            );
            Some(reply["error"]["number"].as_u64().unwrap_or_else(|| panic!("no number: {reply}")))
        }
        _ => panic!("neither success nor refusal: {reply}"),
    }
}

#[test]
fn any_state_is_answered_and_none_is_harmed_that_cannot_be_read() {
    let folder = RunFolder::new();
    let host = host(&folder);
    let odd = [
        "null",
        "7",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "-1",
        "1e999",
        "\"\\u0000\"",
        "\"x\\ny\"",
        "true",
        "{\"request_id\": 7}",
        "[{\"request_id\": \"fr-1\"}]",
        "18446744073709551616",
    ];
    let members = [
        "run_id",
        "work_id",
        "status",
        "last_event_id",
        "current_phase",
        "current_step",
        "updated_at",
        "phases",
        "artifacts",
        "feedback_request",
        "resume_point",
        "feedback_history",
    ];
    let requests =
        ["request_id", "type", "prompt", "options", "context", "requested_at", "notification_sent"];
    let mut states = Vec::new();
    for odd in odd {
        for name in members.iter().copied().chain(requests) {
            let mut state = json!({"run_id": "x", "work_id": "7", "status": "awaiting_feedback", "last_event_id": 3,
                "feedback_request": {"request_id": "fr-1", "type": "approval", "prompt": "Ok?", "options": ["approve"],
                    "requested_at": "2026-01-01T00:00:00Z"},
                "resume_point": {"phase": "build", "step": "x", "step_index": 1}, "feedback_history": [],
                "mark": "@"});
            let place =
                if requests.contains(&name) { &mut state["feedback_request"] } else { &mut state };
            place[name] = json!("@@");
            states.push(state.to_string().replace("\"@@\"", odd));
        }
    }
    states.extend(
        [
            "",
            " ",
            "{",
            "null",
            "[]",
            "{}{}",
            "{\"a\":1,}",
            "\u{feff}{}",
            "{\"a\":\"\\ud800\"}",
            "\0",
            "{\"status\":\"awaiting_feedback\"}",
        ]
        .map(str::to_owned),
    );
    states.push(format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)));
    states.push(format!("{{\"a\": {}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000)));
    println!("{} states", states.len());
    for (number, text) in states.iter().enumerate() {
        let run = folder.add(1, "7");
        let file = folder.dir(&run).join("state.json");
        let calls = calls(&run);
        let (op, overrides) = &calls[number % calls.len()];
        for (op, overrides) in
            [(op, overrides), (&calls[3].0, &calls[3].1), (&calls[8].0, &calls[8].1)]
        {
            write(&file, text.as_bytes());
            let refused = outcome(&call(&host, op, overrides)).is_some();
            let left = fs::read_to_string(&file).unwrap();
            if serde_json::from_str::<serde_json::Map<String, Value>>(text).is_err() {
                assert_eq!(left, *text, "{op} changed what it cannot read");
            } else if !refused && text.contains("\"mark\"") {
                assert!(left.contains("\"mark\""), "{op} lost a member of {text}");
            }
            fs::remove_dir_all(folder.dir(&run)).unwrap();
            folder.add(1, "7");
        }
    }
    assert_eq!(host.get("/health").status, 200);
}

#[test]
fn bytes_pipes_directories_and_links_in_the_place_of_files() {
    let folder = RunFolder::new();
    let good = folder.add_waiting(2, "9");
    let outside = folder.root.join("outside");
    write(&outside.join("state.json"), b"{\"status\": \"awaiting_feedback\", \"secret\": 1}");
    write(&outside.join("notes"), b"mine");
    let host = host(&folder);
    type Spoil = fn(&Path, &Path);
    let spoils: [(&str, Spoil); 12] = [
        ("bytes", |run, _| write(&run.join("state.json"), b"{\"a\": \"\xff\xfe\"}")),
        ("a directory", |run, _| fs::create_dir_all(run.join("state.json/x")).unwrap()),
        ("a pipe", |run, _| pipe(&run.join("state.json"))),
        ("a link out", |run, out| symlink(out.join("state.json"), run.join("state.json")).unwrap()),
        ("a link to a device", |run, _| symlink("/dev/zero", run.join("state.json")).unwrap()),
        ("a link to itself", |run, _| symlink("state.json", run.join("state.json")).unwrap()),
        ("events that are a link", |run, out| {
            write(&run.join("state.json"), b"{\"status\": \"in_progress\"}");
            symlink(out, run.join("events")).unwrap();
        }),
        ("events that are a file", |run, _| {
            write(&run.join("state.json"), b"{\"status\": \"in_progress\"}");
            write(&run.join("events"), b"");
        }),
        ("a lock that leads out", |run, out| {
            write(&run.join("state.json"), b"{\"status\": \"in_progress\"}");
            symlink(out.join("new.lock"), run.join("state.json.lock")).unwrap();
        }),
        ("a lock that is a directory", |run, _| {
            write(&run.join("state.json"), b"{\"status\": \"in_progress\"}");
            fs::create_dir(run.join("state.json.lock")).unwrap();
        }),
        ("a run that is a link", |run, out| {
            fs::remove_dir(run).unwrap();
            symlink(out, run).unwrap();
        }),
        ("a run that is a file", |run, _| {
            fs::remove_dir(run).unwrap();
            write(run, b"");
        }),
    ];
    let before = snapshot(&outside);
    for (what, spoil) in spoils {
        let run = RunFolder::id(1);
        let dir = folder.dir(&run);
        fs::create_dir_all(&dir).unwrap();
        spoil(&dir, &outside);
        for (op, overrides) in calls(&run) {
            let began = Instant::now();
            let refused = outcome(&call(&host, op, &overrides));
            let takes_run = overrides.get("run_id").is_some();
            // What only reads needs no lock, and not all need the events.
            let only_events = what.starts_with("events") && op == "update_feedback_state";
            let spared = only_events || matches!(op, "get_run" | "resume_run");
            assert!(!takes_run || spared || refused.is_some(), "{what}: {op} succeeds");
            assert!(began.elapsed() < Duration::from_secs(15), "{what}: {op} waits");
        }
        let pending = call(&host, "list_pending", &json!({}));
        assert_eq!(pending["pending"][0]["run_id"], json!(good), "{what}: {pending}");
        assert_eq!(pending["total"], 1, "{what}: {pending}");
        assert_eq!(snapshot(&outside), before, "{what}");
        let meta = fs::symlink_metadata(&dir).unwrap();
        if meta.is_dir() {
            fs::remove_dir_all(&dir).unwrap()
        } else {
            fs::remove_file(&dir).unwrap()
        }
    }
}

#[test]
fn counters_and_events_that_make_no_sense_cost_no_number() {
    let folder = RunFolder::new();
    let host = host(&folder);
    for (number, spoil) in ([
        |events: &Path| write(&events.join(".next-id"), b"\xff\xfe"),
        |events: &Path| {
            fs::remove_file(events.join(".next-id")).unwrap();
            pipe(&events.join(".next-id"));
        },
        |events: &Path| {
            fs::remove_file(events.join(".next-id")).unwrap();
            symlink("/etc/hostname", events.join(".next-id")).unwrap();
        },
        |events: &Path| write(&events.join(OsStr::from_bytes(b"007-\xff.json")), b"{}"),
        |events: &Path| fs::create_dir(events.join("999-checkpoint.json")).unwrap(),
        |events: &Path| pipe(&events.join("000-checkpoint.json")),
        |events: &Path| symlink("/nowhere", events.join("001-checkpoint.json")).unwrap(),
    ] as [fn(&Path); 7])
        .into_iter()
        .enumerate()
    {
        let run = folder.add(number, "7");
        let events = folder.dir(&run).join("events");
        spoil(&events);
        for wanted in 1..=2_u64 {
            let reply = call(&host, "emit_event", &json!({"run_id": run, "type": "checkpoint"}));
            assert_eq!(reply["status"], "success", "{number}: {reply}");
            let id = reply["event_id"].as_u64().unwrap();
            assert!(id >= wanted && id < 1000, "{number}: {reply}");
            let path = events.join(format!("{id:03}-checkpoint.json"));
            assert!(fs::symlink_metadata(path).unwrap().is_file());
        }
        let state = folder.state(&run);
        assert_eq!(
            fs::read_to_string(events.join(".next-id")).unwrap(),
            format!("{}\n", state["last_event_id"].as_u64().unwrap() + 1)
        );
    }
}

#[test]
fn strange_names_below_the_base_are_passed_by() {
    let folder = RunFolder::new();
    let run = folder.add_waiting(1, "7");
    let project = folder.dir(&run).parent().unwrap().to_owned();
    let base = project.parent().unwrap().parent().unwrap().to_owned();
    for dir in [&base, &project.parent().unwrap().to_owned(), &project, &folder.dir(&run)] {
        fs::create_dir(dir.join(OsStr::from_bytes(b"\xff\xfe"))).unwrap();
        write(&dir.join(OsStr::from_bytes(b"caf\xe9.json")), b"{}");
        write(&dir.join("a\nb"), b"");
        fs::create_dir(dir.join(".hidden")).unwrap();
        fs::create_dir(dir.join("UPPER")).unwrap();
        symlink(&base, dir.join("round")).unwrap();
    }
    let host = host(&folder);
    for op in ["list_pending", "list_runs"] {
        let reply = call(&host, op, &json!({}));
        assert_eq!(
            (reply["total"].as_u64(), reply.get("unreadable").cloned().unwrap_or(json!([]))),
            (Some(1), json!([])),
            "{reply}"
        );
    }
    let answer = json!({"run_id": run, "request_id": "fr-20260101-000001", "response": "approve", "user": "sam"});
    assert_eq!(call(&host, "process_response", &answer)["status"], "success");
    for base in ["x\u{0}y", "\n", "../../../../../../proc/self/fd", "/dev/null", "/proc/1"] {
        for (op, mut overrides) in calls(&run) {
            overrides["base_path"] = json!(base);
            let body = json!({"udf": op, "overrides": overrides}).to_string();
            let answer = host.post("/api/exec/udf", "_core", "run-feedback", &body).unwrap();
            assert!(matches!(answer.status, 200 | 422), "{base:?} {op}: {}", answer.text);
        }
    }
}

#[test]
fn a_base_that_cannot_be_written_is_told_and_left_as_it_is() {
    let folder = RunFolder::new();
    let host = host(&folder);
    // The kernel lets nobody write there, whoever runs the tests.
    for base in ["/proc/sys/kernel", "/sys/kernel"] {
        let run = RunFolder::id(1);
        let made =
            call(&host, "init_run", &json!({"run_id": run, "work_id": "7", "base_path": base}));
        assert_eq!(made["error"]["code"], "STATE_WRITE_FAILED", "{made}");
        assert!(made["error"]["message"].as_str().unwrap().contains(base), "{made}");
    }
    let run = folder.add_waiting(1, "7");
    let before = snapshot(&folder.dir(&run));
    let answer = json!({"run_id": run, "request_id": "fr-20260101-000001", "response": "approve", "user": "sam"});
    // Whoever may write everywhere meets no folder that cannot be written.
    if !rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| {
            for dir in [folder.dir(&run).join("events"), folder.dir(&run)] {
                fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        mode(0o555);
        let refused = call(&host, "process_response", &answer);
        assert_eq!(refused["error"]["number"], 7, "{refused}");
        mode(0o755);
        assert_eq!(snapshot(&folder.dir(&run)), before);
    }
    assert_eq!(call(&host, "process_response", &answer)["status"], "success");
    assert!(!names(&folder.dir(&run)).iter().any(|name| name.ends_with(".tmp")));
}
