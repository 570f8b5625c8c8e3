//! The host dies at every single step that it takes on disk, and the next one goes on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::provider::Chat;
use super::super::{AgentError, NewTask, Status, Turned};
use super::harness::World;

const ANSWER: &str = "look in the almanac";

/// A worker that knows how once it was told, a checker that is content, and a model that talks.
fn brain(chat: &Chat<'_>) -> String {
    let last = &chat.messages.last().unwrap().text;
    let ends = |status: &str| json!({"action_name": "sub_task_end", "parameters": {"status": status, "result": "VERDICT: PASS"}});
    let says =
        |message: &str| json!({"action_name": "send_message", "parameters": {"message": message}});
    let reply = match chat.system {
        "You are research_agent." if last.contains(ANSWER) => ends("completed"),
        "You are research_agent." => ends("failed"),
        "You are fact_check." => ends("completed"),
        _ if last.contains("wait_for_user_reply=true") => json!({"actions": [says("Stuck.")]}),
        _ if last.contains("<step_directive>") && last.contains("task_end") => json!({"actions": [
            says("Here it is."),
            {"action_name": "task_end", "parameters": {"status": "complete"}},
        ]}),
        _ => json!({"actions": [says("On it.")]}),
    };
    reply.to_string()
}

fn start(world: &Arc<World>) -> Result<String, AgentError> {
    let agent = world.agent();
    // One that was made without its maker hearing of it, or that ended.
    let ids = [agent.tasks().ids()?, agent.tasks().ended_ids()?].concat();
    if let [id, ..] = &ids[..] {
        return Ok(id.clone());
    }
    let new = NewTask {
        request: "do it".into(),
        workflow_id: "report_writing".into(),
        ..NewTask::default()
    };
    agent.start(new)
}

/// Goes on until the task waits or ends; a host that dies is followed by one that does not.
fn go_on(world: &Arc<World>) -> Turned {
    loop {
        let turned = start(world).and_then(|id| world.agent().run(&id));
        match turned {
            Ok(turned) if !world.is_dead() => return turned,
            Ok(_) | Err(_) => {
                assert!(world.is_dead(), "{turned:?}");
                world.stop_after(usize::MAX / 2);
            }
        }
    }
}

/// Lines of the journal of this kind.
fn lines(world: &Arc<World>, task: &str, event: &str) -> usize {
    let journal = world.workflow(&json!({"id": task}), "journal");
    journal.as_array().unwrap().iter().filter(|line| line["event"] == event).count()
}

/// The whole flow, dead after so many steps. False: it came to its end before.
fn dies_after(steps: usize) -> bool {
    let world = World::reports(1);
    *world.brain.lock().unwrap() = Some(brain);
    world.stop_after(steps);
    let at = format!("dead after {steps} steps");
    let parked = go_on(&world);
    assert!(matches!(&parked, Turned::Parked(parked) if parked.card.is_some()), "{at}: {parked:?}");
    let pending = world.pending();
    assert_eq!(pending.len(), 1, "{at}");
    let asked = world.cards.lock().unwrap().len();
    world.resolve(pending[0]["id"].as_str().unwrap(), "answered", json!(ANSWER));
    assert_eq!(go_on(&world), Turned::Ended(Status::Complete), "{at}");

    let task = start(&world).unwrap();
    assert_eq!(asked, 1, "{at}: asked once");
    assert_eq!(world.cards.lock().unwrap().len(), 1, "{at}: and nothing else");
    let said: Vec<Value> =
        world.comments.lock().unwrap().iter().map(|comment| comment["body"].clone()).collect();
    let times = |message: &str| said.iter().filter(|body| **body == message).count();
    assert_eq!(times("On it."), 1, "{at}: a person is answered, and once: {said:?}");
    // The question of the presentation is put once, whatever becomes of it (contract §3).
    assert!(times("Here it is.") <= 1, "{at}: {said:?}");
    // A journal line may be lost with the host, but none is written twice.
    for event in ["user_lead", "round_counted"] {
        assert!(lines(&world, &task, event) <= 1, "{at}: {event}");
    }
    let state = world.state(&task);
    assert_eq!((&state["phase"], state["state"].get("rounds")), (&json!("done"), None), "{at}");
    let heard = world.heard.lock().unwrap();
    let told =
        heard.iter().flatten().filter(|message| message.text.starts_with("# Your assignment"));
    let most = told.map(|message| message.text.matches(ANSWER).count()).max();
    assert_eq!(most, Some(1), "{at}: the answer is one lead");
    world.died()
}

#[test]
fn a_host_that_dies_at_any_step_is_followed_by_one_that_ends_the_same() {
    let mut steps = 0;
    while dies_after(steps) {
        steps += 1;
    }
    assert!(steps > 50, "the flow takes only {steps} steps");
}
