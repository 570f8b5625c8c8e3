//! What `udf-host check` promises an author: the shipped operations keep every rule, and each rule is seen when it is
//! broken, by operations of `tests/fixtures/check` that break one of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::build::built;
use crate::support::fixture::{snapshot, write};
use crate::support::{checkout, parse};

/// Runs `check` over these operations alone, in surroundings that a check must leave as they are.
fn check(home: &Path, udfs: &Path, arguments: &[&str]) -> Output {
    let scratch = home.join("tmp");
    std::fs::create_dir_all(&scratch).unwrap();
    let output = Command::new(&built().host)
        .args(["check", "--only", "--udfs"])
        .arg(udfs)
        .args(arguments)
        .env("XDG_CACHE_HOME", &built().cache)
        .env("OPENFUSED_APP_DIR_STATE", home.join("store"))
        .env("TMPDIR", &scratch)
        .env("GITHUB_TOKEN", "a token of the person who checks")
        .current_dir(home)
        .output()
        .unwrap();
    let left = std::fs::read_dir(&scratch).unwrap().count();
    assert_eq!(left, 0, "nothing stays in the folder for temporary files");
    output
}

#[track_caller]
fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.is_empty(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    parse(&text)
}

/// A rule that is broken, and words of what is said about it.
type Expected = (&'static str, &'static [&'static str]);

/// The finding about a rule.
fn finding<'a>(of: &'a Value, rule: &str) -> &'a Value {
    let findings = of["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["rule"] == rule)
        .unwrap_or_else(|| panic!("{rule}: {of}"))
}

#[test]
fn every_shipped_operation_keeps_every_rule_in_both_lanes() {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("store/state/cards.json"), b"[]\n");
    let before = snapshot(&home.path().join("store"));
    let output = check(home.path(), &built().udfs, &["--all", "--limit", "120", "--json"]);
    let report = report(&output);
    assert_eq!(snapshot(&home.path().join("store")), before, "nobody's state is touched");
    let broken: Vec<String> = report["operations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|op| op["holds"] != true)
        .map(ToString::to_string)
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!((output.status.code(), &report["broken"]), (Some(0), &0.into()));
    let ops = report["operations"].as_array().unwrap();
    assert!(ops.len() >= 57, "{}", ops.len());
    for op in ops {
        // One of the two about files does not apply; all else was looked at.
        let skipped: Vec<&Value> = op["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["verdict"] != "holds")
            .map(|finding| &finding["rule"])
            .collect();
        assert!(skipped == ["read_only"] || skipped == ["writes"], "{op}");
        for rule in ["examples", "lanes", "deterministic", "undeclared"] {
            assert!(finding(op, rule)["calls"].as_u64() > Some(0), "{rule}: {op}");
        }
    }
    let get = ops.iter().find(|op| op["op"] == "_core.feedback-management.get_card").unwrap();
    assert!(finding(get, "hostile")["calls"].as_u64() >= Some(60), "{get}");
}

#[test]
fn each_rule_is_seen_when_it_is_broken_and_only_that() {
    let home = tempfile::tempdir().unwrap();
    let udfs = checkout().join("tests/fixtures/check");
    let output = check(home.path(), &udfs, &["unsound", "--limit", "20", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    let ops: BTreeMap<&str, &Value> = report["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|op| (op["op"].as_str().unwrap().rsplit('.').next().unwrap(), op))
        .collect();
    let want: [(&str, &[Expected]); 11] = [
        ("sound", &[]),
        // Its example says that nothing is sent.
        ("phones", &[]),
        ("unread", &[("loads", &["no spec.md"])]),
        (
            "lies",
            &[
                ("descriptor", &["no doc comment"]),
                ("spec", &["no section `## Errors`", "`count`", "`number`"]),
                ("examples", &["example 1 answers otherwise", "want 2, got 1"]),
            ],
        ),
        ("lenient", &[("undeclared", &["`no_such_parameter` is accepted"])]),
        (
            "crashes",
            &[(
                "hostile",
                &[
                    "a NUL: `default.unsound.crashes` crashed: signal 6",
                    "emoji: `default.unsound.crashes` panicked",
                    "a negative number: `default.unsound.crashes` did not finish",
                ],
            )],
        ),
        // It ended the process that checks, and the others were checked all the same.
        (
            "bites",
            &[("hostile", &["NaN in the inline lane: it ended the whole process with status 3"])],
        ),
        (
            "scribbles",
            &[(
                "read_only",
                &[
                    "changed `scribbled.txt`",
                    "NaN: changed `home/.scribbled` beside the state folder",
                ],
            )],
        ),
        (
            "strays",
            &[(
                "writes",
                &[
                    "changed `state/others.json`",
                    "`text` = a number: `strays` writes the collection `cards` without declaring it",
                ],
            )],
        ),
        ("counts", &[("deterministic", &["a second equal call answers otherwise"])]),
        (
            "lanes",
            &[(
                "lanes",
                &["in the inline lane: example 1 answers otherwise", "answer differently"],
            )],
        ),
    ];
    assert_eq!(ops.len(), want.len(), "{report}");
    for (op, rules) in want {
        let found = ops[op];
        let broken: Vec<&str> = found["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["verdict"] == "broken")
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        let expected: Vec<&str> = rules.iter().map(|(rule, _)| *rule).collect();
        assert_eq!(broken, expected, "{found:#}");
        assert_eq!(found["holds"], rules.is_empty());
        for (rule, words) in rules {
            let finding = finding(found, rule);
            let said = finding["what"].as_array().unwrap();
            for words in *words {
                let is_said = said.iter().any(|what| what.as_str().unwrap().contains(words));
                assert!(is_said, "{op} {rule} {words:?}: {said:#?}");
            }
            assert!(!finding["remedy"].as_str().unwrap_or_default().is_empty(), "{finding}");
        }
    }
    assert_eq!(report["broken"], 9);
}

#[test]
fn people_read_what_is_wrong_and_scripts_read_the_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let udfs = checkout().join("tests/fixtures/check");
    for (arguments, code, words) in [
        (&["unsound/sound"][..], 0, &["default.unsound.sound: 9 rules hold, "][..]),
        (
            &["unsound/lies", "unsound.lenient"],
            1,
            &[
                "default.unsound.lies:\n  descriptor: it has no doc comment",
                "\n    correct spec.md, or the function's parameters\n",
                "2 of 2 operations break a rule",
            ],
        ),
        (&["unsound/nothing"], 3, &["nothing"]),
        (&[], 2, &["OPERATION"]),
        (&["unsound/sound", "--all"], 2, &["--all"]),
        (&["unsound/sound", "--limit", "0"], 2, &["--limit"]),
    ] {
        let output = check(home.path(), &udfs, arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for words in words {
            assert!(said.contains(words), "{arguments:?} {words:?}: {said}");
        }
    }
}

#[test]
fn a_cache_named_from_where_one_stands_is_found_from_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    // The calls of a check stand in another folder than the command does.
    let output = Command::new(&built().host)
        .args(["check", "unsound/sound", "--only", "--udfs"])
        .arg(checkout().join("tests/fixtures/check"))
        .env("UDF_HOST_CACHE", "its/cache")
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(home.path().join("its/cache").is_dir());
}

#[test]
fn what_was_packed_is_checked_as_well() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("packed");
    let packed = Command::new(&built().host)
        .args(["pack", "--only", "--udfs"])
        .arg(checkout().join("tests/fixtures/check"))
        .arg(&out)
        .args(["unsound/sound", "unsound/lenient"])
        .env("XDG_CACHE_HOME", &built().cache)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    // Neither cargo nor sources: the folder is all there is.
    let output = Command::new(&built().host)
        .args(["check", "--only", "--plugins"])
        .arg(&out)
        .args(["--all", "--json"])
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env("PATH", "")
        .current_dir(home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    let of = |at: usize| (&report["operations"][at]["op"], &report["operations"][at]["holds"]);
    assert_eq!(of(0), (&"default.unsound.lenient".into(), &false.into()), "{report}");
    assert_eq!(of(1), (&"default.unsound.sound".into(), &true.into()), "{report}");
    let lanes = finding(&report["operations"][1], "lanes");
    assert_eq!(lanes["verdict"], "holds", "{lanes}");
}
