//! Sources that come, change, break and go while the host runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use super::scene::{BUILD, Scene, cargo, put, says};
use crate::support::fixture::write;
use crate::support::host_process::{HostProcess, wait_until};
use crate::support::processes::workers;
use crate::support::skipped;

#[test]
fn new_then_save_then_call_without_a_restart() {
    let scene = Scene::new("livenew");
    let mut host = scene.host();
    scene.status(&host, "default", "greet", 404);
    let (done, said) = scene.command(&["new", "livenew/greet"]);
    assert!(done, "{said}");
    let greeting = json!({"greeting": "Hello, you!"});
    scene.answers_with(&host, "greet", &json!({"name": "you"}), &greeting);

    let source = scene.at("greet/src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    write(&source, text.replace("Hello", "Good morning").as_bytes());
    let greeting = json!({"greeting": "Good morning, you!"});
    scene.answers_with(&host, "greet", &json!({"name": "you"}), &greeting);
    let listed = scene.listed(&host, "greet", |udf| udf["state"] == "ready");
    assert_eq!(listed["update"], Value::Null, "{listed}");

    fs::remove_dir_all(scene.at("greet")).unwrap();
    scene.status(&host, "default", "greet", 404);
    assert_eq!(host.ended(), None);
    assert_eq!(host.stdout_rest(), "");
}

#[test]
fn a_build_that_fails_keeps_the_version_before_it() {
    let scene = Scene::new("livefail");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");

    let broken = says("says", "two").replace("Ok(", "Ok(undefined_name, ");
    write(&scene.at("says/src/lib.rs"), broken.as_bytes());
    let listed = scene.listed(&host, "says", |udf| udf["update"]["state"] == "failed");
    assert_eq!(listed["state"], "ready", "{listed}");
    let update = listed["update"].to_string();
    for words in ["does not compile", "undefined_name", "src/lib.rs"] {
        assert!(update.contains(words), "no {words:?} in {update}");
    }
    scene.answers(&host, "says", "one");
    let described = host.get("/api/udfs/default/livefail/says").text;
    assert!(described.contains("undefined_name"), "{described}");
    host.logged("undefined_name");
    host.logged("the version before it goes on answering");
    // Both commands tell it of the running host, and the compiler's message with it.
    for words in
        [&["list"][..], &["describe", "livefail.says"], &["describe", "default.livefail.says"]]
    {
        let (done, said) = scene.command_at(&host, words);
        assert!(
            done && said.contains("ready") && said.contains("undefined_name"),
            "{words:?}: {said}"
        );
    }
    // Those who only look are told the same, without a build.
    for words in [&["list"][..], &["describe", "livefail.says"]] {
        let (_, said) = scene.command(words);
        assert!(said.contains("undefined_name"), "{words:?}: {said}");
    }

    // A folder that is broken in another way, as it is while an editor or a checkout is at work.
    write(&scene.at("says/Cargo.toml"), b"[package");
    scene.listed(&host, "says", |udf| udf["update"].to_string().contains("not valid TOML"));
    scene.answers(&host, "says", "one");
    fs::remove_file(scene.at("says/src/lib.rs")).unwrap();
    scene.lay_out("says", "three");
    scene.answers(&host, "says", "three");
    let listed = scene.listed(&host, "says", |udf| udf["update"] == Value::Null);
    assert_eq!(listed["state"], "ready", "{listed}");
}

#[test]
fn whoever_saves_as_soon_as_the_version_before_answers_is_not_kept_waiting() {
    let scene = Scene::new("livequick");
    scene.lay_out("says", "0");
    let host = scene.host();
    for number in 0..8 {
        scene.answers(&host, "says", &number.to_string());
        scene.save("says", &(number + 1).to_string());
    }
    scene.answers(&host, "says", "8");
    let log = host.stderr();
    assert!(!log.contains("as if it wrote there itself"), "taken for a restless build:\n{log}");
}

#[test]
fn a_build_makes_nothing_anew_that_the_cargo_around_the_host_has_made() {
    // Build scripts that look at what a cargo says of the package it runs, and they are not few.
    let scene = Scene::new("livesurround");
    scene.lay_out("says", "one");
    let options = scene.options();
    let options = options.env("CARGO_PKG_VERSION_MAJOR", "77").env("CARGO_MANIFEST_LINKS", "none");
    let host = HostProcess::start(&options);
    scene.answers(&host, "says", "one");
    host.logged("cargo: udf-livesurround-says");
    let log = host.stderr();
    let made: Vec<&str> = log.lines().filter(|line| line.contains("cargo: ")).collect();
    assert!(!made.iter().any(|line| line.contains("ring v")), "{made:?}");
}

#[test]
fn specs_and_settings_change_without_a_build() {
    let scene = Scene::new("livespec");
    scene.lay_out("says", "one");
    // In the host itself, where versions are counted.
    let inline = |more: &str| {
        write(&scene.at("project.toml"), format!("lane = \"inline\"\n{more}").as_bytes())
    };
    inline("");
    let host = scene.host();
    scene.answers(&host, "says", "one");

    write(&scene.at("says/spec.md"), b"# says\n\nNow with a purpose.\n");
    let told = |words: &str| {
        let seen = wait_until(BUILD, words, || {
            let text = host.get("/api/udfs/default/livespec/says").text;
            text.contains(words).then_some(())
        });
        assert!(seen.is_some(), "{words}\n{}", host.stderr());
    };
    told("Now with a purpose.");
    inline("[udfs.says]\ntimeout = \"7s\"\n");
    scene.listed(&host, "says", |udf| udf["timeout_ms"] == 7000);

    // A half-written file changes nothing that is called.
    inline("workspace = \"oth");
    scene.listed(&host, "says", |udf| udf["update"].to_string().contains("project.toml"));
    scene.answers(&host, "says", "one");
    inline("workspace = \"other\"\n");
    scene.status(&host, "other", "says", 200);
    scene.status(&host, "default", "says", 404);
    inline("");
    scene.status(&host, "default", "says", 200);
    let listed = scene.listed(&host, "says", |udf| udf["state"] == "ready");
    assert!(listed["calls"].as_u64().unwrap() >= 3, "it goes on counting: {listed}");
    assert_eq!(listed["versions"], 1, "it is the one library all along: {listed}");
}

#[test]
fn a_call_ends_on_the_version_it_began_with() {
    flights("liveflight", "worker");
}

#[test]
fn a_call_ends_on_the_version_it_began_with_in_the_host_too() {
    flights("liveinside", "inline");
}

fn flights(project: &'static str, lane: &str) {
    let scene = Scene::new(project);
    let waits = |answer: &str| {
        format!(
            r#"use std::path::Path;
use std::sync::atomic::{{AtomicUsize, Ordering}};

use sdk::prelude::*;

static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Leaves a mark that it has begun, then waits for the file. Or says which process it is.
#[udf]
fn waits(_ctx: &Context, #[arg(default)] path: &str) -> Result<Reply, UdfError> {{
    if path == "pid" {{
        return Ok(Reply::value(&json!(std::process::id())));
    }}
    if !path.is_empty() {{
        let mark = format!("{{path}}.{{}}", BEGUN.fetch_add(1, Ordering::Relaxed));
        std::fs::File::create(mark).map_err(|error| UdfError::raised(error.to_string()))?;
        while !Path::new(path).exists() {{
            std::thread::sleep(std::time::Duration::from_millis(2));
        }}
    }}
    Ok(Reply::text("{answer}"))
}}
"#
        )
    };
    scene.lay_out("waits", "");
    write(&scene.at("waits/src/lib.rs"), waits("one").as_bytes());
    write(
        &scene.at("project.toml"),
        format!("lane = {lane:?}\n[udfs.waits]\ntimeout = \"10m\"\n").as_bytes(),
    );
    let host = scene.host();
    scene.answers(&host, "waits", "one");
    // In a worker: a fresh one takes the new version, the one before it ends with the last of its calls.
    let process = || {
        let (_, envelope) = host.exec("default", project, "waits", &json!({"path": "pid"}));
        u32::try_from(envelope["data"].as_u64().unwrap()).unwrap()
    };
    let old = process();
    let of_version = |pid: u32| if lane == "inline" { vec![] } else { vec![pid] };
    assert_eq!(workers(host.pid()), of_version(old));
    let file = scene.tree.path().join("go");
    thread::scope(|scope| {
        let flights: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    host.exec_patiently("default", project, "waits", &json!({"path": file}))
                })
            })
            .collect();
        let begun = wait_until(BUILD, "all calls", || {
            let marks = (0..8).filter(|at| file.with_extension(at.to_string()).exists());
            (marks.count() == 8).then_some(())
        });
        assert!(begun.is_some(), "{}", host.stderr());
        write(&scene.at("waits/src/lib.rs"), waits("two").as_bytes());
        scene.answers(&host, "waits", "two");
        let both = workers(host.pid());
        assert_eq!(both.len(), 2 * of_version(old).len(), "{old} {both:?}");
        write(&file, b"");
        for flight in flights {
            let (status, envelope) = flight.join().unwrap();
            assert_eq!((status, &envelope["data"]), (200, &json!("one")), "{envelope}");
        }
    });
    scene.answers(&host, "waits", "two");
    let ended = wait_until(BUILD, "the worker with the old version", || {
        (workers(host.pid()) == of_version(process())).then_some(())
    });
    assert!(ended.is_some(), "{:?}\n{}", workers(host.pid()), host.stderr());
    assert_eq!(process() == old, lane == "inline");
    assert!(!host.stderr().contains("crashed"), "{}", host.stderr());
}

