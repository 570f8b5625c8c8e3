//! In which order operations are built, and what those are told that wait for one, or for none.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use serde_json::json;

use super::scene::{Scene, cargo, says};
use crate::support::fixture::write;
use crate::support::host_process::HostProcess;

/// Ready operations of the scene, and how many there are.
fn ready(host: &HostProcess) -> (usize, usize) {
    let listed = host.get("/api/udfs").json();
    let udfs = listed["data"]["udfs"].as_array().unwrap().clone();
    (udfs.iter().filter(|udf| udf["state"] == "ready").count(), udfs.len())
}

/// Lays out an operation whose build script takes this long.
fn lay_out_slow(scene: &Scene, op: &str, seconds: u64) {
    scene.lay_out(op, "late");
    let naps =
        format!("fn main() {{ std::thread::sleep(std::time::Duration::from_secs({seconds})); }}\n");
    write(&scene.at(op).join("build.rs"), naps.as_bytes());
}

/// Operations whose builds never end: as many as cargo builds at one time.
fn lay_out_hanging(scene: &Scene) -> Vec<String> {
    let slots = thread::available_parallelism().unwrap().get();
    let ops: Vec<String> = (0..slots).map(|n| format!("hangs{n}")).collect();
    ops.iter().for_each(|op| lay_out_slow(scene, op, 3600));
    ops
}

#[test]
fn what_is_called_is_built_before_the_rest() {
    let scene = Scene::new("livefirst");
    for n in 0..4 {
        lay_out_slow(&scene, &format!("slow{n}"), 4);
    }
    scene.lay_out("asked", "early");
    let host = scene.host();
    scene.answers(&host, "asked", "early");
    let (some, all) = ready(&host);
    assert!(some < all, "{some} of {all} are ready");
    // What was left for it is built then.
    for n in 0..4 {
        scene.answers(&host, &format!("slow{n}"), "late");
    }
    assert_eq!(ready(&host), (5, 5));
}

#[test]
fn what_is_called_and_never_gets_done_does_not_hold_up_what_is_called_too() {
    let scene = Scene::new("livestuck");
    let hanging = lay_out_hanging(&scene);
    scene.lay_out("quick", "early");
    scene.lay_out("other", "early");
    let host = scene.host();
    // Callers that wait as long as it takes.
    let (origin, token) = (host.origin.trim_start_matches("http://"), &host.token);
    let calls = hanging.iter().map(|op| {
        let body = json!({"udf": op}).to_string();
        let mut call = TcpStream::connect(origin).unwrap();
        write!(
            call,
            "POST /api/exec/udf?t={token}&workspace=default&project=livestuck HTTP/1.1\r\nHost: {origin}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        call
    });
    let calls: Vec<TcpStream> = calls.collect();
    host.logged("building operations=");
    scene.answers(&host, "quick", "early");
    scene.answers(&host, "other", "early");
    drop(calls);
}

#[test]
fn a_command_that_calls_an_operation_waits_for_no_other() {
    let scene = Scene::new("livealone");
    lay_out_hanging(&scene);
    scene.lay_out("asked", "early");
    scene.lay_out("told", "early");
    let (done, said) = scene.command(&["exec", "livealone.asked"]);
    assert!(done && said.contains("early"), "{said}");
    let (done, said) = scene.command(&["describe", "livealone.told"]);
    assert!(done && said.contains("default.livealone.told  ready"), "{said}");
}

#[test]
fn a_crate_that_does_not_compile_is_told_while_others_are_built() {
    let scene = Scene::new("livetold");
    lay_out_slow(&scene, "hangs", 3600);
    scene.lay_out("broken", "never");
    write(&scene.at("broken/src/lib.rs"), says("broken", "\", undefined_name, \"").as_bytes());
    // What is saved need not wait long for a build that gets nowhere.
    let host = HostProcess::start(&scene.options().arg("--build-timeout").arg("40"));
    let refused = scene.listed(&host, "broken", |udf| udf["state"] == "refused");
    assert!(refused.to_string().contains("it does not compile"), "{refused}");
    scene.listed(&host, "hangs", |udf| udf["state"] == "building");
    scene.save("broken", "mended");
    scene.answers(&host, "broken", "mended");
}

#[test]
fn whoever_fails_is_told_its_own_fault() {
    let scene = Scene::new("liveown");
    write(
        &scene.at("common/Cargo.toml"),
        b"[package]\nname = \"liveown-common\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    write(&scene.at("common/src/lib.rs"), b"pub fn f() { missing_in_common }\n");
    for op in ["broken", "needs", "script", "exits"] {
        scene.lay_out(op, "never");
    }
    write(&scene.at("broken/src/lib.rs"), says("broken", "\", missing_in_broken, \"").as_bytes());
    let needs = cargo("udf-liveown-needs", "liveown-common = { path = \"../common\" }\n");
    write(&scene.at("needs/Cargo.toml"), needs.as_bytes());
    write(&scene.at("script/build.rs"), b"fn main() { missing_in_script }\n");
    write(&scene.at("exits/build.rs"), b"fn main() { std::process::exit(27); }\n");
    let host = scene.host();
    for (op, want) in [
        ("broken", "it does not compile: cannot find value `missing_in_broken`"),
        ("needs", "a crate that it needs does not compile: cannot find value `missing_in_common`"),
        ("script", "it does not compile: cannot find value `missing_in_script`"),
        ("exits", "cargo built nothing of it: failed to run custom build command for"),
    ] {
        let refused = scene.listed(&host, op, |udf| udf["state"] == "refused");
        let reason = refused["reason"].as_str().unwrap();
        assert!(reason.starts_with(want), "{op}: {refused}");
        assert_eq!(reason.contains("27"), op == "exits", "{op}: {refused}");
    }
}
