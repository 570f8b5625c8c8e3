use serde_json::{Value, json};

use super::super::state::{SELF_VERIFY, StateClass};
use super::*;

const RULES: Rules<'_> = Rules {
    worker_agent: "w",
    has_stage_action: true,
    round_budget: 3,
    check_attempt_budget: 3,
    tool_markers: report::BROWSER_TOOL_MARKERS,
};
const PLAIN: Rules<'_> = Rules { has_stage_action: false, ..RULES };
const NOW: Moment = Moment(1_767_225_600_000);
const OUTAGE: &str = "[INFRA:LLM_UNAVAILABLE] down";

fn state(fields: Value) -> WorkState {
    WorkState::load(Some(fields.to_string().as_bytes()), &StateClass::WORK).state
}

fn digest(state: &WorkState) -> Value {
    Value::Object(state.digest())
}

fn lines(recorded: &Recorded) -> Value {
    recorded.journal.iter().map(JournalLine::to_value).collect()
}

fn full() -> Value {
    json!({
        "rounds": 3, "awaiting_user_decision": true, "pending_round": true, "built": true, "staged": true,
        "check_failures": ["- B — FAIL"], "check_attempts": 1, "checked_ok": ["A"],
        "last_result": {"step": "build", "errors": ["e"]}, "user_leads": ["l"], "backlog": ["b"],
        "infra_blocked": true, "notify_step_issued": true, "presentation_asked": true, "update_scope": true,
        "touched_areas": ["frontend"], "unknown": 1
    })
}

/// `full()` with these fields changed; null takes one away.
fn but(changes: Value) -> Value {
    let mut fields = full();
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().shift_remove(key);
        } else {
            fields[key] = value.clone();
        }
    }
    fields
}

fn spawn(agent: &str, status: &str, result: &str) -> Event {
    Event::Spawn { agent: agent.into(), status: status.into(), result: result.into() }
}

fn work(result: Value) -> Event {
    Event::Work(WorkResult::from_value(&result))
}

fn check(status: &str, report: &str) -> Event {
    Event::Check { status: status.into(), report: Some(report.into()) }
}

