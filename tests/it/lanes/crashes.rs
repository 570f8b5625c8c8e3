//! What a crash costs, whom, and what is done about the next one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::LONG;
use super::life::kills;
use super::processes::children;
use super::troubled::{Troubled, alone};
use crate::support::host_process::wait_until;

#[test]
fn three_crashes_put_an_operation_in_quarantine() {
    let _alone = alone();
    let troubled = Troubled::start();
    let shared = troubled.worker_of("hurtful");
    assert_eq!(troubled.listed("hurtful", "hurts")["lane"], "worker");
    assert_eq!(troubled.listed("hurtful", "hurts").get("lane_note"), None);
    for _ in 0..3 {
        assert_eq!(troubled.hurt("abort").0, 500);
    }
    let note =
        troubled.listed("hurtful", "hurts")["lane_note"].as_str().unwrap_or_default().to_owned();
    assert!(note.contains("quarantine") && note.contains("SIGABRT"), "{note}");
    troubled.host.logged("in quarantine");
    assert_ne!(
        troubled.worker_of("hurtful"),
        shared,
        "the worker that it ended is another one now"
    );
    // From now on it ends nobody's worker but its own.
    let shared = troubled.worker_of("hurtful");
    for _ in 0..3 {
        assert_eq!(troubled.hurt("abort").0, 500);
    }
    assert_eq!(troubled.worker_of("hurtful"), shared);
    assert_eq!(troubled.listed("hurtful", "answers").get("lane_note"), None);
    // Another process knows it from the cache.
    for (command, words) in [("list", "quarantine"), ("doctor", "quarantine")] {
        let said = troubled.command(&[command]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let told = |line: &str| line.contains("default.hurtful.hurts") && line.contains(words);
        assert!(said.lines().any(told), "{command}: {said}");
    }
}

/// The processes that ran an operation which leaves a line for each run, once there are so many.
fn runs(file: &Path, count: usize) -> Vec<Pid> {
    let lines = || {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect::<Vec<_>>()
    };
    wait_until(LONG, "a run", || (lines().len() >= count).then(lines))
        .unwrap_or_else(|| panic!("{count} runs expected: {:?}", lines()))
}

#[test]
fn a_read_that_was_cut_off_is_run_once_more_and_a_write_is_not() {
    let troubled = Troubled::start();
    for (op, kills, status, words) in [
        ("looks", 1, 200, "1"),
        ("looks", 2, 500, "`default.hurtful.looks` crashed: signal 9 (SIGKILL"),
        ("keeps", 1, 500, "`default.hurtful.keeps` crashed: signal 9 (SIGKILL"),
    ] {
        let file = troubled.app_dir.path().join(format!("{op} {kills}"));
        let mut asked = json!({"runs": file, "ms": 4000});
        if op == "keeps" {
            asked["id"] = json!("cut off");
        }
        let (got, said) = thread::scope(|scope| {
            let call = scope.spawn(|| troubled.say("hurtful", op, &asked));
            for count in 1..=kills {
                let last = *runs(&file, count).last().unwrap();
                kill_process(last, Signal::KILL).unwrap();
            }
            call.join().unwrap()
        });
        assert!(got == status && said.contains(words), "{op}, {kills} kills: {got} {said}");
        let ran = if op == "keeps" { 1 } else { 2 };
        assert_eq!(runs(&file, ran).len(), ran, "{op}, {kills} kills");
    }
    assert_eq!(troubled.notes(), BTreeSet::from(["first".to_owned()]));
}

#[test]
fn whoever_ran_beside_a_crash_is_told_who_it_was_and_is_not_blamed() {
    let _alone = alone();
    let troubled = Troubled::start();
    for (round, kind) in ["abort", "stack", "exit"].into_iter().enumerate() {
        let file = |op| troubled.app_dir.path().join(format!("{op} {kind}"));
        thread::scope(|scope| {
            let ask = |op| {
                let file = file(op);
                let troubled = &troubled;
                move || {
                    let mut asked = json!({"runs": file, "ms": 1500});
                    if op == "keeps" {
                        asked["id"] = json!(kind);
                    }
                    troubled.say("hurtful", op, &asked)
                }
            };
            let (look, keep) = (scope.spawn(ask("looks")), scope.spawn(ask("keeps")));
            runs(&file("looks"), 1);
            runs(&file("keeps"), 1);
            let (status, said) = troubled.hurt(kind);
            assert_eq!(status, 500, "{said}");
            assert!(!said.contains("same worker"), "it was itself: {said}");
            let (status, said) = look.join().unwrap();
            assert_eq!((status, &*said), (200, "1"), "a read is run again");
            let (status, said) = keep.join().unwrap();
            let words = "; `default.hurtful.hurts`, which ran in the same worker, ended it";
            assert!(status == 500 && said.ends_with(words), "{round}: {status} {said}");
        });
    }
    let note = |op| troubled.listed("hurtful", op)["lane_note"].is_string();
    assert_eq!((note("hurts"), note("looks"), note("keeps")), (true, false, false));
    assert_eq!(troubled.notes(), BTreeSet::from(["first".to_owned()]), "a write is not run again");
}

#[test]
fn what_a_call_left_running_may_end_the_worker_and_no_call_with_it() {
    let _alone = alone();
    let troubled = Troubled::start();
    for _ in 0..4 {
        let worker = troubled.worker_of("hurtful");
        assert_eq!(troubled.hurt("later"), (200, "\"soon\"".to_owned()));
        wait_until(LONG, "its end", || {
            let left = children(troubled.pid());
            left.iter().all(|(pid, _)| *pid != worker.as_raw_nonzero().to_string()).then_some(())
        })
        .expect("it ends");
        assert_ne!(troubled.worker_of("hurtful"), worker);
    }
    troubled.host.logged("it ended while no call ran in it");
    assert_eq!(troubled.listed("hurtful", "hurts").get("lane_note"), None, "nobody can tell who");
}

#[test]
fn an_operation_that_calls_another_survives_its_crash() {
    let _alone = alone();
    let troubled = Troubled::start();
    for (kind, words) in [
        ("well", "\"well\""),
        ("abort", "it failed: `default.hurtful.hurts` crashed: signal 6 (SIGABRT"),
        ("text", "it failed: `default.hurtful.hurts` panicked: a plain text"),
        ("deaf", "it failed: `default.hurtful.hurts` did not finish within 4000 ms"),
    ] {
        let (status, said) = troubled.say("harmless", "asks", &json!({"kind": kind}));
        assert!(status == 200 && said.contains(words), "{kind}: {status} {said}");
    }
    // Both ends of it are in the log under the request of the caller.
    troubled.host.logged("it asks another");
    let log = troubled.host.stderr();
    let line = log.lines().find(|line| line.contains("it asks another")).unwrap_or_default();
    let request = line.split("request=").nth(1).and_then(|rest| rest.split(' ').next());
    let request = request.map(|id| id.trim_matches('"').to_owned()).expect("a line of its own");
    assert!(line.contains("op=default.harmless.asks"), "{line}");
    let nested = |line: &str| {
        line.contains(&request) && line.contains("op=default.hurtful.hurts") && line.contains("ok")
    };
    let seen = wait_until(LONG, "the line of the nested call", || {
        troubled.host.stderr().lines().any(nested).then_some(())
    });
    assert!(seen.is_some(), "{request}: {}", troubled.host.stderr());
}

#[test]
fn an_operation_that_crashes_again_and_again_has_to_wait_and_nobody_else_does() {
    let _alone = alone();
    let troubled = Troubled::start();
    let took = |call: &dyn Fn()| {
        let began = Instant::now();
        call();
        began.elapsed()
    };
    let crash = || assert_eq!(troubled.hurt("abort").0, 500);
    // Three put it in quarantine; there the pauses are 0, 0, 50, 100, 200, 400, 800 ms.
    (0..10).for_each(|_| crash());
    let last = took(&crash);
    assert!(last >= Duration::from_millis(200), "it came back after {last:?}");
    let other = || {
        assert_eq!(troubled.say("hurtful", "answers", &json!({"text": "x"})).0, 200);
    };
    let least = (0..10).map(|_| took(&other)).min().unwrap();
    assert!(least < Duration::from_millis(150), "others wait as well: {least:?}");
}

#[test]
fn nothing_acknowledged_is_lost_when_workers_are_killed_while_they_write() {
    let _alone = alone();
    let troubled = Troubled::start();
    let acknowledged = Mutex::new(BTreeSet::from(["first".to_owned()]));
    let (next, failed, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let id = format!("note {}", next.fetch_add(1, Ordering::Relaxed));
                    let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": id}));
                    if status == 200 {
                        acknowledged.lock().unwrap().insert(id);
                        continue;
                    }
                    let error = envelope["error"].as_str().unwrap_or_default();
                    assert!(
                        status == 500 && error.contains("signal 9 (SIGKILL"),
                        "{status} {error}"
                    );
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut chance = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..kills(200) {
            let so_far = acknowledged.lock().unwrap().len();
            // Workers must come back: between two kills something is written.
            wait_until(LONG, "a write", || {
                (acknowledged.lock().unwrap().len() > so_far).then_some(())
            })
            .unwrap_or_else(|| panic!("nobody writes any more: {}", troubled.host.stderr()));
            chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let moment = Instant::now() + Duration::from_micros((chance >> 33) % 5000);
            while Instant::now() < moment {
                std::hint::spin_loop();
            }
            for (child, _) in children(troubled.pid()) {
                let pid = Pid::from_raw(child.parse().unwrap()).unwrap();
                let _just_ended = kill_process(pid, Signal::KILL);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let (acknowledged, stored) = (acknowledged.into_inner().unwrap(), troubled.notes());
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged notes are gone: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    assert!(failed.load(Ordering::Relaxed) > 0, "no kill struck a write");
    assert!(is_gone_soon(&troubled), "a killed worker is still there");
}

/// Whether no dead child waits for the host to take leave of it.
fn is_gone_soon(troubled: &Troubled) -> bool {
    wait_until(LONG, "the last burial", || {
        children(troubled.pid()).iter().all(|(_, state)| *state != 'Z').then_some(())
    })
    .is_some()
}
