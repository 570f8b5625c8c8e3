//! What widgets promise beyond the handed cases.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use super::fixture::Fixture;
use crate::sql::engine::sqlite::Sqlite;
use crate::sql::{Addressed, Limits, Sql};

fn run(fixture: &Fixture, body: Value) -> Value {
    let sql = Sql::new(Box::new(Sqlite), Limits::default());
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
fn a_parameter_of_the_request_wins_even_with_null() {
    let config = json!({"type": "div", "children": [
        {"type": "dropdown", "props": {"param": "s", "defaultValue": "x"}},
        metric("SELECT coalesce($s, 'none') AS v"),
    ]});
    let reply = run(&fixture(), json!({"config": config, "params": {"s": null}}));
    assert_eq!(reply["data"]["q0"]["rows"], json!([{"v": "none"}]));
    assert_eq!(reply["depMap"], json!({"s": ["q0"]}));
}
