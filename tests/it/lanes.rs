//! Where calls run: in a worker process nothing that an operation does to its process costs more than that call, and
//! nothing of it is left behind. In the host's own process a panic costs no more than the call either.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::checkout;
use crate::support::fixture::{Found, snapshot};
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::parse;

/// What a loaded machine may take for what should be there at once.
const LONG: Duration = Duration::from_secs(60);

/// A host over the operations that hurt, with a memory of its own of who crashed.
struct Troubled {
    host: HostProcess,
    app_dir: tempfile::TempDir,
    _cache: tempfile::TempDir,
}

impl Troubled {
    fn start() -> Troubled {
        Troubled::with(|options| options)
    }

    fn with(options: impl FnOnce(HostOptions) -> HostOptions) -> Troubled {
        let (app_dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = checkout().join("tests/fixtures/trouble");
        let basic = HostOptions::new()
            .udfs(Some(&root))
            .env("UDF_HOST_CACHE", cache.path())
            .env("UDF_HOST_LLM_KEY", "a key that no plugin may see")
            .arg("--log")
            .arg("info")
            .arg("--app-dir")
            .arg(app_dir.path());
        let host = HostProcess::start(&options(basic));
        let troubled = Troubled { host, app_dir, _cache: cache };
        // They answer once they are built.
        for project in ["hurtful", "harmless"] {
            let ready = wait_until(Duration::from_secs(600), "the operations", || {
                let (status, _) = troubled.call(project, "answers", &json!({"text": "there"}));
                (status == 200).then_some(())
            });
            ready
                .unwrap_or_else(|| panic!("{project} does not answer: {}", troubled.host.stderr()));
        }
        for op in ["keeps", "hurts"] {
            let parameter = if op == "keeps" { "id" } else { "kind" };
            let (status, envelope) = troubled.call("hurtful", op, &json!({parameter: "first"}));
            assert_eq!((status, &envelope["data"]), (200, &json!("first")), "{envelope}");
        }
        troubled
    }

    fn call(&self, project: &str, op: &str, overrides: &Value) -> (u16, Value) {
        self.host.exec("default", project, op, overrides)
    }

    fn hurt(&self, kind: &str) -> (u16, String) {
        let (status, envelope) = self.call("hurtful", "hurts", &json!({"kind": kind}));
        let said = match &envelope["error"] {
            Value::String(error) => error.clone(),
            _ => envelope["data"].to_string(),
        };
        (status, said)
    }

    /// The worker that answers for a project.
    fn worker_of(&self, project: &str) -> Pid {
        let (status, envelope) = self.call(project, "answers", &json!({"text": "pid"}));
        assert_eq!(status, 200, "{envelope}");
        Pid::from_raw(i32::try_from(envelope["data"].as_i64().unwrap()).unwrap()).unwrap()
    }

    fn listed(&self, op: &str) -> Value {
        let catalog = self.host.get("/api/udfs").json();
        let udfs = catalog["data"]["udfs"].as_array().unwrap();
        let found = udfs.iter().find(|it| it["project"] == "hurtful" && it["op"] == op);
        found.cloned().unwrap_or_else(|| panic!("{op} is not listed: {catalog}"))
    }
}

fn host_pid(troubled: &Troubled) -> Pid {
    Pid::from_raw(troubled.host.pid().cast_signed()).unwrap()
}

/// Tests that measure a whole process, or fill the machine, run one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Status and group of a process; none when it is gone.
fn stat(pid: &str) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    fields.next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Every process in the group that `leader` leads or led, the dead that nobody has taken leave of included.
fn group(leader: Pid) -> Vec<String> {
    let leader = leader.as_raw_nonzero().get();
    processes()
        .into_iter()
        .filter(|pid| stat(pid).is_some_and(|(_, group)| group == leader))
        .collect()
}

fn processes() -> Vec<String> {
    let names = fs::read_dir("/proc").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The children of a process by id and state.
fn children(parent: Pid) -> Vec<(String, char)> {
    let parent = parent.as_raw_nonzero().to_string();
    let is_child = |pid: &String| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = text.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        fields.split(' ').nth(1) == Some(&parent)
    };
    processes()
        .into_iter()
        .filter(is_child)
        .filter_map(|pid| stat(&pid).map(|(state, _)| (pid, state)))
        .collect()
}

/// Calls the harmless all the time; each one must be answered.
fn answering_throughout<T>(troubled: &Troubled, work: impl FnOnce() -> T) -> T {
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for project in ["harmless", "hurtful"] {
            let (done, answered) = (&done, &answered);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let (status, envelope) =
                        troubled.call(project, "answers", &json!({"text": "here", "ms": 3}));
                    assert_eq!(
                        (status, &envelope["data"]),
                        (200, &json!("here")),
                        "{project}: {envelope}"
                    );
                    answered.fetch_add(1, Ordering::Relaxed);
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
        assert!(answered.load(Ordering::Relaxed) > 0, "nobody was asked meanwhile");
        result
    })
}

