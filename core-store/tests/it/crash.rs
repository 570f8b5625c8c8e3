//! The disk stops after the n-th step, for every n, and the next start finds every acknowledged
//! write and nothing that is half.

use std::sync::Arc;
use std::time::Duration;

use core_store::{Backend, Crash, Durability, MemoryBackend, Store, StoreError, StoreOptions};

use crate::support::texts;

/// Each way to stop, with the durability that must withstand it.
const KINDS: [(Crash, Durability); 4] = [
    (Crash::Process, Durability::Full),
    (Crash::Process, Durability::Os),
    (Crash::Power, Durability::Full),
    (Crash::NamesOnly, Durability::Full),
];

fn open(disk: &MemoryBackend, durability: Durability) -> Store {
    Store::with_backend(Arc::new(disk.clone()), StoreOptions { durability })
}

/// Runs `work` with a disk that stops after n steps, for each n up to a run that succeeds, and hands
/// what was acknowledged and what is left to `check`.
fn at_every_step<T>(
    prepare: impl Fn(&MemoryBackend),
    work: impl Fn(&Store, &mut T),
    check: impl Fn(&MemoryBackend, Durability, &T, &str),
) where
    T: Default,
{
    for (crash, durability) in KINDS {
        for n in 0.. {
            assert!(n < 500, "the work never gets done");
            let disk = MemoryBackend::new();
            prepare(&disk);
            let begin = disk.steps();
            disk.stop_after(n);
            let mut acknowledged = T::default();
            work(&open(&disk, durability), &mut acknowledged);
            let steps = disk.steps() - begin;
            let name = format!("{crash:?}, {durability:?}, stopped after {n} steps");
            check(&disk.crash(crash), durability, &acknowledged, &name);
            if steps <= n {
                break;
            }
        }
    }
}

#[test]
fn collections() {
    for existing in ["", "[1]"] {
        at_every_step(
            |disk| {
                if !existing.is_empty() {
                    disk.put("/app/state/cards.json".as_ref(), existing.as_bytes()).unwrap();
                }
            },
            |store, acknowledged: &mut Vec<bool>| {
                let app = store.app("/app".as_ref());
                for n in 10..14 {
                    let write = || {
                        let mut tx = app.begin(&["cards"])?;
                        tx.push("cards", &n.to_string())?;
                        tx.commit()
                    };
                    let result = write();
                    acknowledged.push(result.is_ok());
                }
            },
            |disk, durability, acknowledged, name| {
                let app = open(disk, durability).app("/app".as_ref());
                let snapshot = app.read("cards").unwrap();
                let before = usize::from(!existing.is_empty());
                let stored = &texts(&snapshot)[before..];
                let all = ["10", "11", "12", "13"];
                let certain = acknowledged.iter().filter(|ok| **ok).count();
                // What was refused comes after all that was not, so the list is a beginning.
                assert!(acknowledged[..certain].iter().all(|ok| *ok), "{name}");
                assert!(
                    stored.len() >= certain
                        && all.starts_with(&stored.iter().map(String::as_str).collect::<Vec<_>>()),
                    "{name}: {stored:?} after {acknowledged:?}"
                );
                // At most the one write that was under way may be there without an answer.
                assert!(stored.len() <= certain + 1, "{name}: {stored:?} after {acknowledged:?}");
                let mut tx = app.begin(&["cards"]).unwrap();
                tx.push("cards", "99").unwrap();
                tx.commit().unwrap();
                let content = disk.content("/app/state/cards.json".as_ref()).unwrap();
                assert!(content.ends_with(b"99\n]"), "{name}");
                assert!(disk.content("/app/state/cards.json.tmp".as_ref()).is_none(), "{name}");
            },
        );
    }
}

#[test]
fn a_full_disk_fails_one_write_and_no_other() {
    // Each step of the second of three writes fails once.
    for n in 0..4 {
        let disk = MemoryBackend::new();
        let app = open(&disk, Durability::Full).app("/app".as_ref());
        let write = |text: &str| -> Result<(), StoreError> {
            let mut tx = app.begin(&["cards"])?;
            tx.push("cards", text)?;
            tx.commit().map(|_| ())
        };
        write("1").unwrap();
        disk.fail_after(n);
        let second = write("2");
        let seen = texts(&app.read("cards").unwrap());
        assert!(second.is_err(), "step {n}");
        // Only the last step comes after the rename; its failure is told all the same.
        assert_eq!(seen, if n == 3 { vec!["1", "2"] } else { vec!["1"] }, "step {n}");
        assert!(disk.content("/app/state/cards.json.tmp".as_ref()).is_none(), "step {n}");
        write("3").unwrap();
        let mut want = seen;
        want.push("3".to_owned());
        assert_eq!(texts(&app.read("cards").unwrap()), want, "step {n}");
    }
}

