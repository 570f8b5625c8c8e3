//! Confined directories under one lock.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use core_store::{Folder, StoreError};

use crate::support::Place;

const WAIT: Duration = Duration::from_secs(10);

fn folder(place: &Place, relative: &str) -> Folder {
    place.store().folder(&place.at("runs"), relative, "state.json.lock").unwrap()
}

#[test]
fn documents_are_replaced_created_once_listed_and_removed() {
    let place = Place::new();
    let run = folder(&place, "org/project/run");
    assert!(!run.exists().unwrap());
    assert_eq!(run.read("state.json").unwrap(), None);
    assert!(run.list("").unwrap().is_empty());
    assert!(run.lock(WAIT).is_err(), "there is nothing to lock");
    let created = run.create(|draft| {
        draft.file("state.json", "{}\n")?;
        draft.file("events/.next-id", "1\n")?;
        draft.dir("empty")
    });
    assert!(created.unwrap());
    assert!(run.exists().unwrap());
    let guard = run.lock(WAIT).unwrap();
    guard.replace("state.json", "{\"é\": 1}\n").unwrap();
    assert!(guard.create_new("events/001-a.json", "first").unwrap());
    assert!(!guard.create_new("events/001-a.json", "second").unwrap());
    assert!(guard.create_new("more/deep/x", "1").unwrap());
    assert_eq!(guard.read("events/001-a.json").unwrap().as_deref(), Some("first"));
    assert_eq!(run.read("state.json").unwrap().as_deref(), Some("{\"é\": 1}\n"));
    let names = |dir| run.list(dir).unwrap().into_iter().map(|e| (e.name, e.is_dir));
    assert_eq!(
        names("").collect::<Vec<_>>(),
        ["empty", "events", "more", "state.json", "state.json.lock"]
            .map(|name| (name.to_owned(), !name.starts_with("state")))
    );
    assert_eq!(names("events").map(|e| e.0).collect::<Vec<_>>(), [".next-id", "001-a.json"]);
    assert!(guard.remove("events/001-a.json").unwrap());
    assert!(!guard.remove("events/001-a.json").unwrap());
    drop(guard);
    // The lock file stays, and there is nothing else.
    assert_eq!(
        place.files("runs"),
        ["events/.next-id", "more/deep/x", "state.json", "state.json.lock"]
            .map(|file| format!("runs/org/project/run/{file}"))
    );
}

#[test]
fn documents_grow_by_whole_lines_and_change_their_name() {
    let place = Place::new();
    let run = folder(&place, "r");
    run.create(|_| Ok(())).unwrap();
    let guard = run.lock(WAIT).unwrap();
    guard.append("logs/journal", "1\n2\n").unwrap();
    guard.append("logs/journal", "3\n").unwrap();
    assert_eq!(run.read("logs/journal").unwrap().as_deref(), Some("1\n2\n3\n"));
    // A crash has torn the last line.
    place.put("runs/r/logs/journal", "1\n2\n{\"half");
    guard.append("logs/journal", "3\n").unwrap();
    assert_eq!(run.read("logs/journal").unwrap().as_deref(), Some("1\n2\n{\"half\n3\n"));
    place.put("runs/r/logs/old", "kept");
    assert!(!guard.rename("logs/journal", "logs/old").unwrap(), "the name is taken");
    assert_eq!(run.read("logs/old").unwrap().as_deref(), Some("kept"));
    assert!(guard.rename("logs/journal", "logs/new").unwrap());
    assert_eq!(run.read("logs/journal").unwrap(), None);
    assert_eq!(run.read("logs/new").unwrap().as_deref(), Some("1\n2\n{\"half\n3\n"));
    assert!(guard.rename("logs/gone", "logs/x").is_err());
    // Links are never written through.
    place.put("runs/secret", "x\n");
    symlink(place.at("runs/secret"), place.at("runs/r/link")).unwrap();
    assert!(matches!(guard.append("link", "y\n"), Err(StoreError::Outside { .. })));
    assert_eq!(std::fs::read_to_string(place.at("runs/secret")).unwrap(), "x\n");
}

#[test]
fn a_document_is_read_as_far_as_it_is_text() {
    let place = Place::new();
    let run = folder(&place, "r");
    assert_eq!(run.read_lossy("log").unwrap(), None);
    run.create(|draft| draft.file("log", "1\n2\n")).unwrap();
    assert_eq!(run.read_lossy("log").unwrap().as_deref(), Some("1\n2\n"));
    #[expect(clippy::disallowed_methods, reason = "a test tears a character")]
    std::fs::write(place.at("runs/r/log"), b"1\ncaf\xc3").unwrap();
    assert!(matches!(run.read("log"), Err(StoreError::NotUtf8 { .. })));
    assert_eq!(run.read_lossy("log").unwrap().as_deref(), Some("1\ncaf\u{fffd}"));
    assert!(run.read_lossy("../r/log").is_err());
}

