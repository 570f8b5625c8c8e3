//! Files under `state/`: the app-store contract §3 to §5 and its deviations.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use core_store::{State, StoreError};

use crate::support::{Place, chain, push, texts};

#[test]
fn a_missing_collection_reads_as_its_default_and_nothing_is_created() {
    let place = Place::new();
    let app = place.app();
    for (name, want) in [
        ("cards", "[]"),
        ("serveMcp", "{}"),
        ("gatePolicies", "{}"),
        ("onboarding", "{\n  \"completed\": false,\n  \"version\": 1\n}"),
    ] {
        let snapshot = app.read(name).unwrap();
        assert_eq!(*snapshot.state(), State::Missing, "{name}");
        assert_eq!(snapshot.value_text(), want, "{name}");
        assert!(snapshot.is_empty(), "{name}");
    }
    assert!(place.files("").is_empty());
}

#[test]
fn a_first_write_creates_file_and_sentinel_in_the_contract_form() {
    let place = Place::new();
    push(
        &place.app(),
        "cards",
        r#"{"id":"a","n":1.50,"s":"\u00e9\/\ud800","e":[],"o":{},"x":1,"x":2}"#,
    );
    let want = "[\n  {\n    \"id\": \"a\",\n    \"n\": 1.5,\n    \"s\": \"é/\\ud800\",\n    \"e\": [],\n    \"o\": {},\n    \"x\": 2\n  }\n]";
    assert_eq!(place.text("state/cards.json"), want);
    assert_eq!(place.files("state"), ["state/.cards.lock", "state/cards.json"]);
    let lock = std::fs::metadata(place.at("state/.cards.lock")).unwrap();
    assert_eq!((lock.permissions().mode() & 0o777, lock.len()), (0o600, 0));
}

#[test]
fn records_are_the_bytes_of_a_canonical_file() {
    let file = "[\n  {\n    \"id\": \"a\",\n    \"in\": {\n      \"id\": \"deep\"\n    }\n  },\n  7,\n  \"text\",\n  [\n    \"id\"\n  ]\n]";
    let place = Place::with("cards", file);
    let snapshot = place.app().read("cards").unwrap();
    assert_eq!(snapshot.len(), 4);
    assert_eq!(snapshot.value_text(), file);
    let record = snapshot.record(0).unwrap();
    assert_eq!(
        record.text(),
        "{\n    \"id\": \"a\",\n    \"in\": {\n      \"id\": \"deep\"\n    }\n  }"
    );
    assert_eq!(record.str("id").as_deref(), Some("a"));
    assert_eq!(record.field("in").unwrap().get("id").unwrap().as_str().as_deref(), Some("deep"));
    assert!(record.field("deep").is_none());
    assert!(snapshot.record(3).unwrap().field("id").is_none());
    assert!(snapshot.record(4).is_none());
}

