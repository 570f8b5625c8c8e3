//! What goes wrong, waits, or comes at the wrong time.

use std::sync::atomic::Ordering;

use sdk::workflow::report::OUTAGE_MARKER;
use serde_json::{Value, json};

use super::super::task_file::TaskFile;
use super::super::{AgentError, Limits, NewTask, Parked, Status, TasksError, Turned, Why};
use super::harness::{Reply, World};

fn parked(turned: Turned) -> Parked {
    match turned {
        Turned::Parked(parked) => parked,
        other => panic!("expected a parked task, got {other:?}"),
    }
}

fn fails(world: &World, times: usize) {
    world.script((0..times).map(|_| World::ends("failed", "no sources")));
}

#[test]
fn the_budget_ends_in_one_card_and_its_answer_goes_on_with_the_lead() {
    let world = World::reports(2);
    let task = world.start();
    fails(&world, 2);
    world.script([World::says(&json!({"message": "I am stuck."}))]);
    let wait = parked(world.agent().run(&task).unwrap());
    assert_eq!((wait.why, wait.card.as_deref()), (Why::User, Some("card_0")));
    assert_eq!(world.state(&task)["phase"], "gated");
    let card = world.pending().remove(0);
    assert_eq!(card["payload"]["message"], "I am stuck.");
    assert_eq!(card["payload"]["tried"], json!(["work failed at worker", "work failed at worker"]));

    // Idle for ever: neither restarts nor timers start anything, and nobody is asked again.
    for _ in 0..5 {
        world.wait(20_000);
        assert_eq!(parked(world.agent().run(&task).unwrap()).card.as_deref(), Some("card_0"));
    }
    assert_eq!((world.cards.lock().unwrap().len(), world.left()), (1, 0));
    let asked = world.asked();

    world.resolve("card_0", "answered", json!("look in the annual report"));
    world.script([World::says(&json!({"message": "Thank you."}))]);
    assert_eq!(world.turn(&task), Turned::Again);
    let state = world.state(&task);
    assert_eq!(state["state"]["user_leads"], json!(["look in the annual report"]));
    assert_eq!(state["state"].get("rounds"), None, "the budget is whole again");
    fails(&world, 1);
    assert_eq!(world.turn(&task), Turned::Again);
    let heard = world.heard.lock().unwrap();
    let query = &heard.last().unwrap()[0].text;
    assert!(
        query.contains("look in the annual report") && query.contains("ALREADY TRIED"),
        "{query}"
    );
    assert_eq!(heard.len(), asked + 2, "the answer woke it exactly once");
}

