//! Transcripts: the app-store contract §10, S7, S8, S25.

use std::os::unix::fs::symlink;

use core_store::StoreError;

use crate::support::Place;

#[test]
fn confinement() {
    let place = Place::new();
    place.put("runs/x.ndjson", "1\n");
    place.put("runs/sub/x.ndjson", "2\n");
    place.put("secret.ndjson", "3\n");
    symlink(place.at("secret.ndjson"), place.at("runs/out.ndjson")).unwrap();
    symlink("x.ndjson", place.at("runs/sibling.ndjson")).unwrap();
    symlink("loop.ndjson", place.at("runs/loop.ndjson")).unwrap();
    symlink(place.at("runs"), place.at("linked")).unwrap();
    let app = place.app();
    let inside = place.at("runs/x").display().to_string();
    let x = Some("x.ndjson");
    let long = "n".repeat(249);
    for (dir, id, want) in [
        ("runs", "x", x),
        ("runs", "./x", x),
        ("runs", "missing/../x", x),
        ("runs", "../runs/x", x),
        ("runs", "../linked/x", x),
        ("runs", &inside, x),
        ("linked", "x", x),
        ("linked", "../runs/x", x),
        ("runs", "sibling", x),
        ("runs", ".", Some("..ndjson")),
        ("runs", "..", Some("...ndjson")),
        ("runs", "new", Some("new.ndjson")),
        ("runs", "", None),
        ("runs", "../secret", None),
        ("runs", "/etc/passwd", None),
        ("runs", "sub/x", None),
        ("runs", "sub/", None),
        ("runs", "out", None),
        ("runs", "loop", None),
        ("runs", "a\0b", None),
        ("runs", &long, None),
        ("missing", "x", x),
        ("missing", "../x", None),
    ] {
        let log = app.log(dir, id);
        let name = log.as_ref().and_then(|log| log.path().file_name()?.to_str());
        assert_eq!(name, want, "{dir} {id:?}");
    }
    assert!(app.log("runs", &"d/".repeat(3000)).is_none());
    // Looking creates nothing.
    assert!(!place.at("missing").exists());
}

#[test]
fn reading_passes_over_what_is_no_line() {
    let place = Place::new();
    let content = b"\xEF\xBB\xBF{\"bom\":1}\n{\"a\":1.0,\"a\":2}\r\n\n   \n[1,NaN]\r\"\\u00e9\"\nnot json\n\"torn \xC3\n{} {}\n null \n{\"torn\": ";
    place.put("runs/r.ndjson", content);
    let app = place.app();
    let log = app.log("runs", "r").unwrap();
    assert_eq!(log.read().unwrap(), ["{\"a\": 2}", "[1, NaN]", "\"é\"", "null"]);
    assert!(app.log("runs", "none").unwrap().read().unwrap().is_empty());
}

#[test]
fn appending_ends_a_torn_line_first() {
    for (before, after) in [
        (None, "{\"n\": [1, 2]}\n"),
        (Some(""), "{\"n\": [1, 2]}\n"),
        (Some("1\n"), "1\n{\"n\": [1, 2]}\n"),
        (Some("1\r"), "1\r{\"n\": [1, 2]}\n"),
        (Some("1\n{\"to"), "1\n{\"to\n{\"n\": [1, 2]}\n"),
    ] {
        let place = Place::new();
        if let Some(before) = before {
            place.put("chats/c.ndjson", before);
        }
        let log = place.app().log("chats", "c").unwrap();
        log.append("{\"n\":[1,\n2]}").unwrap();
        assert_eq!(place.text("chats/c.ndjson"), after, "{before:?}");
        assert!(matches!(log.append("{"), Err(StoreError::Line { .. })));
        assert!(matches!(log.append("NaN"), Err(StoreError::Line { .. })));
        assert_eq!(place.text("chats/c.ndjson"), after, "{before:?}");
    }
}

#[test]
fn creating_writes_whole_and_only_once() {
    let place = Place::new();
    let app = place.app();
    let log = app.log("runs", "r").unwrap();
    assert!(!log.exists().unwrap());
    assert!(log.create(["1", "{\"a\":1}"]).unwrap());
    assert!(!log.create(["2"]).unwrap());
    assert!(log.exists().unwrap());
    assert_eq!(place.text("runs/r.ndjson"), "1\n{\"a\": 1}\n");
    assert!(app.log("runs", "empty").unwrap().create([]).unwrap());
    assert_eq!(place.text("runs/empty.ndjson"), "");
    // One bad line, and nothing is made.
    assert!(app.log("runs", "bad").unwrap().create(["1", "{"]).is_err());
    assert_eq!(place.files("runs"), ["runs/empty.ndjson", "runs/r.ndjson"]);
}

#[test]
fn a_log_whose_temporary_name_is_too_long_is_not_created() {
    let place = Place::new();
    let app = place.app();
    for (length, created) in [(244, true), (245, false), (248, false)] {
        let log = app.log("runs", &"i".repeat(length)).unwrap();
        assert_eq!(log.create(["1"]).unwrap(), created, "{length}");
        assert_eq!(log.exists().unwrap(), created, "{length}");
        // A line needs no other name.
        log.append("2").unwrap();
        assert_eq!(log.read().unwrap().last().unwrap(), "2", "{length}");
    }
    assert!(app.log("runs", &"i".repeat(249)).is_none());
}

#[test]
fn removing_takes_the_target_of_a_link() {
    let place = Place::new();
    place.put("runs/x.ndjson", "1\n");
    symlink("x.ndjson", place.at("runs/link.ndjson")).unwrap();
    let app = place.app();
    assert!(app.log("runs", "link").unwrap().remove().unwrap());
    assert!(!place.at("runs/x.ndjson").exists());
    assert!(place.at("runs/link.ndjson").is_symlink());
    assert!(!app.log("runs", "link").unwrap().remove().unwrap());
    app.create_log_dir("artifact-chats").unwrap();
    assert!(place.at("artifact-chats").is_dir());
}
