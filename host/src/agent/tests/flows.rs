//! The handed traces through the loop, turn by turn. Between any two turns the host may be a new one.

use std::path::Path;
use std::sync::atomic::Ordering;

use sdk::workflow::state::FALLBACK_FAILURE;
use sdk::workflow::texts::TRIED_HEADING;
use serde_json::{Value, json};

use super::super::provider::Message;
use super::super::stream::Event;
use super::super::{AgentLoop, Status, Turned};
use super::harness::{Reply, World, operation};

fn trace(id: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/workflow/traces.json");
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    rows.into_iter().find(|row| row["id"] == id).unwrap()
}

/// What the model and the actions are to say, so that this is recorded.
fn prepare(world: &World, turn: &Value) {
    if let Some(reply) = turn["llm_reply"].as_str() {
        let reply = ["search_gmail", "get_message"]
            .iter()
            .fold(reply.to_owned(), |reply, name| reply.replace(name, &operation(name)));
        world.script([Reply::Text(reply)]);
    }
    for tap in turn["after_step"].as_array().into_iter().flatten() {
        let text = |key: &str| tap[key].as_str().unwrap();
        match text("tap") {
            "record_spawn" => world.script([World::ends(text("status"), text("result"))]),
            "record_check_outcome" => world.script([World::ends(text("status"), text("report"))]),
            "record_work_outcome" => {
                // Of a worker without a stage action the loop makes it itself.
                if world.domain.as_ref().is_some_and(|domain| domain.stage.is_some()) {
                    world.answers.lock().unwrap().push(Ok(tap["result"].clone()));
                }
            }
            other => panic!("a trace records {other}"),
        }
    }
}

fn tokens(value: &Value) -> Value {
    let text = value.to_string();
    let fallback = json!(FALLBACK_FAILURE).to_string();
    serde_json::from_str(&text.replace(fallback.trim_matches('"'), "@fallback_failure")).unwrap()
}

