//! Recorders only write state and choose nothing (workflow-engine contract §6).
//!
//! [`apply`] is pure: what is to happen elsewhere (a journal line, a ledger entry, a domain hook) comes
//! back as data, to be done after the state is saved.

use std::collections::HashSet;

use super::clip::head;
use super::event::{Event, WorkResult};
use super::journal::JournalLine;
use super::ledger::{Attempt, LedgerEffect};
use super::moment::Moment;
use super::report::{self, CheckReport, OUTAGE_MARKER, ReportKind};
use super::state::{AREAS, FALLBACK_FAILURE, LastResult, Settled, Unchecked, WorkState};
use super::texts;

const CHECK_FAILURES: usize = 10;
const CHECK_FAILURE_CHARS: usize = 300;
const CHECKED_OK: usize = 60;
const LEADS: usize = 5;
const LEAD_CHARS: usize = 1000;
const BACKLOG: usize = 10;

/// What the recorders need to know of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Agent type whose attempts are recorded.
    pub worker_agent: &'a str,
    /// Whether a stage action turns finished work into a staged result.
    pub has_stage_action: bool,
    /// Rounds before a person is asked.
    pub round_budget: u32,
    /// Checks without a verdict before the worker verifies itself.
    pub check_attempt_budget: u32,
    /// Phrases by which the checker names its own tools.
    pub tool_markers: &'a [&'a str],
}

/// A side effect of the domain, to be run after the state is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The result was verified.
    Verified,
    /// The work failed at this step.
    WorkFailed(String),
    /// The check found defects.
    CheckFailed,
}

/// What a recorder leaves to its caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Lines for the journal, in order.
    pub journal: Vec<JournalLine>,
    /// Changes of the ledger, in order.
    pub ledger: Vec<LedgerEffect>,
    /// Hooks to run, in order.
    pub hooks: Vec<Hook>,
    /// The pause or gate that parked the task is over, or a user spoke: its waiting flag is to be cleared.
    pub unparks: bool,
}

/// Takes one event into the state.
pub fn apply(state: &mut WorkState, event: &Event, rules: &Rules<'_>, at: Moment) -> Recorded {
    let was_held = state.is_held();
    let mut recorded = record(state, event, rules, at);
    recorded.unparks |= was_held && !state.is_held();
    recorded
}

fn record(state: &mut WorkState, event: &Event, rules: &Rules<'_>, at: Moment) -> Recorded {
    match event {
        Event::Spawn { agent, status, result } => spawn(state, agent, status, result, rules),
        Event::Work(result) => work(state, result, at),
        Event::Check { status, report } => {
            let report = report::parse_with(report.as_deref(), rules.tool_markers);
            check(state, status, &report, rules)
        }
        Event::UserLead { text } => user_lead(state, text),
        Event::Adopt { targeted, incoming } => adopt(state, *targeted, incoming.as_deref()),
        Event::Touch { area } => touch(state, area),
        Event::Invalidated { area } => invalidated(state, area),
        Event::Interrupted { stage } => {
            Recorded { journal: vec![JournalLine::interrupted(stage)], ..Recorded::default() }
        }
    }
}

/// Settles the pending round at the start of a turn; gives the line to journal, and whether the state
/// changed.
pub fn settle(state: &mut WorkState, round_budget: u32) -> (Option<JournalLine>, bool) {
    match state.settle(round_budget) {
        Settled::Nothing => (None, false),
        Settled::Forgiven => (None, true),
        Settled::Counted => {
            let line = JournalLine::new("round_counted").with("rounds", state.rounds);
            (Some(in_phase(line, state)), true)
        }
    }
}

fn spawn(
    state: &mut WorkState,
    agent: &str,
    status: &str,
    result: &str,
    rules: &Rules<'_>,
) -> Recorded {
    let mut recorded = Recorded::default();
    if agent != rules.worker_agent || status == "running" {
        return recorded;
    }
    let line = JournalLine::new("worker_outcome").with("status", status);
    if result.contains(OUTAGE_MARKER) {
        state.infra_blocked = true;
        recorded.journal.push(in_phase(line.with("infra", true), state));
        return recorded;
    }
    recorded.ledger.push(LedgerEffect::Append(Attempt {
        agent: agent.to_owned(),
        given: texts::failure_blocks(state),
        reported: result.to_owned(),
    }));
    if rules.has_stage_action {
        state.built = true;
        state.infra_blocked = false;
        recorded.journal.push(in_phase(line.with("infra", false), state));
    }
    recorded
}

fn work(state: &mut WorkState, result: &WorkResult, at: Moment) -> Recorded {
    let mut recorded = Recorded::default();
    let line = JournalLine::new("work_outcome");
    if result.errors.iter().any(|error| error.contains(OUTAGE_MARKER)) {
        state.infra_blocked = true;
        let line = line.with("ok", false).with("step", result.step.as_str()).with("infra", true);
        recorded.journal.push(with_rounds(line, state));
        return recorded;
    }
    state.checked_ok.clear();
    state.built = false;
    state.staged = result.ok;
    let line = if result.ok {
        state.infra_blocked = false;
        state.last_result = Some(LastResult::success(at));
        line.with("ok", true)
    } else {
        state.last_result = Some(LastResult::failure(&result.step, &result.errors, at));
        state.pending_round = true;
        if !result.step.trim().is_empty() {
            recorded.ledger.push(LedgerEffect::Settle(format!("work failed at {}", result.step)));
        }
        recorded.hooks.push(Hook::WorkFailed(result.step.clone()));
        line.with("ok", false).with("step", result.step.as_str())
    };
    recorded.journal.push(with_rounds(line, state));
    recorded
}

