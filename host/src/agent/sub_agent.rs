//! [`SubAgentRunner`]: runs one sub-agent from its query to its end, inside one action (workflow-engine contract §11).
//!
//! It executes what it decides, in order, and keeps nothing: a restart loses the sub-agent, and the engine chooses the
//! same step again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use sdk::workflow::bounds::{DropReason, Dropped, sub_batch};
use sdk::workflow::decision::{Decision, Driver};
use sdk::workflow::report::OUTAGE_MARKER;
use serde_json::Value;

use super::act::DROPPED;
use super::agent_type::{AgentType, Place};
use super::decide::{Ask, Session, Undecided, decide};
use super::operations::Operations;
use super::prompt;
use super::provider::Provider;
use super::stream::{Event, Stream};
use super::tools::{self, SUB_TASK_END};

/// Characters of an action's result that the model reads.
pub(super) const RESULT_CHARS: usize = 12_000;

/// How a sub-agent came to its end. The first end sticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubStatus {
    /// It says it is done, and its exit checks agree.
    Completed,
    /// It says it cannot, its turns ran out, or no decision came of it.
    Failed,
    /// Its time ran out.
    Timeout,
    /// The runner itself failed.
    Error,
}

impl SubStatus {
    /// The word in data.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

/// What came of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubOutcome {
    /// How it ended.
    pub status: SubStatus,
    /// What it reports; starts with the outage marker when the provider failed.
    pub result: String,
}

/// Runs sub-agents of one type.
#[derive(Clone, Copy)]
pub struct SubAgentRunner<'a> {
    /// Who answers.
    pub provider: &'a dyn Provider,
    /// What actions call.
    pub operations: &'a dyn Operations,
    /// The type.
    pub kind: &'a AgentType,
    /// What its placeholders stand for.
    pub place: &'a Place,
    /// Whether it is to stop at once; asked between two turns.
    pub is_halted: &'a dyn Fn() -> bool,
}