#[test]
fn whatever_an_operation_does_to_its_process_costs_that_call() {
    let _alone = alone();
    let mut troubled = Troubled::start();
    let pid = host_pid(&troubled);
    answering_throughout(&troubled, || {
        for (kind, status, words) in [
            ("text", 500, "a plain text"),
            ("string", 500, "a formatted text, number 7"),
            ("other", 500, "panicked"),
            ("payload", 500, "panicked"),
            ("drop", 500, "a drop at the end of the call"),
            ("abort", 500, "signal 6 (SIGABRT"),
            ("stack", 500, "stack overflow"),
            ("exit", 500, "exit code 0"),
            ("null", 500, "signal 11 (SIGSEGV"),
            ("memory", 500, "out of memory: a worker may have 1024 MiB"),
            ("forks", 500, "more than 64 processes"),
            ("loop", 504, "did not finish within 2000 ms"),
            ("lock", 504, "did not finish within 2000 ms"),
            ("print", 504, "did not finish within 2000 ms"),
            ("deaf", 504, "did not finish within 2000 ms"),
            ("close", 200, "closed"),
            ("cwd", 200, "moved"),
            ("hook", 200, "hooked"),
            // Its own hook aborts: the panic became the end of the worker.
            ("text", 500, "signal 6 (SIGABRT"),
        ] {
            let (got, said) = troubled.hurt(kind);
            assert_eq!(got, status, "{kind}: {said}");
            assert!(said.contains(words), "{kind}: {said}");
            if status == 500 {
                assert!(
                    said.contains("`default.hurtful.hurts`"),
                    "{kind} names no operation: {said}"
                );
            }
            assert!(!said.contains(".rs") && !said.contains("/tmp"), "{kind} tells a path: {said}");
            let id = format!("{kind}: {words}");
            let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": id}));
            assert_eq!((status, &envelope["data"]), (200, &json!(id)), "after {kind}: {envelope}");
            let (status, said) = troubled.hurt("nothing");
            assert_eq!((status, &*said), (200, "\"nothing\""), "after {kind}");
        }
    });
    assert_eq!(troubled.host.ended(), None);
    assert_eq!(host_pid(&troubled), pid);
    assert_eq!(troubled.host.stdout_rest(), "", "stdout holds the handshake alone");
    // What one printed with its descriptors closed did not land in what another wrote.
    let notes = notes(troubled.app_dir.path());
    assert!(notes.contains("written with 0, 1 and 2 closed"), "{notes:?}");
    let log = troubled.host.stderr();
    assert!(log.len() < 4 << 20, "endless output became {} bytes of log", log.len());
    assert!(log.contains("more than is logged"), "the log says what is missing");
    let crashed = log.lines().find(|line| line.contains("outcome=\"crashed\"")).unwrap_or_default();
    assert!(crashed.contains("default.hurtful.hurts") && crashed.contains("request"), "{crashed}");
}

/// The ids of the notes, each there once.
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

#[test]
fn three_crashes_put_an_operation_in_quarantine() {
    let _alone = alone();
    let troubled = Troubled::start();
    let shared = troubled.worker_of("hurtful");
    assert_eq!(troubled.listed("hurts")["lane"], "worker");
    assert_eq!(troubled.listed("hurts").get("lane_note"), None);
    for _ in 0..3 {
        assert_eq!(troubled.hurt("abort").0, 500);
    }
    let note = troubled.listed("hurts")["lane_note"].as_str().unwrap_or_default().to_owned();
    assert!(note.contains("quarantine") && note.contains("SIGABRT"), "{note}");
    assert!(troubled.host.stderr().contains("in quarantine"), "the log says it");
    assert_ne!(
        troubled.worker_of("hurtful"),
        shared,
        "the worker that it ended is another one now"
    );
    // From now on it ends nobody's worker but its own.
    let shared = troubled.worker_of("hurtful");
    for _ in 0..3 {
        assert_eq!(troubled.hurt("abort").0, 500);
    }
    assert_eq!(troubled.worker_of("hurtful"), shared);
    assert_eq!(troubled.listed("answers").get("lane_note"), None);
    // Another process knows it from the cache.
    for (command, words) in [("list", "quarantine"), ("doctor", "quarantine")] {
        let said = troubled.command(command);
        let told = |line: &str| line.contains("default.hurtful.hurts") && line.contains(words);
        assert!(said.lines().any(told), "{command}: {said}");
    }
}

