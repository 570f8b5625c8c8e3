//! The lane in the host's own process.

use serde_json::json;

use super::troubled::Troubled;

#[test]
fn a_panic_of_any_kind_costs_one_call() {
    let mut troubled = Troubled::start();
    for (kind, words) in [
        ("text", "a plain text"),
        ("string", "a formatted text, number 7"),
        ("other", "panicked"),
        ("payload", "panicked"),
        ("drop", "a drop at the end of the call"),
        ("lock", "with a lock in hand"),
    ] {
        let (status, said) = troubled.say("inside", "panics", &json!({"kind": kind}));
        assert_eq!(status, 500, "{kind}: {said}");
        assert!(said.contains(words) && said.contains("`default.inside.panics`"), "{kind}: {said}");
        let (status, said) = troubled.say("inside", "panics", &json!({"kind": "pid"}));
        assert_eq!((status, said), (200, troubled.host.pid().to_string()), "after {kind}");
        // Nothing holds the lock, neither here nor for other processes.
        let (status, said) = troubled.say("hurtful", "keeps", &json!({"id": kind}));
        assert_eq!(status, 200, "after {kind}: {said}");
    }
    assert_eq!(troubled.host.ended(), None);
    assert!(!troubled.notes().contains("half a write"));
    assert_eq!(troubled.listed("inside", "panics")["lane"], "inline");
    assert_eq!(troubled.listed("hurtful", "hurts")["lane"], "worker");
}

#[test]
fn what_crashed_as_a_worker_does_not_come_into_the_host() {
    let troubled = Troubled::start();
    for _ in 0..3 {
        assert_eq!(troubled.hurt("abort").0, 500);
    }
    // Another process, in which all operations should run inside, knows it from the cache.
    let output = troubled.command(&["exec", "hurtful.hurts", "kind=pid", "--lane", "inline"]);
    assert!(output.status.success(), "{output:?}");
    let listed = troubled.command(&["list", "--json", "--lane", "inline"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let lane = |op: &str| {
        let all = listed["udfs"].as_array().unwrap();
        all.iter().find(|it| it["op"] == op).unwrap()["lane"].clone()
    };
    assert_eq!((lane("hurts"), lane("keeps")), (json!("worker"), json!("inline")));
}
