//! The shipped widgets answer every query, on any store and engine; `udf-host widget verify` says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::build::built;
use crate::support::duckdb;
use crate::support::fixture::{lay_out, write};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{checkout, parse};

/// The projects that bring a widget, and how many queries it has.
const SHIPPED: [(&str, &str, usize); 4] = [
    ("artifact-chat-management", "chats", 3),
    ("feedback-management", "cards", 4),
    ("run-management", "runs", 3),
    ("task-management", "tasks", 3),
];

fn shipped(project: &str, name: &str) -> PathBuf {
    built().udfs.join(project).join("widgets").join(format!("{name}.json"))
}

/// A store with these files of the SQL cases.
fn store(fixture: &str) -> TempDir {
    let path = checkout().join("tests/cases/sql/fixtures").join(format!("{fixture}.json"));
    let files = parse(&fs::read_to_string(path).unwrap());
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path(), files.as_object().unwrap(), Some(""));
    folder
}

/// `widget verify`: exit status, standard output, standard error.
fn verify(file: &Path, store: &Path, more: &[&str], env: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(&built().host);
    command.args(["--only", "--udfs"]).arg(&built().udfs).arg("--app-dir").arg(store);
    command.args(["widget", "verify"]).arg(file).args(more);
    command.env("XDG_CACHE_HOME", &built().cache).envs(env.iter().copied());
    let output = command.stdin(Stdio::null()).output().expect("the host can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the host prints text");
    let exit = output.status.code().expect("the command ends by itself");
    (exit, text(output.stdout), text(output.stderr))
}

/// The whole reply for a widget that must be in order.
#[track_caller]
fn reply(file: &Path, store: &Path, more: &[&str], env: &[(&str, &str)]) -> Value {
    let (exit, stdout, stderr) = verify(file, store, &[more, &["--json"]].concat(), env);
    assert_eq!(exit, 0, "{}: {stdout}{stderr}", file.display());
    let reply = parse(&stdout);
    assert_eq!(
        (&reply["errors"], &reply["warnings"]),
        (&json!({}), &json!([])),
        "{}",
        file.display()
    );
    reply
}

#[test]
fn every_shipped_widget_answers_on_every_store() {
    for fixture in ["empty", "main", "odd"] {
        check_all(fixture, &[]);
    }
}

#[test]
fn every_shipped_widget_answers_with_duckdb() {
    if duckdb::installed() {
        check_all("main", &[("UDF_HOST_SQL_ENGINE", "duckdb")]);
    }
}

#[track_caller]
fn check_all(fixture: &str, env: &[(&str, &str)]) {
    let store = store(fixture);
    for (project, name, queries) in SHIPPED {
        let reply = reply(&shipped(project, name), store.path(), &[], env);
        let data = reply["data"].as_object().unwrap();
        assert_eq!(data.len(), queries, "{name} on {fixture}");
        for (id, answer) in data {
            let columns = answer["columns"].as_array().unwrap();
            assert!(!columns.is_empty(), "{name} {id} on {fixture} has no columns");
        }
    }
}

#[test]
fn no_widget_goes_unlisted() {
    for project in fs::read_dir(&built().udfs).unwrap() {
        let widgets = project.unwrap().path().join("widgets");
        for file in fs::read_dir(&widgets).into_iter().flatten() {
            let file = file.unwrap().path();
            let listed = SHIPPED.iter().any(|(project, name, _)| shipped(project, name) == file);
            assert!(listed, "{} is not verified", file.display());
        }
    }
}

#[test]
fn their_parameters_filter() {
    let store = store("main");
    let rows = |project: &str, name: &str, query: &str, params: Value| {
        let params = params.to_string();
        let reply = reply(&shipped(project, name), store.path(), &["--params", &params], &[]);
        reply["data"][query]["rows"].as_array().unwrap().clone()
    };
    let all = |rows: &[Value], field: &str, want: &str| {
        assert!(!rows.is_empty(), "no rows for {field} {want}");
        assert!(rows.iter().all(|row| row[field] == want), "{rows:?}");
    };
    let cards = |params| rows("feedback-management", "cards", "q3", params);
    all(&cards(json!({})), "status", "pending");
    all(&cards(json!({"status": "answered", "project": "atlas"})), "project", "atlas");
    assert!(cards(json!({"status": ""})).len() > cards(json!({})).len());
    assert_eq!(cards(json!({"project": "' OR ''='"})), [] as [Value; 0]);
    let tasks = |params| rows("task-management", "tasks", "q2", params);
    all(&tasks(json!({"project": "cirrus"})), "project", "cirrus");
    assert!(tasks(json!({})).len() > tasks(json!({"project": "cirrus"})).len());
    let runs = |params| rows("run-management", "runs", "q2", params);
    all(&runs(json!({"status": "completed"})), "status", "completed");
    let chats = |params| rows("artifact-chat-management", "chats", "q2", params);
    all(&chats(json!({"project": "atlas", "artifact_type": "udf"})), "artifactType", "udf");
}

