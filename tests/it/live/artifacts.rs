//! Prebuilt files that come, change and go while the host runs, the dangerous ones among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::scene::{BUILD, put};
use crate::support::build::built;
use crate::support::checkout;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::processes::workers;

fn place(root: &Path, project: &str, op: &str) -> PathBuf {
    let folder = root.join(project).join(op);
    write(&folder.join("spec.md"), format!("# {op}\n").as_bytes());
    folder.join("lib.so")
}

pub(super) fn host_over(root: &Path, log: &str) -> HostProcess {
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build");
    HostProcess::start(&options.arg("--plugins").arg(root).arg("--log").arg(log))
}

/// A built plugin, as cargo left it.
pub(super) fn sound() -> Vec<u8> {
    let target = built().host.parent().unwrap();
    fs::read(target.join("libudf_feedback_management_get_card.so")).unwrap()
}

#[track_caller]
fn listed(host: &HostProcess, op: &str, test: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let found = wait_until(BUILD, op, || {
        let listed = host.get("/api/udfs").json();
        let udfs = listed["data"]["udfs"].as_array().unwrap();
        last = udfs.iter().find(|udf| udf["op"] == op).cloned().unwrap_or_default();
        test(&last).then(|| last.clone())
    });
    found.unwrap_or_else(|| panic!("{op} is listed as {last}\n{}", host.stderr()))
}

fn answers(host: &HostProcess) -> bool {
    let (status, envelope) =
        host.exec("default", "feedback-management", "get_card", &json!({"id": "none"}));
    status == 200 && envelope["data"] == json!({"ok": false, "error": "not found"})
}

#[test]
fn a_file_is_not_taken_before_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    fs::create_dir_all(&root).unwrap();
    let mut host = host_over(&root, "debug");
    let sound = sound();
    let file = place(&root, "feedback-management", "get_card");
    // As a copy that is cut off and goes on later.
    write(&file, &sound[..sound.len() / 2]);
    listed(&host, "get_card", |udf| udf["reason"].to_string().contains("cut short"));
    write(&file, &sound);
    listed(&host, "get_card", |udf| udf["state"] == "ready");
    assert!(answers(&host), "{}", host.stderr());

    // A newer one that is cut off never replaces it.
    let newer = [&sound[..], b"newer"].concat();
    write(&file, &newer[..newer.len() / 3]);
    let cut = listed(&host, "get_card", |udf| udf["update"]["state"] == "failed");
    assert_eq!(cut["state"], "ready", "{cut}");
    assert!(answers(&host), "{}", host.stderr());
    write(&file, &newer);
    let whole = listed(&host, "get_card", |udf| udf["update"] == Value::Null);
    assert_ne!(whole["hash"], cut["hash"]);
    assert!(answers(&host), "{}", host.stderr());

    fs::remove_dir_all(root.join("feedback-management")).unwrap();
    let gone = wait_until(BUILD, "404", || {
        let (status, _) = host.exec("default", "feedback-management", "get_card", &json!({}));
        (status == 404).then_some(())
    });
    assert!(gone.is_some(), "{}", host.stderr());
    assert_eq!(host.ended(), None);
}

/// A library whose initialiser does this, in C.
fn initialiser(folder: &Path, name: &str, body: &str) -> Vec<u8> {
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    let text = format!(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) static void begin(void) {{ {body} }}\n"
    );
    write(&source, text.as_bytes());
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(made.expect("cc runs").success());
    fs::read(library).unwrap()
}

