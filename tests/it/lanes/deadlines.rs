//! A call that does not end.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::LONG;
use super::processes::{group, stat};
use super::troubled::{Troubled, alone};
use crate::support::fixture::write;
use crate::support::host_process::wait_until;

#[test]
fn a_call_that_does_not_end_leaves_neither_a_lock_nor_a_process() {
    let _alone = alone();
    let troubled = Troubled::start();
    let worker = troubled.worker_of("hurtful");
    let (status, child) = troubled.hurt("child");
    assert_eq!(status, 200, "{child}");
    assert!(group(worker).len() >= 2, "the child is in the worker's group");
    let (status, apart) = troubled.hurt("apart");
    assert_eq!(status, 200, "{apart}");
    assert!(stat(&apart).is_some_and(|it| it.1.to_string() == apart), "it made its own group");
    let began = Instant::now();
    let (status, said) = troubled.hurt("lock");
    assert_eq!(status, 504, "{said}");
    assert!(began.elapsed() < Duration::from_secs(20), "the deadline was not kept");
    // The lock is free as soon as the worker is gone.
    let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": "after"}));
    assert_eq!((status, &envelope["data"]), (200, &json!("after")), "{envelope}");
    wait_until(LONG, "the worker's end", || group(worker).is_empty().then_some(()))
        .unwrap_or_else(|| panic!("still there: {:?}", group(worker)));
    wait_until(LONG, "the end of what it started", || {
        stat(&apart).is_none_or(|it| it.0 == 'Z').then_some(())
    })
    .expect("it ends with the worker");
    assert_eq!(troubled.notes(), ["after", "first"].map(str::to_owned).into());
}

#[test]
fn a_call_inside_the_host_is_stuck_until_it_returns() {
    let troubled = Troubled::with(|options| options.arg("--timeout-ms").arg("1000"));
    let file = troubled.app_dir.path().join("go on");
    let (status, said) = troubled.say("inside", "stalls", &json!({"until": file}));
    assert!(status == 504 && said.contains("within 1000 ms"), "{status} {said}");
    assert_eq!(troubled.listed("inside", "stalls")["stuck"], 1);
    assert_eq!(troubled.say("inside", "stalls", &json!({})).0, 200);
    write(&file, b"");
    wait_until(LONG, "the return", || {
        (troubled.listed("inside", "stalls")["stuck"] == 0).then_some(())
    })
    .expect("it has returned");
    troubled.host.logged("returned long after its caller was told");
}

#[test]
fn a_command_gives_up_a_call_at_its_deadline_in_both_lanes() {
    let troubled = Troubled::start();
    let lock = File::options()
        .write(true)
        .open(troubled.app_dir.path().join("state/.notes.lock"))
        .unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    for lane in ["inline", "worker"] {
        let began = Instant::now();
        let words =
            ["exec", "hurtful.keeps", "id=too late", "--timeout-ms", "1000", "--lane", lane];
        let output = troubled.command(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("did not finish within 1000 ms"), "{lane}: {said}");
        assert!(!output.status.success(), "{lane}");
        assert!(began.elapsed() < Duration::from_secs(30), "{lane}: {:?}", began.elapsed());
    }
    drop(lock);
    assert_eq!(troubled.say("hurtful", "keeps", &json!({"id": "in time"})).0, 200);
    assert!(!troubled.notes().contains("too late"), "what was given up is not written");
}