#[test]
fn verify_says_what_is_wrong() {
    let store = tempfile::tempdir().unwrap();
    let file = store.path().join("w.json");
    let table = |sql: &str| json!({"type": "sql-table", "props": {"sql": sql}});
    let both = json!({"type": "div", "children": [table("SELECT nothing FROM {{list_cards}}"), table("SELECT 1 AS one")]});
    for (text, more, exit, said) in [
        (table("SELECT 1 AS one").to_string(), &[][..], 0, "q0  ok  1 row of one"),
        (
            both.to_string(),
            &["--project", "feedback-management"][..],
            1,
            "q1  ok      1 row of one",
        ),
        (table("SELECT id FROM {{create}}").to_string(), &[], 1, "failed"),
        (table("SELECT $p AS p").to_string(), &[], 1, "failed"),
        (table("SELECT $p AS p").to_string(), &["--params", r#"{"p": 7}"#], 0, "1 row of p"),
        (json!({"type": "div"}).to_string(), &[], 0, "the widget has no queries"),
        // Nothing would be verified of what a request holds.
        (
            json!({"config": table("SELECT 1")}).to_string(),
            &[],
            2,
            "the file holds the widget itself",
        ),
        (json!({"config": {}}).to_string(), &["--json"], 2, "the file holds the widget itself"),
        (json!({"config": 1}).to_string(), &[], 0, "the widget has no queries"),
        (
            json!({"config": {}, "props": {"sql": "SELECT 1 AS one"}}).to_string(),
            &[],
            0,
            "q0  ok  1 row of one",
        ),
        ("[1]".to_owned(), &[], 2, "is no widget configuration"),
        ("{".to_owned(), &[], 2, "is no widget configuration"),
        (
            table("SELECT 1 AS one").to_string(),
            &["--params", "[]"],
            2,
            "`--params` must be a JSON object",
        ),
        (table("SELECT 1 AS one").to_string(), &["--project", "none"], 3, "none"),
    ] {
        write(&file, text.as_bytes());
        let (status, stdout, stderr) = verify(&file, store.path(), more, &[]);
        assert_eq!(status, exit, "{text} {more:?}: {stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains(said), "{text} {more:?}: {stdout}{stderr}");
    }
    let (status, _, stderr) = verify(Path::new("/nowhere/w.json"), store.path(), &[], &[]);
    assert_eq!(status, 2, "{stderr}");
}

#[test]
fn discovery_passes_over_their_folders() {
    let output = Command::new(&built().host)
        .args(["--only", "--udfs"])
        .arg(&built().udfs)
        .args(["list", "--json"])
        .env("XDG_CACHE_HOME", &built().cache)
        .output()
        .unwrap();
    let listed = parse(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(listed["problems"], json!([]));
    let ops: Vec<&str> =
        listed["udfs"].as_array().unwrap().iter().map(|udf| udf["op"].as_str().unwrap()).collect();
    assert!(ops.contains(&"list_cards") && !ops.contains(&"widgets"), "{ops:?}");
}

#[test]
fn a_configuration_as_deep_as_json_may_be_ends_nothing() {
    let folder = store("empty");
    let host = HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder.path()));
    let query = r#"{"type": "metric", "props": {"sql": "SELECT 1 AS one"}}"#;
    let deep = |open: &str, close: &str, levels: usize| {
        format!(r#"{{"config": {}{query}{}}}"#, open.repeat(levels), close.repeat(levels))
    };
    let ask = |body: &str| {
        let answer = host.post("/api/exec/widget", "_core", "task-management", body);
        answer.expect("the host answers")
    };
    // The body, the query and its `props` are three levels of the 1024.
    for (open, close, levels) in [
        (r#"{"type": "div", "children": "#, "}", 1021),
        (r#"{"type": "div", "children": ["#, "]}", 510),
    ] {
        let answer = ask(&deep(open, close, levels));
        let start = answer.text.get(..200).unwrap_or(&answer.text);
        assert_eq!(answer.status, 200, "{start}");
        assert!(start.contains(r#""rows":[{"one":1}]"#), "{start}");
        let file = folder.path().join("deep.json");
        write(&file, format!("{}{query}{}", open.repeat(levels), close.repeat(levels)).as_bytes());
        let (exit, stdout, stderr) = verify(&file, folder.path(), &[], &[]);
        assert_eq!((exit, stdout.trim()), (0, "q0  ok  1 row of one"), "{stderr}");
        let answer = ask(&deep(open, close, levels + 2));
        assert!(answer.status == 400 && answer.text.contains("1024"), "{}", answer.text);
    }
}
