//! Real processes that contend for one directory: this test program, started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use core_store::{Store, StoreError, StoreOptions};

use crate::support::{Place, push, texts};

const DIR: &str = "CORE_STORE_TEST_DIR";
const ROLE: &str = "CORE_STORE_TEST_ROLE";

/// Not a test of its own: what a started process does. Does nothing when the tests run.
#[test]
fn role() {
    let (Ok(dir), Ok(role)) = (std::env::var(DIR), std::env::var(ROLE)) else { return };
    let app = Store::open(StoreOptions::default()).app(Path::new(&dir));
    match role.as_str() {
        "count" => (0..50).for_each(|_| increment(&app)),
        "push until killed" => {
            for n in 0.. {
                push(&app, "cards", &n.to_string());
                say(&format!("stored {n}"));
            }
        }
        "hold" => {
            let _tx = app.begin(&["cards"]).unwrap();
            let folder = app.dir().join("runs");
            let folder = Store::open(StoreOptions::default()).folder(&folder, "r", "lock").unwrap();
            let _guard = folder.lock(Duration::from_secs(5)).unwrap();
            say("holding");
            // Until the other side closes our input.
            std::io::stdin().lines().for_each(drop);
        }
        "emit" => {
            let root = app.dir().join("runs");
            let folder = Store::open(StoreOptions::default()).folder(&root, "r", "lock").unwrap();
            for _ in 0..10 {
                let guard = folder.lock(Duration::from_secs(30)).unwrap();
                let next = guard.read("next").unwrap().unwrap().parse::<u32>().unwrap();
                assert!(guard.create_new(&format!("events/{next:03}.json"), "{}").unwrap());
                guard.replace("next", &(next + 1).to_string()).unwrap();
            }
        }
        other => panic!("no role {other}"),
    }
}

#[expect(clippy::print_stdout, reason = "how a started process reports to the test")]
fn say(line: &str) {
    // A line of its own, whatever the test harness has written before.
    println!("\n{line}");
}

fn increment(app: &core_store::AppStore) {
    let mut tx = app.begin(&["cards"]).unwrap();
    let card = tx.snapshot("cards").unwrap().record(0).unwrap();
    let n = card.field("n").unwrap().as_i64().unwrap();
    tx.replace("cards", 0, &format!(r#"{{"id":"c","n":{}}}"#, n + 1)).unwrap();
    tx.commit().unwrap();
}

fn start(place: &Place, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::role", "--exact", "--nocapture"])
        .env(DIR, place.path())
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(output: &mut BufReader<ChildStdout>, want: &str) {
    let mut line = String::new();
    while !line.starts_with(want) {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "ended before saying {want:?}");
    }
}

#[test]
fn sixteen_processes_count_to_eight_hundred() {
    let place = Place::with("cards", r#"[{"id":"c","n":0}]"#);
    let children: Vec<Child> = (0..16).map(|_| start(&place, "count")).collect();
    // Threads of this process take part, too.
    let app = place.app();
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| (0..10).for_each(|_| increment(&app)))));
    });
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert!(place.text("state/cards.json").contains("\"n\": 840\n"));
}

#[test]
fn what_a_killed_process_had_acknowledged_is_there() {
    let place = Place::new();
    for round in 1..=10 {
        let mut child = start(&place, "push until killed");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        wait_for(&mut output, "stored 0");
        wait_for(&mut output, &format!("stored {round}"));
        child.kill().unwrap();
        child.wait().unwrap();
        let said = output.lines().map_while(Result::ok).filter(|line| line.starts_with("stored"));
        let last = said.last().and_then(|line| line.strip_prefix("stored ")?.parse().ok());
        let stored = texts(&place.app().read("cards").unwrap());
        let run = stored.iter().rev().take_while(|text| *text != "0").count();
        assert!(run >= last.unwrap_or(round), "{stored:?}, said {last:?}");
        // The sentinel died with its holder.
        push(&place.app(), "cards", "\"after\"");
        assert_eq!(place.files("state"), ["state/.cards.lock", "state/cards.json"]);
    }
}

#[test]
fn writers_wait_for_another_process_and_readers_do_not() {
    let place = Place::with("cards", "[1]");
    std::fs::create_dir_all(place.at("runs/r")).unwrap();
    let mut child = start(&place, "hold");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut output, "holding");
    let app = place.app();
    assert_eq!(app.read("cards").unwrap().len(), 1);
    push(&app, "tasks", "1");
    let folder = place.store().folder(&place.at("runs"), "r", "lock").unwrap();
    let error = folder.lock(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, StoreError::LockTimeout { .. }), "{error}");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| push(&app, "cards", "2"));
        // Shows that it waits as far as one can without a clock: it has not written before the
        // holder ends, and ends after it.
        assert_eq!(place.text("state/cards.json"), "[1]");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        writer.join().unwrap();
    });
    assert_eq!(place.text("state/cards.json"), "[\n  1,\n  2\n]");
    folder.lock(Duration::from_secs(5)).unwrap();
}

#[test]
fn events_of_many_processes_have_numbers_of_their_own() {
    let place = Place::new();
    let folder = place.store().folder(&place.at("runs"), "r", "lock").unwrap();
    assert!(folder.create(|draft| draft.file("next", "1")).unwrap());
    let children: Vec<Child> = (0..8).map(|_| start(&place, "emit")).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(folder.read("next").unwrap().as_deref(), Some("81"));
    assert_eq!(folder.list("events").unwrap().len(), 80);
    assert_eq!(place.files("runs").len(), 82);
}