impl SubAgentRunner<'_> {
    /// Runs one to its end. Never fails: whatever goes wrong is an outcome. `None`: it was halted before.
    #[must_use]
    pub fn run(&self, query: &str) -> Option<SubOutcome> {
        catch_unwind(AssertUnwindSafe(|| self.turns(query))).unwrap_or_else(|_| {
            Some(SubOutcome {
                status: SubStatus::Error,
                result: "The agent's runner crashed.".to_owned(),
            })
        })
    }

    fn turns(&self, query: &str) -> Option<SubOutcome> {
        let began = Instant::now();
        let wall = Duration::from_secs(self.kind.max_wall_seconds);
        let mut run = Run { stream: Stream::in_memory(), session: Session::default() };
        for _ in 0..self.kind.max_iterations {
            if (self.is_halted)() {
                return None;
            }
            if began.elapsed() >= wall {
                let result = format!("Out of time after {} s.", wall.as_secs());
                return Some(SubOutcome { status: SubStatus::Timeout, result });
            }
            match self.decide(&mut run, query, None) {
                Err(outcome) => return Some(outcome),
                Ok(decisions) => {
                    if let Some(outcome) = self.carry_out(&mut run, decisions, false) {
                        return Some(outcome);
                    }
                }
            }
        }
        let wrapped = self.decide(&mut run, query, Some(prompt::WRAP_UP));
        let outcome = wrapped
            .and_then(|decisions| {
                self.carry_out(&mut run, decisions, true).ok_or_else(|| SubOutcome {
                    status: SubStatus::Failed,
                    result: format!(
                        "Out of turns after {}, without a report.",
                        self.kind.max_iterations
                    ),
                })
            })
            .unwrap_or_else(|outcome| outcome);
        Some(outcome)
    }

    fn decide(
        &self,
        run: &mut Run,
        query: &str,
        directive: Option<&str>,
    ) -> Result<Vec<Decision>, SubOutcome> {
        if run.stream.is_long() {
            run.stream.summarise();
            run.session.end();
        }
        let (stream, actions) = (&run.stream, self.kind.text(self.operations));
        let ask = Ask {
            system: &self.kind.prompt,
            driver: Driver::Sub,
            tail: stream.tail(),
            full: &|| prompt::sub_agent(query, &actions, &stream.text(0)),
            delta: &|from| prompt::delta(&stream.text(from), None),
            directive,
        };
        decide(self.provider, &mut run.session, &ask).map_err(|error| {
            let by_provider = match &error {
                Undecided::Fatal(_) => true,
                Undecided::Exhausted { by_provider, .. } => *by_provider,
            };
            // An outage is no verdict on the work: the recorders look for the marker.
            let result =
                if by_provider { format!("{OUTAGE_MARKER} {error}") } else { error.to_string() };
            SubOutcome { status: SubStatus::Failed, result }
        })
    }

    /// Carries out decisions in order; `Some` is the end.
    fn carry_out(
        &self,
        run: &mut Run,
        decisions: Vec<Decision>,
        only_end: bool,
    ) -> Option<SubOutcome> {
        let allowed = if only_end { Vec::new() } else { self.kind.allowed() };
        let reasoning = decisions.first().map(|first| first.reasoning.clone()).unwrap_or_default();
        run.note("reasoning", "", &reasoning);
        let batch = sub_batch(decisions, &allowed);
        self.tell_unknown(run, &batch.dropped, &allowed);
        let more = batch.dropped.len().saturating_sub(DROPPED);
        for dropped in batch.dropped.into_iter().take(DROPPED) {
            let why = match dropped.reason {
                DropReason::OverCap => "more actions than a turn takes",
                DropReason::NotAllowed | DropReason::EndWhileWaiting => "not among your actions",
            };
            run.note("dropped", &dropped.action_name, why);
        }
        if more > 0 {
            run.note("dropped", "", &format!("and {more} more"));
        }
        for chosen in batch.chosen {
            let Decision { action_name, parameters, .. } = chosen.decision;
            run.note("action_start", &action_name, &Value::Object(parameters.clone()).to_string());
            if action_name == SUB_TASK_END {
                let text = |key: &str| match parameters.get(key) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(other) => other.to_string(),
                };
                match self.end(&text("status"), text("result")) {
                    Ok(outcome) => return Some(outcome),
                    Err(refusal) => run.note("action_end", &action_name, &refusal),
                }
                continue;
            }
            let done = self.kind.call(self.operations, self.place, &action_name, &parameters);
            match done {
                Ok(answer) => run.note("action_end", &action_name, &shown(&answer)),
                Err(error) => run.note("action_end", &action_name, &format!("error: {error}")),
            }
        }
        None
    }

    /// Tells whoever wrote the reply which actions there are instead.
    fn tell_unknown(&self, run: &Run, dropped: &[Dropped], allowed: &[String]) {
        let Some(reply) = run.session.messages.last() else { return };
        let names = || allowed.iter().map(String::as_str).chain([SUB_TASK_END]);
        for name in dropped
            .iter()
            .filter(|dropped| matches!(dropped.reason, DropReason::NotAllowed))
            .map(|dropped| &dropped.action_name)
        {
            let known = tools::known(name, names());
            let why = format!("is of no use: `{name}` is no action here; there are {known}");
            self.provider.unusable(&reply.text, &why);
        }
    }

    fn end(&self, status: &str, result: String) -> Result<SubOutcome, String> {
        match status {
            "failed" => Ok(SubOutcome { status: SubStatus::Failed, result }),
            "completed" => {
                // A check that crashes is no reason to keep an agent going.
                let problems = catch_unwind(AssertUnwindSafe(|| {
                    self.kind.problems(self.operations, self.place)
                }))
                .unwrap_or_default();
                if problems.is_empty() {
                    return Ok(SubOutcome { status: SubStatus::Completed, result });
                }
                Err(format!("refused, put this right first:\n- {}", problems.join("\n- ")))
            }
            other => Err(format!("refused: `status` is `{other}`; completed or failed")),
        }
    }
}

impl std::fmt::Debug for SubAgentRunner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubAgentRunner").field("place", &self.place).finish_non_exhaustive()
    }
}

struct Run {
    stream: Stream,
    session: Session,
}

impl Run {
    fn note(&mut self, kind: &str, action: &str, text: &str) {
        self.stream
            .append(Event::new(0, kind, action, text))
            .expect("a stream in memory takes every event");
    }
}

