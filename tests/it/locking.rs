//! Many writers, in this host, in a second one and in a foreign program that only knows the sentinels.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::{parse, skipped};

fn cards(root: &Path) -> Vec<Value> {
    match parse(&fs::read_to_string(root.join("state/cards.json")).unwrap()) {
        Value::Array(cards) => cards,
        other => panic!("not a list: {other}"),
    }
}

fn host_on(root: &Path) -> HostProcess {
    HostProcess::start(&HostOptions::new().arg("--app-dir").arg(root))
}

fn create(host: &HostProcess, summary: &str) -> Value {
    let overrides = json!({"payload": {}, "summary": summary, "continuation_policy": "none"});
    host.data("feedback-management", "create_card", &overrides)
}

#[test]
fn sixty_four_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_on(folder.path());
    let gate = Barrier::new(64);
    thread::scope(|scope| {
        for writer in 0..64 {
            let (host, gate) = (&host, &gate);
            scope.spawn(move || {
                gate.wait();
                (0..4).for_each(|n| drop(create(host, &format!("{writer}.{n}"))));
            });
        }
    });
    let cards = cards(folder.path());
    let summaries: HashSet<_> =
        cards.iter().map(|card| card["summary"].as_str().unwrap()).collect();
    let ids: HashSet<_> = cards.iter().map(|card| card["id"].as_str().unwrap()).collect();
    assert_eq!((cards.len(), summaries.len(), ids.len()), (256, 256, 256));
}

#[test]
fn of_many_equal_creates_one_card_remains() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_on(folder.path());
    let overrides = json!({"payload": {}, "task_id": "t", "project": "p", "idempotency_key": "k"});
    let ids: HashSet<String> = thread::scope(|scope| {
        let ask = || {
            host.data("feedback-management", "create_card", &overrides)["id"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let running: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), cards(folder.path()).len()), (1, 1));
}

#[test]
fn of_many_answers_exactly_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_on(folder.path());
    let id = host.data("feedback-management", "create_card", &json!({"payload": {}}))["id"].clone();
    let answer = |n: usize| {
        let overrides = json!({"id": id, "status": "answered", "result": n, "resolved_by": format!("human {n}")});
        host.data("feedback-management", "resolve_card", &overrides)
    };
    let outcomes: Vec<Value> = thread::scope(|scope| {
        let answer = &answer;
        let running: Vec<_> = (0..64).map(|n| scope.spawn(move || answer(n))).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) =
        outcomes.into_iter().partition(|data| data["status"] == "answered");
    assert_eq!(won.len(), 1);
    assert!(
        lost.iter().all(|data| *data == json!({"ok": false, "error": "already resolved"})),
        "{lost:?}"
    );
    assert_eq!(cards(folder.path())[0], won[0], "the stored card is the winner's");
}

