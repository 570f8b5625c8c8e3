//! Every example in every `spec.md` is run against the host, and every Inputs table equals its descriptor.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{parse, short};
use pattern::Scope;

/// The specs of the shipped operations: (project, op, path).
fn specs() -> Vec<(String, String, PathBuf)> {
    let mut found = Vec::new();
    let folders = |path: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.is_dir());
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for project in folders(&built().udfs) {
        for op in folders(&project) {
            if op.join("spec.md").exists() {
                found.push((name(&project), name(&op), op.join("spec.md")));
            }
        }
    }
    assert!(found.len() >= 12, "only {} specs found", found.len());
    found
}

#[test]
fn every_example_answers_as_its_spec_says() {
    let mut failures = Vec::new();
    let mut calls = 0;
    for (project, op, path) in specs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let host = HostProcess::start(
            // No example of ours may find a tracker that the tester has set up.
            &HostOptions::new()
                .arg("--app-dir")
                .arg(&root)
                .cwd(&root)
                .env("GITHUB_TOKEN", "")
                .env("GH_TOKEN", "")
                .env("RUN_FEEDBACK_POSTER", "none"),
        );
        let mut scope = Scope::new(root);
        let examples = examples(&std::fs::read_to_string(&path).unwrap());
        assert!(!examples.is_empty(), "{project}/{op}/spec.md has no example");
        let own = examples.iter().any(|(call, _)| call["udf"] == op.as_str());
        assert!(own, "{project}/{op}/spec.md has no example of its own operation");
        for (number, (call, want)) in examples.iter().enumerate() {
            calls += 1;
            let addressed = call["project"].as_str().unwrap_or(&project);
            let overrides = scope.expand(call.get("overrides").unwrap_or(&json!({}))).unwrap();
            let (_, got) = host.exec("_core", addressed, call["udf"].as_str().unwrap(), &overrides);
            if let Err(why) = scope.compare(want, &got, "reply") {
                failures.push(format!(
                    "{project}/{op} example {}: {why}; got {}",
                    number + 1,
                    short(&got)
                ));
                break;
            }
            scope.results.insert(number + 1, got["data"].clone());
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {calls} example calls differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    println!("{calls} example calls answered as written");
}

/// The fenced JSON blocks under `## Examples`, as (call, reply) pairs.
fn examples(spec: &str) -> Vec<(Value, Value)> {
    let section = spec.split("\n## Examples").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks: Vec<Value> = section
        .split("```json\n")
        .skip(1)
        .map(|block| parse(block.split("\n```").next().expect("split gives at least one part")))
        .collect();
    assert!(
        blocks.len().is_multiple_of(2),
        "examples are pairs of call and reply, found {} blocks",
        blocks.len()
    );
    blocks.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}