fn last_segment(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

/// Names and parameters of what was carried out.
fn carried_out(events: &[Event]) -> Vec<(String, Value)> {
    let starts = events.iter().filter(|event| event.kind == "action_start");
    starts
        .map(|event| {
            let name = last_segment(&event.action).to_owned();
            (name, serde_json::from_str(&event.text).unwrap())
        })
        .collect()
}

fn compare_step(at: &str, want: &Value, done: &[(String, Value)], prompt: Option<&str>) {
    if want["kind"] == "actions" {
        for (want, (name, parameters)) in want["actions"].as_array().unwrap().iter().zip(done) {
            assert_eq!(want["action_name"], name.as_str(), "{at}");
            if let Some(agent) = want.get("agent_type") {
                assert_eq!(&parameters["agent_type"], agent, "{at}");
            }
        }
        let query = done[0].1["query"].as_str().unwrap_or_default();
        for (key, contains) in [("query_contains", true), ("query_lacks", false)] {
            for part in want[key].as_array().into_iter().flatten() {
                let part = part.as_str().unwrap().replace("@ledger", TRIED_HEADING);
                assert_eq!(query.contains(&part), contains, "{at}: `{part}` in {query}");
            }
        }
    }
    if want["kind"] == "llm" {
        let prompt = prompt.unwrap();
        assert!(prompt.trim_end().ends_with("</step_directive>"), "{at}: {prompt}");
    }
}

fn run(id: &str, restart: bool) {
    let row = trace(id);
    let world = World::new(&row["workflow"]);
    let task = world.start();
    let first = &row["turns"][0]["state_before"];
    if first.as_object().is_some_and(|state| !state.is_empty()) {
        let dir = world.folder.path().join(format!("work/{task}/logs"));
        std::fs::create_dir_all(&dir).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a case begins in the middle")]
        std::fs::write(dir.join("work_state.json"), first.to_string()).unwrap();
    }
    let mut agent = world.agent();
    let mut seen = (0, 0);
    let mut ended = None;
    for turn in row["turns"].as_array().unwrap() {
        let at = format!("{id}, turn {}", turn["turn"]);
        if restart {
            drop(agent);
            agent = world.agent();
        }
        let boot = turn["input"]["bootstrapped"].as_bool().unwrap_or(true);
        world.bootstrapped.store(boot, Ordering::Relaxed);
        if let Some(message) = turn["input"]["user_message"].as_str() {
            agent.post(&task, message).unwrap();
        }
        prepare(&world, turn);
        let asked = world.asked();
        let turned = agent.turn(&task).unwrap();
        assert_eq!(world.left(), 0, "{at}: the model was not asked");
        let events = events(&agent, &task);
        let done = carried_out(&events[seen.0..]);
        let prompt =
            world.heard.lock().unwrap().get(asked).map(|chat| chat.last().unwrap().text.clone());
        compare_step(&at, &turn["expect_step"], &done, prompt.as_deref());
        if let Some(want) = turn.get("decisions") {
            for (want, (name, parameters)) in want.as_array().unwrap().iter().zip(&done) {
                assert_eq!(want["action_name"], name.as_str(), "{at}");
                for (key, value) in want["parameters"].as_object().unwrap() {
                    assert_eq!(&parameters[key], value, "{at}");
                }
            }
            assert_eq!(want.as_array().unwrap().len(), done.len(), "{at}");
        }
        let state = world.state(&task);
        assert_eq!(tokens(&state["state"]), turn["state_after"], "{at}");
        assert_eq!(state["phase"], turn["phase_after"], "{at}");
        assert_eq!(matches!(turned, Turned::Parked(_)), turn["waiting_after"] == true, "{at}");
        let journal = world.journal(&task);
        assert_eq!(Value::from(journal[seen.1..].to_vec()), turn["journal"], "{at}");
        seen = (events.len(), journal.len());
        ended = Some(turned);
    }
    if row["turns"].as_array().unwrap().last().unwrap().get("task_end_gate").is_some() {
        assert_eq!(ended, Some(Turned::Ended(Status::Complete)));
        assert_eq!(world.statuses.lock().unwrap()[&task], "done");
    }
}

fn events(agent: &AgentLoop, task: &str) -> Vec<Event> {
    agent.tasks().events(task).unwrap()
}

#[test]
fn flows_with_a_workflow() {
    for id in ["A", "A-tail", "C"] {
        run(id, false);
    }
}

#[test]
fn flows_go_on_in_a_new_host_after_every_turn() {
    for id in ["A", "A-tail", "C"] {
        run(id, true);
    }
}

#[test]
fn a_plain_task_talks_in_deltas() {
    for restart in [false, true] {
        let row = trace("B");
        let world = World::new(&Value::Null);
        let task = world.start();
        let mut agent = world.agent();
        let mut before = 0;
        for turn in row["turns"].as_array().unwrap() {
            let at = format!("turn {}", turn["turn"]);
            if restart {
                agent = world.agent();
            }
            if turn["note"].as_str().is_some_and(|note| note.contains("was summarised")) {
                let mut open = agent.tasks().open(&task).unwrap();
                open.stream.summarise();
                open.session.end();
                open.save().unwrap();
            }
            prepare(&world, turn);
            let turned = agent.turn(&task).unwrap();
            let chat: Vec<Message> = world.heard.lock().unwrap().last().unwrap().clone();
            let form = if chat.len() == 1 { "full" } else { "delta" };
            assert_eq!(turn["expect_prompt"], form, "{at}");
            assert_eq!(chat.last().unwrap().text.contains("# Request"), form == "full", "{at}");
            let events = events(&agent, &task);
            let shown: Vec<String> = events[before..]
                .iter()
                .map(|event| match event.action.as_str() {
                    "" => event.kind.clone(),
                    action => format!("{} {}", event.kind, last_segment(action)),
                })
                .collect();
            assert_eq!(json!(shown), turn["events_appended"], "{at}");
            before = events.len();
            let last = turn["turn"] == 4;
            assert_eq!(turned == Turned::Ended(Status::Complete), last, "{at}");
        }
        assert_eq!(world.comments.lock().unwrap()[0]["body"], "4 invoices, total 1,210");
    }
}