#[test]
fn each_recorder_changes_its_fields_and_no_others() {
    let appended = |given: &str| {
        vec![LedgerEffect::Append(Attempt {
            agent: "w".into(),
            given: given.into(),
            reported: "did".into(),
        })]
    };
    let settled = |outcome: &str| vec![LedgerEffect::Settle(outcome.into())];
    let given = "CURRENT BLOCKER: the last attempt failed at build.\n- e\n\nFOUND BY THE LAST CHECK, to be put right:\n- B — FAIL";
    for (name, rules, event, want, journal, ledger) in [
        (
            "worker done",
            RULES,
            spawn("w", "failed", "did"),
            but(json!({"infra_blocked": null})),
            json!([{"event": "worker_outcome", "status": "failed", "infra": false, "phase": "gated"}]),
            appended(given),
        ),
        (
            "worker done, no stage action",
            PLAIN,
            spawn("w", "timeout", "did"),
            full(),
            json!([]),
            appended(given),
        ),
        (
            "worker outage",
            PLAIN,
            spawn("w", "failed", OUTAGE),
            full(),
            json!([{"event": "worker_outcome", "status": "failed", "infra": true, "phase": "paused_infra"}]),
            vec![],
        ),
        ("another agent", RULES, spawn("c", "completed", "did"), full(), json!([]), vec![]),
        ("another agent's outage", RULES, spawn("x", "failed", OUTAGE), full(), json!([]), vec![]),
        ("still running", RULES, spawn("w", "running", ""), full(), json!([]), vec![]),
        (
            "work ok",
            RULES,
            work(json!({"status": "success"})),
            but(
                json!({"checked_ok": null, "built": null, "infra_blocked": null, "last_result": {"step": "success"}}),
            ),
            json!([{"event": "work_outcome", "ok": true, "rounds": 3, "phase": "gated"}]),
            vec![],
        ),
        (
            "work failed",
            RULES,
            work(json!({"status": "error", "step": "serve", "errors": ["x"]})),
            but(
                json!({"checked_ok": null, "built": null, "staged": null, "last_result": {"step": "serve", "errors": ["x"]}}),
            ),
            json!([{"event": "work_outcome", "ok": false, "step": "serve", "rounds": 3, "phase": "paused_infra"}]),
            settled("work failed at serve"),
        ),
        (
            "work failed nowhere",
            RULES,
            work(json!({"status": "error"})),
            but(
                json!({"checked_ok": null, "built": null, "staged": null, "last_result": {"step": "", "errors": []}}),
            ),
            json!([{"event": "work_outcome", "ok": false, "step": "", "rounds": 3, "phase": "paused_infra"}]),
            vec![],
        ),
        (
            "work outage",
            RULES,
            work(json!({"status": "success", "step": "s", "errors": ["a", OUTAGE]})),
            full(),
            json!([{"event": "work_outcome", "ok": false, "step": "s", "infra": true, "rounds": 3, "phase": "paused_infra"}]),
            vec![],
        ),
        (
            "pass",
            RULES,
            check("failed", "VERDICT: PASS\n- N — PASS"),
            but(json!({
                "verified": true, "infra_blocked": null, "awaiting_user_decision": null, "check_failures": null,
                "check_attempts": null, "checked_ok": null, "update_scope": null, "touched_areas": null, "user_leads": null
            })),
            json!([{"event": "check_outcome", "kind": "pass", "defects": 0, "covered": 0, "attempts": 0, "rounds": 3, "phase": "done"}]),
            settled("verified"),
        ),
        (
            "defects",
            RULES,
            check("completed", "VERDICT: FAIL\n- A — PASS\n- N — PASS\n- C — FAIL"),
            but(json!({
                "staged": null, "infra_blocked": null, "check_attempts": null, "check_failures": ["- C — FAIL"],
                "checked_ok": ["A", "N"]
            })),
            json!([{"event": "check_outcome", "kind": "defects", "defects": 1, "covered": 2, "attempts": 0, "rounds": 3, "phase": "gated"}]),
            settled("check failed"),
        ),
        (
            "incomplete",
            RULES,
            check("completed", "VERDICT: FAIL\n- N — PASS\n- C — NOT REACHED"),
            but(json!({"infra_blocked": null, "check_attempts": 2, "checked_ok": ["A", "N"]})),
            json!([{"event": "check_outcome", "kind": "incomplete", "defects": 0, "covered": 2, "attempts": 2, "rounds": 3, "phase": "gated"}]),
            vec![],
        ),
        (
            "blocked",
            RULES,
            check("error", ""),
            but(json!({"infra_blocked": null, "check_attempts": 2})),
            json!([{"event": "check_outcome", "kind": "blocked", "defects": 0, "covered": 1, "attempts": 2, "rounds": 3, "phase": "gated"}]),
            vec![],
        ),
        (
            "exhausted",
            Rules { check_attempt_budget: 2, ..RULES },
            check("timeout", "VERDICT: BLOCKED"),
            but(
                json!({"infra_blocked": null, "check_attempts": null, "staged": null, "check_failures": [SELF_VERIFY[1]]}),
            ),
            json!([{"event": "check_outcome", "kind": "blocked", "defects": 0, "covered": 1, "attempts": 0, "rounds": 3, "phase": "gated"}]),
            vec![],
        ),
        (
            "checker outage",
            RULES,
            check("failed", &format!("VERDICT: PASS\n{OUTAGE}")),
            full(),
            json!([{"event": "check_outcome", "kind": "infra", "defects": 0, "covered": 1, "attempts": 1, "rounds": 3, "phase": "paused_infra"}]),
            vec![],
        ),
        (
            "lead at the gate",
            RULES,
            Event::UserLead { text: " § \n".into() },
            but(
                json!({"user_leads": ["l", "§"], "awaiting_user_decision": null, "rounds": null, "pending_round": null, "infra_blocked": null}),
            ),
            json!([{"event": "user_lead", "chars": 1, "phase": "checking"}]),
            vec![],
        ),
        (
            "adopted",
            RULES,
            Event::Adopt { targeted: true, incoming: Some(" b ".into()) },
            json!({"backlog": ["l"], "update_scope": true, "unknown": 1}),
            json!([{"event": "adopted", "targeted": true, "backlog": 1, "phase": "working"}]),
            vec![],
        ),
        (
            "adopted without a request",
            RULES,
            Event::Adopt { targeted: false, incoming: None },
            json!({"backlog": ["b", "l"], "unknown": 1}),
            json!([{"event": "adopted", "targeted": false, "backlog": 2, "phase": "working"}]),
            vec![],
        ),
        (
            "adopted with its own lead",
            RULES,
            Event::Adopt { targeted: false, incoming: Some("l".into()) },
            json!({"backlog": ["b"], "unknown": 1}),
            json!([{"event": "adopted", "targeted": false, "backlog": 1, "phase": "working"}]),
            vec![],
        ),
        (
            "touch",
            RULES,
            Event::Touch { area: "tests".into() },
            but(json!({"touched_areas": ["frontend", "tests"]})),
            json!([]),
            vec![],
        ),
        ("touch again", RULES, Event::Touch { area: "frontend".into() }, full(), json!([]), vec![]),
        ("touch elsewhere", RULES, Event::Touch { area: "docs".into() }, full(), json!([]), vec![]),
        (
            "written to before it was verified",
            RULES,
            Event::Invalidated { area: "backend".into() },
            full(),
            json!([]),
            vec![],
        ),
    ] {
        let mut at = state(full());
        let recorded = apply(&mut at, &event, &rules, NOW);
        assert_eq!(digest(&at), digest(&state(want)), "{name}");
        assert_eq!(lines(&recorded), journal, "{name}");
        assert_eq!(recorded.ledger, ledger, "{name}");
    }
}

