//! Others at the same folders: another host, another cargo.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::scene::{BUILD, Scene};
use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::host_process::{HostProcess, wait_until};

#[test]
fn two_hosts_on_one_checkout_both_follow() {
    let scene = Scene::new("livetwo");
    scene.lay_out("says", "one");
    let hosts: Vec<HostProcess> = (0..2).map(|_| scene.host()).collect();
    for host in &hosts {
        scene.answers(host, "says", "one");
    }
    for answer in ["two", "three"] {
        scene.save("says", answer);
        for host in &hosts {
            scene.answers(host, "says", answer);
        }
    }
    // Neither is left with a version that failed because of the other.
    for host in &hosts {
        let listed = scene.listed(host, "says", |udf| udf["update"] == Value::Null);
        assert_eq!(listed["state"], "ready", "{listed}");
    }
}

#[test]
fn operations_of_one_name_in_two_folders_stay_two() {
    let (near, far) = (Scene::new("livesame"), Scene::new("livesame"));
    near.lay_out("says", "near");
    far.lay_out("says", "far");
    let host = near.host();
    near.answers(&host, "says", "near");
    let other = far.host();
    far.answers(&other, "says", "far");
    // Cargo is asked again and finds nothing to compile; the other one's artifact was the last of that name.
    write(&near.at("says/spec.md"), b"# says\n\nStill near.\n");
    let built = wait_until(BUILD, "another build", || {
        host.stderr().contains("1 of 1 was built before").then_some(())
    });
    assert!(built.is_some(), "{}", host.stderr());
    near.listed(&host, "says", |udf| udf["update"] == Value::Null);
    near.answers(&host, "says", "near");
    far.answers(&other, "says", "far");
}

#[test]
fn a_lock_of_another_cargo_is_waited_for_and_named() {
    let scene = Scene::new("livelock");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    let target = built().host.parent().unwrap();
    let lock = File::open(target.join(".cargo-lock")).unwrap();
    lock.lock().unwrap();
    scene.save("says", "two");
    let folder = target.parent().unwrap().display().to_string();
    let mut note = String::new();
    let told = wait_until(BUILD, "the note", || {
        let listed = host.get("/api/udfs").json();
        note = listed["data"]["progress"]["note"].as_str().unwrap_or_default().to_owned();
        // It may wait for its turn at the registry first.
        note.contains("waiting for another cargo").then_some(())?;
        note.contains(&folder).then_some(())?;
        note.contains(&format!("held by process {}", std::process::id())).then_some(())
    });
    // The old version answers meanwhile, and the catalog says what goes on.
    scene.answers(&host, "says", "one");
    let listed = scene.listed(&host, "says", |udf| udf["update"]["state"] == "building");
    assert_eq!(listed["state"], "ready", "{listed}");
    drop(lock);
    assert!(told.is_some(), "{note:?}\n{}", host.stderr());
    host.logged("waiting for another cargo");
    scene.answers(&host, "says", "two");
}

/// A command of the host over the scene's folders, with standard error in a file.
fn spawn(scene: &Scene, words: &[&str], stderr: &Path) -> Child {
    let mut command = Command::new(&built().host);
    command.args(words).arg("--only").arg("--udfs").arg(scene.root());
    command.env("XDG_CACHE_HOME", &built().cache);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(stderr).unwrap());
    command.spawn().unwrap()
}

#[test]
fn commands_that_wait_say_so_without_a_terminal_and_a_name_of_nobody_waits_for_nothing() {
    let scene = Scene::new("livesaid");
    scene.lay_out("says", "at last");
    let go = scene.tree.path().join("go");
    let script = format!(
        "fn main() {{ for _ in 0..3000 {{ if std::path::Path::new({go:?}).exists() {{ return; }} \
         std::thread::sleep(std::time::Duration::from_millis(100)); }} }}\n"
    );
    write(&scene.at("says/build.rs"), script.as_bytes());
    let said = |file: &Path| fs::read_to_string(file).unwrap();
    let (first, second) = (scene.tree.path().join("first"), scene.tree.path().join("second"));
    let mut builds = spawn(&scene, &["build"], &first);
    let told = wait_until(Duration::from_secs(100), "the first line", || {
        said(&first).starts_with("udf-host: ").then_some(())
    });
    assert!(told.is_some(), "it said nothing");

    let out = scene.tree.path().join("out");
    for (words, exit) in [
        (&["pack", out.to_str().unwrap(), "livesaid.none"][..], 3),
        (&["check", "livesaid/none"], 3),
        (&["run-feedback", "--only", "none", "--help"], 1),
    ] {
        let file = scene.tree.path().join("none");
        let ended = if words[0] == "run-feedback" {
            // What stands behind the operation is a flag of it.
            let mut command = Command::new(&built().host);
            command.arg("--udfs").arg(scene.root()).args(words);
            command.env("XDG_CACHE_HOME", &built().cache).stdout(Stdio::null());
            command.stderr(File::create(&file).unwrap()).status().unwrap()
        } else {
            spawn(&scene, words, &file).wait().unwrap()
        };
        assert_eq!(ended.code(), Some(exit), "{words:?}: {}", said(&file));
        assert!(builds.try_wait().unwrap().is_none(), "{words:?} waited for the build");
    }

    let mut waits = spawn(&scene, &["build"], &second);
    let told = wait_until(Duration::from_secs(100), "the holder", || {
        said(&second).contains("waiting for another host").then_some(())
    });
    write(&go, b"");
    assert!(told.is_some(), "{}", said(&second));
    assert!(said(&second).contains(&format!("process {}", builds.id())), "{}", said(&second));
    for child in [&mut builds, &mut waits] {
        assert!(child.wait().unwrap().success(), "{}{}", said(&first), said(&second));
    }
}
