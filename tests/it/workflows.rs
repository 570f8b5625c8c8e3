//! The agent loop as people run it: the real binary, the shipped workflow and cards, a model behind a socket.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::agent::{Bench, act, ends, is_checker, is_worker, kinds, writes_or_talks};
use crate::support::fixture::write;
use crate::support::model::{Answer, Asked, ModelService};

/// One fault in the first draft, none in the second.
fn one_fault() -> impl FnMut(&Asked) -> Answer {
    let mut verdicts = 0;
    move |asked| {
        if !is_checker(asked) {
            return writes_or_talks(asked);
        }
        verdicts += 1;
        ends(if verdicts == 1 { "VERDICT: FAIL — no source" } else { "VERDICT: PASS" })
    }
}

const WHOLE: [&str; 5] =
    ["work_outcome", "check_outcome", "round_counted", "work_outcome", "check_outcome"];

#[test]
fn a_report_from_request_to_presentation() {
    let model = ModelService::start(one_fault());
    let bench = Bench::new(Some(&model));
    let ended = bench.report();
    let task = ended["task"].as_str().unwrap();
    assert_eq!(ended["status"], "complete");
    assert_eq!(ended["ended"]["summary"], "tea");
    assert_eq!(kinds(&bench.journal(task)), WHOLE);
    let state = bench.state(task);
    assert_eq!((&state["verified"], &state["rounds"]), (&json!(true), &json!(1)));
    let draft = bench.folder.path().join(format!("reports/{task}/draft.md"));
    assert_eq!(std::fs::read_to_string(draft).unwrap(), "# Tea\nIt is grown in Assam.");
    let (tasks, comments) = (bench.stored("tasks"), bench.stored("comments"));
    assert_eq!((tasks.len(), &tasks[0]["status"]), (1, &json!("done")));
    assert_eq!((comments.len(), &comments[0]["body"]), (1, &json!("Here is the report.")));
    let asked = model.asked();
    assert_eq!(asked.len(), 7, "two for each worker, one for each checker, one to present");
    assert!(asked[3].last().contains("no source") && asked[3].last().contains("ALREADY TRIED"));
    assert!(asked[6].system.contains("You look after a report"));
    // A tool list of a sub-agent offers what its type allows, without what is pinned.
    assert!(asked[0].last().contains("- write_draft(text?): Saves the whole report"));
    assert!(!asked[2].last().contains("write_draft("), "the checker cannot write");
}

#[test]
fn a_host_that_is_killed_at_any_question_goes_on_and_repeats_no_outcome() {
    for fatal in 1..=7 {
        let (killed, now): (Sender<()>, Receiver<()>) = channel();
        let (mut count, mut answer) = (0, one_fault());
        let model = ModelService::start(move |asked| {
            count += 1;
            if count == fatal {
                killed.send(()).unwrap();
                return Answer::Gone;
            }
            answer(asked)
        });
        let bench = Bench::new(Some(&model));
        let words =
            ["agent", "run", "--workflow", "report_writing", "--request", "A report on tea"];
        let mut host = bench.command(&words).spawn().unwrap();
        now.recv_timeout(Duration::from_secs(300)).unwrap();
        // SIGKILL.
        host.kill().unwrap();
        host.wait().unwrap();
        let resumed = bench.json(&["agent", "resume", "--json"]);
        let task = resumed[0]["task"].as_str().unwrap();
        assert_eq!(resumed[0]["status"], "complete", "killed at question {fatal}");
        assert_eq!(kinds(&bench.journal(task)), WHOLE, "killed at question {fatal}");
        let stage = ["bootstrap", "bootstrap", "check", "work_round", "work_round", "check"];
        let cut: Vec<Value> = stage.get(fatal - 1).map(|stage| json!(stage)).into_iter().collect();
        assert_eq!(bench.interruptions(task), cut, "killed at question {fatal}");
        assert_eq!(bench.state(task)["rounds"], 1, "killed at question {fatal}");
        assert!(bench.stored("comments").len() <= 1, "killed at question {fatal}");
        assert_eq!(bench.stored("tasks").len(), 1);
        let again = bench.json(&["agent", "resume", "--json"]);
        assert_eq!(again, json!([]), "nothing is left to do");
    }
}

