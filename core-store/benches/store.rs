//! The store's budgets as ratios, measured in one run on the disk of the temporary directory:
//! `cargo bench -p core-store`. Absolute times are printed for orientation only.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has nothing to report")]

use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use core_store::{AppStore, Store, StoreOptions};

/// A card of about 660 bytes, as measured on real stores; ten per task.
fn card(n: usize) -> String {
    format!(
        r#"{{"id": "card_{n:012x}", "project": "project-{p}", "taskId": "task_{task}", "effect": "review_work_product", "status": "answered", "continuationPolicy": "wake_assignee", "idempotencyKey": "key-{n}", "summary": "Is the outline of part {n} good enough to go on with?", "payload": {{"widget": {{"type": "form", "options": ["yes", "no", "later"]}}, "text": "first line\nsecond \"line\""}}, "result": null, "createdBy": "agent", "sourceRunId": "run_{n}", "resolvedBy": null, "createdAt": "2026-11-30T21:58:00.000Z", "resolvedAt": null}}"#,
        p = n % 7,
        task = n / 10,
    )
}

fn fill(dir: &Path, cards: usize) {
    let app = Store::open(StoreOptions::default()).app(dir);
    let mut tx = app.begin(&["cards"]).unwrap();
    (0..cards).for_each(|n| tx.push("cards", &card(n)).unwrap());
    tx.commit().unwrap();
}

/// What `create_card` does in the store.
fn create(app: &AppStore, n: usize) {
    let mut tx = app.begin(&["cards"]).unwrap();
    let key = format!("key-{n}");
    if tx.snapshot("cards").unwrap().find("idempotencyKey", &key).is_none() {
        tx.push("cards", &card(n)).unwrap();
    }
    tx.commit().unwrap();
}

fn list(app: &AppStore, task: usize) -> String {
    let cards = app.read("cards").unwrap();
    let mut reply = String::new();
    for position in cards.matching("taskId", &format!("task_{task}")) {
        write!(reply, "{},", cards.record(position).unwrap().text()).unwrap();
    }
    reply
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn timed(mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn lists() {
    let opened: Vec<(tempfile::TempDir, AppStore, usize)> = [1_000, 100_000]
        .into_iter()
        .map(|cards| {
            let dir = tempfile::tempdir().unwrap();
            fill(dir.path(), cards);
            let app = Store::open(StoreOptions::default()).app(dir.path());
            let load = timed(|| drop(black_box(app.read("cards").unwrap())));
            let index = timed(|| drop(black_box(list(&app, 0))));
            println!("  {cards} cards: load {load:.1?}, index {index:.1?}");
            (dir, app, cards)
        })
        .collect();
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..200 {
        for (slot, (_, app, cards)) in opened.iter().enumerate() {
            times[slot].push(timed(|| {
                for n in 0..100 {
                    black_box(list(app, (round * 7919 + n * 104_729) % (cards / 10)));
                }
            }));
        }
    }
    let [small, large] = times.map(|times| median(times) / 100);
    report("list by task, 100 000 vs 1 000 cards", large, small, "<= 1.5");
}

/// The same bytes by a plain program: write, sync, rename.
fn plain(dir: &Path, bytes: &[u8]) {
    let temp = dir.join("plain.tmp");
    let mut file = File::create(&temp).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    drop(file);
    std::fs::rename(&temp, dir.join("plain.json")).unwrap();
}

fn one_create() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 10_000);
    let app = Store::open(StoreOptions::default()).app(dir.path());
    let file = dir.path().join("state/cards.json");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    create(&app, 1_000_000);
    for n in 0..60 {
        ours.push(timed(|| create(&app, 2_000_000 + n)));
        let bytes = std::fs::read(&file).unwrap();
        theirs.push(timed(|| plain(dir.path(), &bytes)));
    }
    report(
        "one create at 10 000 cards vs write, sync, rename",
        median(ours),
        median(theirs),
        "<= 1.5",
    );
}

fn concurrent(cards: usize) {
    const CALLERS: usize = 64;
    const EACH: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), cards);
    let app = Store::open(StoreOptions::default()).app(dir.path());
    create(&app, 1_000_000);
    let mut next = 2_000_000;
    let mut single = || {
        let times = (0..30).map(|_| {
            next += 1;
            timed(|| create(&app, next))
        });
        median(times.collect())
    };
    let before = single();
    let start = Barrier::new(CALLERS + 1);
    let took = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (app, start) = (&app, &start);
                scope.spawn(move || {
                    start.wait();
                    (0..EACH).for_each(|n| create(app, 3_000_000 + caller * EACH + n));
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        began.elapsed()
    });
    let after = single();
    let stored = Store::open(StoreOptions::default()).app(dir.path()).read("cards").unwrap();
    assert_eq!(stored.len(), cards + 1 + 60 + CALLERS * EACH, "a create was lost");
    let one = (before + after) / 2;
    let grouped = took / (CALLERS * EACH) as u32;
    report(&format!("rate of {CALLERS} callers vs one, {cards} cards"), one, grouped, ">= 20");
}

fn report(what: &str, over: Duration, under: Duration, bar: &str) {
    let ratio = over.as_secs_f64() / under.as_secs_f64();
    println!("{what}: {ratio:.2} (bar {bar}; {over:.1?} / {under:.1?})");
}

fn main() {
    lists();
    one_create();
    concurrent(1_000);
    concurrent(10_000);
}
