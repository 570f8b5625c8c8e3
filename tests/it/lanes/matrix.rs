//! Everything that an operation may do to its process, in the worker lane.

use serde_json::json;

use super::troubled::{Troubled, alone};

#[test]
fn whatever_an_operation_does_to_its_process_costs_that_call() {
    let _alone = alone();
    let mut troubled = Troubled::start();
    let pid = troubled.pid();
    troubled.answering_throughout(|| {
        for (kind, status, words) in [
            ("text", 500, "a plain text"),
            ("string", 500, "a formatted text, number 7"),
            ("other", 500, "panicked"),
            ("payload", 500, "panicked"),
            ("drop", 500, "a drop at the end of the call"),
            ("abort", 500, "signal 6 (SIGABRT"),
            ("double", 500, "signal 6 (SIGABRT"),
            ("stack", 500, "stack overflow"),
            ("exit", 500, "exit code 0"),
            ("null", 500, "signal 11 (SIGSEGV"),
            ("memory", 500, "out of memory: a worker may have 1024 MiB"),
            ("forks", 500, "more than 64 processes"),
            ("crowd", 500, "more than 64 processes"),
            ("loop", 504, "did not finish within 4000 ms"),
            ("lock", 504, "did not finish within 4000 ms"),
            ("print", 504, "did not finish within 4000 ms"),
            ("say", 504, "did not finish within 4000 ms"),
            ("stop", 504, "did not finish within 4000 ms"),
            ("deaf", 504, "did not finish within 4000 ms"),
            ("cut", 500, "it closed its connection to the host"),
            ("close", 200, "closed"),
            // What is left behind costs no later call anything.
            ("files", 200, ""),
            ("threads", 200, ""),
            ("cwd", 200, "moved"),
            ("hook", 200, "hooked"),
            // Its own hook aborts: the panic became the end of the worker.
            ("text", 500, "signal 6 (SIGABRT"),
        ] {
            let (got, said) = troubled.hurt(kind);
            assert_eq!(got, status, "{kind}: {said}");
            assert!(said.contains(words), "{kind}: {said}");
            if status == 500 {
                let named = said.contains("`default.hurtful.hurts`");
                assert!(named, "{kind} names no operation: {said}");
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
    assert_eq!(troubled.pid(), pid);
    assert_eq!(troubled.host.stdout_rest(), "", "stdout holds the handshake alone");
    // What one printed with its descriptors closed did not land in what another wrote.
    let notes = troubled.notes();
    assert!(notes.contains("written with 0, 1 and 2 closed"), "{notes:?}");
    troubled.host.logged("its worker is replaced: what operations left behind");
    troubled.host.logged("it prints more than is logged");
    troubled.host.logged("it says more than is logged");
    let log = troubled.host.stderr();
    // The calls that were answered throughout have a line each, more of them on a faster machine.
    let of_calls = |line: &&str| line.contains(" udf_host::call: ");
    let rest: usize = log.lines().filter(|line| !of_calls(line)).map(str::len).sum();
    assert!(rest < 2 << 20, "endless output became {rest} bytes of log");
    let said = log.lines().find(|line| line.contains(&"z".repeat(100))).unwrap_or_default();
    assert!(said.contains("op=default.hurtful.hurts") && said.contains("request="), "{said}");
    let crashed = log.lines().find(|line| line.contains("outcome=\"crashed\"")).unwrap_or_default();
    assert!(crashed.contains("default.hurtful.hurts") && crashed.contains("request"), "{crashed}");
    // Those that only ran beside it do not have to answer for it.
    let note = |op| troubled.listed("hurtful", op)["lane_note"].is_string();
    assert_eq!((note("hurts"), note("answers"), note("keeps")), (true, false, false));
}
