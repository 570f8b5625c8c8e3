//! Files that are not what their names say, while a host watches them: each is named, and costs nobody anything else.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use super::scene::Scene;
use crate::support::fixture::write;
use crate::support::host_process::HostProcess;

#[test]
fn files_that_are_no_text_are_named_and_hold_up_nothing() {
    let scene = Scene::new("liveodd");
    scene.lay_out("says", "one");
    scene.lay_out("beside", "one");
    let host = scene.host();
    for op in ["says", "beside"] {
        scene.answers(&host, op, "one");
    }
    let pipe = |path: &std::path::Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let long = vec![b'x'; 10 << 20];
    for file in ["says/spec.md", "says/Cargo.toml", "says/src/lib.rs", "project.toml"] {
        let path = scene.at(file);
        let kept = fs::read(&path).unwrap_or_default();
        for kind in ["pipe", "folder", "long", "latin"] {
            let _absent = fs::remove_file(&path);
            match kind {
                "pipe" => pipe(&path),
                "folder" => fs::create_dir(&path).unwrap(),
                "long" if file != "says/src/lib.rs" => write(&path, &long),
                _ => write(&path, b"gr\xf6\xdfe"),
            }
            let listed = scene.listed(&host, "says", |udf| udf["update"]["state"] == "failed");
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(listed["update"].to_string().contains(name), "{file} as {kind}: {listed}");
            scene.answers(&host, "says", "one");
            if kind == "folder" {
                fs::remove_dir(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            write(&path, &kept);
            scene.listed(&host, "says", |udf| udf["update"] == Value::Null);
        }
    }
    scene.save("beside", "two");
    scene.answers(&host, "beside", "two");
}

#[test]
fn links_without_end_are_named_and_hold_up_nothing() {
    let scene = Scene::new("liveloops");
    scene.lay_out("says", "one");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    symlink(".", scene.at("round")).unwrap();
    symlink("itself", scene.at("itself")).unwrap();
    symlink(scene.root(), scene.at("says/up")).unwrap();
    symlink(scene.root(), scene.root().join("down")).unwrap();
    let mut problems = String::new();
    let named = crate::support::host_process::wait_until(super::scene::BUILD, "problems", || {
        problems = host.get("/api/udfs").json()["data"]["problems"].to_string();
        ["round", "itself", "down"].iter().all(|name| problems.contains(name)).then_some(())
    });
    assert!(named.is_some(), "{problems}");
    scene.save("says", "two");
    scene.answers(&host, "says", "two");
}

#[test]
fn what_fails_for_a_reason_that_passes_is_tried_again_without_a_save() {
    let scene = Scene::new("livepasses");
    scene.lay_out("says", "one");
    let (cache, aside) = (scene.tree.path().join("cache"), scene.tree.path().join("aside"));
    let host = HostProcess::start(&scene.options().env("UDF_HOST_CACHE", &cache));
    scene.answers(&host, "says", "one");
    // As good as a full disk.
    fs::rename(&cache, &aside).unwrap();
    write(&cache, b"");
    scene.save("says", "two");
    let failed = scene.listed(&host, "says", |udf| udf["update"]["state"] == "failed");
    assert!(failed["update"].to_string().contains("cannot be copied to the cache"), "{failed}");
    scene.answers(&host, "says", "one");
    fs::remove_file(&cache).unwrap();
    fs::rename(&aside, &cache).unwrap();
    scene.answers(&host, "says", "two");
}

#[test]
fn a_folder_whose_name_is_no_text_is_listed_like_any_other() {
    let scene = Scene::new("livenames");
    scene.lay_out("says", "one");
    let name = std::ffi::OsStr::from_bytes(b"gr\xf6\xdfe");
    let folder = scene.at("says").with_file_name(name);
    write(&folder.join("spec.md"), b"# no name\n");
    let host = scene.host();
    scene.answers(&host, "says", "one");
    let listed = host.get("/api/udfs");
    assert_eq!(listed.status, 200, "{}", listed.text);
    assert!(listed.text.contains("cannot name"), "{}", listed.text);
}