fn check(state: &mut WorkState, status: &str, report: &CheckReport, rules: &Rules<'_>) -> Recorded {
    let mut recorded = Recorded::default();
    let mut covered: HashSet<String> = state.checked_ok.iter().cloned().collect();
    for name in &report.passed {
        if covered.insert(name.clone()) {
            state.checked_ok.push(name.clone());
        }
    }
    keep_last(&mut state.checked_ok, CHECKED_OK);
    match report.kind {
        ReportKind::Infra => state.infra_blocked = true,
        ReportKind::Pass => {
            state.verified = true;
            state.infra_blocked = false;
            state.awaiting_user_decision = false;
            state.check_failures.clear();
            state.check_attempts = 0;
            state.checked_ok.clear();
            state.update_scope = false;
            state.touched_areas.clear();
            state.user_leads.clear();
            recorded.ledger.push(LedgerEffect::Settle("verified".to_owned()));
            recorded.hooks.push(Hook::Verified);
        }
        ReportKind::Defects => {
            state.verified = false;
            state.staged = false;
            state.infra_blocked = false;
            state.check_attempts = 0;
            state.check_failures = failures(report);
            state.pending_round = true;
            recorded.ledger.push(LedgerEffect::Settle("check failed".to_owned()));
            recorded.hooks.push(Hook::CheckFailed);
        }
        ReportKind::Incomplete | ReportKind::Blocked => {
            state.verified = false;
            state.infra_blocked = false;
            state.check_attempts = state.check_attempts.saturating_add(1);
            if state.check_attempts >= rules.check_attempt_budget {
                state.exhaust_checks(Unchecked::from_status(status));
            }
        }
    }
    let line = JournalLine::new("check_outcome")
        .with("kind", report.kind.word())
        .with("defects", report.failures.len())
        .with("covered", state.checked_ok.len())
        .with("attempts", state.check_attempts);
    recorded.journal.push(with_rounds(line, state));
    recorded
}

/// The lines the report named, or one that says it named none. The note is a hint for the worker and
/// stays one entry.
fn failures(report: &CheckReport) -> Vec<String> {
    if report.failures.is_empty() {
        return vec![match &report.note {
            Some(note) => format!("{FALLBACK_FAILURE}: {note}"),
            None => FALLBACK_FAILURE.to_owned(),
        }];
    }
    let lines = report.failures.iter().take(CHECK_FAILURES);
    lines.map(|line| head(line, CHECK_FAILURE_CHARS).to_owned()).collect()
}

fn user_lead(state: &mut WorkState, text: &str) -> Recorded {
    let text = text.trim();
    if !text.is_empty() {
        state.user_leads.push(head(text, LEAD_CHARS).to_owned());
        keep_last(&mut state.user_leads, LEADS);
    }
    if state.awaiting_user_decision {
        state.awaiting_user_decision = false;
        state.rounds = 0;
        state.pending_round = false;
    }
    state.infra_blocked = false;
    let line = JournalLine::new("user_lead").with("chars", text.chars().count());
    Recorded { journal: vec![in_phase(line, state)], unparks: true, ..Recorded::default() }
}

fn adopt(state: &mut WorkState, targeted: bool, incoming: Option<&str>) -> Recorded {
    // Leads are kept cut; a request is compared in the same form.
    let incoming = head(incoming.unwrap_or_default().trim(), LEAD_CHARS);
    let mut backlog = std::mem::take(&mut state.backlog);
    for lead in std::mem::take(&mut state.user_leads) {
        if !lead.is_empty() && !backlog.contains(&lead) {
            backlog.push(lead);
        }
    }
    backlog.retain(|entry| entry != incoming);
    keep_last(&mut backlog, BACKLOG);
    state.reset();
    state.backlog = backlog;
    state.update_scope = targeted;
    let line =
        JournalLine::new("adopted").with("targeted", targeted).with("backlog", state.backlog.len());
    Recorded { journal: vec![in_phase(line, state)], unparks: true, ..Recorded::default() }
}

fn touch(state: &mut WorkState, area: &str) -> Recorded {
    let area = area.trim();
    if AREAS.contains(&area) && !state.touched_areas.iter().any(|touched| touched == area) {
        state.touched_areas.push(area.to_owned());
    }
    Recorded::default()
}

fn invalidated(state: &mut WorkState, area: &str) -> Recorded {
    if !state.verified || area.trim() == "docs" {
        return Recorded::default();
    }
    state.verified = false;
    state.staged = false;
    let line = JournalLine::new("invalidated").with("area", area);
    Recorded { journal: vec![in_phase(line, state)], ..Recorded::default() }
}

fn keep_last(list: &mut Vec<String>, most: usize) {
    let extra = list.len().saturating_sub(most);
    list.drain(..extra);
}

fn with_rounds(line: JournalLine, state: &WorkState) -> JournalLine {
    in_phase(line.with("rounds", state.rounds), state)
}

fn in_phase(line: JournalLine, state: &WorkState) -> JournalLine {
    line.with("phase", state.phase().word())
}

#[cfg(test)]
mod tests;
