//! What wakes a task, and how often.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::super::task_file::{Asking, TaskFile};
use super::super::{AgentError, Hooks};
use super::super::{Bell, Limits, Listener, NewTask, Parked, Status, Stop, Triggers, Turned, Why};
use super::harness::{Reply, World, operation};

fn parked(turned: Turned) -> Parked {
    match turned {
        Turned::Parked(parked) => parked,
        other => panic!("expected a parked task, got {other:?}"),
    }
}

fn act(name: &str, parameters: Value) -> Reply {
    Reply::Text(json!({"actions": [{"action_name": name, "parameters": parameters}]}).to_string())
}

fn asks(message: &str) -> Reply {
    World::says(&json!({"message": message, "wait_for_user_reply": true}))
}

fn events(world: &Arc<World>, task: &str) -> Vec<String> {
    let events = world.agent().tasks().events(task).unwrap();
    events.iter().map(|event| event.line(80)).collect()
}

#[test]
fn an_answer_counts_once_also_beside_a_message_and_while_a_turn_runs() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([asks("Which one?")]);
    assert_eq!(parked(world.turn(&task)).card.as_deref(), Some("card_0"));
    // A message ends the wait; the card is answered while the model thinks about the message.
    world.agent().post(&task, "hurry").unwrap();
    let answering = Arc::clone(&world);
    let answer = Box::new(move || answering.resolve("card_0", "answered", json!("the red one")));
    let say =
        json!({"actions": [{"action_name": "send_message", "parameters": {"message": "Yes."}}]});
    world.script([Reply::Meanwhile(answer, say.to_string())]);
    assert_eq!(world.turn(&task), Turned::Again);
    world.script([act("wait", json!({}))]);
    assert_eq!(parked(world.turn(&task)).why, Why::Timer);
    let heard =
        |events: &[String]| events.iter().filter(|line| line.contains("the red one")).count();
    assert_eq!(heard(&events(&world, &task)), 1);
    world.wait(61);
    world.script([act("wait", json!({}))]);
    parked(world.turn(&task));
    assert_eq!(heard(&events(&world, &task)), 1, "and not again");
}

#[test]
fn a_question_that_a_crash_cut_off_is_put_once() {
    // Killed before the card was made, and after.
    for made in [false, true] {
        let world = World::new(&Value::Null);
        let task = world.start();
        let agent = world.agent();
        let asking = Asking {
            key: format!("{task}-ask-1"),
            message: "Which one?".into(),
            payload: json!({"message": "Which one?"}),
            why: Why::User,
            wake_at: u64::MAX,
            phase: String::new(),
        };
        if made {
            let human = super::super::Human::new(&*world);
            human.ask("agent", &task, &asking.key, &asking.message, &asking.payload).unwrap();
        }
        let mut open = agent.tasks().open(&task).unwrap();
        open.file.registered = true;
        open.file.running = Some("send_message".into());
        open.file.asking = Some(asking);
        open.save().unwrap();
        drop(open);
        assert_eq!(parked(world.turn(&task)).card.as_deref(), Some("card_0"));
        assert_eq!(world.cards.lock().unwrap().len(), 1);
        assert_eq!(
            events(&world, &task),
            ["[action_end send_message] asked as card_0; the task waits for the answer"]
        );
    }
}

#[test]
fn a_question_that_cannot_be_put_is_told_to_the_model() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.cards_fail.store(true, Ordering::Relaxed);
    world.script([asks("Which one?")]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert!(events(&world, &task).last().unwrap().contains("error: the disk is full"));
}

#[test]
fn a_run_that_ends_ends_a_pause() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let run = |finished: Value| json!({"id": "run_1", "status": "completed", "finishedAt": finished, "summary": "12 rows"});
    world.runs.lock().unwrap().push(run(Value::Null));
    world.script([act("wait", json!({"seconds": 5000}))]);
    assert_eq!(parked(world.turn(&task)).runs, ["run_1"]);
    parked(world.turn(&task));
    world.runs.lock().unwrap()[0] = run(json!("2026-01-01T00:00:00.000Z"));
    world.script([act("wait", json!({"seconds": 5000}))]);
    assert!(parked(world.turn(&task)).runs.is_empty(), "it is over");
    let told = "[run_finished] run_1 is completed. 12 rows".to_owned();
    assert!(events(&world, &task).contains(&told));
    parked(world.turn(&task));
}

