//! What of a decision is carried out: bounds, caps and conflicts, after the parser
//! (workflow-engine contract §11, decisions O8, O10 and O11).

use serde_json::Value;

use super::decision::Decision;
use super::step::{BUDGET_GATE_ASK, Step};
use super::tap::strip_route;

/// Actions of one task turn.
pub const TASK_ACTIONS: usize = 10;
/// Actions of one sub-agent turn.
pub const SUB_ACTIONS: usize = 4;

const SEND_MESSAGE: &str = "send_message";
const TASK_END: &str = "task_end";
const SUB_TASK_END: &str = "sub_task_end";
const WAIT_FLAG: &str = "wait_for_user_reply";

/// Why a chosen action is not carried out; each is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The step, or the agent's type, does not allow it.
    NotAllowed,
    /// The batch is full.
    OverCap,
    /// The task would end while it waits for an answer.
    EndWhileWaiting,
}

/// An action that is not carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The action.
    pub action_name: String,
    /// Why.
    pub reason: DropReason,
}

/// An action that is carried out, or shown to the model as an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The action.
    pub decision: Decision,
    /// Why it cannot run: it stays in the list so that the model sees it.
    pub error: Option<String>,
}

/// What a turn carries out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// In order.
    pub chosen: Vec<Chosen>,
    /// What was dropped, in order.
    pub dropped: Vec<Dropped>,
}

impl Batch {
    /// A bounded turn of which nothing is left: an error event, and the work is scheduled again; the task
    /// does not park (decision O10).
    pub fn is_skipped(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Whether the task waits for a user after this turn.
    pub fn waits(&self) -> bool {
        self.chosen.iter().any(|chosen| chosen.error.is_none() && asks(&chosen.decision))
    }
}

/// Whether an action can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Ready,
    /// There is none of this name.
    Unknown,
    /// It is not for this kind of task.
    Hidden,
}

/// The actions a bounded question may offer: the bound, as far as the task has them.
///
/// `None`: the bound matches nothing the task has, so the turn of a workflow step is skipped with an error
/// event (decision O10). A plain task then drops its bound for candidates and filter alike.
pub fn candidates<'a>(allowed: Option<&[String]>, compiled: &[&'a str]) -> Option<Vec<&'a str>> {
    let Some(allowed) = allowed else { return Some(compiled.to_vec()) };
    let kept: Vec<&str> =
        compiled.iter().copied().filter(|name| allowed.iter().any(|a| a == name)).collect();
    (!kept.is_empty()).then_some(kept)
}

/// Binds a task's decisions to `step`, the step of the turn if there is one.
pub fn task_batch(
    decisions: Vec<Decision>,
    step: Option<&Step>,
    availability: impl Fn(&str) -> Availability,
) -> Batch {
    let (allowed, gate) = match step {
        Some(Step::Llm { purpose, allowed_actions, .. }) => {
            (allowed_actions.as_deref(), purpose == BUDGET_GATE_ASK)
        }
        _ => (None, false),
    };
    let mut batch = Batch::default();
    let mut kept = Vec::new();
    for mut decision in decisions {
        if allowed.is_some_and(|allowed| !allowed.contains(&decision.action_name)) {
            batch.drop(&decision, DropReason::NotAllowed);
        } else if kept.len() == TASK_ACTIONS {
            batch.drop(&decision, DropReason::OverCap);
        } else {
            if gate && decision.action_name == SEND_MESSAGE {
                decision.parameters.insert(WAIT_FLAG.to_owned(), Value::Bool(true));
            }
            if decision.action_name == "spawn_subagent" {
                strip_route(&mut decision.parameters);
            }
            kept.push(decision);
        }
    }
    let waits = kept.iter().any(asks);
    for decision in kept {
        if waits && decision.action_name == TASK_END {
            batch.drop(&decision, DropReason::EndWhileWaiting);
            continue;
        }
        let error = match availability(&decision.action_name) {
            Availability::Ready => None,
            Availability::Unknown => Some(format!("there is no action `{}`", decision.action_name)),
            Availability::Hidden => {
                Some(format!("the action `{}` is not available here", decision.action_name))
            }
        };
        batch.chosen.push(Chosen { decision, error });
    }
    batch
}

