//! Commands for people and scripts: what they print, what they leave alone, and the number they end with.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::fixture::{Found, snapshot, write};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{checkout, parse};

/// A folder with operations and a store, and commands in it.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().unwrap() }
    }

    fn udfs(&self) -> PathBuf {
        self.folder.path().join("udfs")
    }

    fn app_dir(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    /// Copies an operation of the fixtures under another project and name.
    fn add(&self, fixture: &str, project: &str, op: &str) {
        let from = checkout().join("tests/fixtures/udfs/faults").join(fixture);
        for (relative, found) in snapshot(&from) {
            let Found::File(bytes) = found else { panic!("{relative} is a link") };
            let text = String::from_utf8(bytes).unwrap();
            let text = text
                .replace(&format!("udf-faults-{fixture}"), &format!("udf-{project}-{op}"))
                .replace(&format!("fn {fixture}("), &format!("fn {op}("));
            write(&self.udfs().join(project).join(op).join(relative), text.as_bytes());
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let built = built();
        let mut command = Command::new(&built.host);
        command.args(words).arg("--only").arg("--udfs").arg(self.udfs());
        command.arg("--app-dir").arg(self.app_dir());
        command.env("XDG_CACHE_HOME", &built.cache).env_remove("OPENFUSED_APP_DIR_STATE");
        command.stdin(Stdio::null());
        command
    }

    /// The number a command ends with, and what it printed.
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        told(&self.command(words).output().unwrap())
    }

    /// What it prints as JSON.
    fn json(&self, words: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.run(words);
        assert!(!out.is_empty(), "{words:?} ended with {code} and printed nothing: {err}");
        (code, parse(&out))
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// The findings of `doctor --json` whose place holds this text, each with what and remedy.
fn findings<'a>(report: &'a Value, place: &str) -> Vec<&'a Value> {
    let all = report["findings"].as_array().unwrap();
    let named = all.iter().filter(|finding| finding["place"].as_str().unwrap().contains(place));
    named
        .inspect(|finding| {
            assert!(!finding["what"].as_str().unwrap().is_empty(), "{finding}");
            assert!(!finding["remedy"].as_str().unwrap().is_empty(), "{finding}");
        })
        .collect()
}

