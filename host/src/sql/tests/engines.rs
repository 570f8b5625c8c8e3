//! What both engines promise beyond the handed cases: values, limits, refusals.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use super::cases::duckdb;
use super::fixture::Fixture;
use crate::sql::engine::{Engine, sqlite::Sqlite};
use crate::sql::error::SqlError;
use crate::sql::{Addressed, Limits, Request, Sql};

const AT: Addressed<'_> = Addressed { workspace: "_core", project: "feedback-management" };

/// Both engines, as far as they are there.
fn engines() -> Vec<(&'static str, Box<dyn Engine>)> {
    let sqlite: Box<dyn Engine> = Box::new(Sqlite);
    std::iter::once(("sqlite", sqlite))
        .chain(duckdb().map(|engine| ("duckdb", Box::new(engine) as _)))
        .collect()
}

fn cards() -> Fixture {
    let cards = json!([
        {"id": "a", "taskId": "t1", "payload": {"x": [1, 2.50, null]}, "summary": "[1, 2]", "big": 9007199254740993_i64},
        {"id": "b", "taskId": "t2", "payload": "text", "summary": "it's \\ \"so\"", "big": 5},
        {"id": "c", "taskId": "", "payload": null, "summary": null},
    ]);
    Fixture::new(&Map::from_iter([("state/cards.json".to_owned(), cards)]))
}

fn rows(sql: &Sql, statement: &str, params: Value) -> Result<Value, u16> {
    let answer = answer(sql, &cards(), statement, params).map_err(|error| error.status())?;
    Ok(serde_json::from_str(&answer).expect("rows are JSON"))
}

fn answer(
    sql: &Sql,
    fixture: &Fixture,
    statement: &str,
    params: Value,
) -> Result<String, SqlError> {
    let params = params.as_object().cloned().unwrap_or_default();
    let request = Request { sql: statement.to_owned(), params, ..Request::default() };
    sql.run(fixture, AT, &request).map(|answer| answer.rows)
}

#[test]
fn an_integer_beside_a_boolean_stays_a_number() {
    let files = json!({"state/tasks.json": [{"id": "a", "createdAt": "1"}, {"id": "b", "createdAt": "2"}],
        "state/runs.json": [{"id": "r", "taskId": "a", "status": "started", "createdAt": "1"}]});
    let fixture = Fixture::new(files.as_object().unwrap());
    for (name, engine) in engines() {
        let sql = Sql::new(engine, Limits::default());
        let tasks = "{{_core.task-management.read}}";
        for (statement, want) in [
            (
                format!(
                    "SELECT isLive AS v FROM {tasks} UNION ALL SELECT liveRunCount FROM {tasks}"
                ),
                json!([1, 0, 1, 0]),
            ),
            (
                format!(
                    "SELECT liveRunCount AS v FROM {tasks} UNION ALL SELECT isLive FROM {tasks}"
                ),
                json!([1, 0, 1, 0]),
            ),
            (
                format!(
                    "SELECT isLive AS v FROM {tasks} UNION ALL SELECT count(*) FROM {tasks} WHERE id = 'a'"
                ),
                json!([1, 0, 1]),
            ),
            (
                format!(
                    "SELECT v FROM (SELECT isLive AS v FROM {tasks} UNION ALL SELECT isLive FROM {tasks}) AS q"
                ),
                json!([true, false, true, false]),
            ),
        ] {
            let rows = answer(&sql, &fixture, &statement, json!({})).unwrap();
            let rows: Value = serde_json::from_str(&rows).unwrap();
            let cells = rows.as_array().unwrap().iter().map(|row| row["v"].clone());
            assert_eq!(cells.collect::<Value>(), want, "{name}: {statement}");
        }
    }
}

