//! Reading only the rows that a statement asks for gives what reading all of them gives.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::cases::shared_duckdb;
use super::fixture::Fixture;
use crate::sql::engine::{Engine, sqlite::Sqlite};
use crate::sql::error::SqlError;
use crate::sql::{Addressed, Limits, Request, Sql};

const AT: Addressed<'_> = Addressed { workspace: "_core", project: "feedback-management" };

fn card(id: u32, task: &str) -> Value {
    json!({
        "id": format!("card_{id}"), "project": "atlas", "taskId": task, "effect": "reply", "status": "pending",
        "continuationPolicy": "none", "idempotencyKey": null, "summary": "s", "payload": {"n": id}, "result": null,
        "createdBy": "", "sourceRunId": "", "resolvedBy": null, "createdAt": "t", "resolvedAt": null,
    })
}

fn files(cards: &[Value]) -> Map<String, Value> {
    let tasks =
        json!([{"id": "a", "title": "A"}, {"id": "b", "title": "B"}, {"id": "c", "title": "C"}]);
    [("state/cards.json".to_owned(), json!(cards)), ("state/tasks.json".to_owned(), tasks)]
        .into_iter()
        .collect()
}

fn texts_read(fixture: &Fixture) -> Vec<String> {
    fixture.narrowed.lock().unwrap().iter().map(|args| args["task"].clone()).collect()
}

fn run(fixture: &Fixture, statement: &str, params: &Value) -> Result<String, SqlError> {
    run_on(Box::new(Sqlite), fixture, statement, params)
}

fn run_on(
    engine: Box<dyn Engine>,
    fixture: &Fixture,
    statement: &str,
    params: &Value,
) -> Result<String, SqlError> {
    let request = Request {
        sql: statement.to_owned(),
        params: params.as_object().cloned().unwrap_or_default(),
        ..Request::default()
    };
    let sql = Sql::new(engine, Limits::default());
    let answer = sql.run(fixture, AT, &request)?;
    let mut text = String::new();
    answer.write(&mut text);
    Ok(text)
}

/// The answer, by parts and whole; and the texts by which parts were read.
fn both(
    cards: &[Value],
    statement: &str,
    params: &Value,
) -> (Result<String, SqlError>, Vec<String>) {
    let by_parts = Fixture::new(&files(cards));
    let mut whole = Fixture::new(&files(cards));
    whole.by_parts = false;
    let answer = run(&by_parts, statement, params);
    assert_eq!(answer, run(&whole, statement, params), "{statement}");
    (answer, texts_read(&by_parts))
}

#[test]
fn an_equality_reads_only_its_rows() {
    let cards: Vec<Value> =
        (0..40).map(|n| card(n, ["a", "b", "c", "it's"][n as usize % 4])).collect();
    let none = json!({});
    for (statement, params, read) in [
        ("SELECT * FROM {{list_cards}} WHERE taskId = 'a'", &none, &["a"][..]),
        ("SELECT id FROM {{list_cards}} WHERE 'b' = taskId AND status = 'pending'", &none, &["b"]),
        ("SELECT id FROM {{list_cards}} WHERE taskId = $t", &json!({"t": "it's"}), &["it's"]),
        (
            "SELECT count(*) AS n FROM {{list_cards}} c WHERE c.taskId = 'a' AND c.id <> 'card_4'",
            &none,
            &["a"],
        ),
        (
            "WITH wanted(t) AS (VALUES ('a'), ('b')) \
             SELECT id FROM wanted CROSS JOIN {{list_cards}} WHERE taskId = t",
            &none,
            &["a", "b"],
        ),
        (
            "SELECT id FROM {{list_cards}} WHERE taskId = 'b' AND (id = 'card_1' OR status = 'x')",
            &none,
            &["b"],
        ),
        ("SELECT id FROM {{list_cards}} WHERE taskId = 'b' OR taskId = 'a'", &none, &[]),
        (
            "SELECT (SELECT max(id) FROM {{list_cards}} WHERE taskId = 'c') AS m, 1 AS one",
            &none,
            &["c"],
        ),
        (
            "SELECT x.id, y.id AS other FROM {{list_cards}} x JOIN {{list_cards}} y ON x.taskId = y.taskId \
          WHERE x.taskId = 'a' AND y.id < x.id ORDER BY 1, 2",
            &none,
            &["a"],
        ),
        (
            "SELECT t.title, c.id FROM {{task-management.read}} t JOIN {{list_cards}} c ON c.taskId = t.id ORDER BY c.id",
            &none,
            &["a", "b", "c"],
        ),
        ("SELECT id FROM {{list_cards}} WHERE taskId = 'nobody'", &none, &["nobody"]),
    ] {
        let (answer, texts) = both(&cards, statement, params);
        assert!(answer.is_ok(), "{statement}: {answer:?}");
        assert_eq!(texts, read, "{statement}");
    }
}

