//! `udf-host inbox`: the same on a store and over a running host; the first answer counts, and whoever comes later is
//! told; nothing that an agent wrote steers the terminal.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::parse;

/// A store, and the way to it.
struct Desk {
    folder: TempDir,
    host: Option<HostProcess>,
}

/// What one command printed.
#[derive(Debug)]
struct Ran {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Desk {
    /// Directly on a store with these collections.
    fn on_store(collections: &[(&str, Value)]) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        for (name, records) in collections {
            let text = serde_json::to_string_pretty(records).unwrap();
            write(&folder.path().join(format!("app/state/{name}.json")), text.as_bytes());
        }
        Desk { folder, host: None }
    }

    /// Over a host that runs on such a store.
    fn over_host(collections: &[(&str, Value)]) -> Desk {
        let desk = Desk::on_store(collections);
        let options = HostOptions::new().arg("--app-dir").arg(desk.app_dir());
        let host = HostProcess::start(&options.cwd(desk.folder.path()));
        Desk { host: Some(host), ..desk }
    }

    /// Both.
    fn both(collections: &[(&str, Value)]) -> [Desk; 2] {
        [Desk::on_store(collections), Desk::over_host(collections)]
    }

    fn app_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("app")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&built().host);
        command.arg("inbox").current_dir(self.folder.path());
        for name in ["UDF_HOST_ORIGIN", "UDF_HOST_TOKEN", "OPENFUSED_APP_DIR_STATE"] {
            command.env_remove(name);
        }
        match &self.host {
            Some(host) => {
                command.env("UDF_HOST_ORIGIN", &host.origin).env("UDF_HOST_TOKEN", &host.token);
            }
            None => {
                command.args(["--only", "--udfs"]).arg(&built().udfs);
                command.arg("--app-dir").arg(self.app_dir());
            }
        }
        command.args(words);
        // Whoever runs the tests has a name of their own.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("USER", "alex").env("XDG_CACHE_HOME", &built().cache).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        let output = self.command(words).output().expect("the host can be started");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the host prints text");
        let exit = output.status.code().expect("the command ends by itself");
        Ran { exit, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs a command that must end with `exit`, and returns what it printed on standard output.
    #[track_caller]
    fn ends(&self, exit: i32, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.exit, exit, "{words:?}: {ran:?}");
        ran.stdout
    }

    /// The JSON of such a command.
    #[track_caller]
    fn json(&self, exit: i32, words: &[&str]) -> Value {
        parse(&self.ends(exit, &[words, &["--json"]].concat()))
    }

    fn stored(&self, name: &str) -> Value {
        let path = self.app_dir().join(format!("state/{name}.json"));
        parse(&std::fs::read_to_string(path).unwrap())
    }

    fn card(&self, id: &str) -> Value {
        let cards = self.stored("cards");
        let found = cards.as_array().unwrap().iter().find(|card| card["id"] == id);
        found.unwrap_or_else(|| panic!("no card {id}")).clone()
    }
}

fn card(id: &str, effect: &str, payload: Value, created_at: &str) -> Value {
    json!({"id": id, "project": "atlas", "taskId": "task_1", "effect": effect, "status": "pending",
        "continuationPolicy": "wake_assignee", "idempotencyKey": null, "summary": format!("About {id}?"),
        "payload": payload, "result": null, "createdBy": "analyst", "sourceRunId": "run_1", "resolvedBy": null,
        "createdAt": created_at, "resolvedAt": null})
}

fn tasks() -> Value {
    json!([{"id": "task_1", "project": "atlas", "number": 7, "title": "Sales report", "status": "completed",
            "createdAt": "2026-01-01T00:00:00.000Z"},
        {"id": "task_2", "project": "borealis", "number": 1, "title": "Other", "status": "failed",
            "createdAt": "2026-01-01T00:00:00.000Z"}])
}

