//! What SQL costs, as ratios in one run: filters over 10 000 and 100 000 cards, a grouping against parsing.
//!
//! `cargo bench -p host --bench sql`. The operation answers from memory, so that only SQL is measured; "first" is a
//! statement after a change, when the table is laid out anew, "again" one after another statement.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::sql::engine::duckdb::{DuckDb, install};
use host::sql::engine::sqlite::Sqlite;
use host::sql::error::OperationFailure;
use host::sql::operations::{Answered, Arguments, LookupError, OpAddress, Operations, Signature};
use host::sql::table::{Body, Declared, Kind};
use host::sql::{Addressed, Engine, Limits, Request, Sql};

const COLUMNS: &str = "id project taskId effect status continuationPolicy idempotencyKey summary payload result createdBy sourceRunId resolvedBy createdAt resolvedAt";
const ROUNDS: usize = 15;

struct Cards {
    /// The project it is addressed by: tables are kept by address.
    project: String,
    records: Vec<String>,
    changed: AtomicBool,
}

impl Cards {
    fn new(count: usize) -> Self {
        let status = ["pending", "answered", "cancelled", "superseded"];
        let record = |n: usize| {
            format!(
                "{{\n    \"id\": \"card_{n:012x}\",\n    \"project\": \"atlas\",\n    \"taskId\": \"task_{}\",\n    \"effect\": \"reply\",\n    \"status\": \"{}\",\n    \"continuationPolicy\": \"wake_assignee\",\n    \"idempotencyKey\": null,\n    \"summary\": \"Which region first? Number {n}\",\n    \"payload\": {{\n      \"widget\": {{\n        \"type\": \"dropdown\",\n        \"props\": {{\n          \"title\": \"Region\",\n          \"options\": [\n            \"EMEA\",\n            \"APAC\"\n          ]\n        }}\n      }}\n    }},\n    \"result\": null,\n    \"createdBy\": \"architect\",\n    \"sourceRunId\": \"run_{n}\",\n    \"resolvedBy\": null,\n    \"createdAt\": \"2026-03-01T09:00:00.000Z\",\n    \"resolvedAt\": null\n  }}",
                n / 10,
                status[n % 4],
            )
        };
        Self {
            project: format!("cards-{count}"),
            records: (0..count).map(record).collect(),
            changed: AtomicBool::new(false),
        }
    }
}

impl Operations for &'static Cards {
    fn project(&self, _: &str, _: &str) -> Result<(), LookupError> {
        Ok(())
    }

    fn lookup(&self, _: &OpAddress) -> Result<Signature, LookupError> {
        let kind =
            |name: &str| if matches!(name, "payload" | "result") { Kind::Json } else { Kind::Text };
        let columns = COLUMNS
            .split(' ')
            .map(|name| Declared { name: name.to_owned(), kind: Some(kind(name)) });
        Ok(Signature { params: vec!["task".to_owned()], writes: false, columns: columns.collect() })
    }

    fn call(&self, _: &OpAddress, _: &Arguments) -> Result<Answered, OperationFailure> {
        let cards: &'static Cards = self;
        let fresh = Arc::new(|| !cards.changed.swap(false, Ordering::Relaxed));
        Ok(Answered { body: Body::Records(cards.records.clone()), fresh: Some(fresh) })
    }
}

/// The median of some rounds; `changed` makes every round the first after a change.
fn time(sql: &Sql, cards: &'static Cards, statement: &str, changed: bool) -> Duration {
    let request = Request { sql: statement.to_owned(), ..Request::default() };
    let at = Addressed { workspace: "_core", project: &cards.project };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        cards.changed.store(changed, Ordering::Relaxed);
        let began = Instant::now();
        black_box(
            sql.run(&cards, at, &request).unwrap_or_else(|error| panic!("{statement}: {error}")),
        );
        times.push(began.elapsed());
    }
    times.sort();
    times[ROUNDS / 2]
}

fn main() {
    let small: &'static Cards = Box::leak(Box::new(Cards::new(10_000)));
    let large: &'static Cards = Box::leak(Box::new(Cards::new(100_000)));
    let text = format!("[{}]", large.records.join(","));
    let began = Instant::now();
    black_box(serde_json::from_str::<serde_json::Value>(&text)).ok();
    let parse = began.elapsed();
    drop(text);
    println!("parsing 100 000 cards into serde_json values: {parse:.1?}");
    let mut engines: Vec<(&str, Box<dyn Engine>)> = vec![("sqlite", Box::new(Sqlite))];
    let named = std::env::var_os("DUCKDB_LIB_DIR").map(std::path::PathBuf::from);
    let library = install::library(named.as_deref(), std::path::Path::new("/nonexistent"));
    if library.is_file() {
        engines.push(("duckdb", Box::new(DuckDb::new(library, Limits::default()))));
    }
    let filter = "SELECT * FROM {{list_cards}} WHERE taskId = 'task_77'";
    let group = "SELECT status, count(*) AS n FROM {{list_cards}} GROUP BY status";
    for (name, engine) in engines {
        let limits = Limits { memory: 2 << 30, ..Limits::default() };
        let sql = Sql::new(engine, limits);
        println!("\n{name}");
        for changed in [false, true] {
            let when = if changed { "first" } else { "again" };
            let (few, many) =
                (time(&sql, small, filter, changed), time(&sql, large, filter, changed));
            let ratio = many.as_secs_f64() / few.as_secs_f64();
            println!(
                "  WHERE taskId = …, {when}: 10 000 {few:.2?}, 100 000 {many:.2?}, ratio {ratio:.2}"
            );
            let grouped = time(&sql, large, group, changed);
            let ratio = grouped.as_secs_f64() / parse.as_secs_f64();
            println!(
                "  GROUP BY status, {when}: 100 000 {grouped:.2?}, ratio to parsing {ratio:.2}"
            );
        }
        println!("  SELECT 1: {:.2?}", time(&sql, small, "SELECT 1 AS one", false));
    }
}
