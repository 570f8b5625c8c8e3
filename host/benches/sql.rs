//! What SQL costs on a running host, as ratios in one run: filters over 10 000 and 100 000 cards, a grouping against
//! parsing, the inbox.
//!
//! `cargo bench -p host --bench sql` builds the operations on its first run. "first" is a statement after a card was
//! created, "again" one after another statement. The operations, the store and the files are real; HTTP is left out, and so
//! is the process of its own that DuckDB has in a host.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use host::sql::engine::duckdb::install;
use host::sql::{Addressed, Dispatched, EngineName, Request};
use host::{Address, Call, Config, Host};
use serde_json::json;

const ROUNDS: usize = 31;
const AT: Addressed<'_> = Addressed { workspace: "_core", project: "feedback-management" };

/// A state folder with so many cards.
fn write_cards(folder: &Path, count: usize) -> PathBuf {
    let status = ["pending", "answered", "cancelled", "superseded"];
    let record = |n: usize| {
        json!({
            "id": format!("card_{n:012x}"), "project": "atlas", "taskId": format!("task_{}", n / 10),
            "effect": "reply", "status": status[n % 4], "continuationPolicy": "wake_assignee",
            "idempotencyKey": null, "summary": format!("Which region first? Number {n}"),
            "payload": {"widget": {"type": "dropdown", "props": {"title": "Region", "options": ["EMEA", "APAC"]}}},
            "result": null, "createdBy": "architect", "sourceRunId": format!("run_{n}"), "resolvedBy": null,
            "createdAt": "2026-03-01T09:00:00.000Z", "resolvedAt": null,
        })
    };
    let dir = folder.join(count.to_string());
    let cards: Vec<serde_json::Value> = (0..count).map(record).collect();
    let text = serde_json::to_string_pretty(&cards).expect("JSON");
    fs::create_dir_all(dir.join("state")).expect("a folder");
    write(&dir.join("state/cards.json"), &text);
    dir
}

#[allow(clippy::disallowed_methods, reason = "a fixture, before anything runs")]
fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
}

fn create(host: &Host, dir: &Path) {
    let address = Address::new("_core", "feedback-management", "create_card");
    let mut call = Call::new(address)
        .param("project", "atlas")
        .param("task_id", "task_new")
        .param("effect", "reply")
        .param("summary", "One more")
        .param("payload", "{}")
        .param("created_by", "bench");
    call.app_dir = Some(dir.to_string_lossy().into_owned());
    host.dispatcher.call(call).expect("a card");
}

/// One statement; `changed` makes it the first after a card was created.
fn once(host: &Host, dir: &Path, statement: &str, changed: bool) -> Duration {
    let overrides = json!({"app_dir": dir}).as_object().cloned().unwrap_or_default();
    let overrides = if statement.contains("{{") { overrides } else { serde_json::Map::new() };
    let request = Request { sql: statement.to_owned(), overrides, ..Request::default() };
    if changed {
        create(host, dir);
    }
    let began = Instant::now();
    let operations = Dispatched::new(host, "bench");
    let answer = host.sql.run(&operations, AT, &request);
    black_box(answer.unwrap_or_else(|error| panic!("{statement}: {error}")));
    began.elapsed()
}

/// The median over some rounds for each folder. The folders take turns: the two figures of a ratio are of one machine
/// in one mood, and both of caches that the other one has just filled.
fn medians<const N: usize>(
    host: &Host,
    folders: [&Path; N],
    statement: &str,
    changed: bool,
) -> [Duration; N] {
    // What reads the files is not counted.
    for dir in folders {
        once(host, dir, statement, changed);
    }
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (dir, times) in folders.iter().zip(&mut times) {
            times.push(once(host, dir, statement, changed));
        }
    }
    times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    })
}

fn when(changed: bool) -> &'static str {
    if changed { "first" } else { "again" }
}

fn start(engine: EngineName, dir: &Path) -> Host {
    let mut config =
        Config::from_process(host::config::Settings::default()).expect("a configuration");
    config.app_dir = Some(dir.to_owned());
    config.sql_engine = engine;
    let host = Host::start(config).expect("a host");
    host.catalog.wait_settled(Instant::now() + Duration::from_secs(600));
    host
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (small, large) = (write_cards(folder.path(), 10_000), write_cards(folder.path(), 100_000));
    let text = fs::read_to_string(large.join("state/cards.json")).expect("the cards");
    let began = Instant::now();
    black_box(serde_json::from_str::<serde_json::Value>(&text)).ok();
    let parse = began.elapsed();
    drop(text);
    println!("parsing 100 000 cards into serde_json values: {parse:.1?}");
    let mut engines = vec![EngineName::Sqlite];
    let config = Config::from_process(host::config::Settings::default()).expect("a configuration");
    let named = env::var_os("DUCKDB_LIB_DIR").map(PathBuf::from);
    if install::library(named.as_deref(), &config.cache_dir).is_file() {
        engines.push(EngineName::DuckDb);
    }
    let filter = "SELECT * FROM {{list_cards}} WHERE taskId = 'task_77'";
    let group = "SELECT status, count(*) AS n FROM {{list_cards}} GROUP BY status";
    for engine in engines {
        let host = start(engine, &small);
        println!("\n{engine}");
        // The filter before the grouping, which leaves the whole table at hand.
        for changed in [true, false] {
            let [few, many] = medians(&host, [&small, &large], filter, changed);
            let (when, ratio) = (when(changed), many.as_secs_f64() / few.as_secs_f64());
            println!(
                "  WHERE taskId = …, {when}: 10 000 {few:.2?} (bar: 3 ms), 100 000 {many:.2?}, ratio {ratio:.2} (bar: 2)"
            );
        }
        for changed in [true, false] {
            let [grouped] = medians(&host, [&large], group, changed);
            let (when, ratio) = (when(changed), grouped.as_secs_f64() / parse.as_secs_f64());
            println!(
                "  GROUP BY status, {when}: 100 000 {grouped:.2?}, ratio to parsing {ratio:.2} (bar: 1)"
            );
        }
        let [one] = medians(&host, [&small], "SELECT 1 AS one", false);
        println!("  SELECT 1: {one:.2?}");
        inbox(&host, &small);
    }
}

/// The inbox over 10 000 cards, after each card and after none.
fn inbox(host: &Host, dir: &Path) {
    let address = Address::new("_core", "feedback-management", "inbox_view");
    for changed in [true, false] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            if changed {
                create(host, dir);
            }
            let mut call = Call::new(address.clone());
            call.app_dir = Some(dir.to_string_lossy().into_owned());
            let began = Instant::now();
            black_box(host.dispatcher.call(call)).expect("the inbox");
            times.push(began.elapsed());
        }
        times.sort();
        let when = when(changed);
        println!("  inbox_view, {when}: 10 000 {:.2?} (bar: 10 ms)", times[ROUNDS / 2]);
    }
}