#[test]
fn a_spent_budget_asks_once_and_the_answer_goes_on() {
    let passes = Arc::new(Mutex::new(false));
    let passing = Arc::clone(&passes);
    let model = ModelService::start(move |asked| {
        if is_checker(asked) {
            let pass = *passing.lock().unwrap();
            return ends(if pass {
                "VERDICT: PASS"
            } else {
                "VERDICT: FAIL\n- Claim 3 — FAIL — no source"
            });
        }
        writes_or_talks(asked)
    });
    let bench = Bench::new(Some(&model));
    let parked = bench.report();
    let task = parked["task"].as_str().unwrap();
    assert_eq!((&parked["status"], &parked["parked"]["why"]), (&json!("running"), &json!("user")));
    let cards = bench.stored("cards");
    assert_eq!((cards.len(), &cards[0]["status"]), (1, &json!("pending")));
    assert_eq!(
        (&cards[0]["continuationPolicy"], &cards[0]["taskId"]),
        (&json!("wake_assignee"), &json!(task))
    );
    let payload = &cards[0]["payload"];
    assert_eq!((&payload["failures"], &payload["shrinking"]), (&json!([1, 1, 1]), &json!(false)));
    assert_eq!(payload["tried"], json!(["check failed", "check failed", "check failed"]));
    let asked = model.asked().len();
    for _ in 0..2 {
        assert_eq!(bench.json(&["agent", "resume", task, "--json"])[0]["parked"]["why"], "user");
    }
    assert_eq!((model.asked().len(), bench.stored("cards").len()), (asked, 1), "idle for ever");

    // The answer comes while no host runs.
    let id = cards[0]["id"].as_str().unwrap();
    let answer = [
        "exec",
        "feedback-management.resolve_card",
        &format!("id={id}"),
        "status=answered",
        "result=\"see the almanac\"",
    ];
    bench.run(&answer);
    *passes.lock().unwrap() = true;
    let ended = bench.json(&["agent", "resume", "--json"]);
    assert_eq!(ended[0]["status"], "complete");
    let leads = bench.journal(task).iter().filter(|line| line["event"] == "user_lead").count();
    assert_eq!(leads, 1);
    let after = model.asked();
    let worker = after[asked..].iter().find(|asked| is_worker(asked)).unwrap();
    assert!(worker.last().contains("see the almanac"));
}

#[test]
fn an_outage_of_the_checker_pauses_and_spends_nothing() {
    let down = Arc::new(Mutex::new(true));
    let is_down = Arc::clone(&down);
    let mut answer = one_fault();
    let model = ModelService::start(move |asked| {
        if is_checker(asked) && *is_down.lock().unwrap() { Answer::Down } else { answer(asked) }
    });
    let bench = Bench::new(Some(&model));
    let parked = bench.report();
    let task = parked["task"].as_str().unwrap();
    assert_eq!(parked["parked"]["why"], "user");
    let state = bench.state(task);
    assert_eq!((&state["infra_blocked"], &state["staged"]), (&json!(true), &json!(true)));
    assert_eq!((&state["rounds"], &state["check_attempts"]), (&json!(0), &json!(0)));
    let asked = model.asked().len();
    bench.json(&["agent", "resume", "--json"]);
    assert_eq!(model.asked().len(), asked);

    *down.lock().unwrap() = false;
    assert!(bench.run(&["agent", "say", task, "it is back"]).status.success());
    assert_eq!(bench.json(&["agent", "resume", "--json"])[0]["status"], "complete");
    let after = model.asked();
    assert!(is_checker(&after[asked + 1]), "the same step again, behind the reply");
}

