//! Groups made by hand: writers are held in the queue until all are there.

use std::thread::{self, ScopedJoinHandle};

use super::*;
use crate::{AppStore, MemoryBackend, Store, StoreOptions, Transaction};

fn open() -> (MemoryBackend, AppStore) {
    let disk = MemoryBackend::new();
    let store = Store::with_backend(Arc::new(disk.clone()), StoreOptions::default());
    let app = store.app("/app".as_ref());
    // However slow the machine is, a group ends when the queue does.
    lock(&app.slot("cards").lane.state).limits.age = Duration::from_secs(600);
    (disk, app)
}

fn push(mut tx: Transaction, text: &str) -> Result<bool, StoreError> {
    tx.push("cards", text)?;
    tx.commit().map(|commit| commit.changed)
}

type Writer<'a> = Box<dyn FnOnce(&AppStore) -> Result<bool, StoreError> + Send + 'a>;

/// Holds the lane, lets `writers` queue up in order, then runs `first` as the first of the group.
fn run_group<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    app: &'env AppStore,
    writers: Vec<Writer<'scope>>,
    first: impl FnOnce(Transaction),
) -> Vec<ScopedJoinHandle<'scope, Result<bool, StoreError>>> {
    let tx = app.begin(&["cards"]).unwrap();
    let slot = app.slot("cards");
    let mut started = Vec::new();
    for writer in writers {
        let before = lock(&slot.lane.state).queue.len();
        started.push(scope.spawn(move || writer(app)));
        while lock(&slot.lane.state).queue.len() == before {
            thread::yield_now();
        }
    }
    first(tx);
    started
}

fn pusher(n: usize) -> Writer<'static> {
    Box::new(move |app| push(app.begin(&["cards"])?, &n.to_string()))
}

fn stored(app: &AppStore) -> Vec<String> {
    app.read("cards").unwrap().texts().map(str::to_owned).collect()
}

#[test]
fn writers_that_wait_together_are_written_once_in_their_order() {
    let (disk, app) = open();
    push(app.begin(&["cards"]).unwrap(), "0").unwrap();
    let before = disk.steps();
    thread::scope(|scope| {
        let writers = (2..40).map(pusher).collect();
        let started = run_group(scope, &app, writers, |tx| assert!(push(tx, "1").unwrap()));
        started.into_iter().for_each(|writer| assert!(writer.join().unwrap().unwrap()));
    });
    // Written, synced, renamed, name synced: once.
    assert_eq!(disk.steps() - before, 4);
    let want: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    assert_eq!(stored(&app), want);
}

#[test]
fn every_member_of_a_group_learns_of_its_failure_and_nothing_is_published() {
    for step in 0..4 {
        let (disk, app) = open();
        push(app.begin(&["cards"]).unwrap(), "0").unwrap();
        thread::scope(|scope| {
            let mut writers: Vec<Writer<'_>> = (2..6).map(pusher).collect();
            // One that only saw the others' changes must not report them either.
            writers.push(Box::new(|app| {
                let tx = app.begin(&["cards"])?;
                assert_eq!(tx.snapshot("cards")?.len(), 6);
                tx.rollback().map(|()| true)
            }));
            writers.push(Box::new(|app| app.begin(&["cards"])?.commit().map(|c| c.changed)));
            let started = run_group(scope, &app, writers, |tx| {
                disk.fail_after(step);
                assert!(push(tx, "1").is_err());
            });
            for writer in started {
                assert!(writer.join().unwrap().is_err(), "step {step}");
            }
        });
        // The last step comes after the rename.
        assert_eq!(stored(&app).len(), if step == 3 { 6 } else { 1 }, "step {step}");
        push(app.begin(&["cards"]).unwrap(), "9").unwrap();
        assert_eq!(stored(&app).last().unwrap(), "9");
    }
}

#[test]
fn a_member_writes_when_the_last_to_come_does_not() {
    let (_, app) = open();
    thread::scope(|scope| {
        let mut writers: Vec<Writer<'_>> = vec![pusher(2)];
        writers.push(Box::new(|app| {
            let mut tx = app.begin(&["cards"])?;
            tx.push("cards", "3")?;
            drop(tx);
            Ok(false)
        }));
        let started = run_group(scope, &app, writers, |tx| assert!(push(tx, "1").unwrap()));
        started.into_iter().for_each(|writer| assert!(writer.join().unwrap().is_ok()));
    });
    assert_eq!(stored(&app), ["1", "2"]);
}