#[test]
fn a_withdrawn_card_leaves_the_task_waiting_for_a_message() {
    let world = World::reports(1);
    let task = world.start();
    fails(&world, 1);
    world.script([World::says(&json!({"message": "Stuck."}))]);
    parked(world.agent().run(&task).unwrap());
    world.resolve("card_0", "cancelled", Value::Null);
    assert_eq!(parked(world.turn(&task)).card, None);
    world.agent().post(&task, "try again").unwrap();
    world.script([World::says(&json!({"message": "I will."}))]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert_eq!(world.state(&task)["phase"], "working");
}

#[test]
fn an_outage_pauses_without_spending_and_a_message_goes_on_with_the_same_step() {
    let world = World::reports(3);
    let task = world.start();
    world.script([World::ends("completed", "draft"), Reply::Down]);
    let wait = parked(world.agent().run(&task).unwrap());
    assert_eq!(wait.why, Why::User);
    let state = world.state(&task);
    assert_eq!(state["phase"], "paused_infra");
    assert_eq!(state["state"].get("check_attempts"), None);
    assert_eq!(state["state"].get("rounds"), None);
    assert!(world.heard.lock().unwrap().last().unwrap()[0].text.contains("Check it."));
    world.wait(100_000);
    parked(world.turn(&task));

    world.agent().post(&task, "it works again").unwrap();
    world.script([
        World::says(&json!({"message": "Good."})),
        World::ends("completed", "VERDICT: PASS"),
        World::says(&json!({"message": "Here it is."})),
    ]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
    let kinds: Vec<Value> = world.journal(&task).iter().map(|line| line["event"].clone()).collect();
    assert_eq!(kinds, ["work_outcome", "check_outcome", "user_lead", "check_outcome"]);
}

#[test]
fn a_broken_provider_parks_the_turn_and_the_timer_tries_again() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([Reply::Down]);
    let wait = parked(world.turn(&task));
    assert_eq!(wait.why, Why::Provider);
    assert_eq!(wait.wake_at, world.now.load(Ordering::Relaxed) + 900_000);
    world.wait(899);
    parked(world.turn(&task));
    world.wait(1);
    let end = json!({"actions": [{"action_name": "task_end", "parameters": {"status": "abort"}}]});
    world.script([Reply::Text(end.to_string())]);
    assert_eq!(world.turn(&task), Turned::Ended(Status::Abort));
}

#[test]
fn two_messages_while_a_worker_runs_get_one_answer_each_and_no_second_worker() {
    let world = World::reports(3);
    let task = world.start();
    let (agent, id) = (world.agent(), task.clone());
    let post = Box::new(move || {
        agent.post(&id, "add a chart").unwrap();
        agent.post(&id, "and a table").unwrap();
    });
    let Reply::Text(end) = World::ends("completed", "draft") else { unreachable!() };
    world.script([
        Reply::Meanwhile(post, end),
        World::says(&json!({"message": "A chart, yes."})),
        World::says(&json!({"message": "A table, yes."})),
        World::ends("completed", "VERDICT: PASS"),
        World::says(&json!({"message": "Done."})),
    ]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
    let bodies: Vec<Value> =
        world.comments.lock().unwrap().iter().map(|comment| comment["body"].clone()).collect();
    assert_eq!(bodies, ["A chart, yes.", "A table, yes.", "Done."]);
    let leads = world.journal(&task).iter().filter(|line| line["event"] == "user_lead").count();
    assert_eq!(leads, 2);
    assert_eq!(world.left(), 0);
}

#[test]
fn three_reports_without_a_verdict_hand_the_check_to_the_worker() {
    let world = World::reports(3);
    let task = world.start();
    world.script([World::ends("completed", "draft")]);
    world.script((0..3).map(|_| World::ends("failed", "I could not look.")));
    for _ in 0..4 {
        world.turn(&task);
    }
    fails(&world, 1);
    world.turn(&task);
    let heard = world.heard.lock().unwrap();
    assert!(heard.last().unwrap()[0].text.contains("Verify the result yourself"));
}

#[test]
fn an_action_that_a_crash_cut_off_is_not_repeated() {
    let world = World::new(&Value::Null);
    let task = world.start();
    {
        let agent = world.agent();
        let mut open = agent.tasks().open(&task).unwrap();
        open.file.running = Some("_core.harness.search_gmail".into());
        open.save().unwrap();
    }
    let end =
        json!({"actions": [{"action_name": "task_end", "parameters": {"status": "complete"}}]});
    world.script([Reply::Text(end.to_string())]);
    assert_eq!(world.turn(&task), Turned::Ended(Status::Complete));
    assert!(world.calls.lock().unwrap().is_empty());
    assert!(
        world.heard.lock().unwrap()[0][0].text.contains("[interrupted _core.harness.search_gmail]")
    );
}

#[test]
fn a_message_that_was_a_lead_before_the_crash_is_one_lead() {
    let world = World::reports(3);
    let task = world.start();
    world.script([World::ends("completed", "draft")]);
    world.turn(&task);
    world.agent().post(&task, "shorter").unwrap();
    {
        // The recorder ran, the document does not know.
        let mut open = world.agent().tasks().open(&task).unwrap();
        let (name, text) = world.agent().tasks().oldest(&task, &[]).unwrap().unwrap();
        open.file.message = Some(super::super::Taken { name, text, lead: false, acted: false });
        open.save().unwrap();
        let place = super::super::Operations::workflow(&*world, "report_writing").unwrap();
        super::super::WorkflowClient::new(&*world, &place)
            .record("record_user_lead", &format!("work/{task}"), &json!({"text": "shorter"}))
            .unwrap();
    }
    world.script([World::says(&json!({"message": "Yes."}))]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert_eq!(world.state(&task)["state"]["user_leads"], json!(["shorter"]));
    world.script([World::ends("completed", "VERDICT: PASS")]);
    world.turn(&task);
    assert_eq!(world.comments.lock().unwrap().len(), 1, "and answered once");
}

#[test]
fn a_missing_workflow_parks_visibly_and_goes_on_when_it_is_back() {
    let world = World::reports(3);
    let task = world.start();
    world.installed.store(false, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(parked(world.turn(&task)).why, Why::NoWorkflow);
        world.wait(20_000);
    }
    assert_eq!(world.cards.lock().unwrap().len(), 1, "asked once");
    assert_eq!(world.pending().len(), 1);
    world.installed.store(true, Ordering::Relaxed);
    world.script([World::ends("completed", "draft")]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert!(world.pending().is_empty(), "nobody is asked for what is there");
    assert!(matches!(
        world.agent().start(NewTask {
            request: "x".into(),
            workflow_id: "none".into(),
            ..NewTask::default()
        }),
        Err(AgentError::NoWorkflow { .. })
    ));
}

#[test]
fn replies_that_never_parse_park_the_task_after_three_turns() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script((0..27).map(|_| Reply::Text("no decision".into())));
    assert_eq!(world.turn(&task), Turned::Again);
    let wait = parked(world.agent().run(&task).unwrap());
    assert_eq!((wait.why, world.left()), (Why::Errors, 0));
    assert_eq!(world.pending().len(), 1, "somebody is told");
    // The timer tries again, and asks nobody a second time.
    world.wait(900);
    world.script((0..27).map(|_| Reply::Text("no decision".into())));
    assert_eq!(parked(world.agent().run(&task).unwrap()).why, Why::Errors);
    assert_eq!((world.cards.lock().unwrap().len(), world.left()), (1, 0));
    world.wait(900);
    let end = json!({"actions": [{"action_name": "wait", "parameters": {"seconds": "5"}}]});
    world.script([Reply::Text(end.to_string())]);
    assert_eq!(parked(world.agent().run(&task).unwrap()).why, Why::Timer);
    assert!(world.pending().is_empty(), "and the question goes when it is none any more");
}

#[test]
fn an_unverified_end_is_refused_and_a_model_cannot_verify_itself() {
    let world = World::reports(3);
    let task = world.start();
    // In a turn of its own the model tries both ways.
    world.script([Reply::Text(
        json!({"actions": [
            {"action_name": "_core.workflows.report_writing", "parameters": {"call": "record_check_outcome"}},
            {"action_name": "_core.feedback-management.resolve_card", "parameters": {}},
            {"action_name": "task_end", "parameters": {"status": "complete"}},
        ]})
        .to_string(),
    )]);
    world.agent().post(&task, "hello").unwrap();
    let turned = world.turn(&task);
    assert_eq!(turned, Turned::Again, "nothing of it is allowed in an answer");
    let events = world.agent().tasks().open(&task).unwrap().stream.text(0);
    let names = "_core.workflows.report_writing, _core.feedback-management.resolve_card, task_end";
    assert!(events.contains(&format!("nothing of the decision is allowed here: {names}")));
    assert_eq!(world.state(&task)["phase"], "working");
}

#[test]
fn a_new_owner_takes_a_subject_over_and_ghosts_are_cancelled() {
    let world = World::reports(3);
    let new = |request: &str| NewTask {
        request: request.into(),
        workflow_id: "report_writing".into(),
        subject: "tea".into(),
        ..NewTask::default()
    };
    let agent = world.agent();
    let first = agent.start(new("on tea")).unwrap();
    agent.adopt(&first).unwrap();
    world.script([World::ends("completed", "draft"), World::ends("completed", "VERDICT: PASS")]);
    agent.turn(&first).unwrap();
    agent.turn(&first).unwrap();
    assert_eq!(world.state("tea")["phase"], "done");

    let second = agent.start(new("and on coffee")).unwrap();
    agent.adopt(&second).unwrap();
    assert_eq!(agent.turn(&first).unwrap(), Turned::Ended(Status::Cancelled));
    let state = world.state("tea");
    assert_eq!(
        (&state["phase"], &state["state"]["user_leads"]),
        (&json!("working"), &json!(["and on coffee"]))
    );
    assert_eq!(world.statuses.lock().unwrap()[&first], "cancelled");

    // A task that a crash left running although another owns its subject.
    let ghost = TaskFile {
        id: "ghost".into(),
        workflow_id: "report_writing".into(),
        subject: "tea".into(),
        turns: 3,
        ..TaskFile::default()
    };
    agent.tasks().create(&ghost).unwrap();
    let plain = TaskFile { id: "plain".into(), turns: 3, ..TaskFile::default() };
    agent.tasks().create(&plain).unwrap();
    let restored = world.agent().restore().unwrap();
    let ghosts: Vec<&str> =
        restored.iter().filter(|task| task.ghost).map(|task| task.file.id.as_str()).collect();
    assert_eq!((ghosts, restored.len()), (vec!["ghost"], 3));
    assert_eq!(world.turn("ghost"), Turned::Ended(Status::Cancelled));
    // Nobody is judged by a record that cannot be read.
    #[expect(clippy::disallowed_methods, reason = "a test breaks a file")]
    std::fs::write(world.folder.path().join("agent/owners/report_writing.json"), "{").unwrap();
    agent.tasks().create(&TaskFile { id: "ghost-2".into(), ..ghost }).unwrap();
    assert!(world.agent().restore().unwrap().iter().all(|task| !task.ghost));
}

#[test]
fn a_task_that_nobody_attends_asks_whether_to_go_on() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let agent = world.agent().with_limits(Limits { unattended: 2, ..Limits::default() });
    let search = json!({"actions": [{"action_name": "_core.harness.search_gmail"}]}).to_string();
    world.script([Reply::Text(search.clone()), Reply::Text(search)]);
    let wait = parked(agent.run(&task).unwrap());
    assert_eq!(wait.why, Why::Limit);
    world.wait(50_000);
    parked(agent.run(&task).unwrap());
    world.resolve("card_0", "answered", json!("abort"));
    assert_eq!(agent.run(&task).unwrap(), Turned::Ended(Status::Abort));
}

#[test]
fn one_driver_and_a_thousand_parked_tasks() {
    let world = World::new(&Value::Null);
    let agent = world.agent();
    let wait = Parked { why: Why::User, note: "n".into(), wake_at: u64::MAX, ..Parked::default() };
    for number in 0..1000 {
        let file = TaskFile {
            id: format!("t{number}"),
            parked: Some(wait.clone()),
            ..TaskFile::default()
        };
        agent.tasks().create(&file).unwrap();
    }
    let restored = world.agent().restore().unwrap();
    assert_eq!(restored.len(), 1000);
    assert!(restored.iter().all(|task| task.file.parked.as_ref() == Some(&wait)));
    let held = agent.tasks().open("t7").unwrap();
    assert!(matches!(world.agent().turn("t7"), Err(AgentError::Tasks(TasksError::Busy(_)))));
    drop(held);
    assert_eq!(world.turn("t7"), Turned::Parked(wait));
}

#[test]
fn a_worker_that_is_cut_off_carries_the_outage_marker() {
    let world = World::reports(3);
    let task = world.start();
    world.script([Reply::Down]);
    assert_eq!(world.turn(&task), Turned::Again);
    let events = world.agent().tasks().open(&task).unwrap().stream.text(0);
    assert!(events.contains(OUTAGE_MARKER), "{events}");
    assert_eq!(world.state(&task)["outcomes"], json!([]), "no attempt is on the list");
    assert_eq!(parked(world.turn(&task)).why, Why::User);
}
