//! What builds is broken: no operation is blamed for it, and all of them are built once it works again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::scene::Scene;
use crate::support::fixture::write;
use crate::support::host_process::HostProcess;

/// Puts a script where a tool is expected.
fn tool(path: &Path, mode: u32, script: &str) {
    let beside = path.with_extension("new");
    write(&beside, format!("#!/bin/sh\n{script}\n").as_bytes());
    fs::set_permissions(&beside, Permissions::from_mode(mode)).unwrap();
    fs::rename(beside, path).unwrap();
}

#[test]
fn what_was_built_with_other_settings_of_cargo_is_not_taken() {
    let scene = Scene::new("livesettings");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    let still = |name: &str| {
        let options = scene.options().arg("--no-build").env(name, "1");
        scene.listed(&HostProcess::start(&options), "says", |udf| udf["state"] != "building")
    };
    assert_eq!(still("CARGO_TERM_QUIET")["state"], "ready");
    let changed = still("CARGO_PROFILE_DEV_OPT_LEVEL");
    assert!(changed["reason"].as_str().unwrap().contains("changed since it was"), "{changed}");
}

#[test]
fn a_tool_that_does_not_start_is_named_and_no_operation_is_blamed() {
    let scene = Scene::new("livetools");
    scene.lay_out("says", "one");
    scene.lay_out("beside", "one");
    let place = scene.tree.path().join("bin");
    fs::create_dir_all(&place).unwrap();
    let (cargo, rustc) = (place.join("cargo"), place.join("rustc"));
    let real = |name: &str| {
        let real = std::env::var(name.to_uppercase()).unwrap_or_else(|_| name.to_owned());
        format!("exec '{real}' \"$@\"")
    };
    let [works, compiles] = ["cargo", "rustc"].map(real);
    // As the newcomer has it who installed half of it.
    for (what, cargo_mode, cargo_does, rustc_does, words) in [
        ("a rustc that fails", 0o755, &*works, Some("exit 7"), "exit status: 7"),
        (
            "a silent cargo",
            0o755,
            "exit 3",
            None,
            "cargo said nothing and ended with exit status: 3",
        ),
        ("a killed cargo", 0o755, "kill -9 $$", None, "cargo said nothing and ended by signal 9"),
        ("a cargo that may not run", 0o644, "exit 3", None, "cargo could not be run: "),
        ("no rustc", 0o755, &works, None, "could not execute process `rustc -vV`"),
    ] {
        tool(&cargo, cargo_mode, cargo_does);
        let _absent = fs::remove_file(&rustc);
        if let Some(does) = rustc_does {
            tool(&rustc, 0o755, does);
        }
        let options = scene.options().env("CARGO", &cargo).env("RUSTC", &rustc);
        let host = HostProcess::start(&options);
        for op in ["says", "beside"] {
            let refused = scene.listed(&host, op, |udf| udf["state"] == "refused");
            let reason = refused["reason"].as_str().unwrap();
            assert!(reason.contains(words), "{what}: {refused}");
            let said = refused.to_string();
            for blame in ["its Cargo.toml", "does not compile", "no reason given"] {
                assert!(!said.contains(blame), "{what}: {refused}");
            }
            assert!(!reason.contains(place.to_str().unwrap()), "a caller is told a path: {reason}");
            let (status, envelope) =
                host.exec("default", scene.project, op, &serde_json::json!({}));
            let error = envelope["error"].as_str().unwrap_or_default();
            assert!(status == 500 && error.contains(words), "{what}: {status} {envelope}");
        }
        if what == "no rustc" {
            // Put right by whoever looks after the machine; nothing is saved.
            tool(&rustc, 0o755, &compiles);
            scene.answers(&host, "says", "one");
            scene.answers(&host, "beside", "one");
        }
    }
}
