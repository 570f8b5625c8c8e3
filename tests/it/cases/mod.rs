//! The handed cases, run against a real host: the shipped operations answer alike in its process and in workers.
//!
//! Each group takes another folder of the same layout from an environment variable.

mod app_store;
mod run_feedback;
mod sql;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::parse;

/// The `.json` files of a folder, by name.
fn case_files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "json"));
    files.sort();
    assert!(!files.is_empty(), "no case files in {}", folder.display());
    files
}

/// The cases of a file that holds a list.
fn load_list(path: &Path) -> Vec<Value> {
    match parse(&std::fs::read_to_string(path).unwrap()) {
        Value::Array(cases) => cases,
        other => {
            panic!("{}: not a list of cases: {}", path.display(), crate::support::short(&other))
        }
    }
}

/// Runs all cases, a few at a time, and fails with one line for each that did not hold.
fn run_all<Case: Sync>(
    group: &str,
    cases: &[Case],
    run: impl Fn(&Case) -> Result<(), String> + Sync,
) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(4) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = run(case) {
                        failures.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {} {group} cases failed:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    println!("{} {group} cases passed", cases.len());
}
