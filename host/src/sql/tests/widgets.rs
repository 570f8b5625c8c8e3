//! What widgets promise beyond the handed cases.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use super::cases::shared_duckdb;
use super::fixture::Fixture;
use crate::sql::engine::Engine;
use crate::sql::engine::sqlite::Sqlite;
use crate::sql::{Addressed, Limits, Sql};

fn run(fixture: &Fixture, body: Value) -> Value {
    run_on(Box::new(Sqlite), fixture, body)
}

fn run_on(engine: Box<dyn Engine>, fixture: &Fixture, body: Value) -> Value {
    let sql = Sql::new(engine, Limits::default());
    let at = Addressed { workspace: "_core", project: "feedback-management" };
    serde_json::from_str(&sql.widget(fixture, at, body.to_string().as_bytes()).expect("a reply"))
        .expect("JSON")
}

fn fixture() -> Fixture {
    let cards =
        (0..30).map(|n| json!({"id": format!("c{n:02}"), "status": "pending"})).collect::<Vec<_>>();
    Fixture::new(&Map::from_iter([("state/cards.json".to_owned(), json!(cards))]))
}

fn metric(sql: &str) -> Value {
    json!({"type": "metric", "props": {"sql": sql}})
}

#[test]
fn equal_references_are_one_call_over_all_queries() {
    let fixture = fixture();
    let count = metric("SELECT count(*) AS n FROM {{list_cards}}");
    let same = metric(
        "SELECT count(*) AS n FROM {{_core.feedback-management.list_cards}} a, {{list_cards}} b",
    );
    let other = metric("SELECT count(*) AS n FROM {{list_cards?task=t}}");
    let reply = run(&fixture, json!({"config": {"type": "div", "children": [count, same, other]}}));
    assert_eq!(reply["data"]["q1"]["rows"], json!([{"n": 900}]));
    assert_eq!(fixture.calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_runner_is_cut_aloud_and_only_without_a_limit_of_its_own() {
    let runner = |sql: &str| {
        json!({"config": {"type": "sql-runner", "props": {"name": "src", "sql": sql, "maxRows": 10},
            "children": metric("SELECT count(*) AS n FROM {{src}}")}})
    };
    for (sql, rows, warnings) in [
        ("SELECT id FROM {{list_cards}}", 10, 1),
        ("SELECT id FROM {{list_cards}} LIMIT 20", 20, 0),
        (
            "SELECT id FROM {{list_cards}} WHERE id IN (SELECT id FROM {{list_cards}} LIMIT 20)",
            10,
            1,
        ),
        ("SELECT id FROM {{list_cards}} WHERE id < 'c05'", 5, 0),
    ] {
        let reply = run(&fixture(), runner(sql));
        assert_eq!(reply["data"]["q0"]["rows"], json!([{"n": rows}]), "{sql}");
        assert_eq!(reply["warnings"].as_array().map(Vec::len), Some(warnings), "{sql}");
    }
}

#[test]
fn a_runner_keeps_the_types_of_its_columns_with_any_rows_and_with_none() {
    let cards = json!([{"id": "c1", "summary": "s", "taskId": "t", "payload": "text", "createdAt": "2026-03-04T09:10:11.123Z"}]);
    let files = |cards: &Value| Map::from_iter([("state/cards.json".to_owned(), cards.clone())]);
    let read = |engine, cards: &Value, source: &str, query: &str| {
        let config = json!({"type": "sql-runner", "props": {"name": "src", "sql": source},
            "children": [metric(query)]});
        let reply = run_on(engine, &Fixture::new(&files(cards)), json!({"config": config}));
        assert_eq!(reply["errors"], json!({}), "{source}: {query}");
        reply["data"]["q0"]["rows"].clone()
    };
    let payload = "SELECT payload->>'$.k' AS k FROM {{src}}";
    let all = "SELECT * FROM {{list_cards}}";
    let sqlite = || Box::new(Sqlite) as Box<dyn Engine>;
    assert_eq!(read(sqlite(), &cards, all, payload), json!([{"k": null}]));
    assert_eq!(read(sqlite(), &json!([]), all, payload), json!([]));
    for (source, query, want) in [
        (all, payload, json!({"k": null})),
        (
            "SELECT length(summary) AS n, NULL::DOUBLE AS x FROM {{list_cards}}",
            "SELECT sum(n) + 1 AS n, sum(x) AS x FROM {{src}}",
            json!({"n": 2, "x": null}),
        ),
        (
            "SELECT createdAt::TIMESTAMP AS ts FROM {{list_cards}}",
            "SELECT date_trunc('day', ts) - INTERVAL 1 DAY AS day FROM {{src}}",
            json!({"day": "2026-03-03 00:00:00"}),
        ),
        (
            "SELECT createdAt::DATE AS d, 2::INTEGER AS n FROM {{list_cards}}",
            "SELECT d + n AS d FROM {{src}}",
            json!({"d": "2026-03-06"}),
        ),
        (
            "SELECT 9007199254740993.25::DECIMAL(18,2) AS m, true AS b FROM {{list_cards}}",
            "SELECT (m + 1)::VARCHAR AS m, NOT b AS b FROM {{src}}",
            json!({"b": false, "m": "9007199254740994.25"}),
        ),
        (
            "SELECT 18446744073709551616::HUGEINT AS h, '12:30:00'::TIME AS t, INTERVAL '1 month 2 days' AS i FROM {{list_cards}}",
            "SELECT (h - 18446744073709551615)::INT AS h, t + i AS t, DATE '2026-01-01' + i AS i FROM {{src}}",
            json!({"h": 1, "i": "2026-02-03 00:00:00", "t": "12:30:00"}),
        ),
        (
            "SELECT 1.5::FLOAT AS f, 'a\\x00'::BLOB AS z, '2026-03-04 10:00:00+02'::TIMESTAMPTZ AS tz, 'b'::ENUM('b') AS e, [1] AS l FROM {{list_cards}}",
            "SELECT f * 2 AS f, octet_length(z) AS z, epoch(tz) AS tz, e || l AS e FROM {{src}}",
            json!({"e": "b[1]", "f": 3.0, "tz": 1_772_611_200.0, "z": 2}),
        ),
    ] {
        let Some(engine) = shared_duckdb() else { return };
        assert_eq!(read(engine, &cards, source, query), json!([want]), "{source}");
        let Some(engine) = shared_duckdb() else { return };
        // Totals have a row in any case.
        assert!(read(engine, &json!([]), source, query).is_array());
    }
}

#[test]
fn a_number_of_rows_is_one_however_it_is_written() {
    for (rows, kept, warnings) in [
        ("2", 2, json!(["more than 2 rows"])),
        ("2.0", 2, json!(["more than 2 rows"])),
        ("2e0", 2, json!(["more than 2 rows"])),
        ("0", 0, json!(["more than 0 rows"])),
        ("-0.0", 0, json!(["more than 0 rows"])),
        ("1e30", 30, json!([])),
        ("null", 30, json!([])),
        ("2.5", 30, json!(["`maxRows` of `src` is 2.5, which"])),
        ("-1", 30, json!(["`maxRows` of `src` is -1, which"])),
        ("\"2\"", 30, json!(["`maxRows` of `src` is \"2\", which"])),
        ("[2]", 30, json!(["`maxRows` of `src` is [2], which"])),
    ] {
        let given: Value = serde_json::from_str(rows).unwrap();
        let config = json!({"type": "sql-runner",
            "props": {"name": "src", "sql": "SELECT id FROM {{list_cards}}", "maxRows": given},
            "children": metric("SELECT count(*) AS n FROM {{src}}")});
        let reply = run(&fixture(), json!({"config": config}));
        assert_eq!(reply["data"]["q0"]["rows"], json!([{"n": kept}]), "{rows}: {reply}");
        let (said, warnings) =
            (reply["warnings"].as_array().unwrap(), warnings.as_array().unwrap());
        assert_eq!(said.len(), warnings.len(), "{rows}: {reply}");
        for (said, want) in said.iter().zip(warnings) {
            let told = said["message"].as_str().unwrap();
            assert!(told.contains(want.as_str().unwrap()), "{rows}: {told}");
            assert_eq!(said["props"], json!(["maxRows"]), "{rows}");
        }
    }
}

#[test]
fn a_runner_that_fails_fails_its_readers_and_nobody_else() {
    let config = json!({"type": "sql-runner", "props": {"name": "src", "sql": "SELECT nope FROM {{list_cards}}"}, "children": [
        metric("SELECT count(*) AS n FROM {{src}}"),
        metric("SELECT 1 AS n"),
        metric("SELECT count(*) AS n FROM {{src?k=v}}"),
    ]});
    let reply = run(&fixture(), json!({"config": config}));
    assert!(
        reply["errors"]["q0"]
            .as_str()
            .is_some_and(|text| text.contains("src") && text.contains("nope")),
        "{reply}"
    );
    assert_eq!(reply["data"]["q1"]["rows"], json!([{"n": 1}]));
    assert!(
        reply["errors"]["q2"].as_str().is_some_and(|text| text.contains("arguments")),
        "{reply}"
    );
}

#[test]
fn the_walk_and_its_stamps_are_stable() {
    let config = json!({"type": "canvas", "props": {"sql": "SELECT 0 AS n", "nodes": [
        {"widget": metric("SELECT 3 AS n")}, {"id": 1}, 5]},
        "children": {"type": "fused-map", "props": {"layers": ["list_cards", {"sql": " "}, 7, {"udf": "list_open_cards"}]}}});
    let reply = run(&fixture(), json!({"config": config, "only": ["q3", "q9"]}));
    let stamped = &reply["config"];
    assert_eq!(stamped["props"]["_queryId"], "q0");
    assert_eq!(stamped["children"]["props"]["layers"][0]["_queryId"], "q1");
    assert_eq!(
        stamped["children"]["props"]["layers"][3]["_sql"],
        "SELECT * FROM {{list_open_cards}}"
    );
    assert_eq!(stamped["props"]["nodes"][0]["widget"]["props"]["_queryId"], "q3");
    assert_eq!(reply["data"], json!({"q3": {"columns": ["n"], "rows": [{"n": 3}]}}));
    let again = run(&fixture(), json!({"config": stamped, "only": []}));
    assert_eq!(again["config"], *stamped);
    assert_eq!(again["data"], json!({}));
}

#[test]
fn a_large_configuration_is_one_walk() {
    let sql =
        |n: usize| json!({"type": "x", "props": {"sql": format!("SELECT $p{n} AS a, $q AS b")}});
    let mut node = json!({"type": "row", "children": (0..20_000).map(sql).collect::<Vec<_>>()});
    for n in 0..40 {
        let runner = json!({"name": format!("runner number {n}"), "sql": "SELECT 1 AS a"});
        node = json!({"type": "sql-runner", "props": runner, "children": [node]});
    }
    let only = (20_000..120_000).map(|n| format!("q{n}")).collect::<Vec<_>>();
    let reply = run(&fixture(), json!({"config": node, "only": only}));
    assert_eq!(reply["data"], json!({}));
    assert_eq!(reply["depMap"].as_object().map(Map::len), Some(20_001));
}

#[test]
fn a_parameter_of_the_request_wins_even_with_null() {
    let config = json!({"type": "div", "children": [
        {"type": "dropdown", "props": {"param": "s", "defaultValue": "x"}},
        metric("SELECT coalesce($s, 'none') AS v"),
    ]});
    let reply = run(&fixture(), json!({"config": config, "params": {"s": null}}));
    assert_eq!(reply["data"]["q0"]["rows"], json!([{"v": "none"}]));
    assert_eq!(reply["depMap"], json!({"s": ["q0"]}));
}