impl Troubled {
    /// The output of a command on the same operations and cache.
    fn command(&self, command: &str) -> String {
        let built = crate::support::build::built();
        let output = std::process::Command::new(&built.host)
            .arg(command)
            .args(["--only", "--no-build", "--udfs"])
            .arg(checkout().join("tests/fixtures/trouble"))
            .arg("--app-dir")
            .arg(self.app_dir.path())
            .env("UDF_HOST_CACHE", self._cache.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn a_call_that_does_not_end_leaves_neither_a_lock_nor_a_process() {
    let _alone = alone();
    let troubled = Troubled::start();
    let worker = troubled.worker_of("hurtful");
    let (status, child) = troubled.hurt("child");
    assert_eq!(status, 200, "{child}");
    assert!(group(worker).len() >= 2, "the child is in the worker's group");
    let began = Instant::now();
    let (status, said) = troubled.hurt("lock");
    assert_eq!(status, 504, "{said}");
    assert!(began.elapsed() < Duration::from_secs(20), "the deadline of two seconds was not kept");
    // The lock is free as soon as the worker is gone.
    let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": "after"}));
    assert_eq!((status, &envelope["data"]), (200, &json!("after")), "{envelope}");
    wait_until(LONG, "the worker's end", || group(worker).is_empty().then_some(()))
        .unwrap_or_else(|| panic!("still there: {:?}", group(worker)));
    assert_eq!(notes(troubled.app_dir.path()), ["after", "first"].map(str::to_owned).into());
}

#[test]
fn workers_and_what_they_started_die_with_the_host() {
    let _alone = alone();
    for end in ["kill", "terminate"] {
        let mut troubled = Troubled::start();
        let worker = troubled.worker_of("hurtful");
        assert_eq!(troubled.hurt("child").0, 200);
        let group_before = group(worker);
        assert!(group_before.len() >= 2, "{group_before:?}");
        if end == "kill" {
            troubled.host.kill();
        } else {
            let Troubled { host, .. } = troubled;
            assert_eq!(host.terminate().code(), Some(0));
        }
        let left =
            || group(worker).into_iter().filter(|pid| stat(pid).is_some_and(|it| it.0 != 'Z'));
        wait_until(Duration::from_secs(5), "the workers' end", || {
            (left().count() == 0).then_some(())
        })
        .unwrap_or_else(|| panic!("after {end} there are still {:?}", left().collect::<Vec<_>>()));
    }
}

#[test]
fn a_worker_sees_neither_the_hosts_settings_nor_its_token() {
    let troubled = Troubled::start();
    let (_, envelope) = troubled.call("harmless", "answers", &json!({"text": "environment"}));
    let environment = envelope["data"].as_object().unwrap();
    assert!(environment.contains_key("PATH"), "{environment:?}");
    let ours: Vec<_> = environment.keys().filter(|name| name.starts_with("UDF_HOST_")).collect();
    assert!(ours.is_empty(), "{ours:?}");
    let worker = troubled.worker_of("harmless").as_raw_nonzero();
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{worker}/{file}")).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(&troubled.host.token), "the token stands in {file}");
        assert!(!text.contains("a key that no plugin may see"), "a key stands in {file}");
    }
    // Where one operation went is no other's place.
    let here = std::env::current_dir().unwrap();
    assert_eq!(troubled.hurt("cwd").0, 200);
    let (_, envelope) = troubled.call("hurtful", "answers", &json!({"text": "cwd"}));
    assert_eq!(envelope["data"], json!(here));
}

#[test]
fn a_project_gets_more_workers_when_many_call() {
    let troubled = Troubled::with(|options| options.arg("--workers").arg("3"));
    let mut seen: HashMap<i64, usize> = HashMap::new();
    let grown = wait_until(LONG, "more workers", || {
        thread::scope(|scope| {
            let ask = || {
                let (status, _) = troubled.call("hurtful", "answers", &json!({"ms": 100}));
                assert_eq!(status, 200);
                let (_, envelope) =
                    troubled.call("hurtful", "answers", &json!({"text": "pid", "ms": 50}));
                envelope["data"].as_i64().unwrap()
            };
            let asked: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
            for pid in asked.into_iter().map(|it| it.join().unwrap()) {
                *seen.entry(pid).or_default() += 1;
            }
        });
        (seen.len() == 3).then_some(())
    });
    assert!(grown.is_some(), "calls by worker: {seen:?}");
}

/// How often the tests below end a worker; `LANE_KILLS=1000` for the long run.
fn kills() -> usize {
    std::env::var("LANE_KILLS").map_or(200, |text| text.parse().expect("LANE_KILLS is a number"))
}

#[test]
fn restarts_leave_no_zombies_and_no_open_files() {
    let _alone = alone();
    let troubled = Troubled::start();
    let host = host_pid(&troubled);
    let open = || fs::read_dir(format!("/proc/{}/fd", host.as_raw_nonzero())).unwrap().count();
    let threads = || fs::read_dir(format!("/proc/{}/task", host.as_raw_nonzero())).unwrap().count();
    let mut ended = BTreeSet::new();
    let mut before = (0, 0);
    for round in 0..kills() {
        let worker = troubled.worker_of("hurtful");
        assert!(ended.insert(worker.as_raw_nonzero()), "{worker:?} answers after its end");
        kill_process(worker, Signal::KILL).unwrap();
        if round == 10 {
            before = (open(), threads());
        }
    }
    let worker = troubled.worker_of("hurtful");
    let left = wait_until(LONG, "one worker for each project", || {
        let children = children(host);
        (children.len() == 2 && children.iter().all(|it| it.1 != 'Z')).then_some(())
    });
    assert!(left.is_some(), "{:?}; {worker:?} answers", children(host));
    let after = (open(), threads());
    assert!(
        after.0 <= before.0 + 8 && after.1 <= before.1 + 8,
        "(files, threads) {before:?} → {after:?}"
    );
}

#[test]
fn nothing_acknowledged_is_lost_when_workers_are_killed_while_they_write() {
    let _alone = alone();
    let troubled = Troubled::start();
    let acknowledged = Mutex::new(BTreeSet::from(["first".to_owned()]));
    let (next, failed, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let id = format!("note {}", next.fetch_add(1, Ordering::Relaxed));
                    let (status, envelope) = troubled.call("hurtful", "keeps", &json!({"id": id}));
                    if status == 200 {
                        acknowledged.lock().unwrap().insert(id);
                        continue;
                    }
                    let error = envelope["error"].as_str().unwrap_or_default();
                    assert!(
                        status == 500 && error.contains("signal 9 (SIGKILL"),
                        "{status} {error}"
                    );
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut chance = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..kills() {
            let so_far = acknowledged.lock().unwrap().len();
            // Workers must come back: between two kills something is written.
            wait_until(LONG, "a write", || {
                (acknowledged.lock().unwrap().len() > so_far).then_some(())
            })
            .unwrap_or_else(|| panic!("nobody writes any more: {}", troubled.host.stderr()));
            chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let moment = Instant::now() + Duration::from_micros((chance >> 33) % 5000);
            while Instant::now() < moment {
                std::hint::spin_loop();
            }
            for (child, _) in children(host_pid(&troubled)) {
                let pid = Pid::from_raw(child.parse().unwrap()).unwrap();
                let _just_ended = kill_process(pid, Signal::KILL);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let (acknowledged, stored) =
        (acknowledged.into_inner().unwrap(), notes(troubled.app_dir.path()));
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged notes are gone: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    assert!(failed.load(Ordering::Relaxed) > 0, "no kill struck a write");
    assert!(is_gone_soon(&troubled), "a killed worker is still there");
}

/// Whether no dead child waits for the host to take leave of it.
fn is_gone_soon(troubled: &Troubled) -> bool {
    wait_until(LONG, "the last burial", || {
        children(host_pid(troubled)).iter().all(|(_, state)| *state != 'Z').then_some(())
    })
    .is_some()
}