/// Binds a sub-agent's decisions to the actions of its type; ending is always allowed.
pub fn sub_batch(decisions: Vec<Decision>, allowed: &[String]) -> Batch {
    let mut batch = Batch::default();
    for (at, decision) in decisions.into_iter().enumerate() {
        let name = &decision.action_name;
        if at >= SUB_ACTIONS {
            batch.drop(&decision, DropReason::OverCap);
        } else if name == SUB_TASK_END || allowed.contains(name) {
            batch.chosen.push(Chosen { decision, error: None });
        } else {
            batch.drop(&decision, DropReason::NotAllowed);
        }
    }
    batch
}

impl Batch {
    fn drop(&mut self, decision: &Decision, reason: DropReason) {
        self.dropped.push(Dropped { action_name: decision.action_name.clone(), reason });
    }
}

/// A message that waits for its answer; the flag may be a text.
fn asks(decision: &Decision) -> bool {
    decision.action_name == SEND_MESSAGE
        && match decision.parameters.get(WAIT_FLAG) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(flag)) => flag.trim().eq_ignore_ascii_case("true"),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decide(name: &str, parameters: Value) -> Decision {
        Decision::new(name, parameters.as_object().cloned().unwrap_or_default(), "")
    }

    fn ask(purpose: &str, allowed: Option<&[&str]>) -> Step {
        let allowed_actions =
            allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Step::Llm { purpose: purpose.into(), prompt: "p".into(), allowed_actions }
    }

    fn names(batch: &Batch) -> Vec<&str> {
        batch.chosen.iter().map(|chosen| chosen.decision.action_name.as_str()).collect()
    }

    fn ready(_: &str) -> Availability {
        Availability::Ready
    }

    #[test]
    fn a_step_bounds_the_choice() {
        let decisions =
            vec![decide("send_message", json!({"message": "m"})), decide("task_end", json!({}))];
        let step = ask("answer_user", Some(&["send_message"]));
        let batch = task_batch(decisions.clone(), Some(&step), ready);
        assert_eq!(names(&batch), ["send_message"]);
        assert_eq!(
            batch.dropped,
            [Dropped { action_name: "task_end".into(), reason: DropReason::NotAllowed }]
        );
        assert!(!batch.is_skipped() && !batch.waits());
        for step in [None, Some(ask("x", None)), Some(Step::Wait { label: String::new() })] {
            assert_eq!(
                names(&task_batch(decisions.clone(), step.as_ref(), ready)),
                ["send_message", "task_end"]
            );
        }
        assert!(task_batch(decisions, Some(&ask("x", Some(&["other"]))), ready).is_skipped());
    }

    #[test]
    fn the_gate_always_waits() {
        for flag in
            [json!({}), json!({"wait_for_user_reply": false}), json!({"wait_for_user_reply": "no"})]
        {
            let step = ask(BUDGET_GATE_ASK, Some(&["send_message"]));
            let batch = task_batch(vec![decide("send_message", flag)], Some(&step), ready);
            assert_eq!(batch.chosen[0].decision.parameters["wait_for_user_reply"], true);
            assert!(batch.waits());
        }
        // Even a domain whose gate allows an end does not get one beside the question.
        let decisions = vec![decide("task_end", json!({})), decide("send_message", json!({}))];
        let batch = task_batch(decisions, Some(&ask(BUDGET_GATE_ASK, None)), ready);
        assert_eq!(names(&batch), ["send_message"]);
    }

    #[test]
    fn waiting_and_ending_exclude_each_other() {
        for (flag, waits) in [
            (json!(true), true),
            (json!("true"), true),
            (json!("True"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!(1), false),
            (json!(null), false),
        ] {
            let message = decide("send_message", json!({"wait_for_user_reply": flag}));
            let batch = task_batch(vec![decide("task_end", json!({})), message], None, ready);
            assert_eq!(batch.waits(), waits, "{flag}");
            assert_eq!(batch.chosen.len(), if waits { 1 } else { 2 });
            assert_eq!(
                batch.dropped.iter().map(|d| d.reason).collect::<Vec<_>>(),
                if waits { vec![DropReason::EndWhileWaiting] } else { vec![] }
            );
        }
        let other = decide("write_note", json!({"wait_for_user_reply": true}));
        assert_eq!(
            task_batch(vec![other, decide("task_end", json!({}))], None, ready).chosen.len(),
            2
        );
    }

    #[test]
    fn the_bound_comes_before_the_cap() {
        let mut decisions: Vec<_> = (0..9).map(|_| decide("b", json!({}))).collect();
        decisions.extend((0..12).map(|_| decide("a", json!({}))));
        let batch = task_batch(decisions, Some(&ask("x", Some(&["a"]))), ready);
        assert_eq!(batch.chosen.len(), 10);
        assert_eq!(batch.dropped.iter().filter(|d| d.reason == DropReason::OverCap).count(), 2);
        assert_eq!(batch.dropped.iter().filter(|d| d.reason == DropReason::NotAllowed).count(), 9);
        // A question behind the cap does not keep the task from ending.
        let mut decisions = vec![decide("task_end", json!({}))];
        decisions.extend((0..9).map(|_| decide("a", json!({}))));
        decisions.push(decide("send_message", json!({"wait_for_user_reply": true})));
        assert!(names(&task_batch(decisions, None, ready)).contains(&"task_end"));
    }

    #[test]
    fn what_cannot_run_stays_visible() {
        let availability = |name: &str| match name {
            "hidden" => Availability::Hidden,
            "ready" => Availability::Ready,
            _ => Availability::Unknown,
        };
        let decisions = vec![
            decide("hidden", json!({})),
            decide("ready", json!({})),
            decide("gone", json!({})),
        ];
        let batch = task_batch(decisions, None, availability);
        assert_eq!(
            batch.chosen.iter().map(|c| c.error.is_some()).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert!(batch.dropped.is_empty());
    }

    #[test]
    fn a_model_cannot_route_a_spawn() {
        let spawn = decide(
            "spawn_subagent",
            json!({"agent_type": "w", "workflow_state_dir": "/x", "workflow_name": "y"}),
        );
        let batch = task_batch(vec![spawn], None, ready);
        assert_eq!(
            Value::Object(batch.chosen[0].decision.parameters.clone()),
            json!({"agent_type": "w"})
        );
    }

    #[test]
    fn a_bound_that_matches_nothing() {
        let allowed = ["a".to_owned(), "x".to_owned()];
        assert_eq!(candidates(None, &["a", "b"]), Some(vec!["a", "b"]));
        assert_eq!(candidates(Some(&allowed), &["b", "a"]), Some(vec!["a"]));
        assert_eq!(candidates(Some(&allowed), &["b"]), None);
        assert_eq!(candidates(Some(&[]), &["b"]), None);
    }

    #[test]
    fn a_sub_agent_keeps_to_its_type() {
        let allowed = ["read_file".to_owned()];
        let list = ["read_file", "rm", "", "read_file", "sub_task_end"];
        let batch = sub_batch(list.iter().map(|name| decide(name, json!({}))).collect(), &allowed);
        assert_eq!(names(&batch), ["read_file", "read_file"]);
        let reasons: Vec<_> =
            batch.dropped.iter().map(|d| (d.action_name.as_str(), d.reason)).collect();
        assert_eq!(
            reasons,
            [
                ("rm", DropReason::NotAllowed),
                ("", DropReason::NotAllowed),
                ("sub_task_end", DropReason::OverCap)
            ]
        );
        assert_eq!(
            names(&sub_batch(vec![decide("sub_task_end", json!({}))], &[])),
            ["sub_task_end"]
        );
    }
}
