//! The handed cases (`tests/cases/sql`), those of `/api/exec/sql` and `/api/exec/widget` that need no HTTP.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Map, Value};

use super::fixture::Fixture;
use crate::sql::engine::duckdb::{DuckDb, install};
use crate::sql::engine::{Engine, Outcome, Query, sqlite::Sqlite};
use crate::sql::error::SqlError;
use crate::sql::lexer::Dialect;
use crate::sql::{Addressed, Limits, Sql};

/// Cases about HTTP itself, and about an operation whose answer is more than a fixture's lines.
const ELSEWHERE: &[&str] =
    &["wrong_token", "body_over_the_limit", "ref_inbox_object", "unnest_inbox_items"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/sql")
}

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(&path).expect("a case file")).expect("JSON")
}

fn cases() -> Vec<Map<String, Value>> {
    let mut files = std::fs::read_dir(folder())
        .expect("the cases")
        .map(|f| f.expect("a file").path())
        .collect::<Vec<_>>();
    files.sort();
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "json"));
    files
        .flat_map(|path| match read(path) {
            Value::Array(cases) => cases,
            _ => Vec::new(),
        })
        .filter_map(|case| case.as_object().cloned())
        .collect()
}

fn same(want: &Value, got: &Value, relaxed: bool) -> bool {
    match (want, got) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.to_string(), b.to_string());
            match (a.parse::<i128>(), b.parse::<i128>()) {
                (Ok(a), Ok(b)) => a == b,
                _ => {
                    let (a, b): (f64, f64) =
                        (a.parse().expect("number"), b.parse().expect("number"));
                    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, relaxed))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b, relaxed)))
        }
        (Value::String(a), Value::String(b)) => {
            a == b || relaxed && a.replace('T', " ") == b.replace('T', " ")
        }
        (a, b) => a == b,
    }
}

fn same_rows(want: &Value, got: &Value, ordered: bool, relaxed: bool) -> bool {
    let (Value::Array(want), Value::Array(got)) = (want, got) else { return false };
    let mut left = got.iter().collect::<Vec<_>>();
    want.len() == got.len()
        && want.iter().all(|row| {
            let among = if ordered { 1.min(left.len()) } else { left.len() };
            let hit = left[..among].iter().position(|other| same(row, other, relaxed));
            hit.map(|at| left.remove(at)).is_some()
        })
}

