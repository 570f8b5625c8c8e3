//! Folders and artifacts of every kind of fault: each is named with its reason, none keeps the others from answering.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::checkout;
use crate::support::host_process::{HostOptions, HostProcess};

fn faults() -> std::path::PathBuf {
    checkout().join("tests/fixtures/udfs")
}

/// A host over the faulty operations alone; it is ready when the sound one answers.
fn faulty_host() -> HostProcess {
    let host =
        HostProcess::start(&HostOptions::new().udfs(Some(&faults())).arg("--log").arg("info"));
    let (status, envelope) = host.exec("default", "faults", "greets", &json!({"name": "there"}));
    assert_eq!((status, &envelope["data"]), (200, &json!("hello there")), "{}", host.stderr());
    host
}

fn exec(host: &HostProcess, op: &str, overrides: &Value) -> (u16, Value) {
    host.exec("default", "faults", op, overrides)
}

#[test]
fn every_bad_folder_is_listed_with_its_reason_and_the_others_answer() {
    let host = faulty_host();
    for (folder, words) in [
        ("will_not_compile", "u32"),
        ("no_spec", "spec.md"),
        ("no_manifest", "Cargo.toml"),
        ("bad_manifest", "Cargo.toml"),
        ("misnamed", "udf-faults-misnamed"),
        ("two-words", "two_words"),
        ("two_words", "two-words"),
    ] {
        // The call waits for the build, so that the catalog below knows the outcome.
        let (status, envelope) = exec(&host, folder, &json!({}));
        assert!(status >= 400 && envelope["data"].is_null(), "{folder}: {status} {envelope}");
        let catalog = host.get("/api/udfs").json();
        let listed =
            find(&catalog, folder).unwrap_or_else(|| panic!("{folder} is not listed: {catalog}"));
        assert!(
            listed.to_string().contains(words),
            "{folder} is listed without {words:?}: {listed}"
        );
        assert_ne!(listed["state"], "ready", "{folder}");
    }
    for op in ["greets", "takes", "sleeps"] {
        let catalog = host.get("/api/udfs").json();
        assert_eq!(find(&catalog, op).unwrap()["state"], "ready", "{op}");
    }
}

/// The catalog's object about an operation, wherever in the reply it stands.
fn find<'a>(catalog: &'a Value, op: &str) -> Option<&'a Value> {
    match catalog {
        Value::Object(fields) if fields.get("op").is_some_and(|it| it == op) => Some(catalog),
        Value::Object(fields) => fields.values().find_map(|it| find(it, op)),
        Value::Array(items) => items.iter().find_map(|it| find(it, op)),
        _ => None,
    }
}

#[test]
fn panics_of_every_kind_cost_one_call() {
    let mut host = faulty_host();
    for (kind, words) in [
        ("text", "a plain text"),
        ("string", "a formatted text, number 7"),
        ("other", "panic"),
        ("payload", "panic"),
        ("drop", "a drop at the end of the call"),
        ("index", "out of bounds"),
    ] {
        for _ in 0..3 {
            let (status, envelope) = exec(&host, "panics", &json!({"kind": kind}));
            let message = envelope["error"].as_str().unwrap_or_default();
            assert_eq!((status, &envelope["data"]), (500, &Value::Null), "{kind}: {envelope}");
            assert!(message.contains(words) || kind == "index", "{kind}: {message}");
            assert!(!message.contains(".rs"), "{kind} tells a path: {message}");
            let (status, envelope) = exec(&host, "panics", &json!({"kind": "fine"}));
            assert_eq!((status, &envelope["data"]), (200, &json!("fine")), "after {kind}");
        }
    }
    assert_eq!(host.ended(), None);
    host.logged("panics");
    assert_eq!(host.stdout_rest(), "", "stdout holds the handshake alone");
}

