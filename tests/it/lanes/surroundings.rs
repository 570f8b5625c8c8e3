//! What a worker gets of the host, and what it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use serde_json::json;

use super::LONG;
use super::troubled::Troubled;
use crate::support::host_process::wait_until;

#[test]
fn a_worker_sees_neither_the_hosts_settings_nor_its_token() {
    let troubled = Troubled::start();
    let (_, envelope) = troubled.call("harmless", "answers", &json!({"text": "environment"}));
    let environment = envelope["data"].as_object().unwrap();
    assert!(environment.contains_key("PATH"), "{environment:?}");
    let ours: Vec<_> = environment.keys().filter(|name| name.starts_with("UDF_HOST_")).collect();
    assert!(ours.is_empty(), "{ours:?}");
    let worker = troubled.worker_of("harmless").as_raw_nonzero();
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{worker}/{file}")).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(&troubled.host.token), "the token stands in {file}");
        assert!(!text.contains("a key that no plugin may see"), "a key stands in {file}");
    }
    // Where one operation went is no other's place.
    let here = std::env::current_dir().unwrap();
    assert_eq!(troubled.hurt("cwd").0, 200);
    let (_, envelope) = troubled.call("hurtful", "answers", &json!({"text": "cwd"}));
    assert_eq!(envelope["data"], json!(here));
}

#[test]
fn a_worker_has_no_descriptor_of_the_hosts_and_hands_none_on() {
    // A host that was itself started with files open.
    let script = "exec 7</etc/hostname 8>>/dev/full; exec \"$@\"";
    let troubled = Troubled::with(|options| options.through(&["sh", "-c", script, "sh"]));
    let theirs = fs::read_link(format!("/proc/{}/fd/7", troubled.host.pid())).unwrap();
    assert!(theirs.ends_with("hostname"), "{theirs:?}");
    let (status, said) = troubled.hurt("open");
    assert_eq!(status, 200, "{said}");
    let open: Vec<String> = serde_json::from_str(&said).unwrap();
    let here = std::env::current_dir().unwrap();
    let is_known = |target: &&String| {
        target.starts_with("socket:")
            || target.starts_with("pipe:")
            || target.starts_with("/memfd:udf-host worker")
            || target.starts_with("/proc/")
            || *target == "/dev/null"
            || **target == *here.to_string_lossy()
    };
    let unknown: Vec<_> = open.iter().filter(|target| !is_known(target)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let sockets = open.iter().filter(|target| target.starts_with("socket:")).count();
    assert_eq!(sockets, 1, "{open:?}");
    // What it starts gets the usual three; `ls` opens the folder it lists.
    assert_eq!(troubled.hurt("inherited"), (200, json!("0\n1\n2\n3\n").to_string()));
}

#[test]
fn where_one_call_goes_no_other_goes_with_it() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let troubled = Troubled::with(|options| options.cwd(&place));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let first = troubled.app_dir.path().join("state/notes.json");
    let open = mode(&first);
    let ran = place.join("ran");
    // Each of them has begun when another one in that worker goes elsewhere, and is at work afterwards.
    let asked = json!({"id": "here", "app_dir": "store", "runs": ran, "ms": 1500});
    let (status, said) = thread::scope(|scope| {
        let keeps = scope.spawn(|| troubled.say("hurtful", "keeps", &asked));
        let begun = wait_until(LONG, "its begin", || ran.exists().then_some(()));
        assert!(begun.is_some(), "{}", troubled.host.stderr());
        for kind in ["mask", "cwd"] {
            assert_eq!(troubled.hurt(kind).0, 200, "{kind}");
        }
        keeps.join().unwrap()
    });
    assert_eq!((status, &*said), (200, "\"here\""));
    assert!(!Path::new("/store").exists());
    let stored = place.join("store/state/notes.json");
    assert!(fs::read_to_string(&stored).unwrap().contains("here"));
    assert_eq!([mode(&stored), mode(&first)], [open, open], "what is kept is open to whom it was");
}