#[test]
fn initialisers_that_abort_or_hang_cost_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    write(&place(&root, "feedback-management", "get_card"), &sound());
    let cache = folder.path().join("cache");
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build");
    let options = options.arg("--plugins").arg(&root).env("UDF_HOST_CACHE", &cache);
    let mut host = HostProcess::start(&options);
    listed(&host, "get_card", |udf| udf["state"] == "ready");
    for (op, body, found) in [
        ("aborts", "fputs(\"famous last words\\n\", stderr); abort();", "SIGABRT"),
        ("exits", "exit(0);", "exit code 0"),
        ("writes_null", "*(volatile int *)0 = 1;", "SIGSEGV"),
        ("prints", "puts(\"{\\\"plugin\\\":1}\"); fflush(stdout); abort();", "SIGABRT"),
        ("forks", "if (fork() == 0) for (;;) pause(); abort();", "SIGABRT"),
        ("parts", "if (fork() == 0) { setpgid(0, 0); for (;;) pause(); } abort();", "SIGABRT"),
        ("hangs", "for (;;) pause();", "no answer within 10 s"),
        (
            "closes",
            "for (int i = 0; i < 99; i++) close(i); for (;;) pause();",
            "no answer within 10 s",
        ),
    ] {
        put(&place(&root, "bad", op), &initialiser(folder.path(), op, body));
        let refused =
            listed(&host, op, |udf| udf["state"] == "refused" && udf["found"].is_string());
        assert!(refused["found"].as_str().unwrap().contains(found), "{op}: {refused}");
        for field in ["reason", "expected", "remedy"] {
            assert!(!refused[field].as_str().unwrap().is_empty(), "{op} has no {field}: {refused}");
        }
        assert!(refused["files"][0].as_str().unwrap().ends_with("lib.so"), "{op}: {refused}");
        let (status, envelope) = host.exec("default", "bad", op, &json!({}));
        assert!(status >= 400 && envelope["data"].is_null(), "{op}: {envelope}");
        assert!(answers(&host), "after {op}\n{}", host.stderr());
    }
    // Nor is anything left of what they started.
    let has_open = |pid: &String| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.contains(cache.to_str().unwrap())
            && !workers(host.pid()).contains(&pid.parse().unwrap())
    };
    let left = || {
        let names = fs::read_dir("/proc").unwrap().flatten();
        let pids = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let pids = pids.filter(|name| name.parse::<u32>().is_ok());
        pids.filter(has_open).collect::<Vec<_>>()
    };
    wait_until(BUILD, "their end", || left().is_empty().then_some(()))
        .unwrap_or_else(|| panic!("still there: {:?}", left()));
    let aborts = listed(&host, "aborts", |_| true);
    assert!(aborts["detail"].as_str().unwrap().contains("famous last words"), "{aborts}");
    assert_eq!(host.ended(), None);
    assert_eq!(host.stdout_rest(), "");
}

/// The pinned recipe of the first interface, as it is and in three more ways.
struct Pinned {
    old: Vec<u8>,
    aborts: Vec<u8>,
    later: Vec<u8>,
    reshaped: Vec<u8>,
    garbled: Vec<u8>,
    mute: Vec<u8>,
}

