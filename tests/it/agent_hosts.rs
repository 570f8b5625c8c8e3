//! Several hosts run the tasks of one store and are killed as it comes: nothing is lost, nothing runs twice.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::agent::{Bench, act};
use crate::support::model::{Answer, Asked, ModelService};

const TASKS: usize = 10;
const KILLS: usize = 14;
/// A loaded machine is slow.
const LONG: Duration = Duration::from_secs(400);

/// Greets, makes a task, and ends. What a crash cut off it does not do again.
fn greets(asked: &Asked) -> Answer {
    let heard = asked.messages.join("\n");
    let id = heard.split("(This is task ").nth(1).unwrap().split(".)").next().unwrap();
    if !heard.contains("[action_end send_message] sent") {
        return act("send_message", json!({"message": format!("Hello from {id}.")}));
    }
    let made =
        ["[action_end _core.task-management.create]", "[interrupted _core.task-management.create]"];
    if !made.iter().any(|event| heard.contains(event)) {
        let parameters = json!({"title": format!("Made by {id}"), "project": "made"});
        return act("_core.task-management.create", parameters);
    }
    act("task_end", json!({"status": "complete"}))
}

fn serve(bench: &Bench) -> Child {
    let mut command = bench.command(&["agent", "serve"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn two_hosts_that_are_killed_as_it_comes_lose_nothing_and_repeat_nothing() {
    let model = ModelService::start(greets);
    let bench = Bench::new(Some(&model));
    let host = bench.serve(&[]);
    let mut tasks: Vec<String> = (0..TASKS)
        .map(|number| {
            let url = format!("{}/api/agent/message?t={}", host.origin, host.token);
            let body = json!({"text": format!("Greet {number}")}).to_string();
            let said = host.request("POST", &url, &body).unwrap().json();
            said["data"]["task"].as_str().unwrap().to_owned()
        })
        .collect();
    tasks.sort();
    let mut hosts = [serve(&bench), serve(&bench)];
    let open = || {
        let listed = host.get("/api/agent/tasks").json();
        listed["data"]["tasks"].as_array().map_or(TASKS, Vec::len)
    };
    let began = Instant::now();
    let mut kills = 0;
    while open() > 0 && began.elapsed() < LONG {
        // Somewhere in the middle of something; each time after another while.
        std::thread::sleep(Duration::from_millis(150 + 370 * (kills as u64 % 5)));
        if kills < KILLS {
            let victim = &mut hosts[kills % 2];
            victim.kill().unwrap();
            victim.wait().unwrap();
            *victim = serve(&bench);
            kills += 1;
        }
    }
    let left = open();
    for mut host in hosts {
        host.kill().unwrap();
        host.wait().unwrap();
    }
    assert_eq!(left, 0, "{kills} kills");
    let comments = bench.stored("comments");
    let mut greeted: Vec<&str> =
        comments.iter().map(|comment| comment["taskId"].as_str().unwrap()).collect();
    greeted.sort_unstable();
    assert_eq!(greeted, tasks, "each said it exactly once");
    let stored = bench.stored("tasks");
    let (made, own): (Vec<&Value>, Vec<&Value>) =
        stored.iter().partition(|task| task["project"] == "made");
    assert!(own.len() == TASKS && own.iter().all(|task| task["status"] == "done"), "{own:?}");
    for task in &tasks {
        let title = format!("Made by {task}");
        let times = made.iter().filter(|made| made["title"] == title.as_str()).count();
        let events = bench.events(task);
        // What was cut off may have happened or not, and is never repeated.
        let is_cut = events.contains("\"interrupted\"");
        assert!(times == 1 || (is_cut && times == 0), "{task}: {times} times\n{events}");
    }
}