#[test]
fn doctor_finds_nothing_in_order_and_names_what_is_not() {
    let desk = Desk::new();
    desk.add("greets", "desk", "greets");
    let spec = desk.udfs().join("desk/greets/spec.md");
    let good = "# greets\n\nGreets.\n\n## Inputs\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n\
        | `name` | string | no, default `you` | Whom. |\n\n## Output\n\nText.\n\n## Errors\n\nNone.\n\n\
        ## Collections\n\nNone.\n\n## Examples\n\nNone.\n";
    write(&spec, good.as_bytes());
    // Not built yet: it says so, and builds nothing.
    let (code, report) = desk.json(&["doctor", "--json"]);
    assert_eq!((code, findings(&report, "desk.greets").len()), (1, 1), "{report}");
    let (code, out, err) = desk.run(&["build"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, report) = desk.json(&["doctor", "--json"]);
    assert_eq!((code, &report["problems"]), (0, &json!(0)), "{report}");

    // The spec drifts from the code.
    write(&spec, good.replace("`name`", "`nick`").as_bytes());
    assert_eq!(desk.run(&["build"]).0, 0);
    let (code, report) = desk.json(&["doctor", "--json"]);
    let drift = findings(&report, "desk.greets");
    assert_eq!(code, 1, "{report}");
    assert!(drift.iter().any(|it| it["what"].as_str().unwrap().contains("nick")), "{report}");
    assert!(drift.iter().any(|it| it["remedy"].as_str().unwrap().contains("spec.md")), "{report}");
    write(&spec, good.as_bytes());
    assert_eq!(desk.run(&["build"]).0, 0);

    // The source is newer than what was built.
    let source = desk.udfs().join("desk/greets/src/lib.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    write(&source, text.replace("hello", "good day").as_bytes());
    let (code, report) = desk.json(&["doctor", "--json"]);
    assert_eq!((code, findings(&report, "desk.greets").len()), (1, 1), "{report}");
    write(&source, text.as_bytes());

    // The store: a corrupt collection, a lock that is held. Both stay as they are.
    let cards = desk.app_dir().join("state/cards.json");
    write(&cards, b"[{\"id\": ");
    write(&desk.app_dir().join("state/.tasks.lock"), b"");
    let mut holder = Command::new("flock")
        .arg(desk.app_dir().join("state/.tasks.lock"))
        .args(["sh", "-c", "echo held; read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(holder.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    assert_eq!(line, "held\n");
    let before = snapshot(&desk.app_dir());
    let (code, report) = desk.json(&["doctor", "--json"]);
    assert_eq!(code, 1, "{report}");
    assert!(findings(&report, "cards.json")[0]["what"].to_string().contains("cannot be parsed"));
    let lock = findings(&report, ".tasks.lock");
    assert!(lock[0]["what"].to_string().contains("wait for process"), "{report}");
    let (code, text, _) = desk.run(&["doctor"]);
    assert_eq!(code, 1);
    for part in ["cards.json", ".tasks.lock", "cannot be parsed"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert_eq!(snapshot(&desk.app_dir()), before);
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn doctor_knows_what_operations_write() {
    let desk = Desk::new();
    let state = desk.app_dir().join("state");
    write(&state.join("cards.json"), b"{\"a\": 1}");
    write(&state.join("onboarding.json"), b"{\"a\": 1}");
    std::fs::create_dir(state.join("tasks.json")).unwrap();
    let report = |app_dir: &Path| {
        let mut command = Command::new(&built().host);
        command.args(["doctor", "--json", "--only", "--udfs"]).arg(&built().udfs);
        command.arg("--app-dir").arg(app_dir).env("XDG_CACHE_HOME", &built().cache);
        let (code, out, err) = told(&command.output().unwrap());
        assert_eq!(code, 1, "{out}{err}");
        parse(&out)
    };
    let told = report(&desk.app_dir());
    let one = |place: &str| findings(&told, place)[0].clone();
    let (cards, tasks) = (one("cards.json"), one("tasks.json"));
    assert_eq!(cards["severity"], "problem", "{told}");
    assert!(cards["what"].as_str().unwrap().contains("_core."), "{cards}");
    assert!(cards["remedy"].as_str().unwrap().contains("restore"), "{cards}");
    assert_eq!(one("onboarding.json")["severity"], "note", "{told}");
    assert!(tasks["what"].as_str().unwrap().contains("directory"), "{tasks}");

    let file = state.join("cards.json");
    let told = report(&file);
    assert!(findings(&told, "cards.json")[0]["what"].to_string().contains("not a directory"));
}

#[test]
fn a_host_says_at_its_start_that_its_state_folder_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    write(&file, b"mine");
    for (app_dir, warned) in
        [(file.clone(), true), (file.join("below"), true), (folder.path().join("new"), false)]
    {
        let host = HostProcess::start(&HostOptions::new().arg("--app-dir").arg(&app_dir));
        host.logged(" serving");
        let log = host.stderr();
        assert_eq!(log.contains("the state folder cannot be used"), warned, "{log}");
        let words = format!("{}: records cannot be kept here: not a directory", file.display());
        assert_eq!(log.contains(&words) && log.contains("--app-dir"), warned, "{log}");
        assert_eq!(host.get("/health").status, 200);
        assert!(!folder.path().join("new").exists(), "only operations make it");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn doctor_looks_at_the_folder_that_is_used() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.udfs()).unwrap();
    let bare = |app_dir: Option<&Path>, home: Option<&OsStr>| {
        let mut command = Command::new(&built().host);
        command.args(["doctor", "--json", "--only", "--udfs"]).arg(desk.udfs());
        command.env_remove("OPENFUSED_APP_DIR_STATE").env("XDG_CACHE_HOME", &built().cache);
        if let Some(dir) = app_dir {
            command.arg("--app-dir").arg(dir);
        }
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let (_, out, err) = told(&command.output().unwrap());
        assert!(!out.is_empty(), "{err}");
        parse(&out)
    };
    let report = bare(None, Some(OsStr::new("")));
    assert_eq!(report["appDir"], "/.openfused/app");
    // A name that is no UTF-8 is one, too.
    let odd = desk.folder.path().join(OsStr::from_bytes(b"odd\xff"));
    write(&odd.join("state/cards.json"), b"[{");
    let report = bare(Some(&odd), None);
    assert_eq!(findings(&report, "cards.json").len(), 1, "{report}");
}

#[test]
fn every_way_to_end_has_its_number() {
    let desk = Desk::new();
    desk.add("greets", "desk", "greets");
    desk.add("panics", "desk", "panics");
    desk.add("will_not_compile", "desk", "will_not_compile");
    let (code, report) = desk.json(&["build", "--json"]);
    assert_eq!(code, 1, "{report}");
    assert!(report.to_string().contains("will_not_compile"), "{report}");
    let exec = |words: &[&str]| desk.run(&[&["exec"], words].concat());

    assert_eq!(
        exec(&["desk.greets", "name=Ada"]),
        (0, "\"hello Ada\"\n".to_owned(), String::new())
    );
    assert_eq!(exec(&["default.desk.greets"]).1, "\"hello you\"\n");
    let (code, envelope) = desk.json(&["exec", "greets", "--json"]);
    assert_eq!((code, envelope), (0, json!({"data": "hello you", "error": null})));
    for (words, code, said) in [
        (&["desk.panics", "kind=text"][..], 1, "panic"),
        (&["desk.will_not_compile"], 1, "desk.will_not_compile` cannot run: it does not compile"),
        (&["desk.will_not_compile"], 1, "let words: u32 = \"no number\";"),
        (&["desk.greets", "nick=Ada"], 2, "nick"),
        (&["desk.greets", "Ada"], 2, "name=value"),
        (&["--json", "desk.greets", "name=Ada"], 2, "put `--json` last"),
        (&["desk.greets", "--json", "name=Ada"], 2, "not `name=Ada`"),
        (&["a.b.c.d"], 3, "a.b.c.d"),
        (&["desk.greet"], 3, "unknown operation `desk.greet`; known: `default.desk.greets`"),
        (&["dusk.greets"], 3, "desk"),
    ] {
        let (found, out, err) = exec(words);
        assert_eq!((found, &*out), (code, ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?} does not say {said}: {err}");
    }
    // Parameters from standard input.
    let mut piped = desk.command(&["exec", "greets", "--json", "-"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), br#"{"name": "Grace"}"#).unwrap();
    let (code, out, _) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, &*out), (0, "\"hello Grace\"\n"));

    // The catalog, and one operation of it.
    let (code, list) = desk.json(&["list", "--json"]);
    assert_eq!(code, 0, "{list}");
    let (code, described) = desk.json(&["describe", "greets", "--json"]);
    assert_eq!(code, 0);
    assert_eq!(described["descriptor"]["params"][0]["name"], "name", "{described}");
    let (code, text, _) = desk.run(&["describe", "desk.greets"]);
    assert_eq!(code, 0);
    assert!(text.contains("name") && text.contains("A fault for the tests of the host."), "{text}");
    assert_eq!(desk.run(&["describe", "desk.none"]).0, 3);
    assert_eq!(desk.run(&["list", "--timeout-ms", "soon"]).0, 2);
}

#[test]
fn json_of_every_command_steers_no_terminal() {
    let desk = Desk::new();
    let text = "\u{9b}2J\u{7f}\u{202e}\u{200b}\u{e0041} \u{e9} 日本";
    let statement = format!("SELECT '{text}' AS a, '{{\"b\": 1.50}}' AS \"\u{2066}\"");
    let widget = desk.folder.path().join("widget.json");
    write(&widget, json!({"props": {"sql": statement}}).to_string().as_bytes());
    let (widget, udfs) = (widget.to_str().unwrap(), built().udfs.to_str().unwrap());
    for (words, place) in [
        (&["sql", &statement, "--json"][..], "/rows/0"),
        (&["widget", "verify", widget, "--json"], "/data/q0/rows/0"),
    ] {
        let (code, out, err) = desk.run(&[words, &["--udfs", udfs]].concat());
        assert_eq!(code, 0, "{words:?}: {err}");
        let want = json!({"a": text, "\u{2066}": "{\"b\": 1.50}"});
        assert_eq!(parse(&out).pointer(place), Some(&want), "{out}");
        assert!(out.contains("é 日本") && out.contains("\\u009b"), "{out}");
        let steers = |c: char| {
            (c.is_control() && c != '\n') || "\u{202e}\u{2066}\u{200b}\u{e0041}".contains(c)
        };
        assert!(!out.contains(steers), "{words:?}: {out:?}");
    }
}
