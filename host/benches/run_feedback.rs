//! What a question inside a workflow run costs, and a look over a thousand runs: in this process, without HTTP.
//!
//! `cargo bench -p host --bench run_feedback`; builds the operations on its first run. Beside each time
//! stands what a plain program takes for the same files, so that a slow disk or a busy machine shows.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::config::{Durability, Settings};
use host::{Address, Call, Config, Host, Reply};
use rustix::fs::{Advice, fadvise};

const RUNS: usize = 1000;
const ROUNDS: usize = 15;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let udfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../udfs");
    let udfs = udfs.canonicalize().expect("the operations");
    for waiting in [10, 100] {
        let base = folder.path().join(format!("runs-{waiting}"));
        let files = lay_out(&base, waiting);
        list(&udfs, &base, &files, waiting);
    }
    request(&udfs, &folder.path().join("asked"));
}

/// A host that has nothing in its memory.
fn start(udfs: &Path) -> Host {
    let mut config = Config::from_process(Settings::default()).expect("a configuration");
    config.only = true;
    config.udfs = vec![udfs.to_owned()];
    config.durability = Durability::Os;
    let host = Host::start(config).expect("a host");
    assert!(host.catalog.wait_settled(Instant::now() + Duration::from_secs(40 * 60)));
    host
}

fn call(host: &Host, op: &str, params: &[(&str, &str)]) -> String {
    let call = params
        .iter()
        .fold(Call::new(Address::new("_core", "run-feedback", op)), |call, (name, text)| {
            call.param(name, text)
        });
    match host.dispatcher.call(call).unwrap_or_else(|error| panic!("{op}: {error}")) {
        Reply::Value(text) => text,
        Reply::Records(_) => panic!("{op} answers one value"),
    }
}

/// A thousand runs as they are after a while; `waiting` of every hundred wait.
fn lay_out(base: &Path, waiting: usize) -> Vec<PathBuf> {
    let step = |name: String| serde_json::json!({"name": name, "status": "completed", "duration_ms": 1500});
    (0..RUNS)
        .map(|n| {
            let run = format!("acme/widgets/00000000-0000-4000-8000-{n:012x}");
            let phases: serde_json::Map<String, serde_json::Value> =
                ["frame", "architect", "build", "evaluate", "release"]
                    .iter()
                    .map(|name| {
                        let steps: Vec<_> = (0..4).map(|at| step(format!("{name}-{at}"))).collect();
                        ((*name).to_owned(), serde_json::json!({"status": "pending", "steps": steps}))
                    })
                    .collect();
            let mut state = serde_json::json!({
                "run_id": run, "work_id": n.to_string(), "workflow_version": "2.1", "status": "in_progress",
                "current_phase": "build", "current_step": "build-1", "last_event_id": 40, "started_at": "2026-01-31T08:00:00.000Z",
                "completed_at": null, "updated_at": "2026-01-31T08:05:09Z", "phases": phases,
                "artifacts": {"branch": "feature/258", "spec": "specs/258.md"}, "errors": [],
            });
            if n % 100 < waiting {
                state["status"] = "awaiting_feedback".into();
                state["feedback_request"] = serde_json::json!({
                    "request_id": format!("fr-20260131-{n:06x}"), "type": "approval", "prompt": "Is the layout acceptable?",
                    "options": ["approve", "reject"], "context": {"summary": "Three tables, one index."},
                    "requested_at": "2026-01-31T08:05:09Z",
                    "notification_sent": {"cli": true, "issue_comment": false, "comment_url": null},
                });
                state["resume_point"] = serde_json::json!({"phase": "build", "step": "build-1", "step_index": 1});
            }
            let dir = base.join(run);
            fs::create_dir_all(dir.join("events")).expect("a run");
            let file = dir.join("state.json");
            write(&file, &format!("{state:#}\n"));
            file
        })
        .collect()
}

fn list(udfs: &Path, base: &Path, files: &[PathBuf], waiting: usize) {
    let base = base.to_str().expect("a plain path");
    let (mut cold, mut warm, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // A host of its own for each round, and files that are not in the page cache either.
        let host = start(udfs);
        forget(files);
        let began = Instant::now();
        let reply = call(&host, "list_pending", &[("base_path", base)]);
        cold.push(began.elapsed());
        let total = RUNS / 100 * waiting;
        assert!(reply.contains(&format!("\"total\":{total}")), "all of them");
        let began = Instant::now();
        call(&host, "list_pending", &[("base_path", base)]);
        warm.push(began.elapsed());
        host.stop();
        forget(files);
        let began = Instant::now();
        for file in files {
            std::hint::black_box(fs::read(file).expect("it is there"));
        }
        plain.push(began.elapsed());
    }
    let (cold, warm, plain) = (median(cold), median(warm), median(plain));
    println!(
        "list_pending, {RUNS} runs, {waiting} % waiting: {:.1} ms cold (bar: at most 50), {:.1} ms again; \
         reading the files alone {:.1} ms cold, ratio {:.2}",
        ms(cold),
        ms(warm),
        ms(plain),
        ms(cold) / ms(plain)
    );
}

fn request(udfs: &Path, base: &Path) {
    let host = start(udfs);
    let text = base.to_str().expect("a plain path");
    let (mut asked, mut plain) = (Vec::new(), Vec::new());
    for n in 0..200 {
        let run = format!("acme/widgets/00000000-0000-4000-8000-{n:012x}");
        let of = [("base_path", text), ("run_id", &run)];
        call(&host, "init_run", &[&of[..], &[("work_id", "7")]].concat());
        let question = [
            ("phase", "build"),
            ("step", "review"),
            ("feedback_type", "approval"),
            ("prompt", "Ship it?"),
            ("post_to_issue", "false"),
        ];
        let began = Instant::now();
        let reply = call(&host, "request_feedback", &[&of[..], &question].concat());
        asked.push(began.elapsed());
        assert!(reply.contains("\"success\""), "{reply}");
        let state = fs::read_to_string(base.join(&run).join("state.json")).expect("the state");
        let began = Instant::now();
        // Event, counter, state, and the state once more with its flags.
        for name in ["event", "counter", "state", "flags"] {
            let file = base.join(&run).join(name);
            write(&file.with_extension("tmp"), &state);
            fs::rename(file.with_extension("tmp"), file).expect("it is renamed");
        }
        plain.push(began.elapsed());
    }
    let (asked, plain) = (median(asked), median(plain));
    println!(
        "request_feedback without posting, durability os: {:.2} ms (bar: at most 2); writing four files alone {:.2} ms, ratio {:.1}",
        ms(asked),
        ms(plain),
        ms(asked) / ms(plain)
    );
}

/// Takes files out of the page cache.
fn forget(files: &[PathBuf]) {
    for file in files {
        let file = File::open(file).expect("it is there");
        file.sync_all().expect("it is written");
        fadvise(&file, 0, None, Advice::DontNeed).expect("the cache can be asked");
    }
}

fn write(path: &Path, text: &str) {
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).expect("it is written");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