#[test]
fn nobody_is_told_of_a_card_that_could_not_be_stored() {
    const CALLERS: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let host = host_on(folder.path());
    create(&host, "kept");
    let state = folder.path().join("state");
    let before = fs::read(state.join("cards.json")).unwrap();
    // What stands where new content is written first stops even a privileged user.
    fs::create_dir(state.join("cards.json.tmp")).unwrap();
    // All come while the sentinel is held, so that they are written together: one makes the card, the others find it.
    let sentinel = File::open(state.join(".cards.lock")).unwrap();
    sentinel.lock().unwrap();
    let overrides = json!({"payload": {}, "task_id": "t", "idempotency_key": "k"});
    let answers: Vec<(u16, Value)> = thread::scope(|scope| {
        let ask = || host.exec("_core", "feedback-management", "create_card", &overrides);
        let running: Vec<_> = (0..CALLERS).map(|_| scope.spawn(ask)).collect();
        let all = format!("udf_host_calls_in_flight {CALLERS}");
        wait_until(Duration::from_secs(60), "all callers", || {
            host.get("/metrics").text.lines().any(|line| line == all).then_some(())
        });
        sentinel.unlock().unwrap();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for (status, envelope) in answers {
        assert_eq!((status, &envelope["data"]), (422, &Value::Null), "{envelope}");
    }
    assert_eq!(fs::read(state.join("cards.json")).unwrap(), before);
    fs::remove_dir(state.join("cards.json.tmp")).unwrap();
    let (status, envelope) = host.exec("_core", "feedback-management", "create_card", &overrides);
    assert_eq!(status, 200, "{envelope}");
    assert_eq!(cards(folder.path()).len(), 2);
}

#[test]
fn two_hosts_and_a_foreign_program_share_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = [host_on(folder.path()), host_on(folder.path())];
    create(&hosts[0], "first");
    thread::scope(|scope| {
        for (at, host) in hosts.iter().enumerate() {
            for writer in 0..4 {
                scope.spawn(move || {
                    (0..10).for_each(|n| drop(create(host, &format!("host {at}.{writer}.{n}"))))
                });
            }
        }
        scope.spawn(|| {
            (0..20)
                .for_each(|n| append_as_a_foreign_program(folder.path(), &format!("foreign {n}")))
        });
    });
    let summaries: HashSet<String> = cards(folder.path())
        .iter()
        .map(|card| card["summary"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(summaries.len(), 1 + 80 + 20);
    // Each host sees what the others wrote, on its next call.
    for host in &hosts {
        let listed = host.data("feedback-management", "list_cards", &json!({}));
        assert_eq!(listed.as_array().unwrap().len(), 101);
    }
}

/// Read, append, write to `.tmp`, rename: under the sentinel, as the app-store contract §5 asks of any program.
fn append_as_a_foreign_program(root: &Path, summary: &str) {
    let state = root.join("state");
    let sentinel = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(state.join(".cards.lock"));
    let sentinel = sentinel.unwrap();
    sentinel.lock().unwrap();
    let mut all = cards(root);
    all.push(json!({"id": format!("card_{summary}"), "summary": summary, "createdAt": "2026-01-01T00:00:00.000Z"}));
    write(&state.join("cards.json.tmp"), serde_json::to_string(&all).unwrap().as_bytes());
    fs::rename(state.join("cards.json.tmp"), state.join("cards.json")).unwrap();
    sentinel.unlock().unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_gives_an_error_and_keeps_every_byte() {
    // A file stands where `state/` would be, which stops even a privileged user.
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("state"), b"in the way");
    let host = host_on(folder.path());
    let (status, envelope) = host.exec(
        "_core",
        "feedback-management",
        "create_card",
        &json!({"payload": {}, "project": "p"}),
    );
    assert_eq!(status, 422, "{envelope}");
    assert!(envelope["error"].as_str().unwrap().contains("state"), "{envelope}");
    assert_eq!(fs::read(folder.path().join("state")).unwrap(), b"in the way");
}

#[test]
fn a_read_only_folder_gives_an_error_to_the_caller() {
    if rustix::process::getuid().is_root() {
        eprintln!(
            "a privileged user may write anywhere; the file in the way shows the same promise"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let host = host_on(folder.path());
    create(&host, "kept");
    let before = fs::read(folder.path().join("state/cards.json")).unwrap();
    fs::set_permissions(folder.path().join("state"), fs::Permissions::from_mode(0o555)).unwrap();
    let (status, envelope) =
        host.exec("_core", "feedback-management", "create_card", &json!({"payload": {}}));
    fs::set_permissions(folder.path().join("state"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(status, 422, "{envelope}");
    assert_eq!(fs::read(folder.path().join("state/cards.json")).unwrap(), before);
}

#[test]
fn a_full_disk_gives_an_error_to_the_caller_and_keeps_the_old_bytes() {
    let Some(small) = SmallDisk::mount() else {
        skipped("a small disk can only be mounted by a privileged user");
        return;
    };
    let host = host_on(&small.path);
    let kept = create(&host, "kept");
    let before = fs::read(small.path.join("state/cards.json")).unwrap();
    let big = "x".repeat(1_500_000);
    let overrides = json!({"payload": {"big": big}, "continuation_policy": "none"});
    let (status, envelope) = host.exec("_core", "feedback-management", "create_card", &overrides);
    assert_eq!(status, 422, "{}", crate::support::short(&envelope));
    assert_eq!(fs::read(small.path.join("state/cards.json")).unwrap(), before);
    // The store goes on: reads answer and a small write fits again.
    assert_eq!(host.data("feedback-management", "list_cards", &json!({})), json!([kept]));
    create(&host, "fits");
    assert_eq!(cards(&small.path).len(), 2);
}

/// A file system of one megabyte, gone when dropped.
struct SmallDisk {
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&path);
        mount
            .output()
            .is_ok_and(|output| output.status.success())
            .then_some(SmallDisk { path, _folder: folder })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy, as the host may still hold a file open; a failure leaves an empty mount behind, nothing else.
        let _unmounted = std::process::Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
