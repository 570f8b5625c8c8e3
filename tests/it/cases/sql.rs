//! SQL and widget cases: rows, errors, and a store that no query changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::{case_files, load_list};
use crate::support::fixture::{Found, lay_out, snapshot};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{case_folder, parse, short, try_parse};

/// What must never stand in a reply.
const LEAKS: [&str; 3] = ["panicked at", ".rs:", "stack backtrace"];

/// A host over one state folder.
struct Served {
    root: PathBuf,
    before: BTreeMap<String, Found>,
    host: HostProcess,
    _folder: tempfile::TempDir,
}

#[test]
fn sql_cases_on_sqlite_inside_the_host() {
    on_sqlite("inline");
}

#[test]
fn sql_cases_on_sqlite_in_workers() {
    on_sqlite("worker");
}

#[test]
fn sql_cases_on_duckdb_inside_the_host() {
    on_duckdb("inline");
}

#[test]
fn sql_cases_on_duckdb_in_workers() {
    on_duckdb("worker");
}

fn on_sqlite(lane: &str) {
    let tally = run_group("sqlite", lane);
    tally.assert_law();
    println!("sqlite, {lane}: {tally}");
}

fn on_duckdb(lane: &str) {
    if !crate::support::duckdb::installed() {
        return;
    }
    let tally = run_group("duckdb", lane);
    tally.assert_law();
    let (good, all) = (tally.good("duckdb"), tally.all("duckdb"));
    assert!(good * 100 >= all * 95, "only {good} of {all} duckdb cases passed:\n{tally}");
    println!("duckdb, {lane}: {tally}");
}

/// Failures by group: `portable`, `hostile`, `duckdb`.
#[derive(Default)]
struct Tally {
    groups: BTreeMap<String, (usize, Vec<String>)>,
}

impl Tally {
    fn all(&self, group: &str) -> usize {
        self.groups.get(group).map_or(0, |(all, _)| *all)
    }

    fn good(&self, group: &str) -> usize {
        self.groups.get(group).map_or(0, |(all, bad)| all - bad.len())
    }

    /// The portable and hostile groups are law on every engine.
    #[track_caller]
    fn assert_law(&self) {
        assert!(self.all("portable") > 0, "no portable case was run");
        for group in ["portable", "hostile"] {
            let bad = self.groups.get(group).map_or(&[][..], |(_, bad)| bad);
            assert!(bad.is_empty(), "{} {group} cases failed:\n{}", bad.len(), bad.join("\n"));
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.groups.iter().try_for_each(|(group, (all, bad))| {
            write!(f, "{group} {} of {all}; ", all - bad.len())?;
            bad.iter().try_for_each(|why| write!(f, "\n  {why}"))
        })
    }
}

fn run_group(engine: &str, lane: &str) -> Tally {
    let folder = case_folder("SQL_CASES_DIR", "sql");
    let hosts: Mutex<BTreeMap<String, Served>> = Mutex::new(BTreeMap::new());
    let mut tally = Tally::default();
    for path in case_files(&folder) {
        for case in load_list(&path) {
            let files = initial_files(&folder, &case);
            let mut hosts = hosts.lock().unwrap();
            let served = hosts
                .entry(Value::Object(files.clone()).to_string())
                .or_insert_with(|| serve(&files, engine, lane));
            let outcome = run_case(served, &case);
            let hostile = case["hostile"] == true;
            let group = if hostile { "hostile" } else { case["dialect"].as_str().unwrap() };
            let (all, bad) = tally.groups.entry(group.to_owned()).or_default();
            *all += 1;
            if let Err(why) = outcome {
                bad.push(format!("{}: {why}", case["name"]));
            }
        }
    }
    tally
}

fn initial_files(folder: &Path, case: &Value) -> Map<String, Value> {
    match &case["initial_files"] {
        Value::Object(files) => files.clone(),
        Value::String(name) => {
            let path = folder.join("fixtures").join(format!("{name}.json"));
            parse(&std::fs::read_to_string(path).unwrap())
                .as_object()
                .expect("a fixture maps paths to content")
                .clone()
        }
        other => panic!("unknown initial_files {other}"),
    }
}

fn serve(files: &Map<String, Value>, engine: &str, lane: &str) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    lay_out(&root, files, Some(""));
    let options = HostOptions::new()
        .lane(lane)
        .env("OPENFUSED_APP_DIR_STATE", &root)
        .env("UDF_HOST_SQL_ENGINE", engine)
        .arg("--sql-timeout")
        .arg("2");
    let host = HostProcess::start(&options);
    Served { before: store_files(&root), root, host, _folder: folder }
}

