//! DuckDB is in a process of its own: whatever a statement makes of that, the host answers the next one.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::duckdb::installed;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::processes::children;

const LONG: Duration = Duration::from_secs(60);
const COUNTS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT max(i) AS m FROM n";

/// A host with no records.
fn host(arguments: &[&str]) -> HostProcess {
    let nowhere = tempfile::tempdir().unwrap().path().join("none");
    let options = HostOptions::new().arg("--app-dir").arg(nowhere);
    let options = options.arg("--sql-engine").arg("duckdb");
    HostProcess::start(&arguments.iter().fold(options, |options, word| options.arg(word)))
}

/// Processes of the engine that the host has started and that live.
fn engines(host: &HostProcess) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"udf-host\0sql-engine\0")
    };
    children(host.pid()).into_iter().filter(is_one).collect()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn sql(host: &HostProcess, statement: &str) -> (u16, Value) {
    let body = json!({"sql": statement}).to_string();
    let answer = host.post("/api/exec/sql", "_core", "feedback-management", &body).unwrap();
    (answer.status, answer.json())
}

#[track_caller]
fn answers(host: &HostProcess) {
    let (status, reply) =
        sql(host, "SELECT count(*) AS n FROM {{list_cards}} WHERE taskId = 'none'");
    assert_eq!((status, &reply["data"]["q0"]["rows"]), (200, &json!([{"n": 0}])), "{reply}");
}

#[test]
fn what_is_no_library_of_duckdb_is_no_fault_of_the_statement() {
    let folder = tempfile::tempdir().unwrap();
    let options = HostOptions::new().arg("--sql-engine").arg("duckdb");
    let host = HostProcess::start(&options.env("DUCKDB_LIB_DIR", folder.path()));
    let library = folder.path().join("libduckdb.so");
    let build = |code: &str| {
        let source = folder.path().join("library.c");
        write(&source, code.as_bytes());
        let linked =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        assert!(linked.unwrap().success(), "{code}");
    };
    let fails = |with: &str| {
        let (status, reply) = sql(&host, "SELECT 1 AS one");
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(status == 500 && error.contains(with), "{with}: {status} {reply}");
        assert!(!error.contains(folder.path().to_str().unwrap()), "{reply}");
        assert_eq!(engines(&host), [0; 0], "{with}");
    };
    fails("run `udf-host sql install-duckdb`");
    write(&library, b"no library");
    fails("libduckdb cannot be used: the file: ");
    build("int other(void) { return 0; }");
    fails("libduckdb cannot be used: the file: undefined symbol");
    // An older one lacks functions; more than that, its version is told.
    build("const char *duckdb_library_version(void) { return \"v1.1.3\"; }");
    fails("libduckdb cannot be used: this is DuckDB v1.1.3; 1.5 is needed");
    build("#include <unistd.h>\n__attribute__((constructor)) static void ends(void) { _exit(3); }");
    fails("libduckdb cannot be used: its process ended as it opened it (exit status: 3)");
}

#[test]
fn values_that_the_database_does_not_count_are_refused() {
    if !installed() {
        return;
    }
    let host = host(&["--sql-timeout", "60"]);
    for statement in [
        "SELECT sum(length(repeat('x', 60000000 + i::INT))) AS n FROM range(2000) t(i)",
        "SELECT sum(length(printf('%60000000d', i))) AS n FROM range(2000) t(i)",
        "SELECT sum(length(replace(repeat('a', 100000 + i::INT), 'a', repeat('b', 10000)))) AS n FROM range(2000) t(i)",
    ] {
        let (status, reply) = sql(&host, statement);
        assert_eq!(status, 400, "{statement}: {reply}");
        assert!(reply["error"].as_str().unwrap().contains("256 MiB"), "{statement}: {reply}");
        answers(&host);
    }
}

#[test]
fn a_fault_inside_of_duckdb_fails_no_later_statement() {
    if !installed() {
        return;
    }
    let host = host(&[]);
    answers(&host);
    let faulty = engines(&host);
    let (status, reply) =
        sql(&host, "SELECT reservoir_quantile(i, 0.5, 2000000000) AS q FROM range(10) t(i)");
    assert_eq!(status, 400, "{reply}");
    assert!(reply["error"].as_str().unwrap().starts_with("INTERNAL Error"), "{reply}");
    // Any other refusal is no reason for another process.
    answers(&host);
    let fresh = engines(&host);
    assert_ne!(fresh, faulty);
    assert_eq!(sql(&host, "SELECT nothing").0, 400);
    answers(&host);
    assert_eq!(engines(&host), fresh);
}

