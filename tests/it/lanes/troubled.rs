//! [`Troubled`]: a host over the operations that hurt.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::Pid;
use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::checkout;
use crate::support::fixture::{Found, snapshot};
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::parse;

/// The operations under `fixtures/trouble`.
const OPERATIONS: usize = 8;

/// A host over the operations that hurt, with a memory of its own of who crashed.
pub(super) struct Troubled {
    pub(super) host: HostProcess,
    pub(super) app_dir: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Troubled {
    pub(super) fn start() -> Troubled {
        Troubled::with(|options| options)
    }

    pub(super) fn with(options: impl FnOnce(HostOptions) -> HostOptions) -> Troubled {
        let (app_dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = checkout().join("tests/fixtures/trouble");
        let basic = HostOptions::new()
            .udfs(Some(&root))
            .env("UDF_HOST_CACHE", cache.path())
            // What a panic prints takes long to find out in a debug build.
            .env("RUST_BACKTRACE", "0")
            .env("UDF_HOST_LLM_KEY", "a key that no plugin may see")
            .arg("--log")
            .arg("info")
            .arg("--app-dir")
            .arg(app_dir.path());
        let host = HostProcess::start(&options(basic));
        host.wait_ready(OPERATIONS);
        let troubled = Troubled { host, app_dir, cache };
        let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": "first"}));
        assert_eq!((status, &envelope["data"]), (200, &json!("first")), "{envelope}");
        troubled
    }

    pub(super) fn call(&self, project: &str, op: &str, overrides: &Value) -> (u16, Value) {
        self.host.exec("default", project, op, overrides)
    }

    /// Status, and what was answered or said instead.
    pub(super) fn hurt(&self, kind: &str) -> (u16, String) {
        self.say("hurtful", "hurts", &json!({"kind": kind}))
    }

    /// Status, and what was answered or said instead.
    pub(super) fn say(&self, project: &str, op: &str, overrides: &Value) -> (u16, String) {
        let (status, envelope) = self.call(project, op, overrides);
        let said = match &envelope["error"] {
            Value::String(error) => error.clone(),
            _ => envelope["data"].to_string(),
        };
        (status, said)
    }

    /// A statement over the operations of a project.
    pub(super) fn statement(&self, project: &str, sql: &str, params: &Value) -> (u16, Value) {
        let body = json!({"sql": sql, "params": params, "format": "rows"}).to_string();
        let answer = self.host.post("/api/exec/sql", "default", project, &body).unwrap();
        (answer.status, answer.json())
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(self.host.pid().cast_signed()).unwrap()
    }

    /// The worker that answers for a project.
    pub(super) fn worker_of(&self, project: &str) -> Pid {
        let (status, envelope) = self.call(project, "answers", &json!({"text": "pid"}));
        assert_eq!(status, 200, "{envelope}");
        Pid::from_raw(i32::try_from(envelope["data"].as_i64().unwrap()).unwrap()).unwrap()
    }

    pub(super) fn listed(&self, project: &str, op: &str) -> Value {
        let catalog = self.host.get("/api/udfs").json();
        let udfs = catalog["data"]["udfs"].as_array().unwrap();
        let found = udfs.iter().find(|it| it["project"] == project && it["op"] == op);
        found.cloned().unwrap_or_else(|| panic!("{op} is not listed: {catalog}"))
    }

    /// A command on the same operations, state and cache.
    pub(super) fn command(&self, words: &[&str]) -> Output {
        Command::new(&built().host)
            .args(words)
            .args(["--only", "--no-build", "--udfs"])
            .arg(checkout().join("tests/fixtures/trouble"))
            .arg("--app-dir")
            .arg(self.app_dir.path())
            .env("UDF_HOST_CACHE", self.cache.path())
            .output()
            .unwrap()
    }

    /// The ids of the notes, each there once.
    pub(super) fn notes(&self) -> BTreeSet<String> {
        notes(self.app_dir.path())
    }

    /// Calls operations all the time. Those of other projects must answer each time; one of the same project as what
    /// hurts may be struck, and is told by whom.
    pub(super) fn answering_throughout<T>(&self, work: impl FnOnce() -> T) -> T {
        let (done, answered, struck) =
            (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for (project, op) in
                [("harmless", "answers"), ("inside", "panics"), ("hurtful", "answers")]
            {
                let (done, answered, struck) = (&done, &answered, &struck);
                scope.spawn(move || {
                    let asked = if op == "panics" {
                        json!({"kind": "here"})
                    } else {
                        json!({"text": "here", "ms": 3})
                    };
                    while !done.load(Ordering::Relaxed) {
                        let (status, envelope) = self.call(project, op, &asked);
                        let error = envelope["error"].as_str().unwrap_or_default();
                        let by_neighbour =
                            project == "hurtful" && status == 500 && error.contains("crashed");
                        assert!(
                            by_neighbour || (status, &envelope["data"]) == (200, &json!("here")),
                            "{project}: {status} {envelope}"
                        );
                        if by_neighbour { struck } else { answered }
                            .fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            struct Done<'a>(&'a AtomicBool);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
            // Also when `work` fails: the others must end.
            let _done = Done(&done);
            let result = work();
            let [answered, struck] = [&answered, &struck].map(|it| it.load(Ordering::Relaxed));
            assert!(answered > 10 * struck, "answered {answered}, struck {struck}");
            result
        })
    }
}

/// Tests that measure a whole process, or fill the machine, run one after another.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn notes(app_dir: &Path) -> BTreeSet<String> {
    let Some(Found::File(bytes)) = snapshot(app_dir).remove("state/notes.json") else {
        panic!("no notes")
    };
    let notes = parse(std::str::from_utf8(&bytes).expect("the file is UTF-8"));
    let notes = notes.as_array().unwrap();
    let ids: BTreeSet<_> =
        notes.iter().map(|note| note["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), notes.len(), "a note is there twice");
    ids
}