#[test]
fn libraries_links_and_folders_that_come_file_by_file() {
    let scene = Scene::new("livefiles");
    let common = scene.at("common");
    write(
        &common.join("Cargo.toml"),
        b"[package]\nname = \"livefiles-common\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    write(&common.join("src/lib.rs"), b"pub const WORD: &str = \"one\";\n");
    scene.lay_out("says", "");
    let package = "udf-livefiles-says";
    let manifest = cargo(package, "livefiles-common = { path = \"../common\" }\n");
    write(&scene.at("says/Cargo.toml"), manifest.as_bytes());
    let source = says("says", "").replace("\"\"", "livefiles_common::WORD");
    write(&scene.at("says/src/lib.rs"), source.as_bytes());
    let host = scene.host();
    scene.answers(&host, "says", "one");
    write(&common.join("src/lib.rs"), b"pub const WORD: &str = \"two\";\n");
    scene.answers(&host, "says", "two");

    // File by file, each of them seen; the operation is refused until the last one is there.
    let late = scene.at("late");
    write(&late.join("Cargo.toml"), cargo("udf-livefiles-late", "").as_bytes());
    scene.listed(&host, "late", |udf| udf["state"] == "refused");
    write(&late.join("src/lib.rs"), says("late", "at last").as_bytes());
    scene.listed(&host, "late", |udf| udf["reason"].to_string().contains("spec.md"));
    write(&late.join("spec.md"), b"# late\n");
    scene.answers(&host, "late", "at last");

    // A crate beside all roots that it is built from.
    let helper = scene.tree.path().join("elsewhere/helper");
    let text = "[package]\nname = \"livefiles-helper\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write(&helper.join("Cargo.toml"), text.as_bytes());
    write(&helper.join("src/lib.rs"), b"pub const WORD: &str = \"helped\";\n");
    let dependency = format!("livefiles-helper = {{ path = {helper:?} }}\n");
    write(&late.join("Cargo.toml"), cargo("udf-livefiles-late", &dependency).as_bytes());
    let source = says("late", "").replace("\"\"", "livefiles_helper::WORD");
    write(&late.join("src/lib.rs"), source.as_bytes());
    scene.answers(&host, "late", "helped");
    write(&helper.join("src/lib.rs"), b"pub const WORD: &str = \"helped again\";\n");
    scene.answers(&host, "late", "helped again");

    // An operation that is a link, edited where it really lies, as an editor that renames does it.
    let outside = scene.tree.path().join("elsewhere/linked");
    write(&outside.join("Cargo.toml"), cargo("udf-livefiles-linked", "").as_bytes());
    write(&outside.join("spec.md"), b"# linked\n");
    write(&outside.join("src/lib.rs"), says("linked", "near").as_bytes());
    symlink(&outside, scene.at("linked")).unwrap();
    scene.answers(&host, "linked", "near");
    fs::rename(outside.join("src/lib.rs"), outside.join("src/lib.rs~")).unwrap();
    put(&outside.join("src/lib.rs"), says("linked", "far").as_bytes());
    scene.answers(&host, "linked", "far");

    // The whole project goes and comes back, as a checkout of another branch does it.
    fs::rename(scene.root().join("livefiles"), scene.tree.path().join("away")).unwrap();
    scene.status(&host, "default", "says", 404);
    fs::rename(scene.tree.path().join("away"), scene.root().join("livefiles")).unwrap();
    scene.answers(&host, "says", "two");
}