#[test]
fn hooks_and_parking() {
    for (event, hooks, unparks) in [
        (spawn("w", "completed", "did"), vec![], false),
        (work(json!({"status": "success"})), vec![], false),
        (work(json!({"status": "error", "step": "s"})), vec![Hook::WorkFailed("s".into())], false),
        (check("completed", "VERDICT: PASS"), vec![Hook::Verified], true),
        (check("completed", "VERDICT: FAIL"), vec![Hook::CheckFailed], false),
        (check("completed", ""), vec![], false),
        (check("completed", OUTAGE), vec![], false),
        (Event::UserLead { text: "x".into() }, vec![], true),
        (Event::Touch { area: "tests".into() }, vec![], false),
    ] {
        let recorded = apply(&mut state(full()), &event, &RULES, NOW);
        assert_eq!((recorded.hooks, recorded.unparks), (hooks, unparks), "{event:?}");
    }
    // A pause alone ends with any real outcome that clears it, never with another outage.
    for (event, unparks) in [
        (spawn("w", "completed", "did"), true),
        (spawn("w", "completed", OUTAGE), false),
        (work(json!({"status": "success"})), true),
        (check("completed", "VERDICT: FAIL"), true),
        (check("completed", ""), true),
        (check("completed", OUTAGE), false),
    ] {
        let mut paused = state(json!({"infra_blocked": true}));
        assert_eq!(apply(&mut paused, &event, &RULES, NOW).unparks, unparks, "{event:?}");
    }
}

#[test]
fn lists_are_capped() {
    let mut at = state(json!({}));
    let errors: Vec<String> = (0..20).map(|n| format!("{n}{}", "§".repeat(600))).collect();
    apply(&mut at, &work(json!({"status": "error", "step": "s", "errors": errors})), &RULES, NOW);
    let result = at.last_result.as_ref().unwrap();
    assert_eq!(result.errors().len(), 12);
    assert!(result.errors().iter().all(|error| error.chars().count() == 500));

    let lines: Vec<String> =
        (0..15).map(|n| format!("- F{n} — FAIL — {}", "x".repeat(400))).collect();
    let recorded = apply(
        &mut at,
        &check("completed", &format!("VERDICT: FAIL\n{}", lines.join("\n"))),
        &RULES,
        NOW,
    );
    assert_eq!(at.check_failures.len(), 10);
    assert!(
        at.check_failures[9].starts_with("- F9 ")
            && at.check_failures.iter().all(|line| line.chars().count() == 300)
    );
    assert_eq!(recorded.journal[0].to_value()["defects"], 15);

    let passed: Vec<String> = (0..70).map(|n| format!("- P{n} — PASS")).collect();
    apply(
        &mut at,
        &check("completed", &format!("VERDICT: FAIL\n{}", passed.join("\n"))),
        &RULES,
        NOW,
    );
    assert_eq!(
        (at.checked_ok.len(), at.checked_ok[0].as_str(), at.checked_ok[59].as_str()),
        (60, "P10", "P69")
    );
    let note = "n".repeat(400);
    apply(&mut at, &check("completed", &format!("VERDICT: FAIL — {note}")), &RULES, NOW);
    assert_eq!(at.check_failures, [format!("{FALLBACK_FAILURE}: {}", "n".repeat(300))]);

    let long = "é".repeat(1500);
    let recorded = apply(&mut at, &Event::UserLead { text: long.clone() }, &RULES, NOW);
    assert_eq!(at.user_leads[0].chars().count(), 1000);
    assert_eq!(recorded.journal[0].to_value()["chars"], 1500);
    for lead in 0..4 {
        apply(&mut at, &Event::UserLead { text: lead.to_string() }, &RULES, NOW);
    }
    for round in 0..3 {
        apply(
            &mut at,
            &Event::Adopt { targeted: false, incoming: Some(long.clone()) },
            &RULES,
            NOW,
        );
        for lead in 0..5 {
            apply(&mut at, &Event::UserLead { text: format!("{round}-{lead}") }, &RULES, NOW);
        }
    }
    apply(&mut at, &Event::Adopt { targeted: false, incoming: None }, &RULES, NOW);
    assert_eq!(
        (at.backlog.len(), at.backlog[0].as_str()),
        (10, "1-0"),
        "the long request itself is in no backlog"
    );
}

