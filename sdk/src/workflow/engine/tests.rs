use std::cell::RefCell;
use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::event::WorkResult;
use super::super::workflow::{Answer, BootstrapMode, Subject, TurnContext};
use super::*;

/// A subject's files in memory. `fails` makes every write fail.
#[derive(Clone, Debug, Default)]
struct Files {
    state: Option<Vec<u8>>,
    ledger: String,
    journal: Vec<u8>,
    corrupt: Vec<Vec<u8>>,
    fails: bool,
    commits: usize,
}

impl Files {
    fn with(state: Value) -> Self {
        Self { state: Some(state.to_string().into_bytes()), ..Self::default() }
    }

    fn digest(&self) -> Value {
        Value::Object(WorkState::load(self.state.as_deref(), &Default::default()).state.digest())
    }

    fn events(&self) -> Vec<String> {
        journal::read(&self.journal)
            .iter()
            .map(|line| line["event"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Place for Files {
    fn load(&mut self) -> Result<Stored, DomainError> {
        Ok(Stored { state: self.state.clone(), ledger: self.ledger.clone() })
    }

    fn commit(&mut self, change: &Change) -> Result<(), DomainError> {
        if self.fails {
            return Err(DomainError::new("disk full"));
        }
        self.commits += 1;
        if change.quarantine {
            self.corrupt.extend(self.state.take());
        }
        if let Some(text) = &change.state {
            self.state = Some(text.clone().into_bytes());
        }
        if let Some(text) = &change.ledger {
            self.ledger.clone_from(text);
        }
        let text = change.journal_text(self.journal.last().copied());
        self.journal.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

struct Domain {
    checker: Option<&'static str>,
    stage: Option<&'static str>,
    notify: Option<&'static str>,
    bootstrapped: bool,
    mode: BootstrapMode,
    subject: bool,
    broken: bool,
    hooks: RefCell<Vec<String>>,
}

impl Domain {
    fn new() -> Self {
        Self {
            checker: Some("c"),
            stage: Some("stage"),
            notify: Some("notify"),
            bootstrapped: true,
            mode: BootstrapMode::Worker,
            subject: true,
            broken: false,
            hooks: RefCell::default(),
        }
    }
}

impl Workflow for Domain {
    fn name(&self) -> &str {
        "domain"
    }
    fn system_prompt(&self) -> &str {
        "prompt"
    }
    fn worker_agent(&self) -> &str {
        "w"
    }
    fn checker_agent(&self) -> Option<&str> {
        self.checker
    }
    fn round_budget(&self) -> u32 {
        3
    }
    fn bootstrap_mode(&self) -> BootstrapMode {
        self.mode
    }
    fn stage_action(&self) -> Option<&str> {
        self.stage
    }
    fn notify_action(&self) -> Option<&str> {
        self.notify
    }
    fn resolve_subject(&self, _: &Task) -> Answer<Option<Subject>> {
        Ok(self.subject.then(|| Subject::new("s")))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        format!("dir/{}", subject.id)
    }
    fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
        if self.broken { Err(DomainError::new("no such app")) } else { Ok(self.bootstrapped) }
    }
    fn work_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok("make it".into())
    }
    fn check_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok("walk it".into())
    }
    fn on_turn(&self, ctx: &TurnContext<'_>) {
        self.hooks.borrow_mut().push(format!("turn {}", ctx.state.rounds));
    }
    fn on_verified(&self, _: &str) {
        self.hooks.borrow_mut().push("verified".into());
    }
    fn on_work_failed(&self, _: &str, step: &str) {
        self.hooks.borrow_mut().push(format!("failed {step}"));
    }
    fn on_check_failed(&self, _: &str) {
        self.hooks.borrow_mut().push("defects".into());
    }
}

fn turn(domain: &Domain, files: &mut Files, waiting: bool, message: Option<&str>) -> Turn {
    let task = Task { waiting, ..Task::default() };
    Engine::new(domain).turn(&task, message, Moment(1), |_| Ok(files)).unwrap().unwrap()
}

fn record(domain: &Domain, files: &mut Files, event: &Event) {
    Engine::new(domain).record("dir/s", event, Moment(2), files).unwrap();
}

fn lead(text: &str) -> Event {
    Event::UserLead { text: text.into() }
}

fn check(report: &str) -> Event {
    Event::Check { status: "completed".into(), report: Some(report.into()) }
}

fn spawned(result: &str) -> Event {
    Event::Spawn { agent: "w".into(), status: "completed".into(), result: result.into() }
}

fn ok() -> Event {
    Event::Work(WorkResult { ok: true, ..WorkResult::default() })
}

fn failed(step: &str, error: &str) -> Event {
    Event::Work(WorkResult { ok: false, step: step.into(), errors: vec![error.into()] })
}

/// The action of a code step.
fn action(turn: &Turn) -> (&str, Value) {
    let Some(Step::Actions { actions, .. }) = &turn.step else { panic!("{turn:?}") };
    assert_eq!(actions.len(), 1);
    (&actions[0].action_name, Value::Object(actions[0].parameters.clone()))
}

fn query(turn: &Turn) -> String {
    action(turn).1["query"].as_str().unwrap().to_owned()
}

#[test]
fn stages_answer_in_their_order() {
    let held = json!({"infra_blocked": true, "awaiting_user_decision": true, "staged": true});
    for (name, fields, waiting, message, bootstrapped, want) in [
        ("waiting beats all", held.clone(), true, None, false, Stage::WaitForUser),
        ("an empty message is none", held.clone(), true, Some(""), false, Stage::WaitForUser),
        (
            "a message is answered, even then",
            held.clone(),
            true,
            Some("hi"),
            false,
            Stage::AnswerUser,
        ),
        ("a blank message is a message", held.clone(), false, Some(" "), false, Stage::AnswerUser),
        ("a pause comes before the first work", held, false, None, false, Stage::InfraPause),
        (
            "bootstrap comes before the gate",
            json!({"awaiting_user_decision": true}),
            false,
            None,
            false,
            Stage::Bootstrap,
        ),
        (
            "bootstrap even when verified",
            json!({"verified": true}),
            false,
            None,
            false,
            Stage::Bootstrap,
        ),
        (
            "the gate comes before the check",
            json!({"awaiting_user_decision": true, "staged": true}),
            false,
            None,
            true,
            Stage::BudgetGate,
        ),
        ("nothing made", json!({}), false, None, true, Stage::WorkRound),
        ("built", json!({"built": true}), false, None, true, Stage::WorkRound),
        ("staged", json!({"staged": true, "built": true}), false, None, true, Stage::Check),
        ("verified", json!({"verified": true}), false, None, true, Stage::Finish),
        (
            "verified passes a stale gate",
            json!({"verified": true, "awaiting_user_decision": true}),
            false,
            None,
            true,
            Stage::Finish,
        ),
        (
            "verified is paused too",
            json!({"verified": true, "infra_blocked": true}),
            false,
            None,
            true,
            Stage::InfraPause,
        ),
        (
            "verified is answered too",
            json!({"verified": true}),
            false,
            Some("hi"),
            true,
            Stage::AnswerUser,
        ),
    ] {
        let mut domain = Domain::new();
        domain.bootstrapped = bootstrapped;
        let mut files = Files::with(fields.clone());
        let turn = turn(&domain, &mut files, waiting, message);
        assert_eq!(turn.stage, want, "{name}");
        if want != Stage::Finish {
            assert_eq!(files.digest(), fields, "{name}: a stage only reads");
        }
        assert_eq!(journal::read(&files.journal)[0]["stage"], want.word());
    }
}

#[test]
fn what_the_stages_return() {
    let mut domain = Domain::new();
    let mut files = Files::with(json!({"rounds": 1}));
    let worker = turn(&domain, &mut files, false, None);
    assert_eq!(action(&worker), ("spawn_subagent", json!({"agent_type": "w", "query": "make it"})));
    assert_eq!(worker.round, 2);
    let route = Route { workflow: "domain".into(), state_dir: "dir/s".into() };
    assert_eq!(worker.route, Some(route), "the route goes beside the step, never into parameters");

    files = Files::with(json!({"built": true}));
    assert_eq!(action(&turn(&domain, &mut files, false, None)), ("stage", json!({})));
    domain.stage = None;
    assert_eq!(action(&turn(&domain, &mut files, false, None)).0, "spawn_subagent");

    files = Files::with(json!({"staged": true, "checked_ok": ["Add"]}));
    let checker = turn(&domain, &mut files, false, None);
    assert_eq!(action(&checker).1["agent_type"], "c");
    let text = query(&checker);
    assert!(
        text.starts_with("walk it\n")
            && text.contains("only what is left:\n- Add")
            && text.contains("VERDICT")
    );

    domain.bootstrapped = false;
    files = Files::default();
    let first = turn(&domain, &mut files, false, None);
    assert_eq!((first.stage, action(&first).0), (Stage::Bootstrap, "spawn_subagent"));
    domain.mode = BootstrapMode::Model;
    assert_eq!(turn(&domain, &mut files, false, None).step, None);
    assert_eq!(journal::read(&files.journal).last().unwrap()["kind"], "none");
    domain.subject = false;
    let none = Engine::new(&domain).turn(&Task::default(), None, Moment(0), |_| Ok(&mut files));
    assert_eq!(none, Ok(None));
}

#[test]
fn finishing_takes_one_step_at_a_time() {
    let domain = Domain::new();
    let mut files =
        Files::with(json!({"verified": true, "staged": true, "backlog": ["dark mode"]}));
    let notify = turn(&domain, &mut files, false, None);
    assert_eq!(action(&notify), ("notify", json!({})));
    assert_eq!(files.digest()["notify_step_issued"], true);
    let present = turn(&domain, &mut files, false, None).step.unwrap();
    let Step::Llm { purpose, prompt, allowed_actions } = present else { panic!("{present:?}") };
    assert_eq!(
        (purpose.as_str(), allowed_actions.unwrap().join(" ").as_str()),
        ("presentation", "send_message task_end")
    );
    assert!(prompt.contains("- dark mode"));
    assert_eq!(files.digest()["presentation_asked"], true);
    for _ in 0..2 {
        let end = turn(&domain, &mut files, false, None).step.unwrap();
        assert!(matches!(end, Step::End { status: EndStatus::Complete, .. }), "{end:?}");
    }
    // Without an action to notify with, the presentation comes first.
    let domain = Domain { notify: None, ..Domain::new() };
    let mut files = Files::with(json!({"verified": true}));
    assert_eq!(turn(&domain, &mut files, false, None).step.unwrap().kind(), "llm");
}

#[test]
fn a_domain_without_a_checker_verifies_itself() {
    let domain = Domain { checker: None, notify: None, stage: None, ..Domain::new() };
    let mut files = Files::default();
    record(&domain, &mut files, &spawned("did it"));
    record(&domain, &mut files, &ok());
    let turn = turn(&domain, &mut files, false, None);
    assert_eq!(turn.stage, Stage::Finish);
    assert_eq!(
        files.digest(),
        json!({"staged": true, "verified": true, "last_result": {"step": "success"}, "presentation_asked": true})
    );
    assert_eq!(*domain.hooks.borrow(), ["turn 0", "verified"]);
    assert!(files.ledger.ends_with("Outcome: verified"));
}

#[test]
fn exhausted_checks_go_back_to_the_worker() {
    let domain = Domain::new();
    let mut files = Files::with(json!({"staged": true, "check_attempts": 3}));
    let handed_back = turn(&domain, &mut files, false, None);
    assert_eq!((handed_back.stage, handed_back.round), (Stage::Check, 1));
    assert!(query(&handed_back).contains("Verify the result yourself"));
    assert_eq!(files.digest()["pending_round"], true);
    // Three reports without a verdict do the same by the recorder.
    let mut files = Files::with(json!({"staged": true}));
    for _ in 0..3 {
        assert_eq!(action(&turn(&domain, &mut files, false, None)).1["agent_type"], "c");
        record(&domain, &mut files, &check("nothing to say"));
    }
    let next = turn(&domain, &mut files, false, None);
    assert_eq!((next.stage, next.round), (Stage::WorkRound, 2));
}

#[test]
fn the_work_query_has_its_order_and_its_caps() {
    let domain = Domain::new();
    let errors: Vec<String> = (0..9).map(|n| format!("error {n}")).collect();
    let failures: Vec<String> = (0..10).map(|n| format!("- failure {n} — FAIL")).collect();
    let mut files = Files::with(json!({
        "last_result": {"step": "build", "errors": errors}, "check_failures": failures, "user_leads": ["one", "two", "three", "four"]
    }));
    files.ledger = ledger_with("did something");
    let text = query(&turn(&domain, &mut files, false, None));
    let places: Vec<usize> = [
        "make it",
        "build",
        "error 0",
        "error 5",
        "failure 0",
        "failure 7",
        "two",
        "four",
        "ALREADY TRIED",
        "did something",
        "dir/s/reference/briefs/.fixlog/work.md",
    ]
    .iter()
    .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}")))
    .collect();
    assert!(places.is_sorted(), "{text}");
    for left_out in ["error 6", "failure 8", "- one"] {
        assert!(!text.contains(left_out), "{left_out}");
    }
    // A success is no blocker, and a first round has nothing but its brief.
    let mut files = Files::with(json!({"last_result": {"step": "success"}}));
    assert_eq!(query(&turn(&domain, &mut files, false, None)), "make it");
}

fn ledger_with(report: &str) -> String {
    let attempt = super::super::ledger::Attempt {
        agent: "w".into(),
        given: String::new(),
        reported: report.into(),
    };
    super::super::ledger::append("", &attempt, "2026-01-01T00:00:00Z")
}

#[test]
fn what_users_read_tells_nothing_about_the_machinery() {
    let domain = Domain::new();
    for (fields, message) in [
        (
            json!({"awaiting_user_decision": true, "rounds": 8, "last_result": {"step": "build", "errors": ["e1", "", "e2", "e3", "e4", "e5"]}}),
            None,
        ),
        (json!({"rounds": 8}), Some("hello")),
        (json!({"verified": true, "notify_step_issued": true}), None),
    ] {
        let mut files = Files::with(fields);
        let Some(Step::Llm { prompt, .. }) = turn(&domain, &mut files, false, message).step else {
            panic!()
        };
        let lower = prompt.to_lowercase();
        for word in ["round", "budget", "agent", "worker", "checker", "workflow", "attempt", "8"] {
            assert!(!lower.contains(word), "`{word}` is in {prompt}");
        }
        if prompt.contains("last resort") {
            assert!(
                prompt.contains("wait_for_user_reply=true")
                    && prompt.contains("- e4")
                    && !prompt.contains("e5")
            );
        }
    }
    let mut files = Files::with(
        json!({"awaiting_user_decision": true, "last_result": {"step": "s", "errors": ["x".repeat(400)]}}),
    );
    files.ledger = ledger_with("tried the header");
    let Some(Step::Llm { prompt, .. }) = turn(&domain, &mut files, false, None).step else {
        panic!()
    };
    assert!(prompt.contains("tried the header") && !prompt.contains(".fixlog"));
    assert!(prompt.contains(&"x".repeat(300)) && !prompt.contains(&"x".repeat(301)));
}

#[test]
fn the_gate_is_asked_once_and_opened_by_an_answer() {
    let domain = Domain::new();
    let mut files = Files::default();
    for round in 1..=3 {
        assert_eq!(turn(&domain, &mut files, false, None).round, round);
        record(&domain, &mut files, &spawned("tried"));
        assert_eq!(action(&turn(&domain, &mut files, false, None)).0, "stage");
        record(&domain, &mut files, &failed("build", "e"));
        record(&domain, &mut files, &failed("build", "e again"));
    }
    let asked = turn(&domain, &mut files, false, None);
    assert_eq!(asked.stage, Stage::BudgetGate);
    for _ in 0..3 {
        assert_eq!(
            turn(&domain, &mut files, true, None).stage,
            Stage::WaitForUser,
            "timers do not end it"
        );
    }
    record(&domain, &mut files, &lead("use v2"));
    assert_eq!(turn(&domain, &mut files, false, Some("use v2")).stage, Stage::AnswerUser);
    let again = turn(&domain, &mut files, false, None);
    assert_eq!((again.stage, again.round), (Stage::WorkRound, 1));
    assert!(query(&again).contains("- use v2"));
    assert_eq!(files.events().iter().filter(|event| *event == "round_counted").count(), 3);
}

#[test]
fn first_work_that_never_succeeds_ends_at_the_gate() {
    let domain = Domain { bootstrapped: false, stage: None, ..Domain::new() };
    let mut files = Files::default();
    for round in 1..=3 {
        let turn = turn(&domain, &mut files, false, None);
        assert_eq!((turn.stage, turn.round), (Stage::Bootstrap, round));
        record(&domain, &mut files, &spawned("nothing"));
        record(&domain, &mut files, &failed("worker", "no draft"));
    }
    for _ in 0..3 {
        assert_eq!(turn(&domain, &mut files, false, None).stage, Stage::BudgetGate);
    }
    record(&domain, &mut files, &lead("begin with the title"));
    let again = turn(&domain, &mut files, false, None);
    assert_eq!((again.stage, again.round), (Stage::Bootstrap, 1));
    assert!(query(&again).contains("- begin with the title"));
}

#[test]
fn an_outage_spends_nothing() {
    let domain = Domain::new();
    let mut files = Files::with(json!({"staged": true, "check_attempts": 1, "rounds": 1}));
    record(&domain, &mut files, &check("[INFRA:LLM_UNAVAILABLE]"));
    for _ in 0..3 {
        assert_eq!(turn(&domain, &mut files, false, None).stage, Stage::InfraPause);
    }
    record(&domain, &mut files, &lead("again"));
    let same = turn(&domain, &mut files, false, None);
    assert_eq!((same.stage, action(&same).1["agent_type"].clone()), (Stage::Check, json!("c")));
    assert_eq!(
        files.digest(),
        json!({"staged": true, "check_attempts": 1, "rounds": 1, "user_leads": ["again"]})
    );
}

#[test]
fn the_end_gate_reads_what_is_durable() {
    let domain = Domain::new();
    let engine = Engine::new(&domain);
    for (state, status, refused) in [
        (Some("{\"verified\":true}"), EndStatus::Complete, false),
        (Some("{\"staged\":true}"), EndStatus::Complete, true),
        (Some("{\"verified\":1}"), EndStatus::Complete, true),
        (Some("broken"), EndStatus::Complete, true),
        (None, EndStatus::Complete, true),
        (None, EndStatus::Abort, false),
    ] {
        let mut files =
            Files { state: state.map(|text| text.as_bytes().to_vec()), ..Files::default() };
        assert_eq!(engine.end_gate(status, &mut files).unwrap().is_some(), refused, "{state:?}");
    }
    assert!(!texts::END_REFUSED.to_lowercase().contains("round"));
}

#[test]
fn corrupt_state_is_moved_aside_before_anything_is_saved() {
    let domain = Domain::new();
    let mut files = Files { state: Some(b"{\"rounds\":".to_vec()), ..Files::default() };
    record(&domain, &mut files, &failed("s", "e"));
    assert_eq!(files.corrupt, [b"{\"rounds\":".to_vec()]);
    assert_eq!(files.events(), ["state_reset", "work_outcome"]);
    assert_eq!(files.digest()["pending_round"], true);
    let mut files = Files { state: Some(b"[]".to_vec()), ..Files::default() };
    turn(&domain, &mut files, false, None);
    turn(&domain, &mut files, false, None);
    assert_eq!(
        (files.corrupt.len(), files.events()),
        (1, vec!["state_reset".to_owned(), "step".into(), "step".into()])
    );
}

#[test]
fn a_repair_is_saved_and_told_once() {
    let domain = Domain::new();
    let mut files = Files::with(json!({"rounds": "many", "built": 1, "mine": {"a": 1}}));
    turn(&domain, &mut files, false, None);
    turn(&domain, &mut files, false, None);
    assert_eq!(files.events(), ["state_repaired", "step", "step"]);
    assert_eq!(journal::read(&files.journal)[0]["fields"], json!(["rounds", "built"]));
    assert_eq!(files.digest(), json!({"mine": {"a": 1}}));
    // A recorder that changes nothing writes nothing.
    let before = files.commits;
    record(&domain, &mut files, &Event::Touch { area: "nowhere".into() });
    assert_eq!(files.commits, before);
}

#[test]
fn a_save_that_fails_is_told_to_the_recorder_and_logged_by_the_turn() {
    let domain = Domain::new();
    let mut files = Files::with(json!({"pending_round": true}));
    files.fails = true;
    let before = files.state.clone();
    let error =
        Engine::new(&domain).record("dir/s", &failed("s", "e"), Moment(0), &mut files).unwrap_err();
    assert_eq!(error, EngineError::Save(DomainError::new("disk full")));
    assert!(domain.hooks.borrow().is_empty(), "hooks run after the state is saved");
    let step = turn(&domain, &mut files, false, None);
    assert_eq!((step.stage, step.fault.as_deref()), (Stage::WorkRound, Some("disk full")));
    assert!(files.journal.is_empty());
    assert_eq!(files.state, before);
}

#[test]
fn hooks_come_after_what_they_are_about() {
    let domain = Domain::new();
    let mut files = Files::with(json!({"pending_round": true}));
    turn(&domain, &mut files, false, None);
    record(&domain, &mut files, &failed("build", "e"));
    record(&domain, &mut files, &check("VERDICT: FAIL"));
    record(&domain, &mut files, &check("VERDICT: PASS"));
    assert_eq!(*domain.hooks.borrow(), ["turn 1", "failed build", "defects", "verified"]);
}

#[test]
fn errors_wait_and_then_park() {
    let domain = Domain { broken: true, ..Domain::new() };
    let mut files = Files::default();
    let error = Engine::new(&domain)
        .turn(&Task::default(), None, Moment(0), |_| Ok(&mut files))
        .unwrap_err();
    assert_eq!(error, EngineError::Domain(DomainError::new("no such app")));
    assert!(matches!(after_error(&error, 1), AfterError::Wait(Step::Wait { .. })));
    assert!(matches!(after_error(&error, 2), AfterError::Wait(_)));
    let AfterError::Park(message) = after_error(&error, 3) else { panic!() };
    assert!(message.contains("no such app"));
    assert!(matches!(after_error(&error, 4), AfterError::Park(_)));
    let unreadable = Engine::new(&domain)
        .turn(&Task::default(), None, Moment(0), |_| {
            Err::<&mut Files, _>(DomainError::new("locked"))
        })
        .unwrap_err();
    assert_eq!(unreadable, EngineError::Load(DomainError::new("locked")));
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(spawned("did")),
        Just(spawned("[INFRA:LLM_UNAVAILABLE]")),
        Just(ok()),
        Just(failed("build", "e")),
        Just(failed("worker", "[INFRA:LLM_UNAVAILABLE]")),
        Just(check("VERDICT: PASS")),
        Just(check("VERDICT: PASS\n- A — FAIL")),
        Just(check("VERDICT: FAIL\n- A — PASS\n- B — FAIL")),
        Just(check("VERDICT: FAIL\n- A — PASS\n- B — NOT REACHED")),
        Just(check("")),
        "[a-c]{1,2}".prop_map(|text| lead(&text)),
        Just(Event::Touch { area: "backend".into() }),
        Just(Event::Invalidated { area: "backend".into() }),
        any::<bool>().prop_map(|targeted| Event::Adopt { targeted, incoming: None }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    /// Whatever happens between two turns costs at most one round, and only a clean pass verifies.
    #[test]
    fn rounds_rise_by_at_most_one_per_turn(batches in prop::collection::vec(prop::collection::vec(any_event(), 0..6), 1..8), stage: bool) {
        let domain = Domain { stage: stage.then_some("stage"), ..Domain::new() };
        let mut files = Files::default();
        for batch in batches {
            for event in &batch {
                let before = WorkState::load(files.state.as_deref(), &Default::default()).state;
                record(&domain, &mut files, event);
                let after = WorkState::load(files.state.as_deref(), &Default::default()).state;
                prop_assert!(after.rounds == before.rounds || after.rounds == 0, "recorders do not count");
                if after.verified && !before.verified {
                    prop_assert_eq!(event, &check("VERDICT: PASS"));
                }
            }
            let before = files.digest()["rounds"].as_u64().unwrap_or(0);
            let turn = turn(&domain, &mut files, false, None);
            let after = files.digest()["rounds"].as_u64().unwrap_or(0);
            prop_assert!(after == before || after == before + 1);
            prop_assert_eq!(u64::from(turn.round), after + 1);
            // A second turn without news counts nothing.
            let held = files.digest();
            if held["verified"] != true {
                super::tests::turn(&domain, &mut files, false, None);
                let again = files.digest()["rounds"].as_u64().unwrap_or(0);
                prop_assert!(again == after || held["pending_round"] == true);
            }
            // What is on disk is always readable whole.
            prop_assert!(!WorkState::load(files.state.as_deref(), &Default::default()).corrupt);
        }
    }

    /// The journal is evidence only: torn or full of junk, it changes no step and no state.
    #[test]
    fn a_torn_journal_changes_nothing(events in prop::collection::vec(any_event(), 1..10), junk in prop::collection::vec(any::<u8>(), 0..40), keep in 0usize..500) {
        let domain = Domain::new();
        let mut whole = Files::default();
        let mut torn = Files::default();
        for event in &events {
            record(&domain, &mut whole, event);
            record(&domain, &mut torn, event);
            torn.journal.truncate(keep);
            torn.journal.extend_from_slice(&junk);
        }
        let mark = torn.journal.len();
        prop_assert_eq!(turn(&domain, &mut whole, false, None), turn(&domain, &mut torn, false, None));
        prop_assert_eq!(whole.state, torn.state);
        prop_assert_eq!(whole.ledger, torn.ledger);
        prop_assert!(!journal::read(&torn.journal[mark..]).is_empty(), "new lines stay readable");
    }

    /// Callers in parallel, each under the lock: the outcome is that of one order of their events.
    #[test]
    fn concurrent_recorders_equal_a_serial_order(events in prop::collection::vec(any_event(), 2..9)) {
        let start = json!({"staged": true, "rounds": 1});
        let shared = Mutex::new((Files::with(start.clone()), Vec::new()));
        std::thread::scope(|scope| {
            for event in &events {
                let shared = &shared;
                scope.spawn(move || {
                    let domain = Domain::new();
                    let mut guard = shared.lock().unwrap();
                    let (files, order) = &mut *guard;
                    record(&domain, files, event);
                    order.push(event.clone());
                });
            }
        });
        let (parallel, order) = shared.into_inner().unwrap();
        let domain = Domain::new();
        let mut serial = Files::with(start);
        for event in &order {
            record(&domain, &mut serial, event);
        }
        prop_assert_eq!(order.len(), events.len());
        prop_assert_eq!(parallel.state, serial.state);
        prop_assert_eq!(parallel.ledger, serial.ledger);
        prop_assert_eq!(parallel.journal, serial.journal);
    }
}
