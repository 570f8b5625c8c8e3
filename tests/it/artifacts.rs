//! Prebuilt files of every kind of fault: each is refused with a reason, the sound one beside them answers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::parse;

/// A built plugin, as cargo left it.
fn sound() -> Vec<u8> {
    let target = built().host.parent().unwrap();
    fs::read(target.join("libudf_feedback_management_get_card.so")).unwrap()
}

/// A library that is no plugin, made by the C compiler that every Rust machine has.
fn ordinary(folder: &Path) -> Vec<u8> {
    let (source, library) = (folder.join("plain.c"), folder.join("plain.so"));
    write(&source, b"int answer(void) { return 42; }\n");
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(made.expect("cc runs").success());
    fs::read(library).unwrap()
}

fn place(root: &Path, project: &str, op: &str) -> PathBuf {
    let folder = root.join(project).join(op);
    write(&folder.join("spec.md"), format!("# {op}\n").as_bytes());
    folder.join("lib.so")
}

#[test]
fn files_that_are_no_sound_plugin_are_refused_each_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("plugins");
    let sound = sound();
    let mut foreign = sound.clone();
    // The machine of the ELF header: AArch64 here, or x86-64 there.
    foreign[18] = if foreign[18] == 0x3e { 0xb7 } else { 0x3e };
    for (op, bytes) in [
        ("truncated", sound[..sound.len() / 2].to_vec()),
        ("header_only", sound[..400].to_vec()),
        ("empty", Vec::new()),
        ("text", b"not a library\n".to_vec()),
        ("foreign", foreign),
        ("ordinary", ordinary(folder.path())),
        ("renamed", sound.clone()),
    ] {
        write(&place(&root, "faulty", op), &bytes);
    }
    fs::create_dir(place(&root, "faulty", "folder")).unwrap();
    symlink("/nowhere/at/all.so", place(&root, "faulty", "dangling")).unwrap();
    write(&place(&root, "feedback-management", "get_card"), &sound);
    write(&root.join("feedback-management/project.toml"), b"workspace = \"_core\"\n");

    let options =
        HostOptions::new().udfs(None).arg("--only").arg("--no-build").arg("--plugins").arg(&root);
    let mut host = HostProcess::start(&options.arg("--app-dir").arg(folder.path().join("store")));
    assert_eq!(
        host.data("feedback-management", "get_card", &json!({"id": "none"})),
        json!({"ok": false, "error": "not found"})
    );
    for op in [
        "truncated",
        "header_only",
        "empty",
        "text",
        "foreign",
        "ordinary",
        "renamed",
        "folder",
        "dangling",
    ] {
        let (status, envelope) = host.exec("default", "faulty", op, &json!({}));
        let message = envelope["error"].as_str().unwrap_or_default();
        assert!(status >= 400 && envelope["data"] == Value::Null, "{op}: {status} {envelope}");
        assert!(message.contains(op), "{op} is refused without its name: {message}");
        assert!(!message.contains(folder.path().to_str().unwrap()), "{op} tells a path: {message}");
    }
    assert_eq!(host.ended(), None);

    // The command says the same of each file, and more.
    let probe = |words: &[&str], file: &Path| {
        let mut command = Command::new(&built().host);
        command.arg("probe").arg(file).args(words).env("XDG_CACHE_HOME", &built().cache);
        let output = command.output().unwrap();
        (output.status.code(), parse(std::str::from_utf8(&output.stdout).unwrap()))
    };
    for (op, what) in [
        ("truncated", "cut short"),
        ("header_only", "cut short"),
        ("empty", ""),
        ("text", ""),
        ("foreign", "another machine"),
        ("ordinary", "not a plugin"),
        ("folder", "not a regular file"),
        ("dangling", "not there"),
    ] {
        let file = place(&root, "faulty", op);
        let (code, said) = probe(&[], &file);
        assert_eq!((code, &said["state"]), (Some(1), &json!("refused")), "{op}: {said}");
        assert!(said["reason"].as_str().unwrap().contains(what), "{op}: {said}");
        assert!(!said["remedy"].as_str().unwrap().is_empty(), "{op}: {said}");
        assert_eq!(said["files"], json!([file]), "{op}: {said}");
        for field in ["expected", "found"] {
            assert!(said[field].is_string(), "{op} has no {field}: {said}");
        }
    }
    let sound = place(&root, "feedback-management", "get_card");
    let (code, said) = probe(&[], &sound);
    assert_eq!((code, &said["state"]), (Some(0), &json!("accepted")), "{said}");
    assert_eq!(said["descriptor"]["op"], "get_card", "{said}");
    let (code, said) = probe(&["--as", "feedback-management/create_card"], &sound);
    let compared = (&said["expected"], &said["found"]);
    assert_eq!((code, compared), (Some(1), (&json!("create_card"), &json!("get_card"))), "{said}");
    let (code, said) = probe(&["--as", "elsewhere/get_card"], &sound);
    let compared = (&said["expected"], &said["found"]);
    assert_eq!(
        (code, compared),
        (Some(1), (&json!("elsewhere"), &json!("feedback-management"))),
        "{said}"
    );
}

#[test]
fn a_probe_whose_host_ended_before_it_could_look_ends_too() {
    let mut command = Command::new(&built().host);
    // The host had asked already; nobody will close its end of the pipe but this test.
    let own = std::process::id();
    command.args(["probe", "-", "--host", &(own + 1).to_string()]);
    let mut probe = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let ended = wait_until(Duration::from_secs(60), "its end", || probe.try_wait().unwrap());
    probe.kill().unwrap();
    assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
}
