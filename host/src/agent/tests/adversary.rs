//! Whoever means ill, and whatever breaks: files, clocks, models, names, and what happens at the very end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::super::task_file::{Saying, TaskFile};
use super::super::{AgentError, NewTask, Parked, Status, TasksError, Turned, Why};
use super::harness::{Reply, World};

fn parked(turned: Turned) -> Parked {
    match turned {
        Turned::Parked(parked) => parked,
        other => panic!("expected a parked task, got {other:?}"),
    }
}

fn act(name: &str, parameters: Value) -> String {
    json!({"actions": [{"action_name": name, "parameters": parameters}]}).to_string()
}

fn ends() -> String {
    act("task_end", json!({"status": "complete"}))
}

fn read(world: &Arc<World>, task: &str) -> TaskFile {
    world.agent().tasks().read(task).unwrap().unwrap()
}

fn lines(world: &Arc<World>, task: &str) -> Vec<String> {
    let events = world.agent().tasks().events(task).unwrap();
    events.iter().map(|event| event.line(80)).collect()
}

fn place(world: &World, path: &str) -> PathBuf {
    world.folder.path().join(path)
}

#[expect(clippy::disallowed_methods, reason = "a test breaks files")]
fn write(path: &PathBuf, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn report(workflow_id: &str, subject: &str) -> NewTask {
    NewTask {
        request: "on tea".into(),
        workflow_id: workflow_id.into(),
        subject: subject.into(),
        ..NewTask::default()
    }
}

#[test]
fn a_message_at_the_very_end_is_answered_before_the_end() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let (agent, id) = (world.agent(), task.clone());
    let post = Box::new(move || agent.post(&id, "and a table").unwrap());
    world.script([Reply::Meanwhile(post, ends())]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert!(lines(&world, &task).last().unwrap().contains("refused: the user wrote just now"));
    world.script([World::says(&json!({"message": "A table, yes."})), Reply::Text(ends())]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
    assert!(lines(&world, &task).contains(&"[user_message] and a table".to_owned()));
    // From the end on nobody is told that the task will answer.
    assert!(matches!(world.agent().post(&task, "one more"), Err(AgentError::Ended(_))));
    assert!(matches!(world.agent().tasks().post(&task, "one more"), Err(TasksError::Ended(_))));
}

#[test]
fn an_answer_at_the_very_end_is_heard_before_the_end() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([World::says(&json!({"message": "Which?", "wait_for_user_reply": true}))]);
    parked(world.turn(&task));
    world.agent().post(&task, "hurry").unwrap();
    let answering = Arc::clone(&world);
    let answer = Box::new(move || answering.resolve("card_0", "answered", json!("the red one")));
    world.script([Reply::Meanwhile(answer, ends())]);
    assert_eq!(world.turn(&task), Turned::Again);
    world.script([Reply::Text(ends())]);
    assert_eq!(world.turn(&task), Turned::Ended(Status::Complete));
    assert!(lines(&world, &task).contains(&"[user_message] the red one".to_owned()));
}

#[test]
fn an_end_that_nobody_heard_of_is_told_by_the_next_host() {
    for by_restore in [true, false] {
        let world = World::new(&Value::Null);
        let task = world.start();
        world.script([World::says(&json!({"message": "Which?", "wait_for_user_reply": true}))]);
        parked(world.turn(&task));
        let agent = world.agent();
        let mut open = agent.tasks().open(&task).unwrap();
        (open.file.status, open.file.closing) = (Status::Complete, true);
        open.file.running = Some("task_end".into());
        assert!(agent.tasks().seal(&mut open, true).unwrap());
        drop(open);
        if by_restore {
            assert_eq!(world.agent().restore().unwrap(), []);
        } else {
            assert!(agent.is_ready(&read(&world, &task)).unwrap());
            assert_eq!(world.turn(&task), Turned::Ended(Status::Complete));
            assert_eq!(lines(&world, &task).last().unwrap(), "[action_end task_end] ended");
        }
        assert!(!read(&world, &task).closing);
        assert_eq!(world.statuses.lock().unwrap()[&task], "done");
        assert!(world.pending().is_empty(), "nobody is asked any more");
    }
}

#[test]
fn what_a_crash_cut_off_is_said_once() {
    for (before, said, times) in [(Some(0), 0, 1), (Some(0), 1, 1), (Some(1), 1, 2), (None, 0, 0)] {
        let world = World::new(&Value::Null);
        let task = world.start();
        let human = super::super::Human::new(&*world);
        for _ in 0..said {
            human.say(&task, "Yes.").unwrap();
        }
        let agent = world.agent();
        let mut open = agent.tasks().open(&task).unwrap();
        open.file.running = Some("send_message".into());
        open.file.saying = Some(Saying { message: "Yes.".into(), waits: false, before });
        open.save().unwrap();
        drop(open);
        world.script([Reply::Text(ends())]);
        world.turn(&task);
        assert_eq!(world.comments.lock().unwrap().len(), times, "{before:?} {said}");
        let first = lines(&world, &task).remove(0);
        assert_eq!(first.starts_with("[interrupted send_message]"), before.is_none(), "{first}");
    }
    // A question that was not put yet, though it was about to be.
    let world = World::new(&Value::Null);
    let task = world.start();
    let mut open = world.agent().tasks().open(&task).unwrap();
    open.file.running = Some("send_message".into());
    open.file.saying = Some(Saying { message: "Which?".into(), waits: true, before: Some(0) });
    open.save().unwrap();
    drop(open);
    let wait = parked(world.turn(&task));
    assert_eq!((wait.card.as_deref(), wait.note.as_str()), (Some("card_0"), "Which?"));
}

#[test]
fn a_subject_is_one_task_s_whatever_its_workflow_is_called() {
    let world = World::reports(3);
    let agent = world.agent();
    let first = agent.start(report("old_report_writing", "tea")).unwrap();
    world.script([World::ends("completed", "draft")]);
    assert_eq!(world.turn(&first), Turned::Again);
    // A host of before bound it under the old name.
    let owners = |name: &str| place(&world, &format!("agent/owners/{name}.json"));
    std::fs::rename(owners("report_writing"), owners("old_report_writing")).unwrap();
    let restored = world.agent().restore().unwrap();
    assert!(restored.iter().all(|task| !task.ghost), "it is known by both names");
    let second = agent.start(report("report_writing", "tea")).unwrap();
    world.script([World::ends("completed", "another draft")]);
    assert_eq!(world.turn(&second), Turned::Again);
    assert_eq!(world.turn(&first), Turned::Ended(Status::Cancelled));
    assert!(world.agent().restore().unwrap().iter().all(|task| !task.ghost));
}

#[test]
fn nothing_is_said_or_asked_in_the_name_of_another_s_subject() {
    let world = World::reports(3);
    let agent = world.agent();
    let first = agent.start(report("report_writing", "tea")).unwrap();
    world.script([World::ends("failed", "no sources")]);
    world.turn(&first);
    let before = (world.state("tea"), world.journal("tea"));
    // It believes to own the subject and is not about to take it over.
    let stray = TaskFile {
        id: "stray".into(),
        workflow_id: "report_writing".into(),
        subject: "tea".into(),
        ..TaskFile::default()
    };
    agent.tasks().create(&stray).unwrap();
    agent.post("stray", "shorter").unwrap();
    assert_eq!(parked(agent.run("stray").unwrap()).why, Why::Errors);
    assert_eq!((world.state("tea"), world.journal("tea")), before);
    assert!(lines(&world, "stray").contains(&format!("[error] `tea` belongs to task {first}")));
}

#[test]
fn a_lost_record_of_owners_judges_nobody() {
    let world = World::reports(3);
    let task = world.start();
    world.script([World::ends("completed", "draft")]);
    world.turn(&task);
    std::fs::remove_dir_all(place(&world, "agent/owners")).unwrap();
    let restored = world.agent().restore().unwrap();
    assert_eq!((restored.len(), restored[0].ghost), (1, false));
    world.script([World::ends("completed", "VERDICT: PASS")]);
    assert_eq!(world.turn(&task), Turned::Again, "it is the owner again");
    assert!(place(&world, "agent/owners/report_writing.json").exists());
}

#[test]
fn what_ended_is_moved_aside_and_answers_as_before() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.agent().post(&task, "hello").unwrap();
    world.script([World::says(&json!({"message": "Hello."})), Reply::Text(ends())]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete));
    let agent = world.agent();
    assert_eq!(agent.tasks().ids().unwrap(), Vec::<String>::new());
    assert_eq!(agent.tasks().ended_ids().unwrap(), [task.as_str()]);
    // Its conversation is no more; all that can be shown of it is there.
    for (path, is_there) in [
        (format!("agent/tasks/{task}"), false),
        (format!("agent/inbox/{task}"), false),
        (format!("agent/ended/{task}/session.json"), false),
        (format!("agent/ended/{task}/inbox"), true),
    ] {
        assert_eq!(place(&world, &path).exists(), is_there, "{path}");
    }
    let view = agent.view(&task, 100).unwrap();
    assert_eq!((view.status, view.phase.as_str()), (Status::Complete, "done"));
    assert!(view.events.iter().any(|event| event.kind == "user_message"));
    // Nothing is begun anew under its id.
    assert!(matches!(agent.post(&task, "more"), Err(AgentError::Ended(_))));
    let again = NewTask { id: task.clone(), request: "again".into(), ..NewTask::default() };
    assert_eq!(agent.start(again).unwrap(), task);
    assert_eq!(agent.run(&task).unwrap(), Turned::Ended(Status::Complete));
    assert!(agent.cancel(&task).unwrap());
    assert_eq!((read(&world, &task).status, world.left()), (Status::Complete, 0));
    // One that ended as its host died is moved aside by the next.
    let ended = TaskFile { id: "late".into(), status: Status::Abort, ..TaskFile::default() };
    assert!(agent.tasks().create(&ended).unwrap());
    assert_eq!(world.agent().restore().unwrap(), []);
    assert_eq!(agent.tasks().ended_ids().unwrap().len(), 2);
}