/// One thing of each kind.
fn everything() -> Vec<(&'static str, Value)> {
    let ages = ["2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z", "2026-01-04T00:00:00.000Z"];
    let cards = json!([
        card("card_late", "reply", json!({"widget": {"options": ["EMEA", "APAC"]}}), ages[2]),
        card("card_gate", "approval_gate", json!({"effectArgs": {"verb": "deploy"}}), ages[1]),
        card("card_review", "review_work_product", json!({}), ages[0]),
        card("card_early", "reply", json!({}), ages[0]),
        {"id": "card_old", "project": "atlas", "taskId": "task_1", "effect": "reply", "status": "answered",
            "summary": "Format?", "payload": {}, "result": {"action": "reply", "text": "PDF"}, "resolvedBy": "ann",
            "createdAt": "2026-01-01T00:00:00.000Z", "resolvedAt": "2026-01-01T01:00:00.000Z"}
    ]);
    let runs = json!([{"id": "run_9", "taskId": "task_2", "prompt": "p", "status": "failed",
        "createdAt": ages[0], "finishedAt": ages[0], "errorMessage": "out of memory"}]);
    let comments = json!([{"id": "cmt_1", "taskId": "task_1", "author": "analyst", "body": "Half way",
        "createdAt": ages[1], "kind": "notify"}]);
    vec![("cards", cards), ("tasks", tasks()), ("runs", runs), ("comments", comments)]
}