#[test]
fn a_number_has_a_digit_before_its_point() {
    for (name, engine) in engines() {
        let sql = Sql::new(engine, Limits::default());
        for (number, want) in [(".5", "0.5"), ("-.25", "-0.25"), ("10.50 - 10", "0.50")] {
            let answer = answer(&sql, &cards(), &format!("SELECT {number} AS n"), json!({}));
            let want = format!("[{{\"n\":{want}}}]");
            let same = answer.as_ref().is_ok_and(|rows| {
                *rows == want || name == "sqlite" && *rows == want.replace("0}", "}")
            });
            assert!(same, "{name}: {number}: {answer:?}");
        }
    }
}

#[test]
fn a_number_beyond_a_double_leaves_its_json_json() {
    let cards =
        r#"[{"id": "a", "payload": {"n": 1e400, "t": "nan"}}, {"id": "b", "payload": [1]}]"#;
    let files =
        Map::from_iter([("state/cards.json".to_owned(), serde_json::from_str(cards).unwrap())]);
    for (name, engine) in engines() {
        let sql = Sql::new(engine, Limits::default());
        for statement in [
            "SELECT payload AS p FROM {{list_cards}} WHERE id = 'a'",
            "SELECT payload AS p FROM {{list_cards}} WHERE id = 'a' UNION ALL SELECT payload FROM {{list_cards}} WHERE id = 'c'",
        ] {
            let rows = answer(&sql, &Fixture::new(&files), statement, json!({})).unwrap();
            assert!(
                [r#"[{"p":{"n":1e400,"t":"nan"}}]"#, r#"[{"p":{"n":1e+400,"t":"nan"}}]"#]
                    .contains(&&*rows),
                "{name}: {statement}: {rows}"
            );
        }
    }
}

#[test]
fn what_sqlite_lacks_may_be_found_in_the_other_engine() {
    let sql = Sql::new(Box::new(Sqlite), Limits::default());
    for statement in [
        "SELECT sum(big)::DECIMAL(10,2) AS d FROM {{list_cards}}",
        "SELECT epoch_ns(id) FROM {{list_cards}}",
    ] {
        let error = answer(&sql, &cards(), statement, json!({})).unwrap_err().to_string();
        assert!(error.contains("`--sql-engine duckdb`"), "{statement}: {error}");
    }
}

#[test]
fn values_come_back_as_they_are() {
    for (name, engine) in engines() {
        let sql = Sql::new(engine, Limits::default());
        for (statement, want) in [
            (
                "SELECT payload AS p FROM {{list_cards}} ORDER BY id",
                json!([{"p": {"x": [1, 2.50, null]}}, {"p": "text"}, {"p": null}]),
            ),
            (
                "WITH q AS (SELECT payload AS p, id FROM {{list_cards}}) SELECT p FROM (SELECT * FROM q) ORDER BY id LIMIT 1",
                json!([{"p": {"x": [1, 2.50, null]}}]),
            ),
            (
                "SELECT summary AS s FROM {{list_cards}} ORDER BY id",
                json!([{"s": "[1, 2]"}, {"s": "it's \\ \"so\""}, {"s": null}]),
            ),
            (
                "SELECT BIG FROM {{list_cards}} WHERE ID = 'a'",
                json!([{"big": 9007199254740993_i64}]),
            ),
            ("SELECT id FROM {{list_cards}} WHERE taskId = ''", json!([{"id": "c"}])),
            (
                "SELECT id FROM {{list_cards}} WHERE taskId IN ('t2', 't1')",
                json!([{"id": "a"}, {"id": "b"}]),
            ),
            (
                "SELECT a.id, b.id FROM {{list_cards}} a JOIN {{list_cards}} b ON a.taskId = b.taskId ORDER BY a.id LIMIT 1",
                json!([{"id": "a", "id_1": "a"}]),
            ),
        ] {
            assert_eq!(rows(&sql, statement, json!({})), Ok(want), "{name}: {statement}");
        }
    }
}

#[test]
fn what_is_refused_leaves_the_engine_working() {
    let deep = format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000));
    let wide = format!("SELECT {}1", "1 + ".repeat(50_000));
    for (name, engine) in engines() {
        // Long enough for the others, on a machine that has much else to do.
        let limits = Limits { time: Duration::from_secs(3), rows: 1_000, ..Limits::default() };
        let sql = Sql::new(engine, limits);
        for (statement, allowed) in [
            ("SELECT ?", &[400][..]),
            ("SELECT 1; SELECT 2", &[400]),
            ("PRAGMA database_list", &[400]),
            ("PRAGMA version", &[400]),
            ("PRAGMA show_tables", &[400]),
            ("EXPLAIN SELECT 1", &[400]),
            ("SELECT * FROM list_cards", &[400]),
            ("SELECT nope FROM {{list_cards}}", &[400]),
            ("SELECT repeat('x', 2000000000) AS x", &[400]),
            (
                "SELECT a.id FROM {{list_cards}} a, {{list_cards}} b, {{list_cards}} c, {{list_cards}} d, {{list_cards}} e, {{list_cards}} f, {{list_cards}} g",
                &[400],
            ),
            (
                "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n",
                &[504],
            ),
            (&deep, &[400]),
            (&wide, &[400]),
        ] {
            let outcome = rows(&sql, statement, json!({}));
            let shown = statement.chars().take(80).collect::<String>();
            assert!(
                outcome.as_ref().is_err_and(|status| allowed.contains(status)),
                "{name}: {shown}: {outcome:?}"
            );
            assert_eq!(
                rows(&sql, "SELECT 1 AS one", json!({})),
                Ok(json!([{"one": 1}])),
                "{name}: after {shown}"
            );
        }
    }
}