#[test]
fn a_task_that_was_removed_is_gone_and_does_not_come_back() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let (world_, id) = (Arc::clone(&world), task.clone());
    let remove = Box::new(move || {
        std::fs::remove_dir_all(place(&world_, &format!("agent/tasks/{id}"))).unwrap();
    });
    world.script([Reply::Meanwhile(remove, act("_core.harness.search_gmail", json!({})))]);
    assert!(matches!(world.agent().turn(&task), Err(AgentError::Tasks(TasksError::Unknown(_)))));
    assert!(world.calls.lock().unwrap().is_empty(), "nothing is carried out for it");
    assert!(!place(&world, &format!("agent/tasks/{task}")).exists());
    assert!(matches!(world.agent().turn(&task), Err(AgentError::Tasks(TasksError::Unknown(_)))));
}

#[test]
fn a_task_that_the_task_store_forgot_is_cancelled() {
    let stored = |world: &World, text: &str| {
        write(&place(world, "state/tasks.json"), text.as_bytes());
    };
    // While it waits.
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([World::says(&json!({"message": "Which?", "wait_for_user_reply": true}))]);
    parked(world.turn(&task));
    for text in [format!("[{{\"id\": \"{task}\"}}]"), "{".to_owned(), "\"".to_owned()] {
        stored(&world, &text);
        assert!(!world.agent().is_ready(&read(&world, &task)).unwrap(), "{text}");
    }
    stored(&world, "[]");
    assert!(world.agent().is_ready(&read(&world, &task)).unwrap());
    assert_eq!(world.turn(&task), Turned::Ended(Status::Cancelled));
    assert!(world.pending().is_empty());
    // While its worker runs.
    let world = World::reports(3);
    let task = world.start();
    let world_ = Arc::clone(&world);
    let forget = Box::new(move || stored(&world_, "[{\"id\": \"another\"}]"));
    world.script([Reply::Meanwhile(forget, json!({"action_name": "x"}).to_string())]);
    assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Cancelled));
    assert!(world.journal(&task).is_empty());
}

