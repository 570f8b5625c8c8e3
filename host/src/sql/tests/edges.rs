//! Statements at the edges of what is translated, and of what a statement may take.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::fixture::Fixture;
use crate::sql::engine::sqlite::Sqlite;
use crate::sql::{Addressed, Limits, Request, Sql, SqlError};

fn run(statement: &str, limits: Limits) -> Result<Value, SqlError> {
    let at = Addressed { workspace: "_core", project: "task-management" };
    let request = Request { sql: statement.to_owned(), ..Request::default() };
    let answer =
        Sql::new(Box::new(Sqlite), limits).run(&Fixture::new(&Map::new()), at, &request)?;
    Ok(serde_json::from_str(&answer.rows).unwrap())
}

#[track_caller]
fn check(statement: &str, want: &Value) {
    assert_eq!(run(statement, Limits::default()).as_ref(), Ok(want), "{statement}");
}

#[track_caller]
fn check_refused(statement: &str) {
    let error = run(statement, Limits::default()).unwrap_err();
    assert!(matches!(error, SqlError::Refused(_)), "{error:?}");
}

#[test]
fn an_interval_of_any_length_has_its_seconds() {
    check("SELECT epoch(INTERVAL '2147483647 days') AS s", &json!([{"s": 185542587100800.0}]));
    check("SELECT epoch(INTERVAL '-2147483648 days') AS s", &json!([{"s": -185542587187200.0}]));
    check("SELECT epoch(INTERVAL '1 day 1 second') AS s", &json!([{"s": 86401.0}]));
    check_refused("SELECT epoch(INTERVAL '2147483647 weeks') AS s");
}

#[test]
fn grouping_sets_are_not_written_down_without_end() {
    let rollup = |terms: usize| {
        let terms = (0..terms).map(|n| format!("title || '{n}'")).collect::<Vec<_>>();
        format!("FROM {{{{read}}}} SELECT count(*) AS n GROUP BY ROLLUP ({})", terms.join(", "))
    };
    let sets = |sets: usize| {
        let sets = vec!["(title)"; sets].join(", ");
        format!("FROM {{{{read}}}} SELECT count(*) AS n GROUP BY GROUPING SETS ({sets})")
    };
    check(&rollup(8), &json!([{"n": 0}]));
    check(&sets(8), &json!([]));
    check_refused(&rollup(40));
    check_refused(&sets(40));
}

#[test]
fn an_expression_is_not_written_down_again_and_again_without_end() {
    let nested = |levels: usize| {
        let text = "x".repeat(100_000);
        let (open, close) = ("lower(".repeat(levels), ")".repeat(levels));
        format!("SELECT length({open}'{text}'{close})::INTEGER AS n")
    };
    check(&nested(5), &json!([{"n": 100_000}]));
    check_refused(&nested(50));
}

#[test]
fn the_names_of_tables_keep_clear_of_what_looks_like_them() {
    let texts = (1..1_000).map(|n| format!("__REF{n}_")).collect::<String>();
    let statement =
        format!("SELECT '__ref__ref01_{texts}' AS a, count(*) AS n FROM {{{{read}}}} AS t");
    check(&statement, &json!([{"a": format!("__ref__ref01_{texts}"), "n": 0}]));
    check("SELECT count(*) AS __ref0 FROM {{read}} AS t", &json!([{"__ref0": 0}]));
}

#[test]
fn a_pattern_and_a_text_are_not_both_large() {
    let matches = |pattern: &str, length: usize| {
        format!("SELECT regexp_matches(repeat('a', {length}), '{pattern}') AS a")
    };
    check(&matches("^a+$", 10_000_000), &json!([{"a": 1}]));
    check(&matches("^[a-z]{1000}$", 1000), &json!([{"a": 1}]));
    check_refused(&matches("[a-z]{1000}[^a-z]", 10_000_000));
    check_refused(&matches("(?:[a-z]{1000}){1000}", 1));
}

#[test]
fn an_answer_of_many_columns_is_refused_with_their_number() {
    let fields = (0..2_001).map(|n| format!("\"k{n}\": 1")).collect::<Vec<_>>().join(",");
    let file = format!("{{\"state/tasks.json\": [{{{fields}}}]}}");
    let files: Map<String, Value> = serde_json::from_str(&file).unwrap();
    let at = Addressed { workspace: "_core", project: "task-management" };
    let request = Request { sql: "SELECT count(*) FROM {{read}}".to_owned(), ..Request::default() };
    let sql = Sql::new(Box::new(Sqlite), Limits::default());
    let error = sql.run(&Fixture::new(&files), at, &request).unwrap_err().to_string();
    assert_eq!(error, "an answer has 2017 columns, and the sqlite engine has room for 2000");
}

#[test]
fn each_replacement_looks_at_the_clock() {
    let limits = Limits { time: Duration::ZERO, ..Limits::default() };
    let error = run("SELECT regexp_replace('abc', 'b', 'x') AS a", limits).unwrap_err();
    assert!(matches!(error, SqlError::Timeout(_)), "{error:?}");
}
