//! Many writers of one collection in one process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use core_store::{MemoryBackend, Store, StoreOptions};

use crate::support::{Place, push, texts};

#[test]
fn no_write_of_many_writers_is_lost() {
    let place = Place::new();
    let app = place.app();
    let start = Barrier::new(64);
    thread::scope(|scope| {
        for writer in 0..64 {
            let (app, start) = (&app, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..5 {
                    push(app, "cards", &format!("\"{writer}-{n}\""));
                    // An acknowledged write is on disk for everybody.
                    let stored = texts(
                        &Store::open(StoreOptions::default()).app(app.dir()).read("cards").unwrap(),
                    );
                    assert!(stored.contains(&format!("\"{writer}-{n}\"")));
                }
            });
        }
    });
    let stored = texts(&place.app().read("cards").unwrap());
    assert_eq!(stored.len(), 320);
    assert_eq!(stored.iter().collect::<HashSet<_>>().len(), 320);
    // Those of one writer are in its order.
    let of_first: Vec<_> = stored.iter().filter(|text| text.starts_with("\"0-")).collect();
    assert_eq!(of_first, ["\"0-0\"", "\"0-1\"", "\"0-2\"", "\"0-3\"", "\"0-4\""]);
    assert_eq!(place.files("state"), ["state/.cards.lock", "state/cards.json"]);
}

#[test]
fn of_many_equal_creators_one_creates() {
    let place = Place::new();
    let app = place.app();
    let created = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                let mut tx = app.begin(&["cards"]).unwrap();
                if tx.snapshot("cards").unwrap().find("key", "k").is_none() {
                    tx.push("cards", r#"{"key": "k"}"#).unwrap();
                    created.fetch_add(1, Ordering::Relaxed);
                }
                tx.commit().unwrap();
                // Whoever has its answer finds the card stored.
                assert_eq!(place.app().read("cards").unwrap().len(), 1);
            });
        }
    });
    assert_eq!(created.into_inner(), 1);
}

#[test]
fn counters_do_not_lose_increments_and_readers_see_whole_states() {
    let place = Place::with("cards", r#"[{"id":"c","n":0},{"id":"d","n":0}]"#);
    let app = place.app();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let snapshot = app.read("cards").unwrap();
                        let n =
                            |at| snapshot.record(at).unwrap().field("n").unwrap().as_i64().unwrap();
                        assert_eq!(n(0), n(1));
                        assert!(n(0) >= last, "went back from {last} to {}", n(0));
                        last = n(0);
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mut tx = app.begin(&["cards"]).unwrap();
                        let n = tx.snapshot("cards").unwrap().record(0).unwrap();
                        let n = n.field("n").unwrap().as_i64().unwrap() + 1;
                        tx.replace("cards", 0, &format!(r#"{{"id":"c","n":{n}}}"#)).unwrap();
                        tx.replace("cards", 1, &format!(r#"{{"id":"d","n":{n}}}"#)).unwrap();
                        tx.commit().unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert!(place.text("state/cards.json").contains("\"n\": 320"));
}

#[test]
fn writers_of_one_and_of_several_collections_take_turns() {
    let place = Place::new();
    let app = place.app();
    thread::scope(|scope| {
        for writer in 0..12 {
            let app = &app;
            scope.spawn(move || {
                for _ in 0..10 {
                    let names: &[&str] = match writer % 4 {
                        0 => &["cards"],
                        1 => &["tasks"],
                        2 => &["tasks", "cards"],
                        _ => &["cards", "runs", "tasks"],
                    };
                    let mut tx = app.begin(names).unwrap();
                    names.iter().for_each(|name| tx.push(name, "1").unwrap());
                    if writer % 3 == 0 {
                        tx.rollback().unwrap();
                    } else {
                        assert!(tx.commit().unwrap().changed);
                    }
                }
            });
        }
    });
    let committed: Vec<usize> = (0..12).filter(|writer| writer % 3 != 0).map(|w| w % 4).collect();
    let count = |kinds: &[usize]| 10 * committed.iter().filter(|kind| kinds.contains(kind)).count();
    assert_eq!(place.app().read("cards").unwrap().len(), count(&[0, 2, 3]));
    assert_eq!(place.app().read("tasks").unwrap().len(), count(&[1, 2, 3]));
    assert_eq!(place.app().read("runs").unwrap().len(), count(&[3]));
}

#[test]
fn a_caller_that_panics_holds_nobody_up() {
    let place = Place::new();
    let app = place.app();
    let panicked = thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut tx = app.begin(&["cards"]).unwrap();
            tx.push("cards", "1").unwrap();
            panic!("as a plugin may");
        });
        caller.join().is_err()
    });
    assert!(panicked);
    push(&app, "cards", "2");
    assert_eq!(place.text("state/cards.json"), "[\n  2\n]");
}

#[test]
fn indexes_survive_steady_writing() {
    let disk = Arc::new(MemoryBackend::new());
    let app = Store::with_backend(disk, StoreOptions::default()).app("/app".as_ref());
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..400 {
                push(&app, "cards", &format!(r#"{{"id":"r{n}","t":"t{}"}}"#, n % 3));
            }
        });
        while !writer.is_finished() {
            let snapshot = app.read("cards").unwrap();
            let want: Vec<usize> = (0..snapshot.len()).filter(|n| n % 3 == 1).collect();
            assert_eq!(snapshot.matching("t", "t1"), want);
        }
    });
    assert_eq!(app.read("cards").unwrap().find("id", "r399"), Some(399));
}