#[test]
fn a_folder_moves_whole_to_a_place_that_is_free() {
    let place = Place::new();
    let (run, done) = (folder(&place, "now/r"), folder(&place, "done/r"));
    run.create(|draft| draft.file("events/1", "first")).unwrap();
    let guard = run.lock(WAIT).unwrap();
    guard.replace("state.json", "{}").unwrap();
    assert!(guard.move_to(&done).unwrap());
    assert!(!run.exists().unwrap() && run.lock(WAIT).is_err());
    assert_eq!(done.read("events/1").unwrap().as_deref(), Some("first"));
    assert_eq!(done.read("state.json").unwrap().as_deref(), Some("{}"));
    // What stands there is never replaced, empty or not.
    run.create(|draft| draft.file("state.json", "second")).unwrap();
    let empty = folder(&place, "done/e");
    empty.create(|_| Ok(())).unwrap();
    for taken in [&done, &empty] {
        assert!(!run.lock(WAIT).unwrap().move_to(taken).unwrap());
    }
    assert_eq!(run.read("state.json").unwrap().as_deref(), Some("second"));
    assert_eq!(done.read("state.json").unwrap().as_deref(), Some("{}"));
    // Nor does it leave its root.
    std::fs::create_dir_all(place.at("elsewhere")).unwrap();
    symlink(place.at("elsewhere"), place.at("runs/out")).unwrap();
    let out = place.store().folder(&place.at("runs"), "out/r", "state.json.lock").unwrap();
    assert!(matches!(run.lock(WAIT).unwrap().move_to(&out), Err(StoreError::Outside { .. })));
}

#[test]
fn what_a_crash_left_is_removed_but_not_what_another_writes() {
    let place = Place::new();
    let outer = folder(&place, "r");
    outer.create(|_| Ok(())).unwrap();
    let left = ["runs/r/.a.0123456789abcdef.tmp", "runs/r/logs/.b.0123456789abcdef.tmp"];
    let others =
        ["runs/r/inner/.c.0123456789abcdef.tmp", "runs/r/inner/events/.d.0123456789abcdef.tmp"];
    for path in left.iter().chain(&others) {
        place.put(path, "half");
    }
    // A folder inside: somebody may hold its lock, and be about to rename this.
    place.put("runs/r/inner/state.json.lock", "");
    drop(outer.lock(WAIT).unwrap());
    for path in left {
        assert!(!place.at(path).exists(), "{path}");
    }
    for path in others {
        assert!(place.at(path).exists(), "{path}");
    }
    drop(folder(&place, "r/inner").lock(WAIT).unwrap());
    for path in others {
        assert!(!place.at(path).exists(), "{path}");
    }
}

#[test]
fn names_that_are_not_plain_are_refused() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("runs/r")).unwrap();
    place.put("runs/secret", "x");
    let run = folder(&place, "r");
    let guard = run.lock(WAIT).unwrap();
    for name in ["", ".", "..", "../secret", "/etc/passwd", "a//b", "a/../b", "a/", "a\0"] {
        assert!(matches!(run.read(name), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.replace(name, ""), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.create_new(name, ""), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.remove(name), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.append(name, ""), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.rename(name, "x"), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(guard.rename("x", name), Err(StoreError::Name { .. })), "{name:?}");
        if !name.is_empty() {
            let opened = place.store().folder(&place.at("runs"), name, "lock");
            assert!(matches!(opened, Err(StoreError::Name { .. })), "{name:?}");
        }
    }
    assert!(place.store().folder(&place.at("runs"), "r", "a/b").is_err());
    place.put("runs/r/bytes", b"\xFF");
    assert!(matches!(run.read("bytes"), Err(StoreError::NotUtf8 { .. })));
}

#[test]
fn what_is_no_file_keeps_nobody_waiting() {
    let place = Place::new();
    place.put("runs/r/state.json", "mine");
    let run = folder(&place, "r");
    rustix::fs::mkfifoat(rustix::fs::CWD, place.at("runs/r/pipe"), rustix::fs::Mode::RWXU).unwrap();
    std::fs::create_dir(place.at("runs/r/directory")).unwrap();
    let guard = run.lock(WAIT).unwrap();
    for name in ["pipe", "directory"] {
        assert!(matches!(run.read(name), Err(StoreError::Io { .. })), "{name}");
        assert!(matches!(guard.append(name, "x\n"), Err(StoreError::Io { .. })), "{name}");
    }
    guard.replace("pipe", "mine").unwrap();
    assert_eq!(run.read("pipe").unwrap().as_deref(), Some("mine"));
}