#[test]
fn logs() {
    at_every_step(
        |_| {},
        |store, acknowledged: &mut Vec<String>| {
            let log = store.app("/app".as_ref()).log("runs", "r1").unwrap();
            if log.create(["\"a\"", "\"b\""]).is_ok_and(|created| created) {
                acknowledged.extend(["\"a\"".to_owned(), "\"b\"".to_owned()]);
            }
            for n in 0..4 {
                let line = format!("{{\"n\": {n}}}");
                if log.append(&line).is_ok() {
                    acknowledged.push(line);
                }
            }
        },
        |disk, durability, acknowledged, name| {
            let log = open(disk, durability).app("/app".as_ref()).log("runs", "r1").unwrap();
            let lines = log.read().unwrap();
            assert!(lines.starts_with(acknowledged), "{name}: {lines:?} after {acknowledged:?}");
            log.append("\"next\"").unwrap();
            let after = log.read().unwrap();
            assert!(after.starts_with(&lines), "{name}");
            assert_eq!(after.last().unwrap(), "\"next\"", "{name}");
            // The torn line is lost, or was whole but for its end.
            assert!(after.len() <= lines.len() + 2, "{name}: {after:?}");
        },
    );
}

#[test]
fn documents_of_folders() {
    const WAIT: Duration = Duration::from_secs(5);
    at_every_step(
        |disk| disk.create_dirs("/runs".as_ref(), true).unwrap(),
        |store, acknowledged: &mut Vec<&str>| {
            let folder = store.folder("/runs".as_ref(), "org/run", "state.json.lock").unwrap();
            let created = folder.create(|draft| {
                draft.file("state.json", "zero")?;
                draft.file("events/.next-id", "1\n")
            });
            if created.is_ok_and(|created| created) {
                acknowledged.push("created");
            }
            let Ok(guard) = folder.lock(WAIT) else { return };
            if guard.create_new("events/001-a.json", "first").is_ok_and(|created| created) {
                acknowledged.push("event");
            }
            if guard.replace("state.json", "one").is_ok() {
                acknowledged.push("replaced");
            }
        },
        |disk, durability, acknowledged, name| {
            let store = open(disk, durability);
            let folder = store.folder("/runs".as_ref(), "org/run", "state.json.lock").unwrap();
            let read = |document: &str| folder.read(document).unwrap();
            let has = |what: &str| acknowledged.contains(&what);
            if !folder.exists().unwrap() {
                assert!(acknowledged.is_empty(), "{name}: {acknowledged:?}");
                assert!(folder.create(|draft| draft.file("state.json", "zero")).unwrap());
                return;
            }
            // Whole from the first moment.
            assert_eq!(read("events/.next-id").as_deref(), Some("1\n"), "{name}");
            let state = read("state.json").unwrap();
            assert!(state == "one" || (state == "zero" && !has("replaced")), "{name}: {state}");
            match read("events/001-a.json") {
                Some(event) => assert_eq!(event, "first", "{name}"),
                None => assert!(!has("event"), "{name}"),
            }
            let guard = folder.lock(WAIT).unwrap();
            guard.replace("state.json", "two").unwrap();
            assert_eq!(read("state.json").as_deref(), Some("two"), "{name}");
            // Left-overs are gone once the lock has been taken.
            let raw = disk.list("/runs/org/run".as_ref()).unwrap().unwrap();
            let names: Vec<_> = raw.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["events", "state.json", "state.json.lock"], "{name}");
            for event in disk.list("/runs/org/run/events".as_ref()).unwrap().unwrap() {
                assert!([".next-id", "001-a.json"].contains(&&*event.name), "{name}: {event:?}");
            }
        },
    );
}

#[test]
fn documents_that_grow_and_change_their_name() {
    const WAIT: Duration = Duration::from_secs(5);
    at_every_step(
        |disk| {
            disk.create_dirs("/work/logs".as_ref(), true).unwrap();
            disk.put("/work/logs/state".as_ref(), b"broken").unwrap();
        },
        |store, acknowledged: &mut Vec<&str>| {
            let folder = store.folder("/work".as_ref(), "", ".lock").unwrap();
            let Ok(guard) = folder.lock(WAIT) else { return };
            if guard.rename("logs/state", "logs/state.corrupt-1").is_ok_and(|renamed| renamed) {
                acknowledged.push("renamed");
            }
            for line in ["1\n", "2\n", "3\n"] {
                if guard.append("logs/journal", line).is_ok() {
                    acknowledged.push(line);
                }
            }
        },
        |disk, durability, acknowledged, name| {
            let folder = open(disk, durability).folder("/work".as_ref(), "", ".lock").unwrap();
            let read = |document: &str| folder.read(document).unwrap();
            let (old, new) = (read("logs/state"), read("logs/state.corrupt-1"));
            assert_eq!(old.or(new.clone()).as_deref(), Some("broken"), "{name}");
            assert!(new.is_some() || !acknowledged.contains(&"renamed"), "{name}");
            let lines: String =
                acknowledged.iter().filter(|line| line.ends_with('\n')).copied().collect();
            let journal = read("logs/journal").unwrap_or_default();
            assert!(journal.starts_with(&lines), "{name}: {journal:?} after {lines:?}");
            folder.lock(WAIT).unwrap().append("logs/journal", "next\n").unwrap();
            let after = read("logs/journal").unwrap();
            assert!(
                after.starts_with(&journal) && after.ends_with("\nnext\n") || after == "next\n",
                "{name}: {after:?}"
            );
        },
    );
}