static PINNED: LazyLock<Pinned> = LazyLock::new(|| {
    let recipe = checkout().join("sdk/tests/fixtures/first_interface");
    // The other boundary lies outside the workspace, which can have one package of a name only.
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pinned");
    let root = place.join("workspace");
    let read = |path: &str| fs::read_to_string(recipe.join(path)).unwrap();
    let lay = |path: &str, text: &str| {
        // What is right already is left alone, so that cargo does not build it again.
        if fs::read_to_string(root.join(path)).ok().as_deref() != Some(text) {
            write(&root.join(path), text.as_bytes());
        }
    };
    lay(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"garbled\", \"mute\", \"old\", \"aborts\", \"later\", \"reshaped\"]\n[profile.dev]\ndebug = false\n",
    );
    lay("Cargo.lock", &fs::read_to_string(checkout().join("Cargo.lock")).unwrap());
    lay("sdk/Cargo.toml", &read("sdk/Cargo.toml"));
    lay("sdk/src/lib.rs", &read("sdk/src/lib.rs"));
    let abi = read("sdk/src/abi.rs");
    lay("sdk/src/abi.rs", &abi);
    // Another boundary: a function of the vtable that returns something else. (A field more at the end would be
    // accepted.) Cargo wants another version for another package.
    lay("../reshaped-sdk/Cargo.toml", &read("sdk/Cargo.toml").replace("\"0.1.0\"", "\"0.1.1\""));
    lay("../reshaped-sdk/src/lib.rs", &read("sdk/src/lib.rs"));
    let last = "pub cancelled: extern \"C\" fn(HostHandle) -> bool,\n";
    assert_eq!(abi.matches(last).count(), 1);
    lay("../reshaped-sdk/src/abi.rs", &abi.replace(last, &last.replace("bool", "u64")));
    let source = read("plugin/src/lib.rs");
    let manifest = read("plugin/Cargo.toml");
    for (name, sdk, change) in [
        ("old", "../sdk", ("interface: 1", "interface: 1")),
        ("aborts", "../sdk", ("\"panic\":\"unwind\"", "\"panic\":\"abort\"")),
        ("garbled", "../sdk", ("{\"interface\":1,", "{\"interface\":one,")),
        ("mute", "../sdk", ("text.as_bytes().to_vec().into()", "panic!(\"{text} is a secret\")")),
        ("later", "../sdk", ("Plugin { interface: 1,", "Plugin { interface: 2,")),
        (
            "reshaped",
            "../../reshaped-sdk",
            ("api.cancelled()(handle)", "api.cancelled()(handle) != 0"),
        ),
    ] {
        let manifest =
            manifest.replace("\"plugin\"", &format!("\"{name}\"")).replace("../sdk", sdk);
        lay(&format!("{name}/Cargo.toml"), &manifest);
        assert!(source.contains(change.0), "the recipe has changed: no {}", change.0);
        let source = source
            .replace(change.0, change.1)
            .replace("\"op\":\"old\"", &format!("\"op\":\"{name}\""))
            // Only a build that aborts on it may do that at the boundary.
            .replace(
                "if id == b\"unknown\"",
                "if id == b\"panic\" { panic!(\"by order\") }\n    if id == b\"unknown\"",
            );
        lay(&format!("{name}/src/lib.rs"), &source);
    }
    let build = |name: &str, flags: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["rustc", "--offline", "--quiet", "--lib", "--package", name, "--target-dir"]);
        cargo.arg(root.join("target")).arg("--").args(flags).current_dir(&root);
        let output = cargo.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} does not build:\n{stderr}");
        fs::read(root.join("target/debug").join(format!("lib{name}.so"))).unwrap()
    };
    Pinned {
        old: build("old", &[]),
        aborts: build("aborts", &["-C", "panic=abort"]),
        later: build("later", &[]),
        reshaped: build("reshaped", &[]),
        garbled: build("garbled", &[]),
        mute: build("mute", &[]),
    }
});

#[test]
fn artifacts_of_another_boundary_are_refused_by_the_running_host() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    write(&place(&root, "feedback-management", "get_card"), &sound());
    let mut host = host_over(&root, "info");
    listed(&host, "get_card", |udf| udf["state"] == "ready");
    for (op, bytes, expected, found) in [
        ("later", &PINNED.later, "interface 1", "interface 2"),
        ("reshaped", &PINNED.reshaped, "bool", "u64"),
    ] {
        put(&place(&root, "foreign", op), bytes);
        let refused =
            listed(&host, op, |udf| udf["state"] == "refused" && udf["expected"].is_string());
        let text = |field: &str| refused[field].as_str().unwrap_or_default().to_owned();
        assert!(text("expected").contains(expected), "{refused}");
        assert!(text("found").contains(found), "{refused}");
        assert_ne!(text("expected"), text("found"), "{refused}");
        assert!(text("remedy").contains("sdk of this host"), "{refused}");
        assert!(refused["files"][0].as_str().unwrap().ends_with("lib.so"), "{refused}");
        assert!(answers(&host), "{}", host.stderr());
    }
    for (op, bytes, words) in [
        ("garbled", &PINNED.garbled, "a descriptor as #[udf] writes it"),
        ("mute", &PINNED.mute, "SIGABRT"),
    ] {
        put(&place(&root, "foreign", op), bytes);
        let refused = listed(&host, op, |udf| udf["state"] == "refused");
        assert!(refused.to_string().contains(words), "{op}: {refused}");
        for field in ["expected", "found", "remedy"] {
            assert!(!refused[field].as_str().unwrap().is_empty(), "{refused}");
        }
        assert!(answers(&host), "{}", host.stderr());
    }
    assert_eq!(host.ended(), None);
}

