//! What becomes of calls: replies, errors of every kind, deadlines, limits, calls of one operation by another.

use std::pin::pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use host::{Address, Call, Host, HostError};

use crate::support::{HELLO, PATIENCE, Udfs, call};

const TROUBLE: &str = r#"//! Fails as asked.
use sdk::prelude::*;

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in drop");
        }
    }
}

/// Fails as asked.
#[udf]
fn trouble(ctx: &Context, how: &str) -> Result<Reply, UdfError> {
    match how {
        "text" => panic!("plain text"),
        "string" => panic!("{} text", "formatted"),
        "other" => std::panic::panic_any(7_u8),
        "drop" => {
            let _bomb = Bomb;
            Ok(Reply::null())
        }
        "raise" => Err(UdfError::raised("no such luck")),
        "undeclared read" => ctx.read("cards").map(|_| Reply::null()),
        "undeclared write" => ctx.begin(&["cards"]).map(|_| Reply::null()),
        "undeclared call" => ctx.call("p.hello", &[]),
        _ => Ok(Reply::text(how)),
    }
}
"#;

const SLOW: &str = r#"//! Takes its time.
use sdk::prelude::*;

/// Takes its time; `kind` says whether it heeds the host.
#[udf]
fn slow(ctx: &Context, ms: u64, #[arg(default)] kind: &str) -> Result<Reply, UdfError> {
    let end = std::time::Instant::now() + std::time::Duration::from_millis(ms);
    while std::time::Instant::now() < end {
        if kind == "heeds" && ctx.cancelled() {
            return Err(UdfError::raised("stopped early"));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(Reply::text("done"))
}
"#;

const KEEP: &str = r#"//! Keeps a note.
use sdk::prelude::*;

/// Keeps a note, after `ms` milliseconds in the transaction.
#[udf(writes("notes"))]
fn keep(ctx: &Context, text: &str, #[arg(default)] ms: u64) -> Result<Reply, UdfError> {
    let mut change = ctx.begin(&["notes"])?;
    std::thread::sleep(std::time::Duration::from_millis(ms));
    change.collection("notes")?.push(Object::new().set("id", text))?;
    change.commit()?;
    Ok(Reply::text(text))
}
"#;

const COUNT: &str = r#"//! Counts notes.
use sdk::prelude::*;

/// Counts notes.
#[udf(reads("notes"))]
fn count(ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::value(&ctx.read("notes")?.records().len()))
}
"#;

const OUTER: &str = r#"//! Calls others.
use sdk::prelude::*;

/// Calls what it is told to.
#[udf(calls("p.hello", "p.count", "p.outer", "p.gone"))]
fn outer(ctx: &Context, op: &str, #[arg(default)] name: &str) -> Result<Reply, UdfError> {
    match op {
        "p.outer" => ctx.call(op, &[("op", "p.outer")]),
        "p.hello" => ctx.call(op, &[("name", name)]),
        _ => ctx.call(op, &[]),
    }
}
"#;

/// One host for all tests of this file: they disturb each other no more than callers do.
fn shared() -> &'static (Udfs, Host) {
    static SHARED: OnceLock<(Udfs, Host)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let udfs = Udfs::new();
        for (op, source) in [
            ("hello", HELLO),
            ("trouble", TROUBLE),
            ("slow", SLOW),
            ("keep", KEEP),
            ("count", COUNT),
            ("outer", OUTER),
        ] {
            udfs.op("p", op, source);
        }
        udfs.write("p/project.toml", "[udfs.slow]\ntimeout = \"300ms\"\nlane = \"worker\"\n");
        let host = udfs.host();
        (udfs, host)
    })
}