#[test]
fn duckdb_reads_only_the_rows_of_an_equality_in_a_where() {
    let Some(_) = shared_duckdb() else { return };
    let cards: Vec<Value> =
        (0..40).map(|n| card(n, ["a", "b", "c", "it's"][n as usize % 4])).collect();
    let deep = format!(
        "SELECT id FROM {{{{list_cards}}}} WHERE taskId = 'a' AND 1 = {}1{}",
        "abs(".repeat(60),
        ")".repeat(60)
    );
    let tasks = "{{task-management.read}}";
    for (statement, read) in [
        ("SELECT * FROM {{list_cards}} WHERE taskId = 'a'", &["a"][..]),
        ("FROM {{list_cards}} WHERE 'it''s' = TASKID AND status = 'pending'", &["it's"]),
        (
            "SELECT c.id FROM {{list_cards}} c WHERE (C.taskId = 'b' AND c.id <> 'card_1') ORDER BY 1 DESC LIMIT 2",
            &["b"],
        ),
        (
            "SELECT count(*) AS n, row_number() OVER () AS r FROM {{list_cards}} WHERE taskId = 'a' GROUP BY ALL",
            &["a"],
        ),
        (
            "WITH few AS (SELECT id, taskId FROM {{list_cards}} WHERE taskId = 'b') SELECT x.id, y.id AS other FROM few x, few y ORDER BY ALL",
            &["b"],
        ),
        (
            "SELECT (SELECT max(id) FROM {{list_cards}} WHERE taskId = 'c') AS m UNION ALL SELECT 'one'",
            &["c"],
        ),
        (
            &format!(
                "SELECT t.title, c.id FROM {tasks} t LEFT JOIN {{{{list_cards}}}} c ON c.taskId = t.id WHERE c.taskId = 'a'"
            ),
            &["a"],
        ),
        (
            &format!(
                "SELECT t.title, c.id FROM {{{{list_cards}}}} c FULL JOIN {tasks} t ON c.taskId = t.id WHERE c.taskId = 'b'"
            ),
            &["b"],
        ),
        ("SELECT id FROM {{list_cards}} WHERE taskId = 'nobody'", &["nobody"]),
        // Its parts are two, or not told by a condition that a row must fulfil.
        ("SELECT id FROM {{list_cards}} WHERE taskId = 'b' OR taskId = 'a'", &[]),
        ("SELECT id FROM {{list_cards}} WHERE NOT (taskId = 'b')", &[]),
        ("SELECT id FROM {{list_cards}} WHERE taskId COLLATE NOCASE = 'A'", &[]),
        ("SELECT id FROM {{list_cards}} WHERE taskId = ''", &[]),
        ("SELECT id FROM {{list_cards}} WHERE taskId = NULL", &[]),
        ("SELECT id FROM {{list_cards}} WHERE taskId = id", &[]),
        ("SELECT id, count(*) OVER () AS n FROM {{list_cards}} QUALIFY taskId = 'a'", &[]),
        (
            "SELECT x.id FROM {{list_cards}} x JOIN {{list_cards}} y USING (id) WHERE x.taskId = 'a'",
            &[],
        ),
        // Whose column it is, or which rows are beside it, is not told by the name alone.
        (&format!("SELECT c.id FROM {{{{list_cards}}}} c, {tasks} t WHERE taskId = 'a'"), &[]),
        (
            &format!(
                "SELECT c.id FROM {{{{list_cards}}}} c POSITIONAL JOIN {tasks} t WHERE c.taskId = 'a'"
            ),
            &[],
        ),
        (
            &format!(
                "SELECT c.id FROM {tasks} t ASOF JOIN {{{{list_cards}}}} c ON t.id >= c.id WHERE c.taskId = 'a'"
            ),
            &[],
        ),
        ("SELECT c.id FROM {{list_cards}} c(id, taskId, project) WHERE c.taskId = 'atlas'", &[]),
        ("SELECT rowid, id FROM {{list_cards}} WHERE taskId = 'b'", &[]),
        ("SELECT stats(id) AS s FROM {{list_cards}} WHERE taskId = 'b'", &[]),
        ("SELECT id FROM {{list_cards}} TABLESAMPLE 40 ROWS WHERE taskId = 'b'", &[]),
        (&deep, &[]),
    ] {
        let mut fixture = Fixture::new(&files(&cards));
        let answer = run_on(shared_duckdb().unwrap(), &fixture, statement, &json!({}));
        assert_eq!(texts_read(&fixture), read, "{statement}");
        fixture.by_parts = false;
        let whole = run_on(shared_duckdb().unwrap(), &fixture, statement, &json!({}));
        assert_eq!(answer, whole, "{statement}");
        assert!(answer.is_ok(), "{statement}: {answer:?}");
    }
}