/// A state folder with one card.
fn one_card(folder: &Path) -> PathBuf {
    write(&folder.join("store/state/cards.json"), b"[\n  {\n    \"id\": \"c1\"\n  }\n]\n");
    folder.join("store")
}

#[test]
fn a_plugin_of_the_first_interface_answers_in_both_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let (root, store) = (folder.path().join("plugins"), one_card(folder.path()));
    for lane in ["inline", "worker"] {
        write(&place(&root, lane, "old"), &PINNED.old);
        write(&root.join(lane).join("project.toml"), format!("lane = {lane:?}\n").as_bytes());
    }
    let host = host_over(&root, "info");
    for lane in ["inline", "worker"] {
        let call =
            |id: &str| host.exec("default", lane, "old", &json!({"id": id, "app_dir": store}));
        let (status, envelope) = call("c1");
        assert_eq!((status, &envelope["data"]), (200, &json!({"id": "c1"})), "{lane}: {envelope}");
        let (status, envelope) = call("c2");
        assert!(status >= 400 && envelope.to_string().contains("no such card"), "{envelope}");
        // What no host of its time knew is an error of the call, as it was then.
        let (status, envelope) = call("unknown");
        assert!(status >= 400 && envelope["data"].is_null(), "{lane}: {envelope}");
        let listed = listed(&host, "old", |udf| udf["state"] == "ready");
        assert_eq!(listed["descriptor"]["interface"], 1, "{listed}");
    }
}

#[test]
fn an_artifact_that_aborts_on_panics_runs_in_workers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (root, store) = (folder.path().join("plugins"), one_card(folder.path()));
    write(&place(&root, "feedback-management", "get_card"), &sound());
    write(&root.join("shaky/project.toml"), b"lane = \"inline\"\n");
    write(&place(&root, "shaky", "aborts"), &PINNED.aborts);
    let mut host = host_over(&root, "info");
    let call = |host: &HostProcess, id: &str| {
        host.exec("default", "shaky", "aborts", &json!({"id": id, "app_dir": store}))
    };
    let refused = listed(&host, "aborts", |udf| udf["state"] == "refused");
    assert_eq!(refused["expected"], "panic = \"unwind\"", "{refused}");
    assert_eq!(refused["found"], "panic = \"abort\"", "{refused}");
    assert!(refused["remedy"].as_str().unwrap().contains("worker"), "{refused}");
    let (status, envelope) = call(&host, "c1");
    assert!(status >= 400 && envelope["data"].is_null(), "{envelope}");
    assert!(answers(&host), "{}", host.stderr());

    // As the remedy says. What it is built with is no fault there.
    write(&root.join("shaky/project.toml"), b"lane = \"worker\"\n");
    listed(&host, "aborts", |udf| udf["state"] == "ready" && udf["lane"] == "worker");
    let (status, envelope) = call(&host, "c1");
    assert_eq!((status, &envelope["data"]), (200, &json!({"id": "c1"})), "{envelope}");
    let (status, envelope) = call(&host, "panic");
    let said = envelope["error"].as_str().unwrap();
    assert!(
        status == 500 && said.contains("SIGABRT") && said.contains("shaky.aborts"),
        "{envelope}"
    );
    let (status, envelope) = call(&host, "c1");
    assert_eq!((status, &envelope["data"]), (200, &json!({"id": "c1"})), "{envelope}");
    // And back: the version that answers may not do so any more.
    write(&root.join("shaky/project.toml"), b"lane = \"inline\"\n");
    listed(&host, "aborts", |udf| udf["state"] == "refused");
    let (status, envelope) = call(&host, "c1");
    assert!(status >= 400 && envelope["data"].is_null(), "{envelope}");
    assert!(answers(&host), "{}", host.stderr());
    assert_eq!(host.ended(), None);
}
