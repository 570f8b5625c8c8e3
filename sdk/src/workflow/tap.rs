//! The generic spawn tap: takes the end of a spawned agent to the recorders of its workflow
//! (workflow-engine contract §6). Routes never come from the model (decision O8).

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::event::{Event, WorkResult};

/// How many spawns are remembered; the oldest gives way.
pub const REMEMBERED_SPAWNS: usize = 200;

/// Parameter names by which a model could make up a route.
const ROUTE_KEYS: [&str; 2] = ["workflow_name", "workflow_state_dir"];

/// Where the outcome of a spawned agent goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Id of the workflow.
    pub workflow: String,
    /// Its subject's state directory.
    pub state_dir: String,
}

/// A spawn that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// Agent type that was asked for.
    pub agent_type: String,
    /// Where its outcome goes; `None` for a spawn that no workflow step made.
    pub route: Option<Route>,
}

/// Remembers spawns between their start and their end, by run id.
#[derive(Clone, Debug, Default)]
pub struct SpawnTap {
    spawns: VecDeque<(String, Spawn)>,
}

impl SpawnTap {
    /// Remembers a spawn at its start.
    pub fn remember(&mut self, run_id: &str, spawn: Spawn) {
        self.spawns.retain(|(id, _)| id != run_id);
        if self.spawns.len() >= REMEMBERED_SPAWNS {
            self.spawns.pop_front();
        }
        self.spawns.push_back((run_id.to_owned(), spawn));
    }

    /// Takes a spawn out at its end.
    pub fn take(&mut self, run_id: &str) -> Option<Spawn> {
        let at = self.spawns.iter().position(|(id, _)| id == run_id)?;
        self.spawns.remove(at).map(|(_, spawn)| spawn)
    }
}

/// The agents of a workflow, as far as routing goes.
#[derive(Clone, Copy, Debug)]
pub struct Agents<'a> {
    /// Agent type that works.
    pub worker: &'a str,
    /// Agent type that checks.
    pub checker: Option<&'a str>,
    /// Whether a stage action reports the work outcome itself.
    pub has_stage_action: bool,
}

/// What the end of an agent is to the recorders, in order; empty for agents that are neither worker nor
/// checker.
pub fn outcome_events(agent: &str, status: &str, result: &str, agents: &Agents<'_>) -> Vec<Event> {
    if agents.checker == Some(agent) {
        return vec![Event::Check { status: status.to_owned(), report: Some(result.to_owned()) }];
    }
    if agent != agents.worker {
        return Vec::new();
    }
    let mut events = vec![Event::Spawn {
        agent: agent.to_owned(),
        status: status.to_owned(),
        result: result.to_owned(),
    }];
    if !agents.has_stage_action {
        events.push(Event::Work(WorkResult::from_worker(status, result)));
    }
    events
}

/// Removes a route that a model wrote into the parameters of a spawn.
pub fn strip_route(parameters: &mut Map<String, Value>) {
    for key in ROUTE_KEYS {
        parameters.shift_remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(agent: &str) -> Spawn {
        Spawn { agent_type: agent.into(), route: None }
    }

    #[test]
    fn spawns_are_remembered_once_and_boundedly() {
        let mut tap = SpawnTap::default();
        for run in 0..=REMEMBERED_SPAWNS {
            tap.remember(&run.to_string(), spawn("w"));
        }
        assert_eq!(tap.take("0"), None, "the oldest gave way");
        assert_eq!(tap.take("1"), Some(spawn("w")));
        assert_eq!(tap.take("1"), None);
        tap.remember("2", spawn("c"));
        assert_eq!(tap.take("2"), Some(spawn("c")));
        assert_eq!(tap.take("2"), None);
    }

    #[test]
    fn ends_go_to_their_recorders() {
        let plain = Agents { worker: "w", checker: Some("c"), has_stage_action: false };
        let staged = Agents { has_stage_action: true, ..plain };
        let spawned =
            Event::Spawn { agent: "w".into(), status: "failed".into(), result: "boom".into() };
        let failed = WorkResult { ok: false, step: "worker".into(), errors: vec!["boom".into()] };
        for (agent, agents, want) in [
            (
                "c",
                &staged,
                vec![Event::Check { status: "failed".into(), report: Some("boom".into()) }],
            ),
            ("w", &plain, vec![spawned.clone(), Event::Work(failed)]),
            ("w", &staged, vec![spawned]),
            ("other", &plain, vec![]),
        ] {
            assert_eq!(outcome_events(agent, "failed", "boom", agents), want, "{agent}");
        }
    }

    #[test]
    fn a_made_up_route_is_removed() {
        let value = serde_json::json!({"agent_type": "w", "workflow_name": "x", "workflow_state_dir": "/etc", "query": "q"});
        let Value::Object(mut parameters) = value else { unreachable!() };
        strip_route(&mut parameters);
        assert_eq!(parameters.keys().collect::<Vec<_>>(), ["agent_type", "query"]);
    }
}
