//! A pack serves where nothing but the binary is; what was changed on the way is refused, and the rest goes on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::build::built;
use crate::support::fixture::{Found, snapshot, write};
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::{checkout, parse};

/// Runs `udf-host pack OUT` with these arguments over the shipped operations, or other folders if they say so.
fn pack(out: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(&built().host);
    command.arg("pack").arg(out).args(arguments).env("XDG_CACHE_HOME", &built().cache);
    if !arguments.contains(&"--only") {
        command.args(["--only", "--udfs"]).arg(&built().udfs);
    }
    command.output().unwrap()
}

#[track_caller]
fn packed(out: &Path, arguments: &[&str]) -> Value {
    let output = pack(out, arguments);
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}\n{errors}", output.status);
    let manifest = parse(&fs::read_to_string(out.join("pack.json")).unwrap());
    if arguments.contains(&"--json") {
        assert_eq!(parse(&said)["files"], manifest["files"]);
    } else {
        assert!(said.contains("serve --only --plugins"), "{said}");
    }
    manifest
}

/// A folder's regular files, their hashes, by path.
fn hashes(folder: &Path) -> BTreeMap<String, String> {
    let hash = |(path, found)| match found {
        Found::File(bytes) => {
            let hex = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            (path, hex)
        }
        Found::Link(target) => panic!("{path} is a link to {target}"),
    };
    snapshot(folder).into_iter().map(hash).collect()
}

fn serve(folder: &Path, store: &Path) -> HostOptions {
    HostOptions::new()
        .udfs(None)
        .arg("--only")
        .arg("--plugins")
        .arg(folder)
        .arg("--app-dir")
        .arg(store)
}

/// The catalog's entry of an operation, when everything has been looked at.
#[track_caller]
fn listed(host: &HostProcess, op: &str) -> Value {
    let settled = || {
        let catalog = host.get("/api/udfs").json();
        (catalog["data"]["progress"]["settled"] == true).then_some(catalog)
    };
    let catalog = wait_until(Duration::from_secs(60), "the end of loading", settled).unwrap();
    let udfs = catalog["data"]["udfs"].as_array().unwrap();
    udfs.iter()
        .find(|udf| udf["op"] == op)
        .unwrap_or_else(|| panic!("no {op} in {catalog}"))
        .clone()
}