#[test]
fn an_outcome_that_somebody_records_ends_a_gate() {
    let world = World::reports(1);
    let task = world.start();
    world.script([World::ends("failed", "no sources"), World::says(&json!({"message": "Stuck."}))]);
    assert_eq!(parked(world.agent().run(&task).unwrap()).phase, "gated");
    parked(world.turn(&task));
    let place = super::super::Operations::workflow(&*world, "report_writing").unwrap();
    super::super::WorkflowClient::new(&*world, &place)
        .record(
            "record_check_outcome",
            &format!("work/{task}"),
            &json!({"status": "completed", "report": "VERDICT: PASS"}),
        )
        .unwrap();
    world.script([World::says(&json!({"message": "Here it is."}))]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
    assert!(world.pending().is_empty(), "nobody is asked about what is done");
}

#[test]
fn a_pause_is_a_card_and_its_answer_goes_on() {
    let world = World::reports(3);
    let task = world.start();
    world.script([World::ends("completed", "draft"), Reply::Down]);
    let wait = parked(world.agent().run(&task).unwrap());
    assert_eq!((wait.card.as_deref(), wait.phase.as_str()), (Some("card_0"), "paused_infra"));
    world.resolve("card_0", "answered", json!("it is back"));
    world.script([
        World::says(&json!({"message": "Good."})),
        World::ends("completed", "VERDICT: PASS"),
        World::says(&json!({"message": "Here it is."})),
    ]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
}

#[test]
fn messages_do_not_hurry_a_provider_that_is_broken() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let agent = world.agent();
    for text in ["one", "two"] {
        agent.post(&task, text).unwrap();
    }
    world.script([Reply::Down]);
    assert_eq!(parked(agent.run(&task).unwrap()).why, Why::Provider);
    let file = agent.tasks().read(&task).unwrap().unwrap();
    assert!(!agent.is_ready(&file).unwrap(), "what was there before the wait does not end it");
    agent.post(&task, "three").unwrap();
    assert!(agent.is_ready(&file).unwrap());
    world.script(["1", "2", "3"].map(|text| World::says(&json!({"message": text}))));
    world.script([act("task_end", json!({"status": "complete"}))]);
    assert_eq!(agent.run(&task).unwrap(), Turned::Ended(Status::Complete));
    let bodies: Vec<Value> =
        world.comments.lock().unwrap().iter().map(|comment| comment["body"].clone()).collect();
    assert_eq!(bodies, ["1", "2", "3"]);
    assert!(matches!(agent.post(&task, "four"), Err(AgentError::Ended(_))));
}

#[test]
fn a_task_is_cancelled_while_its_worker_runs() {
    let world = World::reports(3);
    let task = world.start();
    let (agent, id) = (world.agent(), task.clone());
    let cancel = Box::new(move || assert!(!agent.cancel(&id).unwrap(), "it is driven"));
    world.script([Reply::Meanwhile(cancel, json!({"action_name": "x"}).to_string())]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Cancelled));
    assert_eq!(world.statuses.lock().unwrap()[&task], "cancelled");
    assert!(
        world.journal(&task).is_empty(),
        "nothing is recorded of an agent that was not let finish"
    );
}

#[test]
fn a_new_owner_waits_until_the_one_before_has_let_go() {
    let world = World::reports(3);
    let new = |request: &str| NewTask {
        request: request.into(),
        workflow_id: "report_writing".into(),
        subject: "tea".into(),
        ..NewTask::default()
    };
    let first = world.agent().start(new("on tea")).unwrap();
    world.script([World::ends("completed", "draft")]);
    world.turn(&first);
    let second = world.agent().start(new("and on coffee")).unwrap();
    let held = world.agent().tasks().open(&first).unwrap();
    let wait = parked(world.turn(&second));
    assert_eq!(wait.why, Why::Timer);
    assert!(wait.note.contains(&first), "{}", wait.note);
    drop(held);
    // It goes on by itself, in another host if need be.
    world.wait(2);
    world.script([World::ends("completed", "draft on both")]);
    assert_eq!(world.turn(&second), Turned::Again);
    assert_eq!(world.turn(&first), Turned::Ended(Status::Cancelled));
    let leads = &world.state("tea")["state"]["user_leads"];
    assert_eq!(leads, &json!(["and on coffee"]));
}

struct Adds;

impl Listener for Adds {
    fn name(&self) -> &str {
        "adds"
    }
    fn conversation_actions(&self, _: &TaskFile) -> Vec<String> {
        vec![operation("get_message")]
    }
}

#[test]
fn a_task_keeps_to_the_actions_it_was_given_and_those_of_conversations() {
    let world = World::new(&Value::Null);
    let mut hooks = Hooks::default();
    hooks.register(Arc::new(Adds));
    let agent = world.agent().with_hooks(hooks);
    let new = NewTask {
        request: "look".into(),
        actions: vec![operation("living_ui_validate")],
        ..NewTask::default()
    };
    let task = agent.start(new).unwrap();
    let actions = ["get_message", "living_ui_validate", "search_gmail"].map(operation);
    let actions = actions.map(|name| json!({"action_name": name}));
    world.script([Reply::Text(json!({"actions": actions}).to_string())]);
    assert_eq!(agent.turn(&task).unwrap(), Turned::Again);
    assert_eq!(*world.calls.lock().unwrap(), ["get_message", "living_ui_validate"]);
    let prompt = world.heard.lock().unwrap()[0][0].text.clone();
    assert!(!prompt.contains("search_gmail") && prompt.contains("send_message("), "{prompt}");
    assert!(prompt.contains(&task), "a model may need the id of its task");
}