#[test]
fn files_that_are_no_text_cost_what_they_hold() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([Reply::Text(act("_core.harness.search_gmail", json!({})))]);
    world.turn(&task);
    // The conversation is begun anew; a torn event is passed over.
    write(&place(&world, &format!("agent/tasks/{task}/session.json")), b"\xff{");
    let events = place(&world, &format!("agent/tasks/{task}/events.ndjson"));
    let mut torn = std::fs::read(&events).unwrap();
    torn.extend_from_slice(b"{\"kind\": \"rea\xff");
    write(&events, &torn);
    world.script([Reply::Text(act("_core.harness.search_gmail", json!({})))]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert_eq!(world.heard.lock().unwrap().last().unwrap().len(), 1, "a full prompt");
    assert_eq!(lines(&world, &task).len(), 6);
    // A message that is none does not stand before those that are.
    let inbox = |name: &str| place(&world, &format!("agent/inbox/{task}/{name}"));
    std::fs::create_dir_all(inbox("00000001.txt")).unwrap();
    write(&inbox("00000002.txt"), b"\xff\xfe");
    world.agent().post(&task, "hello").unwrap();
    world.script([World::says(&json!({"message": "Hello."}))]);
    assert_eq!(world.turn(&task), Turned::Again);
    assert!(lines(&world, &task).contains(&"[user_message] hello".to_owned()));
    // The document itself is named, kept as it is, and stops nobody else.
    let document = place(&world, &format!("agent/tasks/{task}/task.json"));
    for bytes in [&b"\xff"[..], b"{\"schema\": 1", b"[]", b""] {
        write(&document, bytes);
        let error = world.agent().turn(&task).unwrap_err().to_string();
        assert!(error.contains(&format!("agent/tasks/{task}/task.json is corrupt")), "{error}");
        assert_eq!(std::fs::read(&document).unwrap(), bytes);
        assert_eq!(world.agent().restore().unwrap(), []);
    }
    let other = world.start();
    world.script([Reply::Text(ends())]);
    assert_eq!(world.turn(&other), Turned::Ended(Status::Complete));
}