/// An answer as the model reads it.
pub(super) fn shown(answer: &Value) -> String {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    match text.char_indices().nth(RESULT_CHARS) {
        Some((end, _)) => format!("{}… (cut)", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::super::operations::{CallError, Tool, WorkflowPlace};
    use super::super::provider::Scripted;
    use super::*;
    use crate::plugins::Address;

    /// Answers a check with what is left of the problems, everything else with its parameters.
    #[derive(Default)]
    struct Notes {
        problems: Mutex<Vec<Value>>,
        calls: Mutex<Vec<Vec<(String, String)>>>,
    }

    impl Operations for Notes {
        fn call(
            &self,
            address: &Address,
            params: Vec<(String, String)>,
        ) -> Result<Value, CallError> {
            if &*address.op == "check" {
                return self
                    .problems
                    .lock()
                    .unwrap()
                    .pop()
                    .ok_or_else(|| panic!("a crashing check"));
            }
            self.calls.lock().unwrap().push(params);
            Ok(json!("saved"))
        }
        fn tool(&self, address: &Address) -> Option<Tool> {
            Some(Tool {
                address: address.clone(),
                doc: "Saves.".into(),
                params: vec![],
                is_read: false,
            })
        }
        fn tools(&self) -> Vec<Tool> {
            vec![]
        }
        fn workflow(&self, _: &str) -> Option<WorkflowPlace> {
            None
        }
    }

    fn kind(extra: &str) -> AgentType {
        toml::from_str(&format!(
            "prompt = \"p\"\nmax_iterations = 2\n{extra}\n[[actions]]\nname = \"save\"\noperation = \"a.b.save\"\n\
             params = [\"text\"]\n[actions.pinned]\ndir = \"{{state_dir}}\"\n"
        ))
        .unwrap()
    }

    fn run(script: Value, kind: &AgentType, notes: &Notes) -> SubOutcome {
        let provider = Scripted::parse(&script.to_string()).unwrap();
        let place = Place { state_dir: "d".into(), ..Place::default() };
        let runner = SubAgentRunner {
            provider: &provider,
            operations: notes,
            kind,
            place: &place,
            is_halted: &|| false,
        };
        runner.run("do it").unwrap()
    }

    fn end(status: &str, result: &str) -> Value {
        json!({"action_name": "sub_task_end", "parameters": {"status": status, "result": result}})
    }

    #[test]
    fn actions_are_bound_to_the_type_and_pinned_wins() {
        let notes = Notes::default();
        let save =
            json!({"action_name": "save", "parameters": {"text": "t", "dir": "/etc", "x": 1}});
        let script = json!([{"actions": [save, {"action_name": "rm"}]}, {"actions": [end("completed", "r"), save]}]);
        let outcome = run(script, &kind(""), &notes);
        assert_eq!(outcome, SubOutcome { status: SubStatus::Completed, result: "r".into() });
        let calls = notes.calls.lock().unwrap();
        assert_eq!(
            *calls,
            [[("text".into(), "t".into()), ("dir".into(), "d".into())]],
            "and nothing after the end"
        );
    }

    #[test]
    fn exit_checks_refuse_an_end_and_a_crashing_one_is_passed_over() {
        let notes = Notes::default();
        notes.problems.lock().unwrap().extend([json!([]), json!(["no draft", "no title"])]);
        let mut kind = kind("");
        kind.exit_checks = vec![toml::from_str("operation = \"a.b.check\"").unwrap()];
        let script = json!([end("completed", "1"), end("completed", "2")]);
        assert_eq!(run(script, &kind, &notes).result, "2");
        assert_eq!(
            run(json!([end("completed", "3")]), &kind, &notes).result,
            "3",
            "the check crashed"
        );
        assert_eq!(run(json!([end("failed", "4")]), &kind, &notes).status, SubStatus::Failed);
    }

    #[test]
    fn turns_and_time_are_bounded() {
        let notes = Notes::default();
        let save = json!({"action_name": "save", "parameters": {}});
        let wrapped = run(
            json!([save, save, {"actions": [save, end("completed", "late")]}]),
            &kind(""),
            &notes,
        );
        assert_eq!((wrapped.status, wrapped.result.as_str()), (SubStatus::Completed, "late"));
        assert_eq!(notes.calls.lock().unwrap().len(), 2, "in the wrap-up only the end counts");
        let capped = run(json!([save, save, save]), &kind(""), &notes);
        assert_eq!(capped.status, SubStatus::Failed);
        let late = run(json!([save]), &kind("max_wall_seconds = 0"), &notes);
        assert_eq!(late.status, SubStatus::Timeout);
    }

    #[test]
    fn a_halt_is_no_outcome() {
        let provider = Scripted::parse("unasked").unwrap();
        let runner = SubAgentRunner {
            provider: &provider,
            operations: &Notes::default(),
            kind: &kind(""),
            place: &Place::default(),
            is_halted: &|| true,
        };
        assert_eq!(runner.run("do it"), None);
    }

    #[test]
    fn an_outage_is_marked_and_a_bad_reply_is_not() {
        let notes = Notes::default();
        for (script, marked) in [
            (json!([{"refused": "no key"}]), true),
            (json!([{"unavailable": "a"}, {"unavailable": "b"}, {"unavailable": "c"}]), true),
            (json!(["", "", ""]), false),
        ] {
            let outcome = run(script, &kind(""), &notes);
            assert_eq!(outcome.status, SubStatus::Failed);
            assert_eq!(outcome.result.starts_with(OUTAGE_MARKER), marked, "{}", outcome.result);
        }
    }
}