#[test]
fn reads_run_side_by_side_and_others_one_by_one() {
    let world = World::new(&Value::Null);
    for (names, most) in
        [(["get_message"; 3], 3), (["get_message", "search_gmail", "get_message"], 1)]
    {
        let task = world.start();
        world.together.store(0, Ordering::Relaxed);
        let actions = names.map(|name| json!({"action_name": operation(name)}));
        world.script([Reply::Text(json!({"actions": actions}).to_string())]);
        world.meet.store(most, Ordering::Relaxed);
        assert_eq!(world.turn(&task), Turned::Again);
        assert_eq!(world.together.load(Ordering::Relaxed), most);
        let events = events(&world, &task);
        assert_eq!(events.len(), 7);
        assert!(events[1].starts_with("[action_start") && events[2].starts_with("[action_end"));
    }
}

#[test]
fn a_task_that_spent_much_asks_whether_to_go_on() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let agent = world.agent().with_limits(Limits { tokens: 50, ..Limits::default() });
    world.script([act(&operation("search_gmail"), json!({}))]);
    let wait = parked(agent.run(&task).unwrap());
    assert_eq!(wait.why, Why::Limit);
    assert!(wait.note.contains("1 turns"), "{}", wait.note);
    world.resolve("card_0", "answered", json!("go on"));
    world.script([act("task_end", json!({}))]);
    assert_eq!(agent.run(&task).unwrap(), Turned::Ended(Status::Complete));
}

/// Runs the triggers of as many hosts until `done`.
fn served(world: &Arc<World>, hosts: usize, done: impl Fn() -> bool) {
    let stop = Stop::default();
    std::thread::scope(|scope| {
        for _ in 0..hosts {
            let agent = world.agent().with_stop(stop.clone());
            scope.spawn(move || Triggers::new(agent, Bell::default(), 3).run(|_| ()).unwrap());
        }
        let began = std::time::Instant::now();
        while !done() && began.elapsed().as_secs() < 120 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        stop.stop();
    });
    assert!(done());
}

#[test]
fn two_hosts_share_the_tasks_and_none_runs_twice() {
    let world = World::new(&Value::Null);
    let ends = || act("task_end", json!({"status": "complete"}));
    let tasks: Vec<String> = (0..12).map(|_| world.start()).collect();
    let quiet = world.start();
    let wait = Parked { why: Why::User, note: "n".into(), wake_at: 0, ..Parked::default() };
    let mut open = world.agent().tasks().open(&quiet).unwrap();
    open.file.parked = Some(wait.clone());
    open.save().unwrap();
    drop(open);
    world.script((0..12).map(|_| ends()));
    let is_done = |id: &String| world.agent().tasks().read(id).unwrap().unwrap().is_ended();
    served(&world, 2, || tasks.iter().all(is_done));
    assert_eq!((world.asked(), world.left()), (12, 0), "each asked once");
    let file = world.agent().tasks().read(&quiet).unwrap().unwrap();
    assert_eq!((file.parked, file.turns), (Some(wait), 0), "a parked task stays parked");
    // A message while hosts run, and one while none does.
    world.script([ends()]);
    world.agent().post(&quiet, "go").unwrap();
    served(&world, 2, || is_done(&quiet));
    assert_eq!(world.left(), 0);
}

#[test]
fn a_card_and_a_timer_wake_while_the_host_runs() {
    let world = World::new(&Value::Null);
    let (asking, pausing) = (world.start(), world.start());
    let agent = world.agent();
    world.script([asks("Which one?")]);
    agent.run(&asking).unwrap();
    world.script([act("wait", json!({"seconds": 100}))]);
    agent.run(&pausing).unwrap();
    let ends = || act("task_end", json!({"status": "complete"}));
    let is_done = |id: &String| world.agent().tasks().read(id).unwrap().unwrap().is_ended();
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let agent = world.agent().with_stop(stop.clone());
        scope.spawn(move || Triggers::new(agent, Bell::default(), 2).run(|_| ()).unwrap());
        let until = |done: &dyn Fn() -> bool| {
            let began = std::time::Instant::now();
            while !done() && began.elapsed().as_secs() < 120 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            if !done() {
                stop.stop();
                panic!("nothing woke it");
            }
        };
        world.script([ends()]);
        world.wait(101);
        until(&|| is_done(&pausing));
        assert!(!is_done(&asking));
        world.script([ends()]);
        world.resolve("card_0", "answered", json!("the red one"));
        // What a store would have written.
        let cards = world.folder.path().join("state/cards.json");
        std::fs::create_dir_all(cards.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(cards, "[]").unwrap();
        until(&|| is_done(&asking));
        stop.stop();
    });
    assert_eq!(world.left(), 0);
}