#[test]
fn a_statement_that_no_interrupt_reaches_ends_with_its_process() {
    if !installed() {
        return;
    }
    let host = host(&["--sql-timeout", "1"]);
    answers(&host);
    let deaf = engines(&host);
    let compares = "SELECT levenshtein(repeat('a', 400000), repeat('b', 400000 + i::INT)) AS d FROM range(1) t(i)";
    let (status, reply) = sql(&host, compares);
    assert_eq!(status, 504, "{reply}");
    answers(&host);
    let left = wait_until(LONG, "the end of the process", || {
        let left = engines(&host);
        deaf.iter().all(|pid| !left.contains(pid)).then_some(())
    });
    assert!(left.is_some(), "{deaf:?} is still there");
}

#[test]
fn a_process_that_is_killed_takes_its_statement_with_it_and_no_other() {
    if !installed() {
        return;
    }
    let host = host(&["--sql-timeout", "60"]);
    answers(&host);
    // While nobody needs it: the next statement does not notice.
    let idle = engines(&host);
    assert_eq!(idle.len(), 1, "{idle:?}");
    kill(idle[0]);
    answers(&host);
    let busy = engines(&host);
    assert!(busy.len() == 1 && busy != idle, "{busy:?}");
    thread::scope(|scope| {
        let counts = scope.spawn(|| sql(&host, COUNTS));
        // Another one runs beside it, in a process of its own.
        answers(&host);
        let both = wait_until(LONG, "two processes", || {
            answers(&host);
            (engines(&host).len() == 2).then_some(())
        });
        assert!(both.is_some(), "{:?}", engines(&host));
        // In one that others have used before it is run anew, in a fresh one.
        let ended = wait_until(LONG, "the end of the statement", || {
            engines(&host).into_iter().filter(|pid| processor_ticks(*pid) > 50).for_each(kill);
            counts.is_finished().then_some(())
        });
        assert!(ended.is_some(), "it counts on");
        let (status, reply) = counts.join().unwrap();
        assert_eq!(status, 400, "{reply}");
        assert!(reply["error"].as_str().unwrap().contains("signal 9"), "{reply}");
    });
    answers(&host);
}

#[test]
fn a_statement_fails_by_itself_alone_and_not_by_what_ran_before_it() {
    if !installed() {
        return;
    }
    let host = host(&["--sql-timeout", "60"]);
    answers(&host);
    let used = engines(&host)[0];
    let before = processor_ticks(used);
    let (status, reply) = thread::scope(|scope| {
        let counts = scope.spawn(|| sql(&host, &COUNTS.replace("1000000000", "300000")));
        wait_until(LONG, "the statement at work", || {
            (counts.is_finished() || processor_ticks(used) > before + 10).then_some(())
        });
        kill(used);
        counts.join().unwrap()
    });
    assert_eq!((status, &reply["data"]["q0"]["rows"]), (200, &json!([{"m": 300_000}])), "{reply}");
    assert!(!engines(&host).contains(&used));
}

#[test]
fn statements_that_come_together_have_a_process_each_and_two_stay() {
    if !installed() {
        return;
    }
    let host = host(&["--sql-timeout", "60"]);
    answers(&host);
    let all = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| sql(&host, &COUNTS.replace("1000000000", "300000")));
        }
        wait_until(LONG, "four processes", || {
            let all = engines(&host);
            (all.len() == 4).then_some(all)
        })
    });
    let all = all.expect("four processes");
    let left = wait_until(LONG, "the end of two", || {
        let left = engines(&host);
        (left.len() <= 2).then_some(left)
    });
    let left = left.expect("two processes");
    assert!(left.len() == 2 && left.iter().all(|pid| all.contains(pid)), "{left:?} of {all:?}");
    let buried = wait_until(LONG, "nobody left unburied", || {
        let known = children(host.pid()).into_iter().filter(|pid| all.contains(pid));
        (known.count() == 2).then_some(())
    });
    assert!(buried.is_some(), "{:?} of {all:?}", children(host.pid()));
}

#[test]
fn processes_end_with_their_host() {
    if !installed() {
        return;
    }
    let mut host = host(&["--sql-timeout", "60"]);
    answers(&host);
    let idle = engines(&host);
    assert_eq!(idle.len(), 1);
    host.kill();
    let gone = wait_until(LONG, "the end of the process", || {
        (!fs::exists(format!("/proc/{}", idle[0])).unwrap()).then_some(())
    });
    assert!(gone.is_some(), "{idle:?} is still there");
}

/// Time that a process has had on a core, in hundredths of a second.
fn processor_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or_default()
}