#[test]
fn links_that_lead_out_are_refused() {
    let place = Place::new();
    place.put("outside/state.json", "secret");
    std::fs::create_dir_all(place.at("runs/org/real")).unwrap();
    symlink(place.at("outside"), place.at("runs/org/run")).unwrap();
    symlink(place.at("outside"), place.at("runs/org/real/events")).unwrap();
    symlink(place.at("outside/state.json"), place.at("runs/org/real/state.json")).unwrap();
    symlink(place.at("outside/lock"), place.at("runs/org/real/bad.lock")).unwrap();
    symlink("real", place.at("runs/org/alias")).unwrap();
    let out = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::Outside { .. })), "{result:?}");
    };
    let run = folder(&place, "org/run");
    out(run.exists().map(drop));
    out(run.read("state.json").map(drop));
    out(run.list("").map(drop));
    out(run.lock(WAIT).map(drop));
    out(run.create(|draft| draft.file("x", "")).map(drop));
    out(folder(&place, "org/run/deeper").create(|draft| draft.file("x", "")).map(drop));
    let real = folder(&place, "org/real");
    out(real.read("state.json").map(drop));
    out(real.read("events/state.json").map(drop));
    out(real.list("events").map(drop));
    let guard = real.lock(WAIT).unwrap();
    out(guard.replace("events/x", ""));
    out(guard.create_new("events/x", "").map(drop));
    out(guard.remove("events/state.json").map(drop));
    let other = place.store().folder(&place.at("runs"), "org/real", "bad.lock").unwrap();
    out(other.lock(WAIT).map(drop));
    // A link in the place of a document is replaced, its target stays.
    guard.replace("state.json", "mine").unwrap();
    assert_eq!(place.text("outside/state.json"), "secret");
    assert_eq!(place.files("outside"), ["outside/state.json"]);
    // One that stays inside is followed, and so is the root itself.
    assert_eq!(folder(&place, "org/alias").read("state.json").unwrap().as_deref(), Some("mine"));
    symlink(place.at("runs"), place.at("base")).unwrap();
    let base = place.store().folder(&place.at("base"), "org/real", "state.json.lock").unwrap();
    assert_eq!(base.read("state.json").unwrap().as_deref(), Some("mine"));
}

#[test]
fn of_many_creators_one_wins_and_losers_leave_nothing() {
    let place = Place::new();
    let won = AtomicUsize::new(0);
    let store = place.store();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let (place, store, won) = (&place, &store, &won);
            scope.spawn(move || {
                let run = store.folder(&place.at("runs"), "org/run", "lock").unwrap();
                let created = run.create(|draft| draft.file("owner", &n.to_string())).unwrap();
                won.fetch_add(usize::from(created), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
    assert_eq!(place.files("runs"), ["runs/org/run/owner"]);
    assert_eq!(std::fs::read_dir(place.at("runs/org")).unwrap().count(), 1);
}

#[test]
fn a_creation_that_fails_leaves_nothing() {
    let place = Place::new();
    let run = folder(&place, "org/run");
    let failed = run.create(|draft| {
        draft.file("a", "1")?;
        draft.file("a", "2")
    });
    assert!(failed.is_err());
    assert_eq!(std::fs::read_dir(place.at("runs/org")).unwrap().count(), 0);
    assert!(run.create(|draft| draft.file("a", "1")).unwrap());
    assert!(!run.create(|_| panic!("not built when it exists")).unwrap());
}

#[test]
fn the_lock_excludes_threads_and_times_out() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("runs/r")).unwrap();
    place.put("runs/r/n", "0");
    let store = place.store();
    let open = || store.folder(&place.at("runs"), "r", "lock").unwrap();
    let guard = open().lock(WAIT).unwrap();
    // From the same store and from one that shares nothing with it.
    for other in [open(), place.store().folder(&place.at("runs"), "r", "lock").unwrap()] {
        let error = other.lock(Duration::from_millis(30)).unwrap_err();
        assert!(matches!(error, StoreError::LockTimeout { .. }), "{error}");
    }
    drop(guard);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let guard = open().lock(WAIT).unwrap();
                    let n: u32 = guard.read("n").unwrap().unwrap().parse().unwrap();
                    guard.replace("n", &(n + 1).to_string()).unwrap();
                }
            });
        }
    });
    assert_eq!(open().read("n").unwrap().as_deref(), Some("80"));
}

#[test]
fn a_lock_file_that_is_removed_and_made_anew_still_excludes() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("runs/r")).unwrap();
    let guard = folder(&place, "r").lock(WAIT).unwrap();
    // An old script removes it: newcomers make a new one, which is another lock.
    std::fs::remove_file(place.at("runs/r/state.json.lock")).unwrap();
    let second = folder(&place, "r").lock(WAIT).unwrap();
    drop(guard);
    // Who waits for the file that is there waits for its holder.
    let error = folder(&place, "r").lock(Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, StoreError::LockTimeout { .. }), "{error}");
    drop(second);
}