#[test]
fn lists_of_any_length_are_refused_before_they_are_made() {
    let Some(engine) = duckdb() else { return };
    let sql = Sql::new(Box::new(engine), Limits::default());
    for statement in [
        "SELECT len(range(10000000000)) AS n",
        "SELECT len(range(-10000000000, 5)) AS n",
        "SELECT len(generate_series(1, 90000000, 2)) AS n",
        "SELECT len(range(TIMESTAMP '2000-01-01', TIMESTAMP '2026-01-01', INTERVAL 1 SECOND)) AS n",
        "SELECT len(list_resize([1], 10000000000)) AS n",
        "SELECT len(array_resize([1], 10000000000, 2)) AS n",
        "SELECT length(bitstring('1', 2000000000)) AS n",
        "SELECT len(system.main.range(5)) AS n",
    ] {
        assert_eq!(rows(&sql, statement, json!({})), Err(400), "{statement}");
    }
    for (expression, want) in [
        ("range(3)", json!([0, 1, 2])),
        ("range(1, 3)", json!([1, 2])),
        ("range(3, 0, -1)", json!([3, 2, 1])),
        ("generate_series(1, 2)", json!([1, 2])),
        (
            "range(DATE '2026-01-01', DATE '2026-01-03', INTERVAL 1 DAY)",
            json!(["2026-01-01 00:00:00", "2026-01-02 00:00:00"]),
        ),
        ("range(NULL)", json!(null)),
        ("list_resize([1], 2)", json!([1, null])),
        ("array_resize([1], 2, 5)", json!([1, 5])),
        ("(SELECT sum(range) FROM range(4))", json!(6)),
        ("(SELECT count(*) FROM range(10000000))", json!(10_000_000)),
        ("(SELECT list(len(range(n))) FROM (VALUES (1), (2)) AS v(n))", json!([1, 2])),
    ] {
        let statement = format!("SELECT {expression} AS x");
        assert_eq!(rows(&sql, &statement, json!({})), Ok(json!([{"x": want}])), "{expression}");
    }
}

