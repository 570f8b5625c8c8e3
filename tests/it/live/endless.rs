//! Builds that never end, print for ever, write where they are built from, or are taken for unchanged.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::scene::{BUILD, Scene, says};
use crate::support::fixture::write;
use crate::support::host_process::{HostProcess, wait_until};

/// Processes that work for this package, as cargo tells them.
fn at_work(package: &str) -> Vec<String> {
    let variable = format!("CARGO_PKG_NAME={package}");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| {
            let environment = fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        })
        .collect()
}

#[track_caller]
fn at_work_in(package: &str, want: bool) {
    let seen = wait_until(BUILD, "the build script", || {
        (at_work(package).is_empty() != want).then_some(())
    });
    assert!(seen.is_some(), "{package}: {:?}", at_work(package));
}

const HANGS: &[u8] =
    b"fn main() { loop { std::thread::sleep(std::time::Duration::from_secs(1)); } }\n";

#[test]
fn a_build_that_never_ends_gives_way_to_others_and_is_given_up() {
    let scene = Scene::new("liveendless");
    scene.lay_out("says", "one");
    // Whatever a build script does, it does not do it with the keys of the host.
    write(
        &scene.at("says/build.rs"),
        b"fn main() { assert!(std::env::var_os(\"UDF_HOST_LLM_KEY\").is_none()); }\n",
    );
    let options = scene.options().arg("--build-timeout").arg("40");
    let host = HostProcess::start(&options.env("UDF_HOST_LLM_KEY", "a key"));
    scene.answers(&host, "says", "one");
    scene.lay_out("hangs", "never");
    write(&scene.at("hangs/build.rs"), HANGS);
    at_work_in("udf-liveendless-hangs", true);
    // What is saved meanwhile is built first.
    scene.save("says", "two");
    scene.answers(&host, "says", "two");
    let refused = scene.listed(&host, "hangs", |udf| udf["state"] == "refused");
    let reason = refused["reason"].as_str().unwrap();
    assert_eq!(reason, "its build script did not end within 40 s", "{refused}");
    assert!(refused["remedy"].as_str().unwrap().contains("--build-timeout"), "{refused}");
    at_work_in("udf-liveendless-hangs", false);
    // It is not tried again and again, but when it is saved.
    scene.save("says", "three");
    scene.answers(&host, "says", "three");
    write(&scene.at("hangs/build.rs"), b"fn main() {}\n");
    scene.answers(&host, "hangs", "never");
}

#[test]
fn a_build_ends_with_its_host() {
    let scene = Scene::new("liveorphan");
    scene.lay_out("hangs", "never");
    write(&scene.at("hangs/build.rs"), HANGS);
    let mut host = scene.host();
    at_work_in("udf-liveorphan-hangs", true);
    host.kill();
    at_work_in("udf-liveorphan-hangs", false);
    let host = scene.host();
    at_work_in("udf-liveorphan-hangs", true);
    assert!(host.terminate().success());
    at_work_in("udf-liveorphan-hangs", false);
}

#[test]
fn a_build_script_that_prints_without_end_is_given_up() {
    let scene = Scene::new("liveprints");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    scene.lay_out("prints", "never");
    let prints = "fn main() { let line = \"x\".repeat(1 << 16); loop { println!(\"{line}\"); } }\n";
    write(&scene.at("prints/build.rs"), prints.as_bytes());
    let refused = scene.listed(&host, "prints", |udf| udf["state"] == "refused");
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.starts_with("its build script prints without end"), "{refused}");
    at_work_in("udf-liveprints-prints", false);
    scene.save("says", "two");
    scene.answers(&host, "says", "two");
}

#[test]
fn a_build_that_writes_where_it_is_built_from_does_not_go_round_and_round() {
    let scene = Scene::new("liveround");
    scene.lay_out("says", "one");
    scene.lay_out("writes", "fresh");
    let writes = "fn main() { std::fs::write(\"src/made.rs\", format!(\"// {:?}\\n\", std::time::SystemTime::now())).unwrap(); }\n";
    write(&scene.at("writes/build.rs"), writes.as_bytes());
    let host = scene.host();
    scene.answers(&host, "writes", "fresh");
    let told = wait_until(BUILD, "the warning", || {
        host.stderr().contains("as if it wrote there itself").then_some(())
    });
    assert!(told.is_some(), "{}", host.stderr());
    // What is saved in one of the pauses does not wait for their end.
    scene.save("says", "two");
    scene.answers(&host, "says", "two");
    scene.answers(&host, "writes", "fresh");
}

#[test]
fn other_files_with_older_times_are_seen() {
    let scene = Scene::new("liveolder");
    scene.lay_out("says", "one");
    let aside = scene.tree.path().join("aside");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let set = |path: &std::path::Path| {
        let times = fs::FileTimes::new().set_modified(old);
        fs::File::open(path).unwrap().set_times(times).unwrap();
    };
    // A copy from an hour ago, as `mv`, `cp -p` and `rsync -a` bring one.
    let source = aside.join("lib.rs");
    write(&source, says("says", "older").as_bytes());
    set(&source);
    let host = scene.host();
    scene.answers(&host, "says", "one");
    fs::rename(&source, scene.at("says/src/lib.rs")).unwrap();
    scene.answers(&host, "says", "older");
    // The same from the side of a crate that it is built from.
    let helper = scene.tree.path().join("helper");
    let manifest =
        "[package]\nname = \"liveolder-helper\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write(&helper.join("Cargo.toml"), manifest.as_bytes());
    write(&helper.join("src/lib.rs"), b"pub const WORD: &str = \"helped\";\n");
    let dependency = format!("liveolder-helper = {{ path = {helper:?} }}\n");
    let manifest = super::scene::cargo("udf-liveolder-says", &dependency);
    write(&scene.at("says/Cargo.toml"), manifest.as_bytes());
    let text = says("says", "").replace("\"\"", "liveolder_helper::WORD");
    write(&scene.at("says/src/lib.rs"), text.as_bytes());
    scene.answers(&host, "says", "helped");
    write(&source, b"pub const WORD: &str = \"helped before\";\n");
    set(&source);
    fs::rename(&source, helper.join("src/lib.rs")).unwrap();
    scene.answers(&host, "says", "helped before");
    let listed = scene.listed(&host, "says", |udf| udf["update"] == Value::Null);
    assert_eq!(listed["state"], "ready", "{listed}");
}

#[test]
fn what_cargo_cannot_read_is_named_and_the_others_are_built() {
    let scene = Scene::new("liveunread");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    scene.lay_out("needs", "never");
    let sound = fs::read_to_string(scene.at("needs/Cargo.toml")).unwrap();
    for (at, (found, put, words)) in [
        ("edition = \"2024\"", "edition = \"1999\"", "`1999`"),
        ("[dependencies]", "[dependencies]\nnone = { path = \"../none\" }", "No such file"),
        (
            "[dependencies]",
            "[dependencies]\nserde = { workspace = true, features = [\"nothing\"] }",
            "serde",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        write(&scene.at("needs/Cargo.toml"), sound.replace(found, put).as_bytes());
        let refused = scene.listed(&host, "needs", |udf| udf["reason"].to_string().contains(words));
        assert_eq!(refused["state"], "refused", "{refused}");
        assert!(!refused["reason"].to_string().contains("/tmp"), "{refused}");
        let answer = format!("beside {at}");
        scene.save("says", &answer);
        scene.answers(&host, "says", &answer);
    }
    write(&scene.at("needs/Cargo.toml"), sound.as_bytes());
    scene.answers(&host, "needs", "never");
}