#[test]
fn two_messages_while_a_worker_runs_are_answered_once_each() {
    let bench = Arc::new(Mutex::new(None::<Arc<Bench>>));
    let sayer = Arc::clone(&bench);
    let mut said = false;
    let model = ModelService::start(move |asked| {
        if is_worker(asked) && !said {
            said = true;
            let bench = sayer.lock().unwrap().clone().unwrap();
            let task = bench.tasks().remove(0);
            for text in ["add a chart", "and a table"] {
                assert!(bench.run(&["agent", "say", &task, text]).status.success());
            }
        }
        if is_checker(asked) { ends("VERDICT: PASS") } else { writes_or_talks(asked) }
    });
    let shared = Arc::new(Bench::new(Some(&model)));
    *bench.lock().unwrap() = Some(Arc::clone(&shared));
    let ended = shared.report();
    assert_eq!(ended["status"], "complete");
    let bodies: Vec<Value> =
        shared.stored("comments").iter().map(|comment| comment["body"].clone()).collect();
    assert_eq!(bodies, ["I am on it.", "I am on it.", "Here is the report."]);
    let journal = shared.journal(ended["task"].as_str().unwrap());
    assert_eq!(kinds(&journal), ["work_outcome", "user_lead", "user_lead", "check_outcome"]);
}

/// The limits of an agent's data file: thirty turns, then one in which only the end counts.
#[test]
fn a_worker_that_never_ends_is_told_to_and_its_rounds_are_counted() {
    let model = ModelService::start(|asked| match is_worker(asked) {
        true => act("list_sources", json!({})),
        false => act("send_message", json!({"message": "The writer does not come to an end."})),
    });
    let bench = Bench::new(Some(&model));
    let parked = bench.report();
    let task = parked["task"].as_str().unwrap();
    assert_eq!(parked["parked"]["phase"], "gated", "{parked}");
    let asked = model.asked();
    let workers: Vec<&Asked> = asked.iter().filter(|asked| is_worker(asked)).collect();
    assert_eq!(workers.len(), 3 * 31);
    let told = |asked: &&&Asked| asked.last().contains("Your turns are used up");
    assert_eq!(workers.iter().filter(told).count(), 3, "once for each");
    let state = bench.state(task);
    assert_eq!((&state["rounds"], &state["last_result"]["step"]), (&json!(3), &json!("worker")));
    let error = state["last_result"]["errors"][0].as_str().unwrap();
    assert!(error.contains("Out of turns after 30"), "{error}");
    assert_eq!(bench.stored("cards").len(), 1);
}

#[test]
fn a_plain_task_acts_through_operations_in_one_conversation() {
    let mut count = 0;
    let model = ModelService::start(move |_| {
        count += 1;
        match count {
            1 => act("_core.task-management.create", json!({"id": "task_x", "title": "Buy tea"})),
            2 => act(
                "_core.task-management.add_comment",
                json!({"task_id": "task_x", "author": "me", "body": "green"}),
            ),
            3 => act("_core.feedback-management.resolve_card", json!({"id": "x"})),
            _ => act("task_end", json!({"status": "complete", "reason": "done"})),
        }
    });
    let bench = Bench::new(Some(&model));
    let ended = bench.json(&["agent", "run", "--request", "Plan it", "--json"]);
    assert_eq!(ended["status"], "complete");
    assert_eq!(bench.stored("comments")[0]["body"], "green");
    let asked = model.asked();
    assert!(asked[0].last().contains("- _core.task-management.add_comment("));
    assert!(!asked[0].last().contains("resolve_card"), "people's answers are people's");
    let lengths: Vec<usize> = asked.iter().map(|asked| asked.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 7], "deltas of one conversation");
    assert!(asked[1].last().contains("[action_end _core.task-management.create]"));
    assert!(!asked[1].last().contains("# Request"));
    assert!(asked[3].last().contains("is not available here"));
}

