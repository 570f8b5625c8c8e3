//! Cases of the run-feedback project: each has a host of its own, started in the case's folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use serde_json::{Map, Value, json};

use super::{case_files, run_all};
use crate::support::fixture::{Found, lay_out, snapshot, write};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::{case_folder, parse, short, try_parse};
use pattern::Scope;

/// Stands in for the issue tracker's command line: logs each call with the run's state as it is on disk then.
const POSTER: &str = include_str!("poster.sh");

#[test]
fn run_feedback_cases_inside_the_host() {
    run_lane("inline");
}

#[test]
fn run_feedback_cases_in_workers() {
    run_lane("worker");
}

fn run_lane(lane: &str) {
    let folder = case_folder("RUN_FEEDBACK_CASES_DIR", "run-feedback");
    let cases: Vec<Value> =
        case_files(&folder).iter().map(|path| parse(&fs::read_to_string(path).unwrap())).collect();
    run_all("run-feedback", &cases, |case| {
        run_case(lane, case).map_err(|why| format!("{}: {why}", case["name"]))
    });
}

/// The folders of one case.
struct Place {
    _folder: tempfile::TempDir,
    work: PathBuf,
    log: PathBuf,
}

fn run_case(lane: &str, case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let place_root = folder.path().canonicalize().unwrap();
    let place =
        Place { work: place_root.join("work"), log: place_root.join("posts"), _folder: folder };
    let options = lay_out_place(&place_root, &place, case).lane(lane);
    let host = HostProcess::try_start(&options)?;
    let mut scope = Scope::new(place.work.clone());
    let mut seen = 0;
    for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let name = step["udf"].as_str().unwrap_or("parallel");
        let outcome = run_step(&host, &mut scope, step);
        let posts = posts(&place.log);
        let outcome = outcome.and_then(|()| check_posts(&mut scope, step, &posts[seen..]));
        seen = posts.len();
        outcome.map_err(|why| format!("step {} ({name}): {why}", at + 1))?;
    }
    check_files(&mut scope, case)
}

