//! The folder of copies, shared between hosts and cut off at any moment: no copy that is not whole is ever opened.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::support::build::built;
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::parse;

/// The copies whose content is not what their name says.
fn torn(cache: &Path) -> Vec<String> {
    let mut torn = Vec::new();
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "so") && !name.starts_with('.') {
            let output = Command::new("sha256sum").arg(&path).output().unwrap();
            if !String::from_utf8_lossy(&output.stdout).starts_with(&name) {
                torn.push(name);
            }
        }
    }
    torn
}

fn options(plugins: &Path, cache: &Path) -> HostOptions {
    let options = HostOptions::new().udfs(None).arg("--only").arg("--no-build");
    options.arg("--plugins").arg(plugins).env("UDF_HOST_CACHE", cache)
}

/// Every shipped plugin as a prebuilt folder.
fn prebuilt(root: &Path) -> usize {
    let target = built().host.parent().unwrap();
    let mut count = 0;
    for project in ["feedback-management", "task-management", "run-management"] {
        let from = built().udfs.join(project);
        for op in fs::read_dir(&from).unwrap().flatten() {
            let name =
                format!("udf_{project}_{}", op.file_name().to_string_lossy()).replace('-', "_");
            let library = target.join(format!("lib{name}.so"));
            if library.is_file() && op.path().join("spec.md").is_file() {
                let to = root.join(project).join(op.file_name());
                fs::create_dir_all(&to).unwrap();
                fs::copy(op.path().join("spec.md"), to.join("spec.md")).unwrap();
                fs::copy(library, to.join("lib.so")).unwrap();
                count += 1;
            }
        }
        fs::copy(from.join("project.toml"), root.join(project).join("project.toml")).unwrap();
    }
    assert!(count >= 12, "only {count} plugins are built");
    count
}

#[test]
fn a_host_that_is_killed_while_it_copies_leaves_nothing_that_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (plugins, cache) = (folder.path().join("plugins"), folder.path().join("cache"));
    let count = prebuilt(&plugins);
    for round in 0..12 {
        let mut host = HostProcess::start(&options(&plugins, &cache));
        // Not a wait for something: the moments are meant to be spread over the copying.
        std::thread::sleep(Duration::from_millis(round * 15));
        host.kill();
        assert_eq!(torn(&cache), [] as [String; 0], "after round {round}");
    }
    // What an unlucky disk leaves: a copy of the right name that is cut short.
    let host = HostProcess::start(&options(&plugins, &cache));
    let ready =
        |host: &HostProcess| host.data("feedback-management", "get_card", &json!({"id": "x"}));
    assert_eq!(ready(&host)["error"], "not found");
    host.wait_ready(count);
    drop(host);
    for entry in fs::read_dir(&cache).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "so") {
            let bytes = fs::read(entry.path()).unwrap();
            fs::remove_file(entry.path()).unwrap();
            crate::support::fixture::write(&entry.path(), &bytes[..bytes.len() / 2]);
        }
    }
    let host = HostProcess::start(&options(&plugins, &cache));
    assert_eq!(ready(&host)["error"], "not found");
    host.wait_ready(count);
    assert_eq!(torn(&cache), [] as [String; 0]);
}

#[test]
fn hosts_that_share_a_cache_all_get_ready() {
    let folder = tempfile::tempdir().unwrap();
    let (plugins, cache) = (folder.path().join("plugins"), folder.path().join("cache"));
    let count = prebuilt(&plugins);
    let hosts: Vec<HostProcess> =
        (0..4).map(|_| HostProcess::start(&options(&plugins, &cache))).collect();
    for host in &hosts {
        host.wait_ready(count);
    }
    assert_eq!(torn(&cache), [] as [String; 0]);
}

#[test]
fn a_start_with_known_plugins_probes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (plugins, cache) = (folder.path().join("plugins"), folder.path().join("cache"));
    let count = prebuilt(&plugins);
    HostProcess::start(&options(&plugins, &cache)).wait_ready(count);
    let known = fs::read_dir(&cache).unwrap().flatten();
    let known = known.filter(|entry| entry.path().extension().is_some_and(|it| it == "json"));
    assert_eq!(known.count(), count, "one finding for each copy");
    // Without a child process a probe would fail, so none is asked for.
    let host = HostProcess::start(&options(&plugins, &cache).arg("--log").arg("debug"));
    host.wait_ready(count);
    assert!(!host.stderr().contains("probing"), "{}", host.stderr());
}

#[test]
fn a_copied_binary_with_a_cache_of_its_own_serves_what_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (binary, home) = (root.join("bin/udf-host"), root.join("home"));
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir(&home).unwrap();
    fs::copy(&built().host, &binary).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg("--no-build").arg("--only").arg("--udfs").arg(&built().udfs).args(arguments);
        command.env_remove("XDG_CACHE_HOME").env_remove("UDF_HOST_CACHE").env("HOME", &home);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        parse(&text)
    };
    let udfs = run(&["list", "--json"])["udfs"].clone();
    let refused = udfs.as_array().unwrap().iter().filter(|udf| udf["state"] != "ready");
    let refused: Vec<String> =
        refused.map(|udf| format!("{}: {}", udf["op"], udf["reason"])).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    let cache = home.join(".cache/udf-host");
    let copies = || {
        let files = fs::read_dir(&cache).unwrap().flatten();
        files.filter(|file| file.path().extension().is_some_and(|it| it == "so")).count()
    };
    assert_eq!(copies(), udfs.as_array().unwrap().len());
    assert_eq!(torn(&cache), [] as [String; 0]);
    let store = root.join("store");
    let got = run(&[
        "exec",
        "feedback-management.get_card",
        "id=x",
        "--app-dir",
        store.to_str().unwrap(),
    ]);
    assert_eq!(got["error"], "not found");
}
