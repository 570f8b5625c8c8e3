//! What a reload costs, and where it ends.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::artifacts::{host_over, sound};
use super::scene::{BUILD, put};
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};

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

fn resident_mib(host: &HostProcess) -> f64 {
    let text = fs::read_to_string(format!("/proc/{}/statm", host.pid())).unwrap();
    let pages: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / (1 << 20) as f64
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
    let (before, bytes) = (resident_mib(&host), listed(&host, |_| true)["version_bytes"].clone());
    for at in 1..=RELOADS {
        reload(&host, &root, at);
    }
    let each = (resident_mib(&host) - before) / RELOADS as f64;
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

#[test]
fn at_the_limit_the_host_opens_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    lay_out(&root);
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build");
    let options = options.arg("--plugins").arg(&root).arg("--max-versions").arg("2");
    let mut host = HostProcess::start(&options);
    reload(&host, &root, 1);
    reload(&host, &root, 2);
    put(&root.join("feedback-management/get_card/lib.so"), &build_number(3));
    let refused = listed(&host, |udf| udf["update"]["state"] == "failed");
    assert!(refused["update"]["remedy"].as_str().unwrap().contains("--max-versions"), "{refused}");
    assert_eq!(refused["versions"], 2, "{refused}");
    host.data("feedback-management", "get_card", &json!({"id": "none"}));
    assert_eq!(host.ended(), None);
}