fn lay_out_place(root: &Path, place: &Place, case: &Value) -> HostOptions {
    for name in ["work", "home", "tmp", "bin", "posts"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let nothing = Map::new();
    lay_out(&place.work, case["initial_files"].as_object().unwrap_or(&nothing), Some("\n"));
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    for (key, value) in case["git_config"].as_object().unwrap_or(&nothing) {
        let (section, name) = key.split_once('.').unwrap();
        *sections.entry(section).or_default() += &format!("\t{name} = {value}\n");
    }
    let config: String =
        sections.iter().map(|(section, lines)| format!("[{section}]\n{lines}")).collect();
    write(&root.join("home/.gitconfig"), config.as_bytes());
    let poster = root.join("bin/fractary");
    write(&poster, POSTER.as_bytes());
    fs::set_permissions(&poster, fs::Permissions::from_mode(0o755)).unwrap();
    let world = &case["world"]["poster"];
    write(&root.join("bin/url"), world["url"].as_str().unwrap_or("").as_bytes());
    write(
        &root.join("bin/error"),
        world["error"].as_str().unwrap_or("VALIDATION_ERROR").as_bytes(),
    );

    let inherited = |name: &str| std::env::var_os(name).unwrap_or_default();
    let home = PathBuf::from(inherited("HOME"));
    let folder = |name: &str, below: &str| match inherited(name) {
        set if set.is_empty() => home.join(below).into_os_string(),
        set => set,
    };
    let mut path = root.join("bin").into_os_string();
    path.push(":");
    path.push(inherited("PATH"));
    let options = HostOptions::new()
        .only_env()
        .cwd(&place.work)
        .env("PATH", path)
        .env("HOME", root.join("home"))
        .env("TMPDIR", root.join("tmp"))
        .env("POSTER_WORK", &place.work)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", root)
        .env("CARGO_HOME", folder("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup"));
    let env = case["env"].as_object().unwrap_or(&nothing);
    env.iter().fold(options, |options, (name, value)| options.env(name, value.as_str().unwrap()))
}

fn call(host: &HostProcess, udf: &Value, overrides: &Value) -> Result<Value, String> {
    let body = json!({"udf": udf, "overrides": overrides}).to_string();
    let answer = host.post("/api/exec/udf", "_core", "run-feedback", &body)?;
    let mut envelope =
        try_parse(&answer.text).map_err(|error| format!("not JSON: {error}: {}", answer.text))?;
    if answer.status != 200 || envelope.get("error") != Some(&Value::Null) {
        return Err(format!("status {}, want data: {}", answer.status, short(&envelope)));
    }
    Ok(envelope["data"].take())
}

fn run_step(host: &HostProcess, scope: &mut Scope, step: &Value) -> Result<(), String> {
    if let Some(calls) = step["parallel"].as_array() {
        return run_parallel(host, scope, step, calls);
    }
    let data =
        call(host, &step["udf"], &scope.expand(step.get("overrides").unwrap_or(&json!({})))?)?;
    let Some(want) = step.get("expect_error") else {
        return scope.compare(&step["expect"], &data, "data");
    };
    let error = &data["error"];
    if data["status"] != "error"
        || error["message"].as_str().is_none_or(|text| text.trim().is_empty())
    {
        return Err(format!("want the error {want} with a message, got {}", short(&data)));
    }
    let mut members = want.as_object().unwrap().iter().filter(|(key, _)| *key != "exit");
    members.try_for_each(|(key, value)| scope.compare(value, &error[key], &format!("error.{key}")))
}

fn run_parallel(
    host: &HostProcess,
    scope: &Scope,
    step: &Value,
    calls: &[Value],
) -> Result<(), String> {
    let calls: Vec<(&Value, Value)> = calls
        .iter()
        .flat_map(|call| {
            let times = usize::try_from(call["times"].as_u64().unwrap_or(1)).unwrap();
            let overrides = scope.expand(call.get("overrides").unwrap_or(&json!({}))).unwrap();
            std::iter::repeat_n((&call["udf"], overrides), times)
        })
        .collect();
    let gate = Barrier::new(calls.len());
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    thread::scope(|scope| {
        let ask = |(udf, overrides): &(&Value, Value)| {
            gate.wait();
            match call(host, udf, overrides) {
                Err(why) => why,
                Ok(data) if data["status"] == "error" => {
                    data["error"]["code"].as_str().unwrap_or("no code").to_owned()
                }
                Ok(_) => "success".to_owned(),
            }
        };
        let running: Vec<_> = calls.iter().map(|call| scope.spawn(move || ask(call))).collect();
        for outcome in running {
            *counts.entry(outcome.join().expect("a call does not panic")).or_default() += 1;
        }
    });
    if json!(counts) == step["expect_counts"] {
        Ok(())
    } else {
        Err(format!("want {}, got {counts:?}", step["expect_counts"]))
    }
}

/// What the poster logged, oldest first: one folder a post.
fn posts(log: &Path) -> Vec<PathBuf> {
    let mut posts: Vec<_> = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
    posts.sort();
    posts
}

fn check_posts(scope: &mut Scope, step: &Value, posts: &[PathBuf]) -> Result<(), String> {
    let nothing = vec![];
    let want = step["expect_posts"].as_array().unwrap_or(&nothing);
    if want.len() != posts.len() {
        return Err(format!("want {} posts, got {}", want.len(), posts.len()));
    }
    for (want, post) in want.iter().zip(posts) {
        let read = |name: &str| {
            fs::read_to_string(post.join(name)).map_err(|error| format!("post {name}: {error}"))
        };
        if let Ok(argv) = read("unknown") {
            return Err(format!("the poster was called with {argv}"));
        }
        if read("lock")?.trim() != "free" {
            return Err("the run's lock was held while posting".to_owned());
        }
        let state = parse(&read("state")?);
        let at_post = json!({
            "status": state["status"],
            "request_id": state["feedback_request"]["request_id"],
            "notification_sent": state["feedback_request"]["notification_sent"],
        });
        let got = json!({"issue": read("issue")?, "body": read("body")?, "state_at_post": at_post});
        scope.compare(want, &got, "post")?;
    }
    Ok(())
}

fn check_files(scope: &mut Scope, case: &Value) -> Result<(), String> {
    let found = snapshot(&scope.root.clone());
    let want = case["final_files"].as_object().unwrap();
    for (relative, content) in want {
        let Some(Found::File(got)) = found.get(relative) else {
            return Err(format!("file {relative}: want a file, found {:?}", found.get(relative)));
        };
        let got = std::str::from_utf8(got).map_err(|error| format!("file {relative}: {error}"))?;
        match content {
            Value::String(template) => scope.compare_text(template, got),
            json => try_parse(got)
                .map_err(|error| error.to_string())
                .and_then(|got| scope.compare(json, &got, "$")),
        }
        .map_err(|why| format!("file {relative}: {why}"))?;
    }
    match found.keys().find(|name| !want.contains_key(*name) && !name.ends_with(".lock")) {
        Some(extra) => Err(format!("unexpected file {extra}")),
        None => Ok(()),
    }
}