fn with_deadline(op: &str, params: &[(&str, &str)], time: Duration) -> Call {
    let mut call = Call::new(Address::new("default", "p", op));
    for (name, value) in params {
        call = call.param(name, value);
    }
    call.deadline = Some(Instant::now() + time);
    call
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_dropped_in_crate_answers() {
    let (_, host) = shared();
    assert_eq!(call(host, "p.hello", &[]).unwrap(), "\"hello world\"");
    assert_eq!(call(host, "p.hello", &[("name", "you")]).unwrap(), "\"hello you\"");
}

#[test]
fn every_operation_answers_for_itself() {
    let (_, host) = shared();
    for view in host.catalog.list() {
        assert_eq!(view.state, "ready", "{view:?}");
        assert_eq!(view.descriptor.unwrap()["op"], view.op);
        let hash = view.hash.unwrap();
        assert!(host.config.cache_dir.join(format!("{hash}.so")).is_file());
    }
}

#[test]
fn failures_are_told_apart_and_the_next_call_works() {
    let (_, host) = shared();
    for (how, kind, words) in [
        ("text", "panicked", "plain text"),
        ("string", "panicked", "formatted text"),
        ("other", "panicked", ""),
        ("drop", "panicked", "in drop"),
        ("raise", "raised", "no such luck"),
        ("undeclared read", "undeclared", "reads(\"cards\")"),
        ("undeclared write", "undeclared", "writes(\"cards\")"),
        ("undeclared call", "undeclared", "calls(\"p.hello\")"),
    ] {
        let error = call(host, "p.trouble", &[("how", how)]).unwrap_err();
        assert_eq!(error.kind(), kind, "{how}: {error}");
        assert!(error.to_string().contains(words), "{how}: {error}");
        assert!(!error.to_string().contains(".rs"), "no code paths: {error}");
        assert_eq!(call(host, "p.trouble", &[("how", "fine")]).unwrap(), "\"fine\"", "after {how}");
    }
}

#[test]
fn bad_parameters_and_unknown_addresses_are_named() {
    let (_, host) = shared();
    let error = call(host, "p.hello", &[("nam", "x")]).unwrap_err();
    assert_eq!(error.kind(), "bad_parameter");
    assert!(error.to_string().contains("nam"), "{error}");
    assert_eq!(call(host, "p.slow", &[]).unwrap_err().kind(), "bad_parameter");
    assert!(
        matches!(call(host, "p.none", &[]), Err(HostError::UnknownOp { known, .. }) if known.len() == 6)
    );
    assert!(matches!(call(host, "q.none", &[]), Err(HostError::UnknownProject { .. })));
    let call = Call::new(Address::new("w", "p", "hello"));
    assert!(matches!(host.dispatcher.call(call), Err(HostError::UnknownWorkspace { .. })));
}

#[test]
fn a_call_that_takes_too_long_is_answered_in_time_and_counted_until_it_ends() {
    let (_, host) = shared();
    let entry = host.catalog.entry(&Address::new("default", "p", "slow")).unwrap();
    let began = Instant::now();
    // No deadline of its own: the 300 ms of project.toml.
    let call = Call::new(Address::new("default", "p", "slow")).param("ms", "1500");
    let error = runtime().block_on(async { host.dispatcher.call_async(call).await }).unwrap_err();
    assert!(matches!(error, HostError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("300 ms"), "{error}");
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(300), "{waited:?}");
    // The runtime's end waited for the thread, so this call is no longer stuck; those of other tests end soon.
    let end = Instant::now() + Duration::from_secs(20);
    while entry.stats.counts().stuck > 0 {
        assert!(Instant::now() < end, "a call is still counted as stuck");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(entry.view().lane, "inline");
}

#[test]
fn stuck_calls_show_while_they_last() {
    let (_, host) = shared();
    let entry = host.catalog.entry(&Address::new("default", "p", "slow")).unwrap();
    let runtime = runtime();
    let call = with_deadline("slow", &[("ms", "700")], Duration::from_millis(50));
    let outcome = runtime.block_on(host.dispatcher.call_async(call));
    assert!(matches!(outcome, Err(HostError::Timeout { .. })));
    assert!(entry.stats.counts().stuck >= 1);
    drop(runtime);
}

#[test]
fn an_operation_that_heeds_the_host_stops_at_the_deadline() {
    let (_, host) = shared();
    let began = Instant::now();
    let call =
        with_deadline("slow", &[("ms", "20000"), ("kind", "heeds")], Duration::from_millis(80));
    let error = host.dispatcher.call(call).unwrap_err();
    // The operation and its caller look at one clock: either may be first.
    let heeded = error.to_string().contains("stopped early");
    assert!(heeded || matches!(error, HostError::Timeout { .. }), "{error}");
    let entry = host.catalog.entry(&Address::new("default", "p", "slow")).unwrap();
    while entry.stats.counts().stuck > 0 {
        assert!(began.elapsed() < Duration::from_secs(15), "it does not heed the host");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_write_that_had_not_begun_to_commit_in_time_does_not_commit() {
    let (_, host) = shared();
    let app_dir = tempfile::tempdir().unwrap();
    let here = Some(app_dir.path().to_string_lossy().into_owned());
    let keep = |text: &str, ms: &str, time| {
        host.dispatcher.call(Call {
            app_dir: here.clone(),
            ..with_deadline("keep", &[("text", text), ("ms", ms)], time)
        })
    };
    keep("kept", "0", Duration::from_secs(20)).unwrap();
    let error = keep("late", "120", Duration::from_millis(40)).unwrap_err();
    assert!(matches!(error, HostError::Timeout { .. }), "{error}");
    let text = std::fs::read_to_string(app_dir.path().join("state/notes.json")).unwrap();
    assert!(text.contains("kept") && !text.contains("late"), "{text}");
    keep("after", "0", Duration::from_secs(20)).unwrap();
}

#[test]
fn a_read_whose_caller_is_gone_is_cancelled_and_a_write_is_not() {
    let (_, host) = shared();
    let app_dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    for (op, params, cancelled) in [
        ("slow", [("ms", "200"), ("kind", "heeds")], true),
        ("keep", [("text", "x"), ("ms", "100")], false),
    ] {
        let call = Call {
            app_dir: Some(app_dir.path().to_string_lossy().into_owned()),
            ..with_deadline(op, &params, Duration::from_secs(20))
        };
        let flag = call.cancel.clone();
        runtime.block_on(async {
            let gone =
                tokio::time::timeout(Duration::from_millis(30), host.dispatcher.call_async(call))
                    .await;
            assert!(gone.is_err(), "{op}");
        });
        assert_eq!(flag.is_cancelled(), cancelled, "{op}");
    }
    // Ends when the write has.
    drop(runtime);
    assert!(
        std::fs::read_to_string(app_dir.path().join("state/notes.json")).unwrap().contains("\"x\"")
    );
}

#[test]
fn operations_call_operations_in_the_same_app_dir_and_not_in_circles() {
    let (_, host) = shared();
    assert_eq!(
        call(host, "p.outer", &[("op", "p.hello"), ("name", "deep")]).unwrap(),
        "\"hello deep\""
    );
    let app_dir = tempfile::tempdir().unwrap();
    let here = || Some(app_dir.path().to_string_lossy().into_owned());
    for text in ["a", "b"] {
        let keep = with_deadline("keep", &[("text", text)], Duration::from_secs(20));
        host.dispatcher.call(Call { app_dir: here(), ..keep }).unwrap();
    }
    let outer = with_deadline("outer", &[("op", "p.count")], Duration::from_secs(20));
    assert_eq!(host.dispatcher.call(Call { app_dir: here(), ..outer }).unwrap().to_json(), "2");
    let error = call(host, "p.outer", &[("op", "p.outer")]).unwrap_err();
    assert!(error.to_string().contains("circle"), "{error}");
    let error = call(host, "p.outer", &[("op", "p.gone")]).unwrap_err();
    assert_eq!(error.kind(), "raised", "{error}");
}

#[test]
fn one_call_too_many_is_told_to_come_back() {
    let (udfs, _) = shared();
    let host = udfs.host_with(|config| config.in_flight = 1);
    runtime().block_on(async {
        let mut held =
            pin!(host.dispatcher.call_async(with_deadline("slow", &[("ms", "100")], PATIENCE)));
        // Looked at once, so that it has begun and holds the only place.
        tokio::select! {
            biased;
            _ = &mut held => panic!("it takes 100 ms"),
            () = std::future::ready(()) => {}
        }
        let error = call(&host, "p.hello", &[]).unwrap_err();
        assert!(matches!(error, HostError::Overloaded { limit: 1 }), "{error}");
        assert_eq!(held.await.unwrap().to_json(), "\"done\"");
    });
    call(&host, "p.hello", &[]).unwrap();
}

#[test]
fn a_call_waits_for_its_operation_to_be_found_and_loaded() {
    let (udfs, _) = shared();
    for _ in 0..5 {
        // Nothing is ready when the call is made: the host has only just begun.
        let host = Host::start(udfs.config()).unwrap();
        assert_eq!(call(&host, "p.hello", &[]).unwrap(), "\"hello world\"");
        let host = Host::start(udfs.config()).unwrap();
        let call = with_deadline("hello", &[], Duration::from_secs(20));
        let reply = runtime().block_on(host.dispatcher.call_async(call)).unwrap();
        assert_eq!(reply.to_json(), "\"hello world\"");
    }
}