#[test]
fn a_call_past_its_deadline_is_504_and_the_operation_goes_on_working() {
    let host = faulty_host();
    // It stops when it is told to; whether its own last word or the deadline comes first is a matter of milliseconds.
    let began = Instant::now();
    let (status, envelope) = exec(&host, "sleeps", &json!({"ms": 30_000}));
    assert!(status == 504 || envelope["data"] == "stopped early", "{status} {envelope}");
    assert!(began.elapsed() < Duration::from_secs(20), "the deadline of one second was not kept");
    let (status, envelope) = exec(&host, "sleeps", &json!({"ms": 1_700, "deaf": true}));
    assert_eq!(status, 504, "{envelope}");
    let (status, envelope) = exec(&host, "sleeps", &json!({"ms": 1}));
    assert_eq!((status, &envelope["data"]), (200, &json!("slept")));
}

#[test]
fn parameters_of_every_kind_arrive_and_bad_ones_are_named() {
    let host = faulty_host();
    let (status, envelope) = exec(
        &host,
        "takes",
        &json!({"text": 5, "count": "", "ratio": 1.5, "flag": true, "maybe": null, "list": [1, 2], "type": "x"}),
    );
    let want = json!({"text": "5", "count": 0, "ratio": 1.5, "flag": true, "maybe": null, "list": [1, 2], "type": "x"});
    assert_eq!((status, &envelope["data"]), (200, &want), "{envelope}");
    let (_, envelope) = exec(&host, "takes", &json!({"text": ""}));
    let want = json!({"text": "", "count": 7, "ratio": 0.0, "flag": false, "maybe": null, "list": [], "type": ""});
    assert_eq!(envelope["data"], want, "an absent parameter takes its default");
    for (overrides, words) in [
        (json!({"text": "", "count": "many"}), vec!["count", "many"]),
        (json!({"text": "", "maybe": "300"}), vec!["maybe", "300"]),
        (json!({"text": "", "flag": "perhaps"}), vec!["flag", "perhaps"]),
        (json!({"text": "", "list": "{}"}), vec!["list"]),
        (json!({"text": "", "colour": "red"}), vec!["colour", "text", "count", "type"]),
        (json!({"count": 1}), vec!["text"]),
    ] {
        let (status, envelope) = exec(&host, "takes", &overrides);
        let message = envelope["error"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{overrides}: {envelope}");
        assert!(words.iter().all(|word| message.contains(word)), "{overrides}: {message}");
    }
}

#[test]
fn an_undeclared_write_is_refused_before_it_locks() {
    let folder = tempfile::tempdir().unwrap();
    let host = faulty_host();
    let (status, envelope) = exec(&host, "grabs", &json!({"app_dir": folder.path()}));
    assert!(status >= 400, "{envelope}");
    let message = envelope["error"].as_str().unwrap();
    assert!(message.contains("cards") && message.contains("writes"), "{message}");
    assert!(!folder.path().join("state/.cards.lock").exists());
}

#[test]
fn the_log_names_operation_and_request_and_never_the_token_or_a_value() {
    let host = faulty_host();
    let secret = "a value that only the caller knows";
    exec(&host, "greets", &json!({"name": secret}));
    host.logged("a greeting was asked for");
    host.logged("outcome=\"ok\"");
    let log = host.stderr();
    assert!(log.contains("greets"), "{log}");
    assert!(!log.contains(&host.token), "the token is in the log");
    assert!(!log.contains(secret), "a parameter value is in the log");
}

#[test]
fn a_new_folder_is_an_operation_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let udfs = folder.path().join("udfs");
    copy(&faults().join("faults/greets"), &udfs.join("mine/greets"));
    let edit = |path: &Path| {
        let text =
            std::fs::read_to_string(path).unwrap().replace("udf-faults-greets", "udf-mine-greets");
        crate::support::fixture::write(path, text.as_bytes());
    };
    edit(&udfs.join("mine/greets/Cargo.toml"));
    let host = HostProcess::start(&HostOptions::new().udfs(Some(&udfs)));
    let (status, envelope) = host.exec("default", "mine", "greets", &json!({}));
    assert_eq!((status, &envelope["data"]), (200, &json!("hello you")), "{}", host.stderr());
}

fn copy(from: &Path, to: &Path) {
    for (relative, found) in crate::support::fixture::snapshot(from) {
        let crate::support::fixture::Found::File(bytes) = found else {
            panic!("{relative} is a link")
        };
        crate::support::fixture::write(&to.join(relative), &bytes);
    }
}
