//! The host is killed with SIGKILL while it writes: what it acknowledged is there, once; what it did not is whole or absent.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::fixture::{Found, snapshot};
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::parse;

/// Kills in one run; each strikes at another number of acknowledged writes.
const KILLS: usize = 12;
/// Writers at once.
const WRITERS: usize = 8;

#[test]
fn acknowledged_cards_survive_sigkill_exactly_once() {
    let folder = tempfile::tempdir().unwrap();
    let acknowledged = Mutex::new(HashMap::new());
    for round in 0..KILLS {
        let host =
            Mutex::new(HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder.path())));
        // The first call answers once the plugin is loaded, so that the kill strikes writes, not the start.
        host.lock().unwrap().data("feedback-management", "list_cards", &json!({}));
        let so_far = acknowledged.lock().unwrap().len();
        let target = host.lock().unwrap();
        let (origin, token) = (target.origin.clone(), target.token.clone());
        drop(target);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (origin, token, next, acknowledged) = (&origin, &token, &next, &acknowledged);
                scope.spawn(move || {
                    write_until_gone(origin, token, round, writer, next, acknowledged)
                });
            }
            let enough = 10 + 7 * round;
            wait_until(std::time::Duration::from_secs(60), "acknowledged writes", || {
                (acknowledged.lock().unwrap().len() >= so_far + enough).then_some(())
            })
            .expect("writers make progress");
            host.lock().unwrap().kill();
        });
        check_store(folder.path(), &acknowledged.lock().unwrap());
    }
}

/// Creates cards until the host stops answering; keeps what was acknowledged.
fn write_until_gone(
    origin: &str,
    token: &str,
    round: usize,
    writer: usize,
    next: &AtomicUsize,
    acknowledged: &Mutex<HashMap<String, String>>,
) {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url =
        format!("{origin}/api/exec/udf?t={token}&workspace=_core&project=feedback-management");
    loop {
        let summary = format!("{round}.{writer}.{}", next.fetch_add(1, Ordering::Relaxed));
        let overrides =
            json!({"payload": {"n": 1}, "summary": summary, "continuation_policy": "none"});
        let body = json!({"udf": "create_card", "overrides": overrides}).to_string();
        let Ok(mut response) =
            agent.post(&url).header("Content-Type", "application/json").send(&body)
        else {
            return;
        };
        let Ok(text) = response.body_mut().read_to_string() else { return };
        let envelope = parse(&text);
        assert_eq!(envelope["error"], Value::Null, "a write failed before the kill");
        let id = envelope["data"]["id"].as_str().unwrap().to_owned();
        let twice = acknowledged.lock().unwrap().insert(id, summary);
        assert_eq!(twice, None, "one id was given out twice");
    }
}

/// The file parses and holds every acknowledged card once, beside some that were cut off before their answer.
fn check_store(root: &Path, acknowledged: &HashMap<String, String>) {
    let files = snapshot(root);
    let Some(Found::File(bytes)) = files.get("state/cards.json") else {
        panic!("no cards file: {:?}", files.keys())
    };
    let cards = parse(std::str::from_utf8(bytes).expect("the file is UTF-8"));
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for card in cards.as_array().unwrap() {
        *seen.entry(card["summary"].as_str().unwrap()).or_default() += 1;
    }
    let doubled: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).collect();
    assert!(doubled.is_empty(), "written twice: {doubled:?}");
    let lost: Vec<_> =
        acknowledged.values().filter(|summary| !seen.contains_key(summary.as_str())).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged cards are gone: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    let unknown =
        files.keys().filter(|name| !name.ends_with(".lock") && *name != "state/cards.json");
    let left: Vec<_> = unknown.filter(|name| *name != "state/cards.json.tmp").collect();
    assert!(left.is_empty(), "unexpected files: {left:?}");
}

#[test]
fn sigterm_finishes_writes_and_exits_zero() {
    let folder = tempfile::tempdir().unwrap();
    let host = HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder.path()));
    host.data("feedback-management", "list_cards", &json!({}));
    // An idle keep-alive connection must not hold the host up.
    let idle = std::net::TcpStream::connect(("127.0.0.1", host.port())).unwrap();
    let created: Vec<Value> = thread::scope(|scope| {
        let create = |n: usize| {
            let overrides = json!({"payload": n, "continuation_policy": "none"});
            host.data("feedback-management", "create_card", &overrides)
        };
        let running: Vec<_> = (0..16).map(|n| scope.spawn(move || create(n))).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let status = host.terminate();
    drop(idle);
    assert_eq!(status.code(), Some(0), "SIGTERM ends the host with 0, got {status}");
    let Some(Found::File(bytes)) = snapshot(folder.path()).remove("state/cards.json") else {
        panic!("no cards file")
    };
    let cards = parse(std::str::from_utf8(&bytes).unwrap());
    let stored: Vec<&Value> = cards.as_array().unwrap().iter().map(|card| &card["id"]).collect();
    assert_eq!(stored.len(), created.len());
    assert!(
        created.iter().all(|card| stored.contains(&&card["id"])),
        "an acknowledged card is missing"
    );
}