/// Why a case fails, if it does.
fn check(case: &Map<String, Value>, sql: &Sql, fixture: &Fixture) -> Option<String> {
    let request = &case["request"];
    let mut body = request["body"].clone();
    for (mark, what) in request["repeat"].as_object().into_iter().flatten() {
        let times = usize::try_from(what[1].as_u64().expect("times")).expect("small");
        let text = what[0].as_str().expect("a text").repeat(times);
        body["sql"] = body["sql"].as_str().expect("a text").replace(mark, &text).into();
    }
    let body = request["raw_body"].as_str().map_or_else(|| body.to_string(), str::to_owned);
    let at = Addressed { workspace: "_core", project: case["project"].as_str().expect("a text") };
    let widget = request["route"] == "widget";
    let outcome = if widget {
        sql.widget(fixture, at, body.as_bytes())
    } else {
        sql.exec(fixture, at, body.as_bytes())
    };
    if let Some(error) = case.get("expect_error") {
        let allowed = match &error["status"] {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        return match outcome {
            Err(error) if allowed.iter().any(|status| *status == error.status()) => None,
            other => Some(format!("want {allowed:?}, got {other:?}")),
        };
    }
    let reply: Value = match outcome {
        Ok(text) => serde_json::from_str(&text).expect("a JSON reply"),
        Err(error) => return Some(format!("{} {error}", error.status())),
    };
    let (ordered, relaxed) = (case["ordered"] == true, case["dialect"] == "duckdb");
    let want = &case["expect"];
    if !widget {
        let rows = &reply["data"]["q0"]["rows"];
        return (!same_rows(&want["data"], rows, ordered, relaxed))
            .then(|| format!("want {}, got {rows}", want["data"]));
    }
    let mut errors =
        reply["errors"].as_object().expect("errors").keys().cloned().collect::<Vec<_>>();
    errors.sort();
    let sorted = |map: &Value| {
        let mut map: BTreeMap<String, Vec<String>> =
            serde_json::from_value(map.clone()).expect("a map");
        map.values_mut().for_each(|ids| ids.sort());
        map
    };
    let data_same = want["data"].as_object().expect("data").iter().all(|(id, table)| {
        reply["data"][id]["columns"] == table["columns"]
            && same_rows(&table["rows"], &reply["data"][id]["rows"], ordered, relaxed)
    });
    let fine = want["errors"] == serde_json::json!(errors)
        && data_same
        && want["data"].as_object().map(Map::len) == reply["data"].as_object().map(Map::len)
        && sorted(&want["depMap"]) == sorted(&reply["depMap"])
        && want.get("config").is_none_or(|config| *config == reply["config"]);
    (!fine).then(|| format!("want {want}, got {reply}"))
}

/// Runs all cases; the failures of the groups that are law, and the tally of each group.
#[track_caller]
fn run(engine: Box<dyn Engine>, duckdb_at_least: usize) {
    let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
    let sql = Sql::new(engine, limits);
    let (mut failures, mut tally) = (Vec::new(), BTreeMap::<&str, (usize, usize)>::new());
    for case in cases() {
        let name = case["name"].as_str().expect("a text");
        if ELSEWHERE.contains(&name) {
            continue;
        }
        let files = match &case["initial_files"] {
            Value::String(name) => read(folder().join(format!("fixtures/{name}.json"))),
            files => files.clone(),
        };
        let fixture = Fixture::new(files.as_object().expect("files"));
        let why = check(&case, &sql, &fixture);
        let group = if case.get("hostile") == Some(&Value::Bool(true)) {
            "hostile"
        } else if case["dialect"] == "duckdb" {
            "duckdb"
        } else {
            "portable"
        };
        let entry = tally.entry(group).or_default();
        entry.1 += 1;
        match why {
            None => entry.0 += 1,
            Some(why) if group == "duckdb" => {
                eprintln!("{name}: {}", why.chars().take(300).collect::<String>())
            }
            Some(why) => failures.push(format!("{group} {name}: {why}")),
        }
    }
    for (group, (passed, all)) in &tally {
        eprintln!("{group}: {passed} of {all}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(tally["duckdb"].0 >= duckdb_at_least, "the duckdb group fell to {}", tally["duckdb"].0);
}

/// DuckDB with a database of its own, which stays open to the end of the tests. Loud if its library is not there: the
/// tests that need it do nothing then.
pub(super) fn duckdb() -> Option<DuckDb> {
    let named = std::env::var_os("DUCKDB_LIB_DIR").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let library = install::library(named.as_deref(), &cache?.join("udf-host"));
    if !library.is_file() {
        // Past what the test runner captures.
        let _nobody_listens = std::io::stderr().write_all(
            b"!!! SKIPPED: libduckdb is not installed; run `udf-host sql install-duckdb` or set DUCKDB_LIB_DIR\n",
        );
        return None;
    }
    Some(DuckDb::new(library, Limits::default()))
}

/// DuckDB with the one database of all tests that run statements by the thousand.
pub(super) fn shared_duckdb() -> Option<Box<dyn Engine>> {
    struct Shared(&'static DuckDb);

    impl Engine for Shared {
        fn dialect(&self) -> Dialect {
            self.0.dialect()
        }

        fn run(&self, query: &Query<'_>) -> Result<Outcome, SqlError> {
            self.0.run(query)
        }
    }

    static ENGINE: OnceLock<Option<DuckDb>> = OnceLock::new();
    ENGINE.get_or_init(duckdb).as_ref().map(|engine| Box::new(Shared(engine)) as _)
}

#[test]
fn cases_on_duckdb() {
    if let Some(engine) = duckdb() {
        run(Box::new(engine), 49);
    }
}

#[test]
fn cases_on_sqlite() {
    run(Box::new(Sqlite), 46);
}