#[test]
fn without_watching_nothing_changes() {
    let scene = Scene::new("livestill");
    scene.lay_out("says", "one");
    let still = HostProcess::start(&scene.options().arg("--no-watch"));
    scene.answers(&still, "says", "one");
    let watching = scene.host();
    scene.answers(&watching, "says", "one");
    scene.save("says", "two");
    scene.answers(&watching, "says", "two");
    scene.answers(&still, "says", "one");
    let listed = scene.listed(&still, "says", |udf| udf["state"] == "ready");
    assert_eq!(listed["update"], Value::Null, "{listed}");
}

/// A namespace of users has limits of its own, so the rest of the machine keeps its watches.
const FEW_WATCHES: [&str; 5] = [
    "unshare",
    "--map-root-user",
    "sh",
    "-c",
    "echo 3 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"",
];

#[test]
fn a_system_without_watches_to_give_is_looked_at_again_and_again() {
    let mut probe = Command::new(FEW_WATCHES[0]);
    if !probe.args(&FEW_WATCHES[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        skipped("no namespaces of users on this machine");
        return;
    }
    let scene = Scene::new("livefew");
    scene.lay_out("says", "one");
    let host = HostProcess::start(&scene.options().through(&FEW_WATCHES));
    scene.answers(&host, "says", "one");
    let told = wait_until(BUILD, "the warning", || {
        host.stderr().contains("cannot watch the folders").then_some(())
    });
    assert!(told.is_some(), "{}", host.stderr());
    host.logged("fs.inotify.max_user_watches");
    scene.save("says", "two");
    scene.answers(&host, "says", "two");
}

#[test]
fn a_crate_with_a_spec_that_is_no_cdylib_is_refused_wherever_it_is_asked_for() {
    let scene = Scene::new("livekind");
    let manifest = cargo("udf-livekind-plain", "").replace("cdylib", "lib");
    write(&scene.at("plain/Cargo.toml"), manifest.as_bytes());
    write(&scene.at("plain/src/lib.rs"), says("plain", "now").as_bytes());
    let host = scene.host();
    scene.status(&host, "default", "plain", 404); // So far a library, as `common` is.
    write(&scene.at("plain/spec.md"), b"# plain\n");
    let remedy = "set `crate-type = [\"cdylib\"]` under [lib]";
    let listed = scene.listed(&host, "plain", |udf| udf["state"] == "refused");
    assert!(listed["remedy"].as_str().unwrap().contains(remedy), "{listed}");
    let (status, envelope) = host.exec("default", "livekind", "plain", &json!({}));
    assert_eq!(status, 500, "{envelope}");
    assert!(envelope["error"].as_str().unwrap().contains(remedy), "{envelope}");
    for (words, said) in [
        (&["list"][..], "makes no cdylib of it"),
        (&["list", "--json"], "[\\\"cdylib\\\"]"),
        (&["doctor"], remedy),
        (&["exec", "livekind.plain"], remedy),
    ] {
        let (_, text) = scene.command(words);
        assert!(text.contains("plain") && text.contains(said), "{words:?}: {text}");
    }
    write(&scene.at("plain/Cargo.toml"), cargo("udf-livekind-plain", "").as_bytes());
    scene.answers(&host, "plain", "now");
}