#[test]
fn an_unchanged_collection_keeps_its_bytes() {
    let compact = r#"[{"id":"a","v":1.0}]"#;
    let place = Place::with("cards", compact);
    let app = place.app();
    let before = std::fs::metadata(place.at("state/cards.json")).unwrap().ino();
    let mut tx = app.begin(&["cards"]).unwrap();
    tx.replace("cards", 0, r#"{"id": "a", "v": 1.00}"#).unwrap();
    tx.set_list("cards").unwrap();
    assert!(!tx.commit().unwrap().changed);
    let mut tx = app.begin(&["cards", "tasks"]).unwrap();
    tx.remove("cards", &[]).unwrap();
    assert!(!tx.commit().unwrap().changed);
    assert_eq!(place.text("state/cards.json"), compact);
    assert_eq!(std::fs::metadata(place.at("state/cards.json")).unwrap().ino(), before);
    assert_eq!(
        place.files("state"),
        ["state/.cards.lock", "state/.tasks.lock", "state/cards.json"]
    );
}

#[test]
fn one_changed_record_rewrites_the_file_and_keeps_what_is_unknown() {
    let place = Place::with(
        "cards",
        r#"[{"zeta":1e400,"id":"a","k":12345678901234567890123},null,5,{"id":"b"},"x"]"#,
    );
    let app = place.app();
    let mut tx = app.begin(&["cards"]).unwrap();
    let position = tx.snapshot("cards").unwrap().find("id", "b").unwrap();
    tx.replace("cards", position, r#"{"id":"b","new":true}"#).unwrap();
    tx.push("cards", "false").unwrap();
    tx.remove("cards", &[2]).unwrap();
    assert!(tx.commit().unwrap().changed);
    let want = "[\n  {\n    \"zeta\": 1e400,\n    \"id\": \"a\",\n    \"k\": 12345678901234567890123\n  },\n  null,\n  {\n    \"id\": \"b\",\n    \"new\": true\n  },\n  \"x\",\n  false\n]";
    assert_eq!(place.text("state/cards.json"), want);
    assert_eq!(app.read("cards").unwrap().value_text(), want);
    assert_eq!(place.app().read("cards").unwrap().value_text(), want);
}

#[test]
fn removing_all_leaves_an_empty_list() {
    let place = Place::with("cards", r#"[1,2]"#);
    let app = place.app();
    let mut tx = app.begin(&["cards"]).unwrap();
    tx.remove("cards", &[0, 1]).unwrap();
    tx.commit().unwrap();
    assert_eq!(place.text("state/cards.json"), "[]");
    assert!(app.read("cards").unwrap().is_empty());
}

#[test]
fn falsy_values_count_as_an_empty_list() {
    for falsy in ["null", "{}", "0", "0.0", "-0", "\"\"", "false", " { } "] {
        let place = Place::with("cards", falsy);
        let app = place.app();
        assert_eq!(*app.read("cards").unwrap().state(), State::Falsy, "{falsy}");
        assert!(!app.begin(&["cards"]).unwrap().commit().unwrap().changed);
        assert_eq!(place.text("state/cards.json"), falsy);
        let mut tx = app.begin(&["cards"]).unwrap();
        tx.set_list("cards").unwrap();
        assert!(tx.commit().unwrap().changed);
        assert_eq!(place.text("state/cards.json"), "[]", "{falsy}");
        place.put("state/cards.json", falsy);
        push(&app, "cards", "1");
        assert_eq!(place.text("state/cards.json"), "[\n  1\n]", "{falsy}");
    }
}

#[test]
fn a_truthy_value_that_is_no_list_reads_as_empty_and_is_never_written_over() {
    let place = Place::with("cards", r#"{"a":1}"#);
    let app = place.app();
    let snapshot = app.read("cards").unwrap();
    assert_eq!((snapshot.state(), snapshot.len()), (&State::Odd, 0));
    assert_eq!(snapshot.value_text(), "{\n  \"a\": 1\n}");
    assert!(matches!(app.begin(&["cards"]), Err(StoreError::NotAList { .. })));
    assert_eq!(place.text("state/cards.json"), r#"{"a":1}"#);
}

#[test]
fn corrupt_files_read_as_default_and_refuse_writes() {
    let deep = "[".repeat(1025) + &"]".repeat(1025);
    let corrupt: [(&str, &[u8]); 9] = [
        ("empty", b""),
        ("torn", b"[{\"id\": \"a\""),
        ("byte order mark", b"\xEF\xBB\xBF[]"),
        ("trailing text", b"[] x"),
        ("trailing comma", b"[1,]"),
        ("raw control", b"[\"\x01\"]"),
        ("not UTF-8", b"[\"\xFF\"]"),
        ("two documents", b"[][]"),
        ("too deep", deep.as_bytes()),
    ];
    for (name, content) in corrupt {
        let place = Place::with("cards", content);
        let app = place.app();
        let snapshot = app.read("cards").unwrap();
        let State::Corrupt(reason) = snapshot.state().clone() else {
            panic!("{name}: not corrupt")
        };
        assert_eq!((snapshot.len(), &*snapshot.value_text()), (0, "[]"), "{name}");
        let path = place.at("state/cards.json");
        let want = format!(
            "{} is corrupt and could not be parsed ({reason}); inspect or restore it before retrying this write.",
            path.display()
        );
        assert_eq!(app.begin(&["cards"]).unwrap_err().to_string(), want, "{name}");
        // Others can be written, and a repaired file is seen at once.
        push(&app, "tasks", "1");
        assert_eq!(std::fs::read(&path).unwrap(), content, "{name}");
        place.put("state/cards.json", "[1]");
        assert_eq!(app.read("cards").unwrap().len(), 1, "{name}");
        push(&app, "cards", "2");
    }
}

#[test]
fn of_several_corrupt_files_the_first_in_collection_order_is_named() {
    let place = Place::with("cards", "x");
    place.put("state/comments.json", "x");
    place.put("state/costEvents.json", "x");
    let all = ["cards", "comments", "costEvents", "inbox", "runs", "tasks"];
    let error = place.app().begin(&all).unwrap_err().to_string();
    assert!(error.contains("state/comments.json is corrupt"), "{error}");
    // All sentinels were taken all the same, and are free again.
    assert!(place.at("state/.tasks.lock").exists());
    push(&place.app(), "tasks", "1");
}

#[test]
fn several_collections_are_changed_by_one_transaction() {
    let place = Place::with("runs", "[1,2,3]");
    let app = place.app();
    let mut tx = app.begin(&["tasks", "runs", "inbox"]).unwrap();
    assert_eq!(tx.collections().collect::<Vec<_>>(), ["inbox", "runs", "tasks"]);
    tx.push("tasks", r#"{"id":"t"}"#).unwrap();
    tx.remove("runs", &[0, 2]).unwrap();
    assert!(matches!(tx.push("cards", "1"), Err(StoreError::NotHeld { .. })));
    tx.commit().unwrap();
    assert_eq!(place.text("state/runs.json"), "[\n  2\n]");
    assert_eq!(place.text("state/tasks.json"), "[\n  {\n    \"id\": \"t\"\n  }\n]");
    assert!(!place.at("state/inbox.json").exists());
    assert_eq!(texts(&app.read("runs").unwrap()), ["2"]);
}

#[test]
fn dropped_and_rolled_back_transactions_leave_nothing() {
    let place = Place::with("cards", "[1]");
    let app = place.app();
    let mut tx = app.begin(&["cards"]).unwrap();
    tx.push("cards", "2").unwrap();
    drop(tx);
    let mut tx = app.begin(&["cards"]).unwrap();
    assert_eq!(tx.snapshot("cards").unwrap().len(), 1);
    tx.push("cards", "3").unwrap();
    tx.rollback().unwrap();
    let mut tx = app.begin(&["cards", "tasks"]).unwrap();
    tx.push("cards", "4").unwrap();
    drop(tx);
    assert_eq!(place.text("state/cards.json"), "[1]");
    push(&app, "cards", "5");
    assert_eq!(place.text("state/cards.json"), "[\n  1,\n  5\n]");
}

#[test]
fn a_record_that_is_no_json_is_refused_and_the_others_go_on() {
    let place = Place::new();
    let app = place.app();
    let mut tx = app.begin(&["cards"]).unwrap();
    for bad in ["", "{", "NaN", "[1e999]", "{\"a\": -Infinity}", "1 2"] {
        assert!(matches!(tx.push("cards", bad), Err(StoreError::Record { .. })), "{bad}");
    }
    let deepest = "[".repeat(1023) + &"]".repeat(1023);
    tx.push("cards", &deepest).unwrap();
    // One level more would make a file that cannot be read again.
    let error = tx.push("cards", &format!("[{deepest}]")).unwrap_err();
    assert!(chain(&error).contains("nested deeper than 1024 levels"), "{}", chain(&error));
    assert!(matches!(tx.replace("cards", 0, "1"), Err(StoreError::Position { .. })));
    tx.commit().unwrap();
    assert_eq!(place.app().read("cards").unwrap().len(), 1);
}

#[test]
fn special_numbers_on_disk_are_carried_and_cannot_be_added() {
    let place = Place::with("runs", r#"[{"id":"a","c":NaN},{"id":"b","c":1}]"#);
    let app = place.app();
    let mut tx = app.begin(&["runs"]).unwrap();
    tx.replace("runs", 0, r#"{"id":"a","c":NaN,"d":1}"#).unwrap();
    assert!(tx.replace("runs", 1, r#"{"id":"b","c":NaN}"#).is_err());
    tx.commit().unwrap();
    assert!(place.text("state/runs.json").contains("\"c\": NaN,\n    \"d\": 1"));
}

#[test]
fn a_linked_file_is_read_through_and_replaced_by_a_regular_one() {
    let place = Place::with("real", "[1]");
    symlink(place.at("state/real.json"), place.at("state/cards.json")).unwrap();
    let app = place.app();
    assert_eq!(app.read("cards").unwrap().len(), 1);
    push(&app, "cards", "2");
    assert!(!place.at("state/cards.json").is_symlink());
    assert_eq!(place.text("state/cards.json"), "[\n  1,\n  2\n]");
    assert_eq!(place.text("state/real.json"), "[1]");
}

#[test]
fn stale_temporary_files_are_never_trusted() {
    let place = Place::with("cards", "[1]");
    place.put("victim", "keep me");
    place.put("state/cards.json.tmp", "[1, 2, 3, 4, 5, 6, 7, 8, 9 torn");
    let app = place.app();
    assert_eq!(app.read("cards").unwrap().len(), 1);
    push(&app, "cards", "2");
    assert_eq!(place.text("state/cards.json"), "[\n  1,\n  2\n]");
    // A link planted there is not written through.
    symlink(place.at("victim"), place.at("state/cards.json.tmp")).unwrap();
    push(&app, "cards", "3");
    assert_eq!(place.text("victim"), "keep me");
    assert_eq!(place.files("state"), ["state/.cards.lock", "state/cards.json"]);
}

#[test]
fn a_write_that_cannot_be_made_is_an_error_and_changes_nothing() {
    let place = Place::with("cards", "[1]");
    std::fs::create_dir_all(place.at("state/cards.json.tmp/in the way")).unwrap();
    let app = place.app();
    let mut tx = app.begin(&["cards"]).unwrap();
    tx.push("cards", "2").unwrap();
    let error = tx.commit().unwrap_err();
    assert!(chain(&error).starts_with("could not write"), "{}", chain(&error));
    assert_eq!(place.text("state/cards.json"), "[1]");
    assert_eq!(app.read("cards").unwrap().len(), 1);
    std::fs::remove_dir_all(place.at("state/cards.json.tmp")).unwrap();
    push(&app, "cards", "3");
    assert_eq!(place.text("state/cards.json"), "[\n  1,\n  3\n]");
}

#[test]
fn a_state_directory_that_cannot_be_is_an_error() {
    let place = Place::new();
    place.put("file", "x");
    let app = place.store().app(&place.at("file"));
    assert!(app.read("cards").is_err());
    assert!(app.begin(&["cards"]).is_err());
    let app = place.app();
    for name in ["", "../cards", ".cards", "a/b", "a\0b", "a.b"] {
        assert!(matches!(app.read(name), Err(StoreError::Name { .. })), "{name:?}");
        assert!(matches!(app.begin(&[name]), Err(StoreError::Name { .. })), "{name:?}");
    }
}

#[test]
fn another_programs_change_shows_in_the_next_read() {
    let place = Place::with("cards", "[1]");
    let app = place.app();
    assert_eq!(texts(&app.read("cards").unwrap()), ["1"]);
    // Same size, within the tick of the clock, in place: only looking again can tell.
    for value in 2..9 {
        place.put("state/cards.json", format!("[{value}]"));
        assert_eq!(texts(&app.read("cards").unwrap()), [value.to_string()]);
    }
    std::fs::remove_file(place.at("state/cards.json")).unwrap();
    assert_eq!(*app.read("cards").unwrap().state(), State::Missing);
}

#[test]
fn an_aged_file_is_parsed_once() {
    let place = Place::with("cards", r#"[{"id":"a"}]"#);
    let file = std::fs::File::options().append(true).open(place.at("state/cards.json")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let app = place.app();
    // The time of the last change of anything cannot be set, so wait until it has aged: then two
    // reads give the very same record text.
    let same = || {
        let (a, b) = (app.read("cards").unwrap(), app.read("cards").unwrap());
        std::ptr::eq(a.texts().next().unwrap(), b.texts().next().unwrap())
    };
    let began = SystemTime::now();
    while !same() {
        assert!(began.elapsed().unwrap() < Duration::from_secs(10), "never trusted");
    }
    // An own commit needs no second look at all.
    push(&app, "cards", r#"{"id":"b"}"#);
    assert!(same());
}

#[test]
fn lookups_find_string_fields_of_objects_in_file_order() {
    let mut records: Vec<String> =
        (0..200).map(|n| format!(r#"{{"id":"r{n}","taskId":"t{}"}}"#, n % 7)).collect();
    records[3] = r#"{"taskId":"t3","id":"\u00e9\n\"x\""}"#.to_owned();
    records[10] = "\"t3\"".to_owned();
    records[17] = r#"{"id":17,"taskId":["t3"]}"#.to_owned();
    records[24] = r#"{"id":"\ud800","in":{"taskId":"t3"}}"#.to_owned();
    let place = Place::with("cards", format!("[{}]", records.join(",")));
    let app = place.app();
    let snapshot = app.read("cards").unwrap();
    let want: Vec<usize> = (0..200).filter(|n| n % 7 == 3 && ![10, 17, 24].contains(n)).collect();
    assert_eq!(snapshot.matching("taskId", "t3"), want);
    assert_eq!(snapshot.find("taskId", "t3"), Some(3));
    assert_eq!(snapshot.find("id", "é\n\"x\""), Some(3));
    assert_eq!(snapshot.find("id", "17"), None);
    assert_eq!(snapshot.find("id", "\u{FFFD}"), None);
    assert_eq!(snapshot.find("no such field", "t3"), None);
}

#[test]
fn paths_are_taken_as_named() {
    let place = Place::new();
    let app = place.store().app(&place.at("~/x/../y"));
    std::fs::create_dir_all(place.at("~/x")).unwrap();
    push(&app, "cards", "1");
    assert!(place.at("~/y/state/cards.json").exists());
    assert_eq!(app.dir(), place.at("~/x/../y"));
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let place = Place::with("tasks", b"[1]");
    let app = place.app();
    let fifo = place.at("state/cards.json");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for error in
        [app.read("cards").map(|_| ()).unwrap_err(), app.begin(&["cards"]).map(|_| ()).unwrap_err()]
    {
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("not a file with records"), "{error}: {cause}");
    }
    assert_eq!(app.read("tasks").unwrap().len(), 1);
    // And a log that is one.
    let log = app.log("runs", "r").unwrap();
    std::fs::create_dir_all(log.path().parent().unwrap()).unwrap();
    mknodat(CWD, log.path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = log.append("{}").unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("not a file with records"), "{error}: {cause}");
}
