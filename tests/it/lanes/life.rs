//! Workers come and go: with the load, with their project, with the host.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::LONG;
use super::processes::{children, group, stat};
use super::troubled::{Troubled, alone};
use crate::support::host_process::wait_until;

#[test]
fn workers_and_what_they_started_die_with_the_host() {
    let _alone = alone();
    for end in ["kill", "terminate"] {
        let mut troubled = Troubled::start();
        let worker = troubled.worker_of("hurtful");
        assert_eq!(troubled.hurt("child").0, 200);
        let (status, apart) = troubled.hurt("apart");
        assert!(status == 200 && stat(&apart).is_some_and(|it| it.1.to_string() == apart));
        let group_before = group(worker);
        assert!(group_before.len() >= 2, "{group_before:?}");
        if end == "kill" {
            troubled.host.kill();
        } else {
            let Troubled { host, .. } = troubled;
            assert_eq!(host.terminate().code(), Some(0));
        }
        let lives = |pid: &String| stat(pid).is_some_and(|it| it.0 != 'Z');
        let left = || group(worker).into_iter().chain([apart.clone()]).filter(lives);
        wait_until(Duration::from_secs(5), "the workers' end", || {
            (left().count() == 0).then_some(())
        })
        .unwrap_or_else(|| panic!("after {end} there are still {:?}", left().collect::<Vec<_>>()));
    }
}

#[test]
fn a_project_gets_more_workers_when_many_call_and_loses_them_again() {
    let limits = ["--workers", "3", "--worker-idle", "1"];
    let troubled = Troubled::with(|options| limits.iter().fold(options, |it, word| it.arg(word)));
    let mut seen: HashMap<i64, usize> = HashMap::new();
    let grown = wait_until(LONG, "more workers", || {
        thread::scope(|scope| {
            let ask = || {
                let (status, _) = troubled.call("hurtful", "answers", &json!({"ms": 100}));
                assert_eq!(status, 200);
                let (_, envelope) =
                    troubled.call("hurtful", "answers", &json!({"text": "pid", "ms": 50}));
                envelope["data"].as_i64().unwrap()
            };
            let asked: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
            for pid in asked.into_iter().map(|it| it.join().unwrap()) {
                *seen.entry(pid).or_default() += 1;
            }
        });
        (seen.len() == 3).then_some(())
    });
    assert!(grown.is_some(), "calls by worker: {seen:?}");
    let shrunk = wait_until(LONG, "fewer workers", || {
        let left = children(troubled.pid());
        (left.len() == 1).then_some(())
    });
    assert!(shrunk.is_some(), "still there: {:?}", children(troubled.pid()));
    assert_eq!(troubled.call("hurtful", "answers", &json!({})).0, 200, "the last one stays");
}

/// How often a test ends a worker; `LANE_KILLS` says otherwise.
pub(super) fn kills(usual: usize) -> usize {
    std::env::var("LANE_KILLS").map_or(usual, |text| text.parse().expect("LANE_KILLS is a number"))
}

#[test]
fn restarts_leave_no_zombies_and_no_open_files() {
    let _alone = alone();
    let troubled = Troubled::start();
    let host = troubled.pid();
    let open = || fs::read_dir(format!("/proc/{}/fd", host.as_raw_nonzero())).unwrap().count();
    let threads = || fs::read_dir(format!("/proc/{}/task", host.as_raw_nonzero())).unwrap().count();
    let mut ended = BTreeSet::new();
    let mut before = (0, 0);
    for round in 0..kills(1000) {
        let worker = troubled.worker_of("hurtful");
        assert!(ended.insert(worker.as_raw_nonzero()), "{worker:?} answers after its end");
        kill_process(worker, Signal::KILL).unwrap();
        if round == 10 {
            before = (open(), threads());
        }
    }
    let worker = troubled.worker_of("hurtful");
    let left = wait_until(LONG, "one worker alone", || {
        let children = children(host);
        (children.len() == 1 && children.iter().all(|it| it.1 != 'Z')).then_some(())
    });
    assert!(left.is_some(), "{:?}; {worker:?} answers", children(host));
    let after = (open(), threads());
    println!("{} restarts: (files, threads) {before:?} → {after:?}", ended.len());
    assert!(
        after.0 <= before.0 + 8 && after.1 <= before.1 + 8,
        "(files, threads) {before:?} → {after:?}"
    );
}
