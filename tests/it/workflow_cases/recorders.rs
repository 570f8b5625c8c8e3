//! One recorder call, or one engine turn: state after, journal lines, ledger, step.

use sdk::workflow::ledger::{Attempt, append, outcomes, settle};
use serde_json::{Value, json};

use super::domain::Domain;
use super::place::Files;
use super::{Report, list_at, text_at};

pub(super) fn run(row: &Value, report: &mut Report) {
    let expect = &row["expect"];
    report.known_keys(
        "expect",
        expect,
        &["state_after", "journal", "step", "ledger_appended", "ledger_last_outcome"],
    );
    let domain = Domain::new(&row["config"], report);
    let mut files = Files::new(row.get("state"));
    for attempt in list_at(row, "ledger_before") {
        let text = |key: &str, default: &str| {
            attempt.get(key).and_then(Value::as_str).unwrap_or(default).to_owned()
        };
        let entry = Attempt {
            agent: text("agent", "worker"),
            given: text("given", ""),
            reported: text("reported", "did something"),
        };
        files.ledger = append(&files.ledger, &entry, "2026-01-01T00:00:00Z");
        let outcome = text_at(attempt, "outcome");
        if !outcome.is_empty() && outcome != "pending" {
            files.ledger = settle(&files.ledger, outcome);
        }
    }
    let attempts_before = outcomes(&files.ledger).len();
    let call = &row["call"];
    let mut got = json!({});
    match call.get("engine_turn") {
        Some(input) => {
            let turn = domain.turn(input, &mut files);
            if let Some(want) = expect.get("step") {
                domain.compare_step(want, &turn, report);
                got["step"] = want.clone();
            }
        }
        None => {
            domain.record(std::slice::from_ref(call), &mut files, "call", report);
        }
    }
    let outcomes = outcomes(&files.ledger);
    got["state_after"] = files.digest();
    got["ledger_appended"] = (outcomes.len() - attempts_before).into();
    got["ledger_last_outcome"] = json!(outcomes.last());
    got["journal"] = files.take_journal();
    for key in ["state_after", "journal", "ledger_appended", "ledger_last_outcome"] {
        if let Some(want) = expect.get(key) {
            report.compare(&format!("expect.{key}"), want, &got[key]);
        }
    }
}