#[test]
fn whatever_needs_the_whole_reads_the_whole() {
    let cards: Vec<Value> = (0..12).map(|n| card(n, ["", "b", "5"][n as usize % 3])).collect();
    for statement in [
        "SELECT * FROM {{list_cards}}",
        "SELECT id FROM {{list_cards}} WHERE taskId = ''",
        "SELECT id FROM {{list_cards}} WHERE taskId = '\u{fffd}'",
        "SELECT id FROM {{list_cards}} WHERE taskId LIKE 'b'",
        "SELECT id FROM {{list_cards}} WHERE taskId = 'B' COLLATE NOCASE",
        "SELECT id FROM {{list_cards}} WHERE taskId IN ('b', '5')",
        "SELECT id FROM {{list_cards}} WHERE +taskId = 'b'",
        "SELECT rowid, id FROM {{list_cards}} WHERE taskId = 'b'",
        "SELECT id FROM {{list_cards}} WHERE taskId = 'b' AND _rowid_ > 3",
        "SELECT id FROM {{list_cards?task=b}} WHERE taskId = 'b'",
        "SELECT status, count(*) AS n FROM {{list_cards}} GROUP BY status",
    ] {
        let (answer, texts) = both(&cards, statement, &json!({}));
        assert!(answer.is_ok(), "{statement}: {answer:?}");
        assert_eq!(texts, [""; 0], "{statement}");
    }
    // Nothing equals null: no row is needed for that.
    let (answer, texts) =
        both(&cards, "SELECT id FROM {{list_cards}} WHERE taskId = NULL", &json!({}));
    assert_eq!((answer.unwrap(), texts.len()), (r#"{"columns":["id"],"rows":[]}"#.to_owned(), 0));
}

#[test]
fn records_of_other_shapes_are_read_whole() {
    let odd = [
        json!({"id": "x", "taskId": "b", "extra": 1}),
        json!({"id": "x", "taskId": "b", "status": 7}),
        json!({"id": "x", "taskId": "b", "Status": "pending"}),
        json!("no object"),
        json!({"id": 1, "taskId": {"a": "a"}}),
    ];
    for odd in odd {
        let cards = [card(1, "a"), odd.clone(), card(2, "b")];
        for statement in [
            "SELECT * FROM {{list_cards}} WHERE taskId = 'a'",
            "SELECT id, extra FROM {{list_cards}} WHERE taskId = 'a'",
            "SELECT status FROM {{list_cards}} WHERE taskId = 'a'",
        ] {
            let (_, texts) = both(&cards, statement, &json!({}));
            assert_eq!(texts, [""; 0], "{odd}");
        }
    }
}

#[test]
fn many_texts_are_read_as_one_table() {
    let cards: Vec<Value> = (0..60).map(|n| card(n, &format!("t{}", n % 20))).collect();
    let statement = "SELECT a.id FROM {{list_cards?task=t0}} a";
    assert!(both(&cards, statement, &json!({})).0.is_ok());
    let ids = (0..20).map(|n| format!("('t{n}')")).collect::<Vec<_>>().join(",");
    let statement = format!(
        "WITH wanted(t) AS (VALUES {ids}) \
         SELECT w.t, c.id FROM wanted w CROSS JOIN {{{{list_cards}}}} c WHERE c.taskId = w.t ORDER BY c.id"
    );
    let fixture = Fixture::new(&files(&cards));
    let answer = run(&fixture, &statement, &json!({})).unwrap();
    assert_eq!(answer.matches("card_").count(), 60);
    assert_eq!(fixture.calls.load(Ordering::Relaxed), crate::sql::feed::MOST_PARTS + 1);
}

#[test]
fn parts_of_two_moments_never_stand_together() {
    let cards: Vec<Value> = (0..6).map(|n| card(n, ["a", "b"][n as usize % 2])).collect();
    let mut fixture = Fixture::new(&files(&cards));
    fixture.changing = true;
    let statement = "WITH wanted(t) AS (VALUES ('a'), ('b')) \
         SELECT id FROM wanted CROSS JOIN {{list_cards}} WHERE taskId = t";
    let answer = run(&fixture, statement, &json!({})).unwrap();
    assert_eq!(answer.matches("card_").count(), 6);
    // Part a, part b of a later moment, then all of it.
    assert_eq!(fixture.calls.load(Ordering::Relaxed), 3);
}

#[test]
fn all_attempts_together_have_the_time_of_one() {
    let cards: Vec<Value> = (0..4).map(|n| card(n, ["a", "b"][n as usize % 2])).collect();
    let fixture = Fixture::new(&files(&cards));
    let limits = Limits { time: Duration::from_millis(400), ..Limits::default() };
    let sql = Sql::new(Box::new(Sqlite), limits);
    // Counts for long before it asks for rows, and does so anew with them.
    let statement = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000), \
         slow(s) AS MATERIALIZED (SELECT count(*) FROM n) \
         SELECT s, id FROM slow CROSS JOIN {{list_cards}} WHERE taskId = 'a'";
    let request = Request { sql: statement.to_owned(), ..Request::default() };
    let began = Instant::now();
    let error = sql.run(&fixture, AT, &request).unwrap_err();
    assert!(matches!(error, SqlError::Timeout(_)), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn bodies_follow_the_rules_of_all_bodies() {
    let fixture = Fixture::new(&files(&[card(1, "a")]));
    let sql = Sql::new(Box::new(Sqlite), Limits::default());
    let exec = |body: &str| sql.exec(&fixture, AT, body.as_bytes());
    let deep = format!("{}1{}", "[".repeat(900), "]".repeat(900));
    let sent =
        r#"{"sql": "SELECT count(*) AS n FROM {{list_cards?task=$a}}", "params": {"a": DEEP}}"#;
    assert!(exec(&sent.replace("DEEP", &deep)).unwrap().contains(r#"{"n":0}"#));
    for twice in [
        r#"{"sql": "SELECT 1", "sql": "SELECT 2"}"#,
        r#"{"sql": "SELECT $a AS a", "params": {"a": 1, "a": 2}}"#,
        r#"{"sql": "SELECT 1 AS a", "overrides": {"task": "1", "task": "2"}}"#,
    ] {
        assert!(exec(twice).unwrap_err().to_string().contains("twice"), "{twice}");
    }
}

#[test]
fn a_scan_keeps_the_order_of_the_operation() {
    let cards: Vec<Value> = (0..6).map(|n| card(n, ["a", "b"][n as usize % 2])).collect();
    let mut fixture = Fixture::new(&files(&cards));
    for by_parts in [true, false] {
        fixture.by_parts = by_parts;
        for statement in [
            "SELECT id FROM {{list_cards}} WHERE taskId = 'b' OR taskId = 'a'",
            "SELECT id FROM {{list_cards}} WHERE (taskId = 'b' AND id <> '') OR taskId = 'a'",
            "SELECT id FROM {{list_cards}} WHERE taskId IN ('b', 'a')",
        ] {
            let answer = run(&fixture, statement, &json!({})).unwrap();
            let rows = (0..6).map(|n| json!({"id": format!("card_{n}")})).collect::<Vec<_>>();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["rows"], json!(rows), "{statement}, by parts: {by_parts}");
        }
    }
}

/// Cards of all sorts, most of them ordinary.
fn some_cards() -> impl Strategy<Value = Vec<Value>> {
    let tasks = ["a", "b", "", "B", "é", "5", "a b"];
    let one = (0..10_usize, prop::bool::weighted(0.03), prop::bool::ANY);
    prop::collection::vec(one, 0..14).prop_map(move |sorts| {
        let card = |(n, (task, odd, open)): (usize, (usize, bool, bool))| {
            let mut card = card(u32::try_from(n).unwrap(), tasks.get(task).unwrap_or(&"a"));
            card["status"] = json!(if open { "pending" } else { "answered" });
            match (task, odd) {
                (7, _) => card["taskId"] = Value::Null,
                (8, _) => drop(card.as_object_mut().unwrap().remove("taskId")),
                (9, true) => card["taskId"] = json!(5),
                (_, true) => card["more"] = json!([n]),
                _ => {}
            }
            card
        };
        sorts.into_iter().enumerate().map(card).collect()
    })
}

fn condition() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "c.taskId = 'a'",
        "'b' = c.taskId",
        "c.taskId = ''",
        "c.taskId = 'nobody'",
        "c.taskId = NULL",
        "c.taskId IS NULL",
        "c.taskId IN ('b', 'a')",
        "c.taskId LIKE 'a%'",
        "c.taskId <> 'a'",
        "c.taskId >= 'b'",
        "c.taskId = c.id",
        "c.taskId = (SELECT max(x.taskId) FROM {{list_cards}} x WHERE x.status = 'pending')",
        "c.status = 'pending'",
        "c.id <> 'card_1'",
        "EXISTS (SELECT 1 FROM {{list_cards}} d WHERE d.taskId = c.taskId AND d.id < c.id)",
    ]);
    atom.prop_map(str::to_owned).prop_recursive(3, 6, 2, |inner| {
        (inner.clone(), inner, prop::sample::select(vec!["AND", "OR", "AND NOT"]))
            .prop_map(|(left, right, word)| format!("({left} {word} {right})"))
    })
}

proptest! {
    #[test]
    fn by_parts_whole_and_on_duckdb_the_answer_is_one(
        cards in some_cards(),
        condition in condition(),
        rest in prop::sample::select(vec!["", " ORDER BY c.id DESC", " LIMIT 2"]),
        join in prop::sample::select(vec!["", " JOIN {{list_cards}} o ON o.taskId = c.taskId AND o.status = 'pending'", " LEFT JOIN {{task-management.read}} t ON t.id = c.taskId"]),
    ) {
        let statement = format!("SELECT c.id, c.taskId, c.payload FROM {{{{list_cards}}}} c{join} WHERE {condition}{rest}");
        // Compares the two, in order.
        let (answer, _) = both(&cards, &statement, &json!({}));
        let odd = cards.iter().any(|card| card["taskId"].is_number());
        let Some(engine) = shared_duckdb().filter(|_| !odd && rest != " LIMIT 2") else { return Ok(()) };
        let mut fixture = Fixture::new(&files(&cards));
        let theirs = run_on(engine, &fixture, &statement, &json!({}));
        fixture.by_parts = false;
        let whole = shared_duckdb().map(|engine| run_on(engine, &fixture, &statement, &json!({})));
        prop_assert_eq!(Some(&theirs), whole.as_ref(), "{}", &statement);
        let sorted = |answer: Result<String, SqlError>| {
            let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
            let mut rows = answer["rows"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
            rows.sort();
            rows
        };
        prop_assert_eq!(sorted(answer), sorted(theirs), "{}", statement);
    }
}
