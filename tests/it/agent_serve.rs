//! Agent tasks beside serving: woken by messages, answers and timers, over HTTP, in hosts that are killed.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::agent::{Bench, act, ends, is_checker, is_worker, kinds, writes_or_talks};
use crate::support::host_process::{Answer as Reply, HostProcess, wait_until};
use crate::support::model::{Answer, ModelService};
use crate::support::parse;

/// A loaded machine is slow.
const LONG: Duration = Duration::from_secs(240);

#[track_caller]
fn say(host: &HostProcess, body: Value) -> Value {
    let answer = post(host, &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

#[track_caller]
fn post(host: &HostProcess, body: &str) -> Reply {
    let url = format!("{}/api/agent/message?t={}", host.origin, host.token);
    host.request("POST", &url, body).unwrap()
}

fn look(host: &HostProcess, task: &str) -> Value {
    host.get(&format!("/api/agent/tasks/{task}")).json()["data"].clone()
}

/// The view of a task once `is_it`.
#[track_caller]
fn until(host: &HostProcess, task: &str, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    wait_until(LONG, what, || Some(look(host, task)).filter(&is_it))
        .unwrap_or_else(|| panic!("{what}: {} {}", look(host, task), host.stderr()))
}

fn report(host: &HostProcess) -> String {
    let said = say(host, json!({"text": "A report on tea", "workflow": "report_writing"}));
    assert_eq!(said["started"], true);
    said["task"].as_str().unwrap().to_owned()
}

const WHOLE: [&str; 5] =
    ["work_outcome", "check_outcome", "round_counted", "work_outcome", "check_outcome"];

/// Every question of the flow kills the host the first time it is asked.
#[test]
fn a_serving_host_that_is_killed_at_every_question_comes_to_the_same_end() {
    let (kill, killing): (Sender<()>, Receiver<()>) = channel();
    let (dead, died): (Sender<()>, Receiver<()>) = channel();
    let mut seen = HashSet::new();
    let mut verdicts = 0;
    let model = ModelService::start(move |asked| {
        let round = asked.messages[0].contains("ALREADY TRIED");
        let which = match () {
            () if is_worker(asked) => format!("worker {} {round}", asked.messages.len()),
            () if is_checker(asked) => format!("checker {verdicts}"),
            () => "talk".to_owned(),
        };
        if seen.insert(which) {
            kill.send(()).unwrap();
            // Nothing else is asked before the host is gone.
            died.recv().unwrap();
            return Answer::Gone;
        }
        if !is_checker(asked) {
            return writes_or_talks(asked);
        }
        verdicts += 1;
        ends(if verdicts == 1 { "VERDICT: FAIL — no source" } else { "VERDICT: PASS" })
    });
    let bench = Bench::new(Some(&model));
    let mut host = bench.serve(&["--agent"]);
    let task = report(&host);
    let mut kills = 0;
    let view = loop {
        let view = look(&host, &task);
        if view["status"] != "running" {
            break view;
        }
        if killing.recv_timeout(Duration::from_millis(50)).is_ok() {
            host.kill();
            kills += 1;
            dead.send(()).unwrap();
            host = bench.serve(&["--agent"]);
        }
    };
    // The question of the presentation is put once: the host that was killed at it ends the task itself.
    assert_eq!((kills, &view["status"]), (7, &json!("complete")));
    assert_eq!(kinds(&bench.journal(&task)), WHOLE);
    assert_eq!(bench.interruptions(&task).len(), 6, "every kill but the one at the presentation");
    assert_eq!(bench.state(&task)["rounds"], 1);
    assert_eq!((&view["phase"], &view["step"]["stage"]), (&json!("done"), &json!("finish")));
    assert!(bench.stored("comments").len() <= 1);
    assert_eq!((bench.stored("tasks").len(), bench.stored("cards").len()), (1, 0));
}

#[test]
fn a_spent_budget_asks_once_and_two_hosts_idle_until_the_answer() {
    let passes = Arc::new(Mutex::new(false));
    let passing = Arc::clone(&passes);
    let model = ModelService::start(move |asked| match is_checker(asked) {
        true if *passing.lock().unwrap() => ends("VERDICT: PASS"),
        true => ends("VERDICT: FAIL\n- Claim 3 — FAIL — no source"),
        false => writes_or_talks(asked),
    });
    let bench = Bench::new(Some(&model));
    let mut host = bench.serve(&["--agent"]);
    let task = report(&host);
    let parked = until(&host, &task, "the gate", |view| !view["parked"].is_null());
    assert_eq!((&parked["phase"], &parked["parked"]["why"]), (&json!("gated"), &json!("user")));
    let asked = model.asked().len();
    // Idle for ever: in this host, in another one beside it, and in those after a kill.
    let other = bench.serve(&["--agent"]);
    let served = |host: &HostProcess| {
        let tasks = host.get("/api/agent/tasks").json()["data"].clone();
        (tasks["served_here"] == true).then_some(tasks)
    };
    wait_until(LONG, "the other host's loop", || served(&other)).unwrap();
    host.kill();
    host = bench.serve(&["--agent"]);
    let tasks = wait_until(LONG, "the loop after the kill", || served(&host)).unwrap();
    assert_eq!(tasks["tasks"][0]["parked"]["why"], "user");
    // Another task goes through meanwhile, so the loop does look.
    let chat = say(&host, json!({"text": "Say hello", "actions": ["_core.task-management.read"]}));
    let chat = chat["task"].as_str().unwrap().to_owned();
    until(&host, &chat, "a plain task's end", |view| view["status"] == "complete");
    let asks = model.asked()[asked..].iter().filter(|asked| is_worker(asked)).count();
    let cards = bench.stored("cards");
    assert_eq!((asks, cards.len()), (0, 1), "nobody is spawned, and nobody asked again");

    *passes.lock().unwrap() = true;
    let answer =
        json!({"id": cards[0]["id"], "status": "answered", "result": "\"see the almanac\""});
    host.data("feedback-management", "resolve_card", &answer);
    until(&host, &task, "the end", |view| view["status"] == "complete");
    let journal = bench.journal(&task);
    let leads: Vec<&Value> = journal.iter().filter(|line| line["event"] == "user_lead").collect();
    assert_eq!(leads.len(), 1, "the answer woke it exactly once");
    let workers = model.asked();
    let worker = workers[asked..].iter().find(|asked| is_worker(asked)).unwrap();
    assert!(worker.last().contains("see the almanac"));
    assert_eq!(kinds(&journal).iter().filter(|kind| **kind == "round_counted").count(), 3);
}

#[test]
fn an_answer_while_no_host_runs_wakes_the_next_one() {
    let model = ModelService::start(|asked| match asked.messages.len() {
        1 => act("send_message", json!({"message": "Which one?", "wait_for_user_reply": true})),
        _ if asked.last().contains("the red one") => act("task_end", json!({"status": "complete"})),
        _ => act("wait", json!({"seconds": 1})),
    });
    let bench = Bench::new(Some(&model));
    let mut host = bench.serve(&["--agent"]);
    let said = say(&host, json!({"text": "Paint it"}));
    let task = said["task"].as_str().unwrap().to_owned();
    until(&host, &task, "the question", |view| !view["parked"]["card"].is_null());
    host.kill();
    let id = bench.stored("cards")[0]["id"].as_str().unwrap().to_owned();
    assert!(bench.run(&["inbox", "answer", &id, "the red one"]).status.success());
    // `agent serve` does it too, without HTTP.
    let serve = bench.command(&["agent", "serve"]).spawn().unwrap();
    let done = wait_until(LONG, "the task's end", || {
        let tasks = bench.json(&["agent", "tasks", "--json"]);
        (tasks == json!([])).then_some(())
    });
    let pid = rustix::process::Pid::from_child(&serve);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = serve.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(done.is_some(), "{said}");
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert_eq!(parse(&String::from_utf8_lossy(&ended.stdout))["tasks"], 1);
    assert_eq!(model.asked().len(), 2);
    let shown = bench.json(&["agent", "show", &task, "--json"]);
    assert_eq!((&shown["status"], &shown["phase"]), (&json!("complete"), &json!("done")));
}

#[test]
fn an_answer_while_a_turn_runs_is_heard_once() {
    let (began, thinking): (Sender<()>, Receiver<()>) = channel();
    let (told, go_on): (Sender<()>, Receiver<()>) = channel();
    let model = ModelService::start(move |asked| match asked.messages.len() {
        1 => act("send_message", json!({"message": "Which one?", "wait_for_user_reply": true})),
        3 => {
            began.send(()).unwrap();
            go_on.recv().unwrap();
            act("send_message", json!({"message": "I hurry."}))
        }
        _ if asked.last().contains("the red one") => act("task_end", json!({"status": "complete"})),
        _ => act("wait", json!({"seconds": 1})),
    });
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&["--agent"]);
    let said = say(&host, json!({"text": "Paint it"}));
    let task = said["task"].as_str().unwrap().to_owned();
    until(&host, &task, "the question", |view| !view["parked"]["card"].is_null());
    say(&host, json!({"task": task, "text": "hurry"}));
    thinking.recv_timeout(LONG).unwrap();
    let id = bench.stored("cards")[0]["id"].clone();
    let answer = json!({"id": id, "status": "answered", "result": "\"the red one\""});
    host.data("feedback-management", "resolve_card", &answer);
    told.send(()).unwrap();
    let view = until(&host, &task, "the end", |view| view["status"] == "complete");
    let heard: Vec<&Value> = view["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "user_message")
        .map(|event| &event["text"])
        .collect();
    assert_eq!(heard, ["hurry", "the red one"]);
}

#[test]
fn an_outage_of_the_checker_pauses_and_an_answer_goes_on_without_a_round_spent() {
    let down = Arc::new(Mutex::new(true));
    let is_down = Arc::clone(&down);
    let model = ModelService::start(move |asked| match is_checker(asked) {
        true if *is_down.lock().unwrap() => Answer::Refused,
        true => ends("VERDICT: PASS"),
        false => writes_or_talks(asked),
    });
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&["--agent"]);
    let task = report(&host);
    let view = until(&host, &task, "the pause", |view| !view["parked"].is_null());
    assert_eq!(view["phase"], "paused_infra");
    let state = bench.state(&task);
    assert_eq!((&state["rounds"], &state["check_attempts"]), (&json!(0), &json!(0)));
    let cards = bench.stored("cards");
    assert_eq!((cards.len(), &cards[0]["continuationPolicy"]), (1, &json!("wake_assignee")));
    *down.lock().unwrap() = false;
    let answer = json!({"id": cards[0]["id"], "status": "answered", "result": "\"it is back\""});
    host.data("feedback-management", "resolve_card", &answer);
    until(&host, &task, "the end", |view| view["status"] == "complete");
    assert_eq!(bench.state(&task)["rounds"], 0);
    let kinds_of = bench.journal(&task);
    assert_eq!(
        kinds(&kinds_of),
        ["work_outcome", "check_outcome", "user_lead", "check_outcome"],
        "the same step again"
    );
}

#[test]
fn two_messages_while_a_worker_runs_are_answered_once_each() {
    let (began, working): (Sender<()>, Receiver<()>) = channel();
    let (told, go_on): (Sender<()>, Receiver<()>) = channel();
    let mut first = true;
    let model = ModelService::start(move |asked| {
        if is_worker(asked) && std::mem::take(&mut first) {
            began.send(()).unwrap();
            go_on.recv().unwrap();
        }
        if is_checker(asked) { ends("VERDICT: PASS") } else { writes_or_talks(asked) }
    });
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&["--agent"]);
    let task = report(&host);
    working.recv_timeout(LONG).unwrap();
    for text in ["add a chart", "and a table"] {
        let said = say(&host, json!({"task": task, "text": text}));
        assert_eq!(said, json!({"task": task, "started": false, "served_here": true}));
    }
    told.send(()).unwrap();
    until(&host, &task, "the end", |view| view["status"] == "complete");
    let bodies: Vec<Value> =
        bench.stored("comments").iter().map(|comment| comment["body"].clone()).collect();
    assert_eq!(bodies, ["I am on it.", "I am on it.", "Here is the report."]);
    let journal = bench.journal(&task);
    assert_eq!(kinds(&journal), ["work_outcome", "user_lead", "user_lead", "check_outcome"]);
    let workers = model.asked().iter().filter(|asked| is_worker(asked)).count();
    assert_eq!(workers, 2, "one worker");
}