fn store_files(root: &Path) -> BTreeMap<String, Found> {
    let mut files = snapshot(root);
    files.retain(|name, _| !name.ends_with(".lock"));
    files
}

fn run_case(served: &mut Served, case: &Value) -> Result<(), String> {
    let request = &case["request"];
    let body = match request["raw_body"].as_str() {
        Some(raw) => raw.to_owned(),
        None => built_body(request).to_string(),
    };
    let (status, text) = send(&served.host, request, case["project"].as_str().unwrap(), &body)?;
    if let Some(leak) = LEAKS.iter().find(|leak| text.contains(**leak)) {
        return Err(format!("the reply leaks {leak:?}: {text}"));
    }
    if text.contains(&served.host.token) {
        return Err("the reply holds the token".to_owned());
    }
    let reply = try_parse(&text).map_err(|error| format!("not JSON: {error}: {text}"))?;
    check_reply(case, status, &reply)?;
    if store_files(&served.root) != served.before {
        return Err("the state folder changed".to_owned());
    }
    if let Some(status) = served.host.ended() {
        return Err(format!("the host ended with {status}"));
    }
    if case["hostile"] == true {
        let answer = served.host.post(
            "/api/exec/sql",
            "_core",
            "feedback-management",
            r#"{"sql": "SELECT 1 AS one"}"#,
        )?;
        let want = json!({"q0": {"columns": ["one"], "rows": [{"one": 1}]}});
        if answer.status != 200 || answer.json()["data"] != want {
            return Err(format!("the next query fails: {} {}", answer.status, answer.text));
        }
    }
    Ok(())
}

fn built_body(request: &Value) -> Value {
    let mut body = request["body"].clone();
    for (mark, repeat) in request["repeat"].as_object().into_iter().flatten() {
        let text = repeat[0]
            .as_str()
            .unwrap()
            .repeat(usize::try_from(repeat[1].as_u64().unwrap()).unwrap());
        body["sql"] = body["sql"].as_str().unwrap().replace(mark.as_str(), &text).into();
    }
    if let Some(pad) = request["pad_bytes"].as_u64() {
        body["pad"] = "x".repeat(usize::try_from(pad).unwrap()).into();
    }
    body
}

fn send(
    host: &HostProcess,
    request: &Value,
    project: &str,
    body: &str,
) -> Result<(u16, String), String> {
    let route = request["route"].as_str().unwrap();
    let token = request["token"].as_str().unwrap_or(&host.token);
    let method = request["method"].as_str().unwrap_or("POST");
    let url =
        format!("{}/api/exec/{route}?t={token}&workspace=_core&project={project}", host.origin);
    host.request(method, &url, body).map(|answer| (answer.status, answer.text))
}

fn check_reply(case: &Value, status: u16, reply: &Value) -> Result<(), String> {
    if let Some(error) = case.get("expect_error") {
        let allowed = match &error["status"] {
            Value::Array(many) => many.clone(),
            one => vec![one.clone()],
        };
        if !allowed.iter().any(|it| it.as_u64() == Some(status.into())) {
            return Err(format!("want status {}, got {status}: {}", error["status"], short(reply)));
        }
        let told = reply["error"].as_str().is_some_and(|text| !text.is_empty());
        return if reply["data"].is_null() && told {
            Ok(())
        } else {
            Err(format!("not an error envelope: {}", short(reply)))
        };
    }
    if status != 200 {
        return Err(format!("status {status}: {}", short(reply)));
    }
    if case["request"]["route"] == "sql" {
        check_table(case, reply)
    } else {
        check_widget(case, reply)
    }
}