#[test]
fn coverage_of_any_size_is_taken_at_once() {
    let lines: String = (0..200_000).map(|n| format!("- f{n} — PASS\n")).collect();
    let mut state = state(json!({}));
    let report = check("completed", &format!("VERDICT: FAIL\n{lines}- x — NOT REACHED"));
    apply(&mut state, &report, &RULES, Moment(0));
    assert_eq!(state.checked_ok.len(), 60);
    assert_eq!(state.checked_ok[59], "f199999");
}

#[test]
fn what_was_verified_can_be_written_to() {
    let verified = json!({"verified": true, "staged": true, "notify_step_issued": true, "presentation_asked": true, "rounds": 1});
    for (area, stays) in [("docs", true), ("frontend", false), ("tests", false), ("assets", false)]
    {
        let mut at = state(verified.clone());
        let recorded = apply(&mut at, &Event::Invalidated { area: area.into() }, &RULES, NOW);
        assert_eq!((at.verified, at.staged), (stays, stays), "{area}");
        assert!(at.notify_step_issued && at.presentation_asked);
        let line = json!([{"event": "invalidated", "area": area, "phase": "working"}]);
        assert_eq!(lines(&recorded), if stays { json!([]) } else { line });
    }
}

#[test]
fn self_verification_is_worded_by_status() {
    for (status, kind) in [("failed", 0), ("error", 0), ("timeout", 1), ("completed", 2), ("", 2)] {
        let mut at = state(json!({"staged": true, "check_attempts": 2}));
        apply(&mut at, &check(status, "VERDICT: BLOCKED"), &RULES, NOW);
        assert_eq!(at.check_failures, [SELF_VERIFY[kind]], "{status}");
    }
}

#[test]
fn settling() {
    for (fields, want, counted) in [
        (json!({}), json!({}), None),
        (json!({"pending_round": true}), json!({"rounds": 1}), Some("working")),
        (
            json!({"pending_round": true, "built": true}),
            json!({"rounds": 1, "built": true}),
            Some("working"),
        ),
        (
            json!({"pending_round": true, "rounds": 2}),
            json!({"rounds": 3, "awaiting_user_decision": true}),
            Some("gated"),
        ),
        (
            json!({"pending_round": true, "rounds": 7}),
            json!({"rounds": 8, "awaiting_user_decision": true}),
            Some("gated"),
        ),
        (json!({"pending_round": true, "staged": true}), json!({"staged": true}), None),
        (json!({"pending_round": true, "verified": true}), json!({"verified": true}), None),
        (
            json!({"pending_round": true, "infra_blocked": true}),
            json!({"pending_round": true, "infra_blocked": true}),
            None,
        ),
        (json!({"rounds": 9}), json!({"rounds": 9}), None),
        (
            json!({"pending_round": true, "rounds": 4_294_967_295u32}),
            json!({"rounds": 4_294_967_295u32, "awaiting_user_decision": true}),
            Some("gated"),
        ),
    ] {
        let mut at = state(fields.clone());
        let (line, changed) = settle(&mut at, RULES.round_budget);
        assert_eq!(digest(&at), want, "{fields}");
        assert_eq!(changed, fields != want);
        let phase = line.as_ref().map(|line| line.to_value()["phase"].as_str().unwrap().to_owned());
        assert_eq!(phase.as_deref(), counted);
    }
}