#[test]
fn a_pack_serves_without_cargo_sources_or_home() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let out = root.join("deep/er/out");
    let manifest = packed(&out, &["feedback-management", "workflows/report_writing", "--json"]);
    assert_eq!((&manifest["format"], &manifest["interface"]), (&json!(1), &json!(1)));
    assert!(manifest["target"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{manifest}");
    assert_eq!(manifest["sdk"], env!("CARGO_PKG_VERSION"));
    let mut there = hashes(&out);
    there.remove("pack.json");
    assert_eq!(json!(there), manifest["files"], "every file but the manifest, with its hash");
    for (path, there) in [
        ("feedback-management/project.toml", true),
        ("feedback-management/get_card/lib.so", true),
        ("feedback-management/get_card/spec.md", true),
        ("feedback-management/widgets/cards.json", true),
        ("workflows/report_writing/agents/fact_check.toml", true),
        ("feedback-management/get_card/Cargo.toml", false),
        ("feedback-management/get_card/src/lib.rs", false),
        ("feedback-management/common/Cargo.toml", false),
        ("task-management/project.toml", false),
    ] {
        assert_eq!(out.join(path).exists(), there, "{path}");
    }
    let agent = "workflows/report_writing/agents/fact_check.toml";
    assert_eq!(fs::read(out.join(agent)).unwrap(), fs::read(built().udfs.join(agent)).unwrap());

    // Another machine, as far as one test can be: the pack and the binary were copied there, nothing else is.
    let (binary, copied, home) =
        (root.join("bin/udf-host"), root.join("copied"), root.join("home"));
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir(&home).unwrap();
    fs::copy(&built().host, &binary).unwrap();
    fs::rename(&out, &copied).unwrap();
    let options = serve(&copied, &root.join("store")).binary(&binary).cwd(&home).only_env();
    let options =
        options.env("PATH", "").env("HOME", &home).env("XDG_CACHE_HOME", home.join("cache"));
    let host = HostProcess::start(&options);
    let card = host.data(
        "feedback-management",
        "create_card",
        &json!({"project": "p", "task_id": "t", "summary": "It runs", "payload": {}}),
    );
    let got = host.data("feedback-management", "get_card", &json!({"id": card["id"]}));
    assert_eq!(got["summary"], "It runs");
    let listed = listed(&host, "get_card");
    let catalog = host.get("/api/udfs").json()["data"].clone();
    assert_eq!(catalog["progress"]["ready"], manifest["operations"].as_object().unwrap().len());
    assert_eq!((&catalog["progress"]["refused"], &catalog["problems"]), (&json!(0), &json!([])));
    assert_eq!(listed["hash"], manifest["files"]["feedback-management/get_card/lib.so"]);
    assert_eq!(listed["folder"], json!(copied.join("feedback-management/get_card")));
    assert_eq!(
        listed["built_at"],
        manifest["operations"]["feedback-management/get_card"]["built_at"]
    );
    assert_eq!(host.terminate().code(), Some(0));
}

#[test]
fn what_was_changed_on_the_way_is_refused_and_the_rest_answers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    packed(&out, &["feedback-management"]);
    let at = |path: &str| out.join("feedback-management").join(path);
    // Deep inside the code, where only a hash sees it.
    let mut library = fs::read(at("get_card/lib.so")).unwrap();
    let middle = library.len() / 2;
    library[middle] ^= 1;
    write(&at("get_card/lib.so"), &library);
    write(&at("list_cards/spec.md"), b"# list_cards\n\nSomething else.\n");
    fs::remove_file(at("resolve_card/lib.so")).unwrap();
    fs::remove_dir_all(at("delete_project")).unwrap();
    write(&at("widgets/cards.json"), b"{}\n");
    write(&at("stranger/spec.md"), b"# stranger\n");
    fs::copy(at("create_card/lib.so"), at("stranger/lib.so")).unwrap();
    // A foreign library that somebody wrote the right hash for: its header tells.
    let mut foreign = fs::read(at("inbox_view/lib.so")).unwrap();
    foreign[18] = if foreign[18] == 0x3e { 0xb7 } else { 0x3e };
    let (before, after) = (hash_of(&at("inbox_view/lib.so")), {
        write(&at("inbox_view/lib.so"), &foreign);
        hash_of(&at("inbox_view/lib.so"))
    });
    let manifest = fs::read_to_string(out.join("pack.json")).unwrap();
    assert!(manifest.contains(&before));
    write(&out.join("pack.json"), manifest.replace(&before, &after).as_bytes());

    let mut host = HostProcess::start(&serve(&out, &folder.path().join("store")));
    host.data("feedback-management", "create_card", &json!({"project": "p", "payload": "{}"}));
    for (op, words, compared) in [
        ("get_card", "its artifact is not the file that was packed", "SHA-256 "),
        ("list_cards", "spec.md is not the file that was packed", "SHA-256 "),
        ("resolve_card", "it holds no .so file", ""),
        ("stranger", "pack.json does not know it", ""),
        ("inbox_view", "its artifact is for another machine", std::env::consts::ARCH),
    ] {
        let entry = listed(&host, op);
        let reason = entry["reason"].as_str().unwrap_or_else(|| panic!("{op} is served: {entry}"));
        assert!(reason.contains(words), "{op}: {reason}");
        let expected = entry["expected"].as_str().unwrap_or_default();
        assert!(expected.starts_with(compared), "{op}: {entry}");
        assert_eq!(!compared.is_empty(), entry["found"].is_string(), "{op}: {entry}");
        let (status, envelope) = host.exec("_core", "feedback-management", op, &json!({}));
        assert_eq!(status, 500, "{op}: {envelope}");
    }
    let problems = host.get("/api/udfs").json()["data"]["problems"].to_string();
    assert!(problems.contains("delete_project") && problems.contains("is not there"), "{problems}");
    // Of the whole project, so no operation is the worse for it.
    assert!(problems.contains("cards.json is not the file that was packed"), "{problems}");
    assert_eq!(host.ended(), None);
}

