//! A workflow made by `new` answers on the host that runs, passes its test and is driven by the agent loop.

use std::process::Command;

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::fixture::write;
use crate::support::{checkout, parse};
use pattern::Scope;

#[test]
fn a_new_workflow_answers_at_once_and_passes_its_own_test() {
    let scene = Scene::new("workflows");
    let host = scene.host();
    let (done, said) = scene.command(&["new", "elsewhere/livedraft", "--workflow"]);
    assert!(!done && said.contains("workflows/livedraft"), "{said}");
    let (done, said) = scene.command(&["new", "workflows/livedraft", "--workflow", "--json"]);
    assert!(done, "{said}");
    let told = parse(said.lines().next().map_or("", |_| said.trim()));
    assert_eq!(told["address"], "default.workflows.livedraft");
    for file in ["Cargo.toml", "spec.md", "src/lib.rs", "agents/worker.toml", "agents/checker.toml"]
    {
        assert!(scene.at("livedraft").join(file).exists(), "{file}");
    }
    // As its spec says, once it is built.
    let spec = std::fs::read_to_string(scene.at("livedraft/spec.md")).unwrap();
    let blocks: Vec<Value> = spec
        .split("## Examples")
        .nth(1)
        .unwrap()
        .split("```json\n")
        .skip(1)
        .map(|block| parse(block.split("\n```").next().unwrap()))
        .collect();
    let [call, want] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    scene.listed(&host, "livedraft", |udf| udf["state"] == "ready");
    let (status, got) = host.exec("default", "workflows", "livedraft", &call["overrides"]);
    assert_eq!(status, 200, "{got}");
    let mut scope = Scope::new(scene.tree.path().to_owned());
    assert_eq!(scope.compare(want, &got, "reply"), Ok(()));
    let ended = json!({"agent": "worker", "status": "completed", "result": "posted"});
    let record = json!({"call": "record_outcome", "task": {"id": "t1"}, "arguments": ended});
    let (_, got) = host.exec("default", "workflows", "livedraft", &record);
    assert_eq!(got["data"], json!({"unparks": false, "phase": "checking"}), "{got}");
    // This host serves nothing else, so its worker lacks what it posts with: whoever asks for a task is told.
    let url = format!("{}/api/agent/message?t={}", host.origin, host.token);
    let body = json!({"text": "A draft", "workflow": "livedraft"}).to_string();
    let refused = host.request("POST", &url, &body).unwrap();
    let why = "the workflow `livedraft` cannot be run: agents/worker.toml needs the operation \
               `_core.task-management.add_comment`";
    assert!(refused.status == 400 && refused.text.contains(why), "{}", refused.text);
    drop(host);

    // The test it comes with, in the checkout's own target folder; the crate lies elsewhere.
    let home = tempfile::tempdir().unwrap();
    let library = std::fs::read_to_string(scene.at("livedraft/src/lib.rs")).unwrap();
    let sdk = checkout().join("sdk");
    let manifest = format!(
        "[workspace]\n[package]\nname = \"udf-workflows-livedraft\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"cdylib\"]\ndoctest = false\n\
         [dependencies]\nsdk = {{ path = {sdk:?} }}\n[dev-dependencies]\nsdk = {{ path = {sdk:?}, features = [\"testing\"] }}\n"
    );
    write(&home.path().join("Cargo.toml"), manifest.as_bytes());
    write(&home.path().join("src/lib.rs"), library.as_bytes());
    std::fs::copy(checkout().join("Cargo.lock"), home.path().join("Cargo.lock")).unwrap();
    let target = std::env::current_exe().unwrap().parent().unwrap().join("../../new-workflow");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline"]).current_dir(home.path()).env("CARGO_TARGET_DIR", target);
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
}
