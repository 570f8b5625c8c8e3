//! What a reload costs, and where it ends.

use std::path::Path;

use serde_json::{Value, json};

use super::artifacts::{host_over, sound};
use super::scene::{BUILD, put};
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::processes::{resident_mib, workers};

/// What the issue allows one reload to add.
const MOST_MIB: f64 = 5.0;
const RELOADS: usize = 12;

fn lay_out(root: &Path) {
    let folder = root.join("feedback-management/get_card");
    write(&folder.join("spec.md"), b"# get_card\n");
    write(&root.join("feedback-management/project.toml"), b"workspace = \"_core\"\n");
    put(&folder.join("lib.so"), &sound());
}

/// The same plugin as another build: bytes after the last section change its hash and nothing else.
fn build_number(at: usize) -> Vec<u8> {
    [&sound()[..], format!("build {at}").as_bytes()].concat()
}

#[track_caller]
fn listed(host: &HostProcess, test: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let found = wait_until(BUILD, "the catalog", || {
        let listed = host.get("/api/udfs").json();
        last = listed["data"]["udfs"][0].clone();
        test(&last).then(|| last.clone())
    });
    found.unwrap_or_else(|| panic!("listed as {last}\n{}", host.stderr()))
}

/// Saves another build, and calls it once it is the one that answers.
fn reload(host: &HostProcess, root: &Path, at: usize) {
    let before = listed(host, |udf| udf["state"] == "ready");
    put(&root.join("feedback-management/get_card/lib.so"), &build_number(at));
    listed(host, |udf| udf["hash"] != before["hash"] && udf["update"] == Value::Null);
    host.data("feedback-management", "get_card", &json!({"id": "none"}));
}

#[test]
fn a_reload_adds_little_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    lay_out(&root);
    let host = host_over(&root, "info");
    reload(&host, &root, 0);
    let (before, bytes) =
        (resident_mib(host.pid()).unwrap(), listed(&host, |_| true)["version_bytes"].clone());
    let calls = || -> u64 {
        let page = host.get("/metrics").text;
        let line = page.lines().find(|line| line.starts_with("udf_host_op_calls_total{"));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).expect("it is counted")
    };
    let called = calls();
    for at in 1..=RELOADS {
        reload(&host, &root, at);
        assert_eq!(calls(), called + at as u64, "a counter goes on over a reload");
    }
    let each = (resident_mib(host.pid()).unwrap() - before) / RELOADS as f64;
    println!("one reload adds {each:.2} MiB");
    assert!(each <= MOST_MIB, "one reload adds {each:.2} MiB");
    let now = listed(&host, |_| true);
    assert_eq!(now["versions"], RELOADS + 1, "{now}");
    let size = sound().len() as u64;
    let grown = now["version_bytes"].as_u64().unwrap() - bytes.as_u64().unwrap();
    assert!(grown >= RELOADS as u64 * size, "{now}");
    // A build that comes back is the one that is open already.
    reload(&host, &root, 1);
    assert_eq!(listed(&host, |_| true)["versions"], RELOADS + 1);
}

/// The one worker of a host, once those before it have ended.
#[track_caller]
fn only_worker(host: &HostProcess) -> u32 {
    let only = wait_until(BUILD, "one worker", || match workers(host.pid())[..] {
        [only] => Some(only),
        _ => None,
    });
    only.unwrap_or_else(|| panic!("{:?}\n{}", workers(host.pid()), host.stderr()))
}

#[test]
fn at_the_limit_calls_move_to_workers_and_their_memory_returns() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    lay_out(&root);
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build");
    let options = options.arg("--plugins").arg(&root).arg("--max-versions").arg("2");
    let mut host = HostProcess::start(&options);
    reload(&host, &root, 1);
    reload(&host, &root, 2);
    let full = listed(&host, |_| true);
    assert_eq!((&full["versions"], &full["lane"]), (&json!(2), &json!("inline")), "{full}");
    assert_eq!(full.get("lane_note"), None, "{full}");

    let mut before = None;
    for at in 3..8 {
        reload(&host, &root, at);
        let moved = listed(&host, |_| true);
        assert_eq!(moved["lane"], "worker", "{moved}");
        assert!(moved["lane_note"].as_str().unwrap().contains("--max-versions"), "{moved}");
        // The worker with the version before this one ends, so there are never more.
        let settled = listed(&host, |udf| udf["versions"] == 3);
        assert_eq!(settled["version_bytes"].as_u64().unwrap() / (sound().len() as u64), 3);
        let now = only_worker(&host);
        assert_ne!(Some(now), before);
        before = Some(now);
    }
    host.logged("newer ones run in a worker");
    // A build that the host has open already is called there.
    reload(&host, &root, 1);
    let back = listed(&host, |_| true);
    assert_eq!((&back["lane"], back.get("lane_note")), (&json!("inline"), None), "{back}");
    assert_eq!(host.ended(), None);
}

#[test]
fn in_workers_a_reload_adds_nothing_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    lay_out(&root);
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build").arg("--plugins");
    let host = HostProcess::start(&options.arg(&root).arg("--lane").arg("worker"));
    reload(&host, &root, 0);
    let first = only_worker(&host);
    let before = resident_mib(first).unwrap();
    for at in 1..=RELOADS {
        reload(&host, &root, at);
    }
    let settled = listed(&host, |udf| udf["versions"] == 1);
    assert_eq!(settled["lane"], "worker", "{settled}");
    let last = only_worker(&host);
    let after = resident_mib(last).unwrap();
    println!("after {RELOADS} reloads the worker has {after:.2} MiB, before {before:.2}");
    assert_ne!(last, first);
    assert!(after - before <= MOST_MIB, "{after:.2} MiB after {before:.2}");
}