fn hash_of(file: &Path) -> String {
    Sha256::digest(fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_pack_for_another_machine_or_interface_is_refused_whole_and_other_folders_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (foreign, newer, sound) =
        (folder.path().join("foreign"), folder.path().join("newer"), folder.path().join("sound"));
    packed(&foreign, &["feedback-management/get_card"]);
    packed(&newer, &["feedback-management/list_cards"]);
    packed(&sound, &["feedback-management/create_card"]);
    let change = |out: &Path, key: &str, value: Value| {
        let mut manifest = parse(&fs::read_to_string(out.join("pack.json")).unwrap());
        manifest[key] = value;
        write(&out.join("pack.json"), manifest.to_string().as_bytes());
    };
    change(&foreign, "target", json!("riscv64gc-unknown-linux-gnu"));
    change(&newer, "interface", json!(99));
    let options = serve(&sound, &folder.path().join("store"));
    let host =
        HostProcess::start(&options.arg("--plugins").arg(&foreign).arg("--plugins").arg(&newer));
    host.data("feedback-management", "create_card", &json!({"project": "p", "payload": "{}"}));
    let (foreign, newer) = (listed(&host, "get_card"), listed(&host, "list_cards"));
    assert_eq!(foreign["found"], "riscv64gc-unknown-linux-gnu", "{foreign}");
    assert_eq!(newer["expected"], "interface 1", "{newer}");
}

#[test]
fn a_pack_takes_the_place_of_a_pack_and_of_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let ours = &["feedback-management/get_card"][..];
    let file = root.join("file");
    write(&file, b"mine");
    let taken = root.join("taken");
    write(&taken.join("notes.txt"), b"mine");
    let out = root.join("out");
    fs::create_dir(&out).unwrap();
    packed(&out, &["feedback-management"]);
    let all = hashes(&out);
    // A link to the pack stays a link; what it leads to is replaced.
    symlink(&out, root.join("link")).unwrap();
    packed(&root.join("link"), ours);
    let one = hashes(&out);
    assert!(one.len() == 4 + 1 && all.len() > 20, "{one:?}");
    assert!(fs::symlink_metadata(root.join("link")).unwrap().is_symlink());
    packed(&out, ours);
    assert_eq!(hashes(&out), one, "the same operations give the same pack");

    write(&out.join("feedback-management/get_card/notes.txt"), b"mine");
    for place in [&file, &taken, &out, &built().udfs.join("out")] {
        let before = snapshot(&root);
        let output = pack(place, ours);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{}: {said}", place.display());
        assert!(said.contains(&*place.to_string_lossy()), "{said}");
        assert_eq!(snapshot(&root), before, "{}", place.display());
    }
    assert!(!built().udfs.join("out").exists());
    let rest: Vec<PathBuf> = fs::read_dir(&root).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(rest.len(), 4, "nothing half written stays: {rest:?}");
}

#[test]
fn a_pack_can_be_packed_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    packed(&first, &["workflows", "feedback-management/get_card"]);
    packed(&second, &["--only", "--plugins", first.to_str().unwrap()]);
    let (mut first, mut second) = (hashes(&first), hashes(&second));
    // A project's widgets go with it; its manifest has the same files.
    assert_eq!(first.remove("pack.json"), second.remove("pack.json"));
    assert_eq!(first, second);
}

#[test]
fn what_cannot_be_called_cannot_be_packed() {
    let folder = tempfile::tempdir().unwrap();
    let faults = checkout().join("tests/fixtures/udfs");
    let out = folder.path().join("out");
    let from = ["--only", "--udfs", faults.to_str().unwrap()];
    let output = pack(&out, &from);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no_spec") && said.contains("nothing is packed"), "{said}");
    // What does not compile is not tried once more.
    let from = [&from[..], &["--no-build"]].concat();
    let output = pack(&out, &[&from[..], &["faults/nothing"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    packed(&out, &[&from[..], &["faults/greets"]].concat());
    let host = HostProcess::start(&serve(&out, &folder.path().join("store")));
    let (status, envelope) = host.exec("default", "faults", "greets", &json!({"name": "you"}));
    assert_eq!((status, &envelope["data"]), (200, &json!("hello you")));
}