#[test]
fn a_clock_that_jumps_neither_strands_nor_hurries() {
    let world = World::new(&Value::Null);
    let task = world.start();
    world.script([Reply::Text(act("wait", json!({"seconds": 100})))]);
    parked(world.turn(&task));
    // Put back by a day: the pause ends at the next look.
    world.now.fetch_sub(86_400_000, Ordering::Relaxed);
    assert!(world.agent().is_ready(&read(&world, &task)).unwrap());
    world.script([World::says(&json!({"message": "Which?", "wait_for_user_reply": true}))]);
    assert_eq!(parked(world.turn(&task)).why, Why::User);
    // A wait for a person is ended by no clock.
    for jump in [10_000_000_000_i64, -20_000_000_000] {
        world.now.fetch_add(jump as u64, Ordering::Relaxed);
        let wait = parked(world.turn(&task));
        assert_eq!(wait.card.as_deref(), Some("card_0"));
        let now = world.now.load(Ordering::Relaxed);
        assert_eq!((wait.since, wait.wake_at), (now, now + 10_800_000), "armed again");
    }
    assert_eq!(world.left(), 0);
}

#[test]
fn a_reply_of_any_size_stays_in_its_bounds() {
    let world = World::new(&Value::Null);
    let task = world.start();
    let long = "x".repeat(3_000_000);
    // One action with endless parameters, one that is no name, and more of them than anybody counts.
    let mut actions = vec![
        json!({"action_name": "_core.harness.search_gmail", "parameters": {"q": long}}),
        json!({"action_name": long}),
    ];
    actions.extend((0..50_000).map(|n| json!({"action_name": format!("a{n}")})));
    world.script([Reply::Text(json!({"reasoning": long, "actions": actions}).to_string())]);
    assert_eq!(world.turn(&task), Turned::Again);
    let events = place(&world, &format!("agent/tasks/{task}/events.ndjson"));
    assert!(std::fs::metadata(&events).unwrap().len() < 500_000);
    assert!(lines(&world, &task).iter().any(|line| line == "[dropped] and 49982 more"));
    world.script([
        Reply::Text(long.clone()),
        Reply::Text("[".repeat(3_000_000)),
        Reply::Text(ends()),
    ]);
    assert_eq!(world.turn(&task), Turned::Ended(Status::Complete));
    let heard = world.heard.lock().unwrap();
    let most = heard.iter().flatten().map(|message| message.text.len()).max();
    assert!(most < Some(5_000_000 + 1000), "{most:?}");
    let asked = heard.last().unwrap().last().unwrap();
    assert!(asked.text.len() < 200_000, "{}", asked.text.len());
}