fn check_table(case: &Value, reply: &Value) -> Result<(), String> {
    let table = &reply["data"]["q0"];
    let columns: Vec<&str> =
        table["columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut distinct = columns.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if reply.get("error") != Some(&Value::Null)
        || columns.is_empty()
        || distinct.len() != columns.len()
    {
        return Err(format!("want one table with distinct columns: {}", short(reply)));
    }
    if let Some(Value::Object(row)) = table["rows"].get(0)
        && row.keys().map(String::as_str).ne(columns.iter().copied())
    {
        return Err(format!(
            "columns {columns:?} do not match the row {}",
            short(&table["rows"][0])
        ));
    }
    same_rows(case, &case["expect"]["data"], &table["rows"], "q0")
}

fn check_widget(case: &Value, reply: &Value) -> Result<(), String> {
    let want = &case["expect"];
    let names = |value: &Value| {
        let mut names: Vec<String> =
            value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
        names.sort();
        names
    };
    let errors: Vec<String> =
        want["errors"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().into()).collect();
    if names(&reply["errors"]) != errors {
        return Err(format!("want errors of {errors:?}, got {}", short(&reply["errors"])));
    }
    if names(&reply["data"]) != names(&want["data"]) {
        return Err(format!(
            "want data of {:?}, got {:?}",
            names(&want["data"]),
            names(&reply["data"])
        ));
    }
    if !reply["warnings"].is_array()
        || sorted_lists(&reply["depMap"]) != sorted_lists(&want["depMap"])
    {
        return Err(format!("want depMap {}, got {}", want["depMap"], short(reply)));
    }
    for (id, table) in want["data"].as_object().unwrap() {
        if reply["data"][id]["columns"] != table["columns"] {
            return Err(format!(
                "{id}: want columns {}, got {}",
                table["columns"],
                short(&reply["data"][id])
            ));
        }
        same_rows(case, &table["rows"], &reply["data"][id]["rows"], id)?;
    }
    match want.get("config") {
        Some(config) if *config != reply["config"] => {
            Err(format!("want config {config}, got {}", reply["config"]))
        }
        _ => Ok(()),
    }
}

fn sorted_lists(map: &Value) -> BTreeMap<String, Vec<String>> {
    let list = |value: &Value| {
        let mut ids: Vec<String> = value.as_array().unwrap().iter().map(Value::to_string).collect();
        ids.sort();
        ids
    };
    map.as_object().into_iter().flatten().map(|(key, ids)| (key.clone(), list(ids))).collect()
}

fn same_rows(case: &Value, want: &Value, got: &Value, place: &str) -> Result<(), String> {
    let relaxed = case["dialect"] == "duckdb";
    let (Some(want), Some(got)) = (want.as_array(), got.as_array()) else {
        return Err(format!("{place} is not a list of rows: {}", short(got)));
    };
    if want.len() != got.len() {
        return Err(format!("{place}: want {} rows, got {}", want.len(), got.len()));
    }
    let mut left: Vec<&Value> = got.iter().collect();
    for (at, row) in want.iter().enumerate() {
        let among = if case["ordered"] == true { 1 } else { left.len() };
        let Some(hit) = left[..among].iter().position(|other| same(row, other, relaxed)) else {
            return Err(format!("{place}: row {at} {}, got {}", short(row), short(left[0])));
        };
        left.remove(hit);
    }
    Ok(())
}

/// JSON equality: integers exactly, other numbers to nine digits; relaxed, a time may have a blank or a `T`.
fn same(want: &Value, got: &Value, relaxed: bool) -> bool {
    match (want, got) {
        (Value::Number(want), Value::Number(got)) => {
            let (want, got) = (want.to_string(), got.to_string());
            let integer =
                |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            if integer(&want) && integer(&got) {
                return want == got;
            }
            let (want, got): (f64, f64) = (want.parse().unwrap(), got.parse().unwrap());
            (want - got).abs() <= (1e-9 * want.abs().max(got.abs())).max(1e-12)
        }
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len()
                && want.iter().zip(got).all(|(want, got)| same(want, got, relaxed))
        }
        (Value::Object(want), Value::Object(got)) => {
            want.len() == got.len()
                && want
                    .iter()
                    .all(|(key, want)| got.get(key).is_some_and(|got| same(want, got, relaxed)))
        }
        (Value::String(want), Value::String(got)) => {
            want == got || relaxed && stamp(want).is_some() && stamp(want) == stamp(got)
        }
        _ => want == got,
    }
}

/// A date and time without the sign between them and without trailing zeros of the fraction.
fn stamp(text: &str) -> Option<String> {
    let form = regex::Regex::new(r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?$").unwrap();
    let found = form.captures(text)?;
    let fraction = found.get(3).map_or("", |it| it.as_str().trim_end_matches('0'));
    Some(format!("{} {}.{fraction}", &found[1], &found[2]))
}