#[test]
fn a_member_that_panics_takes_only_its_own_change_along() {
    let (_, app) = open();
    thread::scope(|scope| {
        let writers: Vec<Writer<'_>> = vec![
            Box::new(|app| {
                let mut tx = app.begin(&["cards"])?;
                tx.push("cards", "2")?;
                panic!("as a plugin may");
            }),
            pusher(3),
        ];
        let mut started = run_group(scope, &app, writers, |tx| assert!(push(tx, "1").unwrap()));
        assert!(started.remove(0).join().is_err());
        assert!(started.remove(0).join().unwrap().unwrap());
    });
    assert_eq!(stored(&app), ["1", "3"]);
}

#[test]
fn one_who_wants_several_collections_is_not_overtaken() {
    let (_, app) = open();
    thread::scope(|scope| {
        let writers: Vec<Writer<'_>> = vec![
            pusher(2),
            Box::new(|app| {
                let tx = app.begin(&["tasks", "cards"])?;
                // Not part of the group, so what it sees is stored.
                assert_eq!(tx.snapshot("cards")?.len(), 2);
                push(tx, "3")
            }),
            pusher(4),
        ];
        let started = run_group(scope, &app, writers, |tx| assert!(push(tx, "1").unwrap()));
        started.into_iter().for_each(|writer| assert!(writer.join().unwrap().is_ok()));
    });
    assert_eq!(stored(&app), ["1", "2", "3", "4"]);
}

#[test]
fn changes_that_cancel_each_other_write_nothing_and_indexes_stay_right() {
    let (disk, app) = open();
    let card = |n: usize, id: &str| format!("{{\"id\": \"{id}\", \"n\": {n}}}");
    let mut tx = app.begin(&["cards"]).unwrap();
    (0..50).for_each(|n| tx.push("cards", &card(n, &format!("r{n}"))).unwrap());
    tx.commit().unwrap();
    assert_eq!(app.read("cards").unwrap().find("id", "r7"), Some(7));
    let before = disk.steps();
    thread::scope(|scope| {
        let writers: Vec<Writer<'_>> = vec![Box::new(move |app| {
            let mut tx = app.begin(&["cards"])?;
            let snapshot = tx.snapshot("cards")?;
            assert_eq!((snapshot.find("id", "new"), snapshot.find("id", "r7")), (Some(50), None));
            tx.remove("cards", &[50])?;
            tx.replace("cards", 7, &card(7, "r7"))?;
            tx.commit().map(|commit| commit.changed)
        })];
        let started = run_group(scope, &app, writers, |mut tx| {
            tx.push("cards", &card(50, "new")).unwrap();
            tx.replace("cards", 7, &card(7, "other")).unwrap();
            tx.commit().unwrap();
        });
        started.into_iter().for_each(|writer| assert!(writer.join().unwrap().unwrap()));
    });
    assert_eq!(disk.steps(), before);
    let cards = app.read("cards").unwrap();
    assert_eq!((cards.find("id", "new"), cards.find("id", "r7")), (None, Some(7)));
    push(app.begin(&["cards"]).unwrap(), &card(50, "later")).unwrap();
    assert_eq!(app.read("cards").unwrap().find("id", "later"), Some(50));
}

#[test]
fn groups_are_bounded() {
    let (disk, app) = open();
    lock(&app.slot("cards").lane.state).limits.turns = 3;
    push(app.begin(&["cards"]).unwrap(), "0").unwrap();
    let before = disk.steps();
    thread::scope(|scope| {
        let writers = (2..8).map(pusher).collect();
        let started = run_group(scope, &app, writers, |tx| assert!(push(tx, "1").unwrap()));
        started.into_iter().for_each(|writer| assert!(writer.join().unwrap().unwrap()));
    });
    // Seven writers, three at a time.
    assert_eq!(disk.steps() - before, 3 * 4);
    assert_eq!(stored(&app), ["0", "1", "2", "3", "4", "5", "6", "7"]);
}