#[test]
fn functions_of_duckdb_mean_the_same_on_sqlite() {
    for (name, engine) in engines() {
        let sql = Sql::new(engine, Limits::default());
        for (expression, want) in [
            ("greatest(1, 5, NULL, 3)", json!(5)),
            ("least('b', 'a')", json!("a")),
            ("greatest(NULL, NULL)", json!(null)),
            ("lpad('7', 3, '0')", json!("007")),
            ("lpad('abcd', 2, '0')", json!("ab")),
            ("rpad('é', 3, 'xy')", json!("éxy")),
            ("repeat('ab', 2)", json!("abab")),
            ("repeat('ab', -1)", json!("")),
            ("split_part('a-b-c', '-', 2)", json!("b")),
            ("split_part('a-b-c', '-', -1)", json!("c")),
            ("split_part('a-b-c', '-', 9)", json!("")),
            ("replace('aXbX', 'X', '--')", json!("a--b--")),
            ("instr('äbc', 'c')", json!(3)),
            (
                "CASE WHEN contains('abc', 'bc') AND starts_with('abc', 'ab') AND ends_with('abc', 'bc') THEN 1 END",
                json!(1),
            ),
        ] {
            let statement = format!("SELECT {expression} AS x");
            assert_eq!(
                rows(&sql, &statement, json!({})),
                Ok(json!([{"x": want}])),
                "{name}: {expression}"
            );
        }
        let numbers = "(SELECT 1 AS n, 'a' AS t UNION ALL SELECT 2, 'b' UNION ALL SELECT 4, 'b' UNION ALL SELECT NULL, 'c')";
        for (expression, want) in [
            ("arg_max(t, n)", json!("b")),
            ("min_by(t, n)", json!("a")),
            ("mode(t)", json!("b")),
            ("median(n)", json!(2.0)),
            ("quantile_cont(n, 0.25)", json!(1.5)),
            ("count_if(n > 1)", json!(2)),
        ] {
            let statement = format!("SELECT {expression} AS x FROM {numbers} AS numbers");
            let got = rows(&sql, &statement, json!({})).expect(expression);
            assert_eq!(got[0]["x"].as_f64(), want.as_f64(), "{name}: {expression}");
            assert_eq!(got[0]["x"].as_str(), want.as_str(), "{name}: {expression}");
        }
    }
}

/// Texts that try to leave their quotes.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "'",
        "''",
        "\"",
        "\\",
        "--",
        "/*",
        "*/",
        "\n",
        "\r",
        "$$",
        "$a",
        "{{list_cards}}",
        "}}",
        "[",
        "]",
        "`",
        " OR 1=1",
        ";",
        "é",
        "\u{a0}",
        "\u{feff}",
        "E'",
        "x",
        "\u{1}",
    ]);
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

#[test]
fn a_value_never_leaves_its_quotes() {
    for (name, engine) in engines() {
        let duckdb = name == "duckdb";
        let sql = Sql::new(engine, Limits::default());
        let statement = if duckdb {
            "SELECT $t AS a, 'x$t' AS b, E'y$t' AS c, 1 /* $t */ AS d -- $t"
        } else {
            "SELECT $t AS a, 'x$t' AS b, 'y$t' AS c, 1 /* $t */ AS d -- $t"
        };
        let cases = Config::default().cases / 3;
        let mut runner =
            TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&hostile(), |text| {
            let want =
                json!([{"a": text, "b": format!("x{text}"), "c": format!("y{text}"), "d": 1}]);
            prop_assert_eq!(rows(&sql, statement, json!({"t": text})), Ok(want));
            // Lists, which are identifiers to one engine and none to the other.
            let statement = "SELECT $t::VARCHAR AS a, ['u''', \"c\"][1] AS b, 'y$t' AS c FROM (SELECT 'v' AS c)";
            let want = json!([{"a": text, "b": "u'", "c": format!("y{text}")}]);
            prop_assert_eq!(rows(&sql, statement, json!({"t": text})), Ok(want));
            Ok(())
        });
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
}
