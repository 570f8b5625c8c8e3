//! Cases of the four record projects: calls in order, exact files afterwards.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{case_files, load_list, run_all};
use crate::support::fixture::{Found, bytes, lay_out, snapshot};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{case_folder, short, try_parse};
use pattern::Scope;

/// How long a lock is held to show that a call waits for it.
const HELD: Duration = Duration::from_millis(400);
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn app_store_cases_inside_the_host() {
    run_lane("inline");
}

#[test]
fn app_store_cases_in_workers() {
    run_lane("worker");
}

fn run_lane(lane: &str) {
    let folder = case_folder("APP_STORE_CASES_DIR", "app-store");
    let cases: Vec<Value> = case_files(&folder).iter().flat_map(|path| load_list(path)).collect();
    let host = HostProcess::start(&HostOptions::new().lane(lane));
    run_all("app-store", &cases, |case| {
        run_case(&host, lane, case).map_err(|why| format!("{}: {why}", case["name"]))
    });
}

fn run_case(shared: &HostProcess, lane: &str, case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let nothing = Map::new();
    lay_out(&root, case["initial_files"].as_object().unwrap_or(&nothing), None);
    let mut scope = Scope::new(root.clone());
    let own = case["host"]["env"].as_object().map(|env| {
        let set = |options: HostOptions, (name, value): (&String, &Value)| {
            options.env(name, scope.references(value.as_str().unwrap()).unwrap())
        };
        HostProcess::start(&env.iter().fold(with_cargo_home().lane(lane), set))
    });
    let host = own.as_ref().unwrap_or(shared);
    for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        run_step(host, &mut scope, case, step, at + 1)
            .map_err(|why| format!("step {} ({}): {why}", at + 1, step["udf"]))?;
    }
    check_files(&mut scope, case)
}

/// A case may move HOME; cargo and rustup must still find their own folders.
fn with_cargo_home() -> HostOptions {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap_or_default();
    let or = |name: &str, folder: &str| {
        std::env::var_os(name).unwrap_or(home.join(folder).into_os_string())
    };
    HostOptions::new()
        .env("CARGO_HOME", or("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"))
}

fn run_step(
    host: &HostProcess,
    scope: &mut Scope,
    case: &Value,
    step: &Value,
    number: usize,
) -> Result<(), String> {
    let mut overrides = scope.expand(step.get("overrides").unwrap_or(&json!({}))).unwrap();
    let app_dir = case["host"].get("app_dir").cloned().unwrap_or_else(|| "${app_dir}".into());
    if !app_dir.is_null() && overrides.get("app_dir").is_none() {
        overrides["app_dir"] = scope.expand(&app_dir).unwrap();
    }
    let project = step.get("project").unwrap_or(&case["project"]).as_str().unwrap();
    let body = json!({"udf": step["udf"], "overrides": overrides}).to_string();
    let call = || {
        let answer = host.post("/api/exec/udf", "_core", project, &body)?;
        try_parse(&answer.text).map_err(|error| format!("not JSON: {error}: {}", answer.text))
    };
    let envelope = match step.get("while_locked") {
        None => call()?,
        Some(locked) => call_while_locked(&scope.root, locked, call)?,
    };
    let (Some(data), Some(error)) = (envelope.get("data"), envelope.get("error")) else {
        return Err(format!("not an envelope: {}", short(&envelope)));
    };
    if let Some(want) = step.get("expect_error") {
        let message =
            error.as_str().ok_or_else(|| format!("want an error, got {}", short(data)))?;
        if !data.is_null() {
            return Err("an error with data".to_owned());
        }
        let parts = match &want["contains"] {
            Value::Array(parts) => parts.clone(),
            one => vec![one.clone()],
        };
        return parts.iter().try_for_each(|part| {
            match scope.references(part.as_str().unwrap()).unwrap() {
                part if message.contains(&part) => Ok(()),
                part => Err(format!("the error lacks {part:?}: {message}")),
            }
        });
    }
    if !error.is_null() {
        return Err(format!("unexpected error {error}"));
    }
    let compared = scope.compare(&step["expect"], data, "$");
    scope.results.insert(number, data.clone());
    compared
}

/// Makes a call while exclusive locks are held that it must wait for, or must not.
fn call_while_locked(
    root: &Path,
    locked: &Value,
    call: impl Fn() -> Result<Value, String> + Sync,
) -> Result<Value, String> {
    let hold = |sentinel: &Value| {
        let path = root.join(sentinel.as_str().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.lock().unwrap();
        file
    };
    let held: Vec<File> = locked["sentinels"].as_array().unwrap().iter().map(hold).collect();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(|| {
            let sender = sender;
            sender.send(call()).unwrap();
        });
        if locked["expect"] == "blocks" {
            if let Ok(early) = receiver.recv_timeout(HELD) {
                return Err(format!("did not wait for the held lock: {early:?}"));
            }
            drop(held);
            return receiver
                .recv_timeout(LIMIT)
                .map_err(|_| "still waiting after the lock was released".to_owned())?;
        }
        let answer = receiver.recv_timeout(LIMIT);
        drop(held);
        answer.map_err(|_| "waited for a lock it must not need".to_owned())?
    })
}

fn check_files(scope: &mut Scope, case: &Value) -> Result<(), String> {
    let found = snapshot(&scope.root.clone());
    let nothing = Map::new();
    let want = case["final_files"].as_object().unwrap_or(&nothing);
    for (relative, content) in want {
        if content.get("dir").is_some() {
            continue;
        }
        let at = |why: String| format!("file {relative}: {why}");
        match found.get(relative) {
            None => return Err(at("is missing".to_owned())),
            Some(Found::Link(target)) => match content.get("symlink").and_then(Value::as_str) {
                Some(want) if scope.references(want).as_ref() == Ok(target) => {}
                want => return Err(at(format!("is a link to {target}, want {want:?}"))),
            },
            Some(Found::File(_)) if content.get("symlink").is_some() => {
                return Err(at("is no link".to_owned()));
            }
            Some(Found::File(got)) => match content {
                Value::String(template) => {
                    let got = std::str::from_utf8(got).map_err(|error| at(error.to_string()))?;
                    scope.compare_text(template, got).map_err(at)?;
                }
                other if bytes(other, None) != *got => return Err(at("bytes differ".to_owned())),
                _ => {}
            },
        }
    }
    if let Some(extra) =
        found.keys().find(|name| !want.contains_key(*name) && !name.ends_with(".lock"))
    {
        return Err(format!("unexpected file {extra}"));
    }
    let nothing = vec![];
    let mut locks =
        case["final_locks"].as_array().unwrap_or(&nothing).iter().filter_map(Value::as_str);
    match locks.find(|lock| !found.contains_key(*lock)) {
        Some(lock) => Err(format!("lock sentinel {lock} is missing")),
        None => Ok(()),
    }
}
