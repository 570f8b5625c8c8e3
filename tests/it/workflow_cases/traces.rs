//! A whole run, turn by turn. State, ledger and journal live in files of their own all along; the
//! waiting flag is the task's.

use sdk::workflow::bounds::{Availability, Batch, task_batch};
use sdk::workflow::decision::{Decision, Driver, parse};
use sdk::workflow::sync_point::{Prompt, SyncPoint};
use sdk::workflow::{EndStatus, Step};
use serde_json::{Value, json};

use super::domain::Domain;
use super::place::Files;
use super::{Report, flag_at, list_at, text_at};

const TURN_KEYS: &[&str] = &[
    "turn",
    "input",
    "state_before",
    "before_step",
    "expect_step",
    "llm_reply",
    "decisions",
    "after_step",
    "state_after",
    "phase_after",
    "waiting_after",
    "journal",
    "restart",
    "task_end_gate",
    "expect_prompt",
    "events_appended",
    "note",
    "decision",
    "upstream",
];

pub(super) fn run(row: &Value, report: &mut Report) {
    let case = report.case.clone();
    let domain = row
        .get("workflow")
        .filter(|config| !config.is_null())
        .map(|config| Domain::new(config, report));
    let turns = list_at(row, "turns");
    let mut files = Files::new(turns.first().and_then(|turn| turn.get("state_before")));
    let mut stream = Stream::default();
    for (at, turn) in turns.iter().enumerate() {
        report.case = format!("{case}, turn {}", turn.get("turn").unwrap_or(&Value::from(at + 1)));
        report.known_keys("turn", turn, TURN_KEYS);
        match &domain {
            Some(domain) => {
                // The first state is given, each later one is what the turn before left.
                if let Some(want) = turn.get("state_before").filter(|_| at > 0) {
                    report.compare("state_before", want, &files.digest());
                }
                workflow_turn(domain, turn, &mut files, report);
            }
            None => plain_turn(turn, &mut stream, report),
        }
    }
    report.case = case;
}

fn workflow_turn(domain: &Domain, turn: &Value, files: &mut Files, report: &mut Report) {
    let input = &turn["input"];
    // A routed message has cleared the flag before the engine sees it.
    let has_message = !text_at(input, "user_message").is_empty();
    let mut waiting = flag_at(input, "waiting_for_user_reply") && !has_message;
    waiting &= !domain.record(list_at(turn, "before_step"), files, "before_step", report);
    let step = if turn.get("expect_step").is_some() || turn.get("state_after").is_some() {
        let taken = domain.turn(input, files);
        if let Some(want) = turn.get("expect_step") {
            domain.compare_step(want, &taken, report);
        }
        taken.step
    } else {
        None
    };
    let batch = choose(turn, step.as_ref(), report);
    compare_decisions(turn, &batch, step.as_ref(), report);
    waiting |= batch.waits() || matches!(step, Some(Step::Wait { .. }));
    waiting &= !domain.record(list_at(turn, "after_step"), files, "after_step", report);
    if let Some(gate) = turn.get("task_end_gate") {
        let status = end_status(gate, report);
        compare_gate(gate, status.is_none_or(|status| domain.may_end(status, files)), report);
    }
    let state = files.work_state();
    for (key, got) in [
        ("state_after", files.digest()),
        ("phase_after", state.phase().word().into()),
        ("waiting_after", waiting.into()),
        ("journal", files.take_journal()),
    ] {
        if let Some(want) = turn.get(key) {
            report.compare(key, want, &got);
        }
    }
}

/// Events and sync point of a task without a workflow.
#[derive(Default)]
struct Stream {
    events: usize,
    sync_point: SyncPoint,
}

fn plain_turn(turn: &Value, stream: &mut Stream, report: &mut Report) {
    // A case can say only in words that the stream was summarised before this turn.
    if text_at(turn, "note").contains("summarised") {
        stream.sync_point.clear();
        stream.events = 1;
    }
    if let Some(want) = turn.get("expect_prompt") {
        let got = match stream.sync_point.prompt(stream.events) {
            Prompt::Full { .. } => "full",
            Prompt::Delta { .. } => "delta",
        };
        report.compare("expect_prompt", want, &got.into());
    }
    report.compare("expect_step", &turn["expect_step"], &Value::Null);
    let batch = choose(turn, None, report);
    stream.sync_point.decided(stream.events);
    compare_decisions(turn, &batch, None, report);
    let mut events = vec!["reasoning".to_owned()];
    for chosen in &batch.chosen {
        let name = &chosen.decision.action_name;
        events.extend([format!("action_start {name}"), format!("action_end {name}")]);
    }
    stream.events += events.len();
    if let Some(want) = turn.get("events_appended") {
        report.compare("events_appended", want, &json!(events));
    }
    if let Some(gate) = turn.get("task_end_gate") {
        end_status(gate, report);
        // Nobody claims a task without a workflow.
        compare_gate(gate, true, report);
    }
    for (key, got) in [
        ("state_after", json!({})),
        ("journal", json!([])),
        ("waiting_after", batch.waits().into()),
    ] {
        if let Some(want) = turn.get(key) {
            report.compare(key, want, &got);
        }
    }
}

/// What the turn carries out: the model's reply within the step's bounds, or what code decided.
fn choose(turn: &Value, step: Option<&Step>, report: &mut Report) -> Batch {
    let ready = |_: &str| Availability::Ready;
    let Some(raw) = turn.get("llm_reply").and_then(Value::as_str) else {
        let decisions = step.and_then(Step::decisions).unwrap_or_default();
        return task_batch(decisions, None, ready);
    };
    match parse(raw, Driver::Task) {
        Ok(decisions) => task_batch(decisions, step, ready),
        Err(error) => {
            // A case may expect that nothing comes of a reply.
            if turn.get("decisions") != Some(&json!([])) {
                report.add("llm_reply", error);
            }
            Batch::default()
        }
    }
}

fn compare_decisions(turn: &Value, batch: &Batch, step: Option<&Step>, report: &mut Report) {
    let Some(want) = turn.get("decisions") else { return };
    // Reason and summary of an end made by code are texts of ours, which no case compares.
    let by_code = matches!(step, Some(Step::End { .. }));
    let show = |decision: &Decision| {
        let mut parameters = decision.parameters.clone();
        if by_code {
            parameters.retain(|key, _| !matches!(key.as_str(), "reason" | "summary"));
        }
        json!({"action_name": decision.action_name, "parameters": parameters})
    };
    let got = batch.chosen.iter().map(|chosen| show(&chosen.decision)).collect();
    report.compare("decisions", want, &got);
}

fn end_status(gate: &Value, report: &mut Report) -> Option<EndStatus> {
    report.known_keys("task_end_gate", gate, &["status", "expect", "why"]);
    let status = EndStatus::from_word(text_at(gate, "status"));
    if status.is_none() {
        report.add("task_end_gate.status", "no such status");
    }
    status
}

fn compare_gate(gate: &Value, allowed: bool, report: &mut Report) {
    // Any word but `allow` is a refusal.
    if (text_at(gate, "expect") == "allow") != allowed {
        report.add(
            "task_end_gate",
            format_args!("expected {}, got allowed = {allowed}", gate["expect"]),
        );
    }
}