#[test]
fn a_dry_run_whose_script_runs_out_fails_and_names_what_of_it_was_of_no_use() {
    let bench = Bench::new(None);
    let file = bench.folder.path().join("replies.txt");
    let file = file.to_str().unwrap();
    let nope = r#"{"actions": [{"action_name": "nope", "parameters": {}}]}"#;
    let asks = r#"{"actions": [{"action_name": "send_message", "parameters": {"message": "Which?", "wait_for_user_reply": true}}]}"#;
    for (script, code, wanted) in [
        ("garbage\n".to_owned(), 1, &["one reply", "line 1 is no reply that can be used: "][..]),
        (
            format!("\n{nope}\n"),
            1,
            &["line 2 is of no use: there is no action `nope`; there are ", "`send_message`"],
        ),
        // What was wrong is said as well when the rest of the script was enough.
        (format!("garbage\n{asks}"), 0, &["line 1 is no reply that can be used: "]),
        (asks.to_owned(), 0, &[]),
    ] {
        write(std::path::Path::new(file), script.as_bytes());
        let words = ["agent", "run", "--request", "x", "--dry-run", "--script", file];
        let output = bench.run(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {said}");
        for wanted in wanted {
            assert!(said.contains(wanted), "{script}: {said}");
        }
        if wanted.is_empty() {
            assert!(!said.contains("line 1"), "{said}");
        }
    }
    // A worker's reply as well.
    let one = r#"{"action_name": "writ_draft", "parameters": {}}"#;
    write(std::path::Path::new(file), one.as_bytes());
    let words =
        ["agent", "run", "--workflow", "report_writing", "--request", "x", "--dry-run", "--script"];
    let output = bench.run(&[&words[..], &[file]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let want = "line 1 is of no use: `writ_draft` is no action here; there are `write_draft`, ";
    assert!(said.contains(want), "{said}");
}

#[test]
fn a_dry_run_needs_no_model() {
    let bench = Bench::new(None);
    let script = bench.folder.path().join("replies.txt");
    let end = |result: &str| json!({"action_name": "sub_task_end", "parameters": {"status": "completed", "result": result}});
    let lines = [
        json!({"action_name": "write_draft", "parameters": {"text": "# Tea"}}),
        end("written"),
        end("VERDICT: PASS"),
        json!({"actions": [{"action_name": "task_end", "parameters": {"status": "complete"}}]}),
    ];
    write(&script, lines.map(|line| line.to_string()).join("\n").as_bytes());
    let script = script.to_str().unwrap();
    let words = [
        "agent",
        "run",
        "--workflow",
        "report_writing",
        "--request",
        "On tea",
        "--dry-run",
        "--script",
        script,
    ];
    let output = bench.run(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains(": done"));
    for (words, want) in [
        (
            &[
                "agent",
                "run",
                "--request",
                "x",
                "--workflow",
                "none",
                "--dry-run",
                "--script",
                script,
            ][..],
            "there is no workflow `none`; there are `living_ui_creation`, `report_writing`",
        ),
        (&["agent", "run", "--request", " ", "--dry-run", "--script", script], "needs a request"),
        (
            &[
                "agent",
                "run",
                "--request",
                "x",
                "--action",
                "nope",
                "--dry-run",
                "--script",
                script,
            ],
            "a task cannot use the action `nope`: there are `",
        ),
        (
            &[
                "agent",
                "run",
                "--request",
                "x",
                "--action",
                "_core.task-management.raed",
                "--dry-run",
                "--script",
                script,
            ],
            "`_core.task-management.raed`: unknown operation `raed`",
        ),
        (
            &[
                "agent",
                "run",
                "--request",
                "x",
                "--action",
                "_core.feedback-management.resolve_card",
                "--dry-run",
                "--script",
                script,
            ],
            "it is not for tasks",
        ),
        (
            &["agent", "resume", "task_gone", "--dry-run", "--script", script],
            "no agent task `task_gone`",
        ),
        (&["agent", "run", "--request", "x"], "no model provider is set"),
        (
            &["agent", "run"],
            "which task? Give its TASK_ID, or make a new one with `--request TEXT`",
        ),
    ] {
        let mut command = bench.command(words);
        for name in ["UDF_HOST_LLM_PROVIDER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(want), "{said}");
    }
}