#[test]
fn questions_come_first_and_the_oldest_before_the_others() {
    for desk in Desk::both(&everything()) {
        let text = desk.ends(0, &[]);
        let lines: Vec<&str> = text.lines().collect();
        let ids = [
            "card_early",
            "card_gate",
            "card_late",
            "card_review",
            "cmt_1",
            "derived:failure:run_9",
        ];
        for (id, line) in ids.iter().zip(&lines[1..]) {
            assert!(line.contains(id), "{id} in its place:\n{text}");
        }
        for part in ["question", "approval", "atlas", "#7 Sales report", "About card_early?", " d "]
        {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let listed = desk.json(0, &["list"]);
        assert_eq!(listed["notes"], json!([]));
        let items = listed["items"].as_array().unwrap();
        let found: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(found, ids);
        let first = &items[0];
        assert!(first["ageSeconds"].as_u64().unwrap() > 86_400, "{first}");
        assert_eq!(
            (&first["kind"], &first["taskNumber"], &first["taskTitle"], &first["effect"]),
            (&json!("question"), &json!(7), &json!("Sales report"), &json!("reply"))
        );
        let other = desk.json(0, &["list", "--project", "borealis"]);
        assert_eq!(other["items"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn show_has_the_whole_and_what_else_was_asked() {
    for desk in Desk::both(&everything()) {
        let text = desk.ends(0, &["show", "card_gate"]);
        for part in [
            "task      #7 Sales report (task_1)",
            "asked by  analyst in run_1",
            "  |     \"verb\": \"deploy\"",
            "Format?",
            "answered by ann with “PDF”",
            " answer card_gate --action approve",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let shown = desk.json(0, &["show", "card_old"]);
        assert_eq!(shown["item"], desk.card("card_old"));
        assert_eq!(shown["history"].as_array().unwrap().len(), 4);
        let text = desk.ends(0, &["show", "card_old"]);
        assert!(text.contains("answered by ann") && !text.contains("\nnext\n"), "{text}");
        let text = desk.ends(0, &["show", "derived:failure:run_9"]);
        assert!(text.contains("out of memory") && text.contains(" dismiss derived:"), "{text}");
        desk.ends(3, &["show", "card_none"]);
    }
}

#[test]
fn an_answer_is_stored_once_and_the_second_is_told_who_won() {
    for desk in Desk::both(&everything()) {
        let said = desk.ends(0, &["answer", "card_early", "EMEA, all\nof it", "--as", "ann"]);
        assert!(said.contains("answered by ann with “EMEA, all␊of it”"), "{said}");
        let won = desk.card("card_early");
        assert_eq!(
            (&won["status"], &won["result"], &won["resolvedBy"]),
            (
                &json!("answered"),
                &json!({"action": "reply", "text": "EMEA, all\nof it"}),
                &json!("ann")
            )
        );
        let late = desk.run(&["answer", "card_early", "APAC", "--as", "bob"]);
        assert_eq!((late.exit, late.stdout.as_str()), (5, ""), "{late:?}");
        for part in
            ["no longer open", "answered by ann", "EMEA", won["resolvedAt"].as_str().unwrap()]
        {
            assert!(late.stderr.contains(part), "{part}: {}", late.stderr);
        }
        let late = desk.json(5, &["answer", "card_early", "APAC"]);
        assert_eq!(late["ok"], false);
        assert_eq!(
            late["winner"],
            json!({"by": "ann", "at": won["resolvedAt"], "status": "answered", "result": won["result"]})
        );
        assert_eq!(desk.card("card_early"), won, "the first answer stands");

        let told = desk.json(
            0,
            &[
                "answer",
                "card_gate",
                "--action",
                "reject",
                "too risky",
                "--params",
                r#"{"n": 1.50}"#,
            ],
        );
        assert_eq!((&told["ok"], &told["record"]["id"]), (&json!(true), &json!("card_gate")));
        let gate = desk.card("card_gate");
        assert_eq!(
            gate["result"],
            json!({"action": "reject", "text": "too risky", "params": {"n": 1.5}})
        );
        assert_eq!(gate["resolvedBy"], "alex", "the person at this machine");
        desk.ends(0, &["answer", "card_review", "request changes"]);
        assert_eq!(desk.card("card_review")["result"], json!({"action": "request_changes"}));
        desk.ends(0, &["answer", "card_late", "2"]);
        assert_eq!(desk.card("card_late")["result"], json!({"action": "reply", "text": "APAC"}));
        assert_eq!(desk.ends(0, &["list", "--project", "none"]), "nothing waits for you\n");
    }
}

#[test]
fn an_answer_that_does_not_fit_leaves_the_question_open() {
    for desk in Desk::both(&everything()) {
        for (words, said) in [
            (&["answer", "card_early"][..], "the answer is empty"),
            (&["answer", "card_early", " "], "the answer is empty"),
            (&["answer", "card_early", "x", "--params", "{"], "`--params` is not JSON"),
            (&["answer", "card_late", "Antarctica"], "not among the options: `EMEA`, `APAC`"),
            (
                &["answer", "card_gate", "sure"],
                "say what you decide with `--action`: `approve`, `reject`",
            ),
            (&["answer", "card_gate", "--action", "accept"], "use `approve`, `reject`"),
            (&["answer", "cmt_1", "thanks"], " dismiss cmt_1`"),
            (&["dismiss", "card_early"], "cannot be dismissed"),
        ] {
            let ran = desk.run(words);
            assert_eq!(ran.exit, 2, "{words:?}: {ran:?}");
            assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
        }
        let refused = desk.json(2, &["answer", "card_late", "Antarctica"]);
        assert_eq!(refused["ok"], false);
        for words in [&["answer", "card_none", "x"][..], &["dismiss", "card_none"]] {
            desk.ends(3, words);
        }
        for id in ["card_early", "card_late", "card_gate"] {
            assert_eq!(desk.card(id)["status"], "pending", "{id}");
        }
        assert!(!desk.app_dir().join("state/dismissedFeedbackKeys.json").exists());
    }
}

#[test]
fn a_line_that_is_shown_can_be_run_as_it_stands() {
    let ids = ["$(touch pwned)", "-c; touch pwned #", "it's\n`touch pwned`"];
    let created_at = "2026-01-02T00:00:00.000Z";
    let widget =
        json!({"widget": {"options": [{"value": "no", "label": "'$(touch pwned)"}, "--help"]}});
    let cards = json!([
        card(ids[0], "reply", widget, created_at),
        card(ids[1], "approval_gate", json!({"widget": {"actions": ["go", "-x"]}}), created_at),
    ]);
    let comments = json!([{"id": ids[2], "taskId": "task_1", "author": "a", "body": "b",
        "createdAt": created_at, "kind": "notify"}]);
    let store = [("cards", cards), ("tasks", tasks()), ("comments", comments)];
    for desk in Desk::both(&store) {
        for (id, choice) in ids.into_iter().zip(["--help", "-x", ""]) {
            let shown = desk.ends(0, &["show", "--", id]);
            let lines = shown.split_once("\nnext\n").expect("what can be done").1;
            let line = lines.lines().rfind(|line| line.contains(choice)).unwrap();
            // Where the options of `command` stand in for the environment, the line repeats them.
            let script = format!("udf-host() {{ \"$HOST\" \"$@\"; }}\n{line}\n");
            let mut shell = Command::new("bash");
            shell.args(["-c", &script]).env("HOST", &built().host).current_dir(desk.folder.path());
            for (name, value) in desk.command(&[]).get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            let ran = shell.output().unwrap();
            assert!(ran.status.success(), "{line}: {ran:?}");
        }
        assert_eq!(desk.card(ids[0])["result"], json!({"action": "reply", "text": "--help"}));
        assert_eq!(desk.card(ids[1])["result"], json!({"action": "-x"}));
        assert_eq!(desk.stored("dismissedFeedbackKeys"), json!([ids[2]]));
        assert!(!desk.folder.path().join("pwned").exists(), "a line ran a command");
    }
}

#[test]
fn what_was_read_can_be_dismissed() {
    for desk in Desk::both(&everything()) {
        assert_eq!(desk.ends(0, &["dismiss", "cmt_1"]), "`cmt_1` is dismissed\n");
        desk.ends(0, &["dismiss", "derived:failure:run_9"]);
        assert_eq!(desk.ends(0, &["dismiss", "cmt_1"]), "`cmt_1` was dismissed before\n");
        assert_eq!(desk.stored("dismissedFeedbackKeys"), json!(["cmt_1", "derived:failure:run_9"]));
        let listed = desk.ends(0, &["list"]);
        assert!(!listed.contains("cmt_1") && !listed.contains("derived:"), "{listed}");
    }
}

#[test]
fn of_many_people_at_once_one_wins_and_the_others_know_whom() {
    let desk = Desk::over_host(&everything());
    // Some over the host, some right on its store.
    let beside = Desk { folder: tempfile::tempdir().unwrap(), host: None };
    let app_dir = desk.app_dir();
    let people: Vec<(String, Ran)> = thread::scope(|scope| {
        let answers: Vec<_> = (0..8)
            .map(|n| {
                let (desk, beside, app_dir) = (&desk, &beside, &app_dir);
                scope.spawn(move || {
                    let name = format!("person {n}");
                    let words = ["answer", "card_early", &name, "--as", &name];
                    let output = if n % 2 == 0 {
                        desk.command(&words).output()
                    } else {
                        let mut command = Command::new(&built().host);
                        command
                            .arg("inbox")
                            .args(words)
                            .args(["--only", "--udfs"])
                            .arg(&built().udfs);
                        command.arg("--app-dir").arg(app_dir).current_dir(beside.folder.path());
                        command
                            .env("XDG_CACHE_HOME", &built().cache)
                            .env_remove("UDF_HOST_ORIGIN")
                            .output()
                    };
                    let output = output.unwrap();
                    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                    let exit = output.status.code().unwrap();
                    (name, Ran { exit, stdout: text(output.stdout), stderr: text(output.stderr) })
                })
            })
            .collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = people.iter().partition(|(_, ran)| ran.exit == 0);
    let [(winner, _)] = won[..] else { panic!("{people:?}") };
    for (_, ran) in lost {
        assert_eq!(ran.exit, 5, "{ran:?}");
        assert!(ran.stderr.contains(&format!("answered by {winner} with “{winner}”")), "{ran:?}");
    }
    assert_eq!(desk.card("card_early")["resolvedBy"], **winner);
}

#[test]
fn nothing_an_agent_wrote_steers_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}evorppa\u{200b}\r\nnext\n  udf-host inbox answer x\u{0}";
    let mut asked =
        card("card_1", "reply", json!({"widget": {"options": [evil]}, "note": evil}), evil);
    asked["summary"] = evil.into();
    asked["createdBy"] = evil.into();
    asked["taskId"] = evil.into();
    let mut past = asked.clone();
    past["id"] = format!("card_0{evil}").into();
    past["status"] = evil.into();
    past["result"] = json!({"text": evil});
    let task =
        json!([{"id": evil, "project": "atlas", "number": 1, "title": evil, "status": evil}]);
    for desk in Desk::both(&[("cards", json!([past, asked])), ("tasks", task)]) {
        for words in
            [&["list"][..], &["show", "card_1"], &["list", "--json"], &["show", "card_1", "--json"]]
        {
            let printed = desk.ends(0, words);
            let bad =
                |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
            assert!(!printed.contains(bad), "{words:?}: {printed:?}");
            if words.contains(&"--json") {
                assert!(parse(&printed).to_string().contains("owned"), "{printed}");
            } else {
                assert!(
                    printed.contains("␛[2J␛]0;owned␇<U+009B>31m<U+202E>evorppa<U+200B>"),
                    "{printed}"
                );
            }
        }
        // Their words never stand where ours do.
        let shown = desk.ends(0, &["show", "card_1"]);
        assert_eq!(shown.lines().filter(|line| *line == "next").count(), 1, "{shown}");
        let refused = desk.run(&["answer", "card_1", "other"]);
        assert_eq!(refused.exit, 2);
        assert!(
            !refused.stderr.contains('\u{1b}') && refused.stderr.contains("␛[2J"),
            "{refused:?}"
        );
    }
}

#[test]
fn clocks_that_jump_leave_order_and_ages_sane() {
    let cards = json!([
        card("card_b", "reply", json!({}), "2999-01-01T00:00:00.000Z"),
        card("card_c", "reply", json!({}), "2999-01-01T00:00:00.000Z"),
        card("card_a", "reply", json!({}), "not a time"),
        card("card_0", "reply", json!({}), "2020-01-01T00:00:00.000Z"),
    ]);
    let desk = Desk::on_store(&[("cards", cards)]);
    let listed = desk.json(0, &["list"]);
    let items = listed["items"].as_array().unwrap();
    let seen: Vec<(&str, &Value)> =
        items.iter().map(|item| (item["id"].as_str().unwrap(), &item["ageSeconds"])).collect();
    assert_eq!(seen[1..], [("card_b", &json!(0)), ("card_c", &json!(0)), ("card_a", &Value::Null)]);
    assert_eq!(seen[0].0, "card_0");
}

#[test]
fn a_host_that_is_not_there_or_not_ours_is_named() {
    let desk = Desk::over_host(&everything());
    let host = desk.host.as_ref().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for (words, exit, said) in [
        (&["list", "--token", "wrong"][..], 2, "does not know this token"),
        (&["list", "--host", &gone], 4, "cannot reach the host"),
        (&["list", "--host", "ftp://x"], 2, "no origin of a host"),
    ] {
        let ran = desk.run(words);
        assert_eq!(ran.exit, exit, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains(&host.token), "{ran:?}");
    }
}

#[test]
fn a_corrupt_file_is_said_and_left_alone() {
    let notes = |list: &Value| -> Vec<String> {
        list["notes"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    for desk in Desk::both(&[("tasks", tasks())]) {
        let app_dir = desk.app_dir().to_str().unwrap().to_owned();
        let words = |command: &'static str| match desk.host {
            Some(_) => vec![command, "--app-dir", &app_dir],
            None => vec![command],
        };
        let file = desk.app_dir().join("state/cards.json");
        write(&file, b"[{\"id\": \"card_1\", ");
        // Nothing is shown and something could not be read: that is not an empty inbox.
        let text = desk.ends(4, &words("list"));
        assert!(!text.contains("nothing waits for you"), "{text}");
        assert!(text.contains("note: cards cannot be read: "), "{text}");
        assert!(text.contains("cards.json is corrupt (") && text.contains("doctor"), "{text}");
        let list = desk.json(4, &words("list"));
        assert_eq!((&list["items"], notes(&list).len()), (&json!([]), 1), "{list}");
        assert_eq!(std::fs::read(&file).unwrap(), b"[{\"id\": \"card_1\", ");

        // What can be read is shown beside it. Another value than a list reads as empty, too.
        let [_, _, runs, comments] = everything().try_into().unwrap();
        for (name, records) in [runs, comments] {
            write(
                &desk.app_dir().join(format!("state/{name}.json")),
                records.to_string().as_bytes(),
            );
        }
        write(&desk.app_dir().join("state/dismissedFeedbackKeys.json"), b"{\"a\": 1}");
        let list = desk.json(0, &words("list"));
        assert_eq!(list["items"].as_array().unwrap().len(), 2, "{list}");
        let [cards, keys] = notes(&list).try_into().unwrap();
        assert!(cards.starts_with("cards cannot be read: "), "{cards}");
        assert!(keys.contains("dismissedFeedbackKeys.json holds no list"), "{keys}");

        // `watch` says so as well, and no longer once it is mended.
        let watch = [&words("watch")[..], &["--json"]].concat();
        let mut child = desk.command(&watch).stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let next = || parse(&lines.recv_timeout(Duration::from_secs(30)).expect("another list"));
        assert_eq!(notes(&next()).len(), 2);
        write(&file, b"[]");
        assert_eq!(notes(&next()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();

        std::fs::remove_file(&file).unwrap();
        write(&file.with_file_name("comments.json"), b"");
        let list = desk.json(0, &words("list"));
        assert!(notes(&list)[0].starts_with("comments cannot be read: "), "{list}");
    }
}

#[test]
fn what_cannot_be_read_may_have_any_id() {
    for desk in Desk::both(&everything()) {
        let app_dir = desk.app_dir().to_str().unwrap().to_owned();
        // A host tells nobody where its files are.
        let options = if desk.host.is_some() { vec!["--app-dir", &app_dir] } else { Vec::new() };
        let with_options = |words: &[&'static str]| [&options[..], words].concat();
        desk.ends(3, &with_options(&["show", "card_none"]));
        write(&desk.app_dir().join("state/cards.json"), b"[{\"id\": \"card_early\", ");
        let notes = desk.json(0, &with_options(&["list"]))["notes"].clone();
        let note = format!("\nnote: {}\n", notes[0].as_str().unwrap());
        for words in
            [&["show", "card_early"][..], &["answer", "card_early", "x"], &["dismiss", "x"]]
        {
            let words = with_options(words);
            let ran = desk.run(&words);
            assert_eq!((ran.exit, ran.stdout.as_str()), (4, ""), "{words:?}: {ran:?}");
            assert!(ran.stderr.ends_with(&note), "{words:?}: {}", ran.stderr);
            let told = desk.json(4, &words);
            assert_eq!((&told["ok"], &told["notes"]), (&json!(false), &notes), "{words:?}");
        }
        // What can be read is shown and dismissed as ever.
        desk.ends(0, &with_options(&["show", "cmt_1"]));
        desk.ends(0, &with_options(&["dismiss", "cmt_1"]));
    }
}

#[test]
fn watch_draws_again_when_something_changed_and_ends_on_interrupt() {
    for desk in Desk::both(&everything()) {
        let mut command = desk.command(&["watch", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let next = || {
            let line = lines.recv_timeout(Duration::from_secs(30)).expect("another list");
            parse(&line)["items"].as_array().unwrap().len()
        };
        assert_eq!(next(), 6);
        desk.ends(0, &["answer", "card_early", "EMEA"]);
        assert_eq!(next(), 5);
        desk.ends(0, &["dismiss", "cmt_1"]);
        assert_eq!(next(), 4);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(lines.recv_timeout(Duration::from_secs(30)).is_err(), "nothing changed since");
    }
}

#[test]
fn watch_ends_when_nobody_reads_it() {
    let desk = Desk::on_store(&everything());
    let mut child = desk.command(&["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.starts_with("WAITS"), "{line}");
    // Nothing changes: there is nothing to write that could fail.
    drop(lines);
    let end = || child.try_wait().unwrap();
    let ended = wait_until(Duration::from_secs(60), "the end of watch", end);
    child.kill().unwrap();
    assert_eq!(ended.expect("watch ends").code(), Some(0));
}

/// Lines of a stream as they come.
fn lines_of(from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

/// Runs an operation of `run-feedback` in a directory.
fn run_feedback(cwd: &Path, words: &[&str]) -> String {
    let output = Command::new(&built().host)
        .args(["--only", "--udfs"])
        .arg(&built().udfs)
        .arg("run-feedback")
        .args(words)
        .current_dir(cwd)
        .env("XDG_CACHE_HOME", &built().cache)
        .env("RUN_FEEDBACK_POSTER", "none")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn requests_of_runs_are_answered_like_cards() {
    for desk in Desk::both(&everything()) {
        let cwd = desk.folder.path();
        run_feedback(cwd, &["init-run", "--run-id", RUN, "--work-id", "258"]);
        let words =
            ["--run-id", RUN, "--phase", "build", "--step", "design-review", "--type", "approval"];
        let context = [
            "--context",
            r#"{"summary": "two\nlines", "artifact_path": "specs/1.md", "cost": 1.50}"#,
        ];
        let asked = run_feedback(
            cwd,
            &[&["request-feedback"][..], &words, &["--prompt", "Is it ok?"], &context].concat(),
        );
        let id = parse(&asked)["result"]["request_id"].as_str().unwrap().to_owned();
        let listed = desk.json(0, &["list"]);
        let row = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["id"] == *id)
            .unwrap()
            .clone();
        for (name, want) in [
            ("run", RUN),
            ("phase", "build"),
            ("step", "design-review"),
            ("kind", "question"),
            ("body", "Is it ok?"),
        ] {
            assert_eq!(row[name], want, "{row}");
        }
        let text = desk.ends(0, &["list"]);
        assert!(
            text.contains("run 0f0e0d0c-0b0a-4908-8706-050403020100 build:design-review"),
            "{text}"
        );
        let shown = desk.ends(0, &["show", &id]);
        assert!(
            shown.contains("step      design-review") && shown.contains("--action reject"),
            "{shown}"
        );
        for part in [
            "artifact  specs/1.md\n",
            "\nsummary\n  | two\n  | lines\n",
            "\ncontext\n  | {\n  |   \"cost\": 1.50\n  | }\n",
        ] {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
        for words in [&["answer", &id, "maybe"][..], &["answer", &id], &["dismiss", &id]] {
            desk.ends(2, words);
        }
        let said =
            desk.ends(0, &["answer", &id, "--action", "Reject", "too complex", "--as", "ann"]);
        assert!(said.contains("answered by ann with “reject”"), "{said}");
        let path = cwd.join(".fractary/plugins/faber/runs").join(RUN).join("state.json");
        let state = parse(&std::fs::read_to_string(path).unwrap());
        let entry = &state["feedback_history"][0];
        assert_eq!(
            (&entry["response"], &entry["comment"], &entry["provided_by"]["user"]),
            (&json!("reject"), &json!("too complex"), &json!("ann"))
        );
        let late = desk.json(5, &["answer", &id, "approve", "--as", "bob"]);
        assert_eq!(
            (&late["winner"]["by"], &late["winner"]["result"]["response"]),
            (&json!("ann"), &json!("reject"))
        );
        let named = format!("{RUN}:{id}");
        let shown = desk.ends(0, &["show", &named]);
        assert!(shown.contains("answered by ann with “reject” and “too complex”"), "{shown}");
        desk.ends(3, &["answer", "fr-20200101-000000", "approve"]);
    }
}