/// A task that was made while its workflow could still be run.
fn made_before(world: &Arc<World>, workflow_id: &str) -> String {
    let file = TaskFile {
        schema: 1,
        id: "before".into(),
        project: "agent".into(),
        workflow_id: workflow_id.into(),
        query: "on tea".into(),
        ..TaskFile::default()
    };
    assert!(world.agent().tasks().create(&file).unwrap());
    file.id
}

#[test]
fn a_workflow_that_is_not_what_it_says_is_told_of_and_parks() {
    for (id, prompt, worker, reason) in [
        ("report_writing", "", "w", "has a blank system prompt"),
        ("report_writing", "p", "", "names no worker"),
        ("essay_writing", "p", "w", "calls itself `report_writing`"),
    ] {
        let world = World::new(&json!({
            "workflow_id": "report_writing", "worker_agent": worker, "checker_agent": "c", "round_budget": 3,
            "operation": id, "system_prompt": prompt,
        }));
        let refused = world.agent().start(report(id, "")).unwrap_err();
        assert!(matches!(refused, AgentError::Unusable { .. }), "{refused:?}");
        let named = format!("the workflow `{id}` cannot be run: ");
        assert!(refused.to_string().starts_with(&named), "{refused}");
        assert!(refused.to_string().contains(reason), "{refused}");
        let task = made_before(&world, id);
        let wait = parked(world.agent().run(&task).unwrap());
        assert_eq!(wait.why, Why::Errors);
        assert!(wait.note.contains(reason), "{}", wait.note);
        assert_eq!((world.asked(), world.pending().len()), (0, 1));
    }
}

#[test]
fn an_agent_that_cannot_be_run_is_told_of_and_spends_no_round() {
    let lame = "prompt = \"p\"\n[[actions]]\nname = \"save\"\noperation = \"_core.gone.save\"\n";
    for (kind, text, reason) in [
        ("research_agent", None, "there is no agent type `research_agent`; known: fact_check"),
        ("fact_check", Some("prompt = 3"), "agents/fact_check.toml is faulty"),
        ("fact_check", Some(lame), "agents/fact_check.toml needs the operation `_core.gone.save`"),
    ] {
        let world = World::reports(3);
        let whole = world.agent_file(kind, text);
        let refused = world.agent().start(report("report_writing", "")).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
        let task = made_before(&world, "report_writing");
        world.script([World::ends("completed", "written")]);
        let wait = parked(world.agent().run(&task).unwrap());
        assert_eq!(wait.why, Why::Errors);
        assert!(wait.note.contains(reason), "{}", wait.note);
        let state = world.state(&task)["state"].clone();
        assert_eq!((&state["rounds"], &state["check_attempts"]), (&Value::Null, &Value::Null));
        // What was put right is tried again when the time is over.
        world.agent_file(kind, Some(&whole));
        world.wait(901);
        world.script([World::ends("completed", "VERDICT: PASS"), Reply::Text(ends())]);
        assert_eq!(world.agent().run(&task).unwrap(), Turned::Ended(Status::Complete), "{kind}");
    }
}
