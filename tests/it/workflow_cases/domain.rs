//! The domain the cases are about, made from a case's configuration.

use std::cell::Cell;

use sdk::workflow::{
    Answer, BootstrapMode, EndStatus, Engine, Event, Moment, Stage, StateClass, Step, Subject,
    Task, Turn, TurnContext, Workflow,
};
use serde_json::{Map, Value, json};

use super::place::{CLASS, Files};
use super::{Report, flag_at, list_at, text_at, tokens};

const CHECK_BRIEF: &str = "Check it.";
const NOW: Moment = Moment(1_767_225_600_000);

pub(super) struct Domain {
    name: String,
    worker: String,
    checker: Option<String>,
    stage: Option<String>,
    notify: Option<String>,
    round_budget: u32,
    check_attempt_budget: u32,
    mode: BootstrapMode,
    bootstrapped: Cell<bool>,
}

impl Domain {
    pub(super) fn new(config: &Value, report: &mut Report) -> Self {
        report.known_keys(
            "config",
            config,
            &[
                "workflow_id",
                "worker_agent",
                "checker_agent",
                "stage_action",
                "notify_action",
                "round_budget",
                "check_attempt_budget",
                "bootstrap_mode",
            ],
        );
        let name = |key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
        let count = |key: &str, default| {
            config
                .get(key)
                .and_then(Value::as_u64)
                .map_or(default, |count| count.try_into().unwrap())
        };
        let model = text_at(config, "bootstrap_mode").eq_ignore_ascii_case("model");
        Self {
            name: name("workflow_id").unwrap_or_else(|| "case".to_owned()),
            worker: name("worker_agent").unwrap_or_default(),
            checker: name("checker_agent"),
            stage: name("stage_action"),
            notify: name("notify_action"),
            round_budget: count("round_budget", 8),
            check_attempt_budget: count("check_attempt_budget", 3),
            mode: if model { BootstrapMode::Model } else { BootstrapMode::Worker },
            bootstrapped: Cell::new(true),
        }
    }

    fn brief(&self) -> &'static str {
        if self.stage.is_some() { "Build it to the requirements." } else { "Write the draft." }
    }

    /// Records the calls of a list, each `{tap, ..}`; gives back whether any of them woke the task.
    pub(super) fn record(
        &self,
        calls: &[Value],
        files: &mut Files,
        path: &str,
        report: &mut Report,
    ) -> bool {
        let mut woke = false;
        for (at, call) in calls.iter().enumerate() {
            let arguments = call.as_object().cloned().unwrap_or_default();
            let Some(event) = Event::from_call(text_at(call, "tap"), &arguments) else {
                report.add(&format!("{path}.{at}"), format_args!("no such recorder: {call}"));
                continue;
            };
            let recorded = Engine::new(self).record("subject", &event, NOW, files).unwrap();
            woke |= recorded.unparks;
        }
        woke
    }

    /// One engine turn for the input of a case.
    pub(super) fn turn(&self, input: &Value, files: &mut Files) -> Turn {
        self.bootstrapped.set(input.get("bootstrapped").and_then(Value::as_bool).unwrap_or(true));
        let task = Task { waiting: flag_at(input, "waiting_for_user_reply"), ..Task::default() };
        let message = input.get("user_message").and_then(Value::as_str);
        let turn = Engine::new(self).turn(&task, message, NOW, |_| Ok(files)).unwrap();
        turn.expect("every case has a subject")
    }

    pub(super) fn may_end(&self, status: EndStatus, files: &mut Files) -> bool {
        Engine::new(self).end_gate(status, files).unwrap().is_none()
    }

    /// Compares a turn with the step a case expects; only what the case lists is looked at.
    pub(super) fn compare_step(&self, want: &Value, turn: &Turn, report: &mut Report) {
        const PATH: &str = "step";
        report.known_keys(
            PATH,
            want,
            &[
                "stage",
                "kind",
                "actions",
                "round",
                "purpose",
                "allowed_actions",
                "status",
                "query_contains",
                "query_lacks",
                "prompt_contains",
                "prompt_lacks",
            ],
        );
        let mut got = json!({"stage": turn.stage.word(), "round": turn.round, "kind": "none"});
        let mut text = "";
        if let Some(step) = &turn.step {
            got["kind"] = step.kind().into();
        }
        match &turn.step {
            Some(Step::Actions { actions, .. }) => {
                let spawn = actions.iter().find_map(|call| call.parameters.get("query"));
                text = spawn.and_then(Value::as_str).unwrap_or_default();
                got["actions"] = actions
                    .iter()
                    .map(|call| self.show(&call.action_name, &call.parameters))
                    .collect();
            }
            Some(Step::Llm { purpose, prompt, allowed_actions }) => {
                text = prompt;
                got["purpose"] = purpose.as_str().into();
                got["allowed_actions"] = json!(allowed_actions);
            }
            Some(Step::End { status, .. }) => got["status"] = status.word().into(),
            Some(Step::Wait { .. }) | None => {}
        }
        let Some(expected) = want.as_object() else {
            // Null: the model has the turn.
            if !want.is_null() || turn.step.is_some() {
                report.compare(PATH, want, &got);
            }
            return;
        };
        for (key, want) in expected {
            if let Some(place) =
                key.strip_suffix("_contains").or_else(|| key.strip_suffix("_lacks"))
            {
                let contains = key.ends_with("_contains");
                for part in list_at(&Value::Object(expected.clone()), key) {
                    let part = part.as_str().unwrap_or_default();
                    if tokens::holds(text, part) != contains {
                        report.add(
                            &format!("{PATH}.{key}"),
                            format_args!("`{part}` in the {place}: {text}"),
                        );
                    }
                }
            } else {
                report.compare(&format!("{PATH}.{key}"), want, &got[key]);
            }
        }
    }

    /// An action as cases show it: of a spawn its agent and which brief it carries.
    fn show(&self, name: &str, parameters: &Map<String, Value>) -> Value {
        let mut shown = json!({"action_name": name});
        for (key, value) in parameters {
            let query = value.as_str().filter(|_| key == "query");
            shown[key] = match query {
                Some(text) if text.starts_with(self.brief()) => "work".into(),
                Some(text) if text.starts_with(CHECK_BRIEF) => "check".into(),
                _ => value.clone(),
            };
        }
        shown
    }
}

impl Workflow for Domain {
    fn name(&self) -> &str {
        &self.name
    }
    fn system_prompt(&self) -> &str {
        "You look after the work."
    }
    fn worker_agent(&self) -> &str {
        &self.worker
    }
    fn checker_agent(&self) -> Option<&str> {
        self.checker.as_deref()
    }
    fn state_class(&self) -> StateClass {
        CLASS
    }
    fn round_budget(&self) -> u32 {
        self.round_budget
    }
    fn check_attempt_budget(&self) -> u32 {
        self.check_attempt_budget
    }
    fn bootstrap_mode(&self) -> BootstrapMode {
        self.mode
    }
    fn stage_action(&self) -> Option<&str> {
        self.stage.as_deref()
    }
    fn notify_action(&self) -> Option<&str> {
        self.notify.as_deref()
    }
    fn resolve_subject(&self, _: &Task) -> Answer<Option<Subject>> {
        Ok(Some(Subject::new("subject")))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        subject.id.clone()
    }
    fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
        Ok(self.bootstrapped.get())
    }
    fn work_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok(self.brief().to_owned())
    }
    fn check_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok(CHECK_BRIEF.to_owned())
    }
    fn label(&self, stage: Stage, ctx: &TurnContext<'_>) -> String {
        format!("{} {}", stage.word(), ctx.state.round())
    }
}