#[test]
fn routes_say_what_is_wrong_and_keep_messages_for_whoever_serves() {
    let bench = Bench::new(None);
    let host = bench.serve(&[]);
    for (body, status, words) in [
        ("{", 400, "no message"),
        ("{\"txt\": \"x\"}", 400, "txt"),
        ("{\"text\": \" \"}", 400, "needs a request: `text` is missing or blank"),
        ("{}", 400, "needs a request: `text` is missing or blank"),
        ("{\"task\": \"t\"}", 400, "needs words: `text` is missing or blank"),
        ("{\"text\": \"x\", \"workflow\": \"none\"}", 400, "there is no workflow `none`"),
        ("{\"text\": \"x\", \"task\": \"task_gone\"}", 404, "task_gone"),
        ("{\"text\": \"x\", \"task\": \"../x\"}", 400, "cannot be the id"),
        ("{\"text\": \"x\", \"id\": \"../x\"}", 400, "cannot be the id"),
        ("{\"text\": \"x\", \"task\": \"t\", \"id\": \"u\"}", 400, "`id` is for a new task"),
        (
            "{\"text\": \"x\", \"task\": \"t\", \"workflow\": \"w\"}",
            400,
            "`workflow` is for a new task",
        ),
    ] {
        let answer = post(&host, body);
        let envelope = answer.json();
        assert_eq!(
            (answer.status, &envelope["data"]),
            (status, &Value::Null),
            "{body}: {envelope}"
        );
        assert!(envelope["error"].as_str().unwrap().contains(words), "{body}: {envelope}");
    }
    for (words, want) in [
        (&["agent", "tasks"][..], "no tasks that are not done\n"),
        (&["agent", "tasks", "--all"], "no tasks\n"),
        (&["agent", "tasks", "--json"], "[]\n"),
    ] {
        assert_eq!(String::from_utf8_lossy(&bench.run(words).stdout), want, "{words:?}");
    }
    let said = say(&host, json!({"text": "Buy tea", "project": "shop"}));
    assert_eq!((&said["started"], &said["served_here"]), (&json!(true), &json!(false)));
    let task = said["task"].as_str().unwrap();
    let list = host.get("/api/agent/tasks").json();
    assert_eq!(
        (&list["data"]["tasks"][0]["task"], &list["data"]["served_here"]),
        (&json!(task), &json!(false))
    );
    let view = look(&host, task);
    assert_eq!(
        (&view["phase"], &view["turns"], &view["request"]),
        (&json!("working"), &json!(0), &json!("Buy tea"))
    );
    assert_eq!(host.get("/api/agent/tasks/task_gone").status, 404);
    assert!(bench.run(&["agent", "cancel", task]).status.success());
    let answer = post(&host, &json!({"text": "x", "task": task}).to_string());
    assert_eq!(answer.status, 409, "{}", answer.text);
    assert_eq!(look(&host, task)["status"], "cancelled");
    // A client that did not hear the answer asks again, and there is one task, also when it ended meanwhile.
    for (is_new, status) in [(true, "running"), (false, "running"), (false, "cancelled")] {
        let said = say(&host, json!({"text": "Buy tea", "id": "shopping-1"}));
        assert_eq!((&said["task"], &said["started"]), (&json!("shopping-1"), &json!(is_new)));
        if status == "cancelled" {
            assert_eq!(look(&host, "shopping-1")["status"], status);
        } else if !is_new {
            assert!(bench.run(&["agent", "cancel", "shopping-1"]).status.success());
        }
    }
    // A host that is to run tasks says so when it cannot.
    let mut command = bench.command(&["dev", "serve", "--agent"]);
    for name in ["UDF_HOST_LLM_PROVIDER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no model provider is set"));
}
