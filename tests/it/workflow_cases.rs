//! The handed cases of the workflow engine, and any other folder in the same format that `CASES_DIR`
//! names. A case is told apart by its keys, so the names of the files do not matter.

mod decisions;
mod domain;
mod fixlog;
mod place;
mod recorders;
mod reports;
mod tokens;
mod traces;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::checkout;

#[test]
fn workflow_cases() {
    let folder = folder();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("no case folder {}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    let mut cases = 0;
    let mut failures = Vec::new();
    for file in &files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let rows: Vec<Value> = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{} is no list of cases: {error}", file.display()));
        for row in &rows {
            cases += 1;
            let mut report =
                Report { case: format!("{name}/{}", text_at(row, "id")), differences: Vec::new() };
            run(row, &mut report);
            failures.append(&mut report.differences);
        }
    }
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
    assert!(cases > 0, "no cases in {}", folder.display());
    println!("{cases} workflow cases passed");
}

/// The folder of the cases; a relative one may be meant from the checkout or from this package.
fn folder() -> PathBuf {
    let Some(named) = std::env::var_os("CASES_DIR") else {
        return checkout().join("tests/cases/workflow");
    };
    let named = Path::new(&named);
    if named.is_dir() { named.to_path_buf() } else { checkout().join(named) }
}

fn run(row: &Value, report: &mut Report) {
    let has = |key: &str| row.get(key).is_some();
    if has("turns") {
        traces::run(row, report);
    } else if has("raw") {
        decisions::run(row, report);
    } else if has("attempts") {
        fixlog::run(row, report);
    } else if has("call") {
        recorders::run(row, report);
    } else if has("report") || row["expect"].get("verdict").is_some() {
        reports::run(row, report);
    } else {
        report.add("", "this is no case of a known kind");
    }
}

/// What a case found, each line with the case's id and the path of the difference.
struct Report {
    case: String,
    differences: Vec<String>,
}

impl Report {
    fn add(&mut self, path: &str, what: impl std::fmt::Display) {
        self.differences.push(format!("{} at {path}: {what}", self.case));
    }

    /// Compares two values and reports every place where they differ.
    fn compare(&mut self, path: &str, want: &Value, got: &Value) {
        match (want, got) {
            (Value::Object(want), Value::Object(got)) => {
                for (key, want) in want {
                    self.compare(
                        &format!("{path}.{key}"),
                        want,
                        got.get(key).unwrap_or(&Value::Null),
                    );
                }
                for (key, got) in got.iter().filter(|(key, _)| !want.contains_key(*key)) {
                    self.add(&format!("{path}.{key}"), format_args!("unexpected {got}"));
                }
            }
            (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
                for (at, (want, got)) in want.iter().zip(got).enumerate() {
                    self.compare(&format!("{path}.{at}"), want, got);
                }
            }
            // Numbers are what they are worth, however they are written; whole ones to the last digit.
            (Value::Number(want), Value::Number(got))
                if want.as_i64() == got.as_i64() && want.as_f64() == got.as_f64() => {}
            _ if want == got => {}
            _ => self.add(path, format_args!("expected {want}, got {got}")),
        }
    }

    /// Reports keys that nobody here would look at: an expectation that is not checked is no test. Words beside it are.
    fn known_keys(&mut self, path: &str, value: &Value, known: &[&str]) {
        const WORDS: [&str; 4] = ["note", "why", "comment", "title"];
        for key in value.as_object().into_iter().flat_map(|map| map.keys()) {
            if !known.contains(&key.as_str()) && !WORDS.contains(&key.as_str()) {
                self.add(&format!("{path}.{key}"), "this key is not understood");
            }
        }
    }
}

fn text_at<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag_at(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
