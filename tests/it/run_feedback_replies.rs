//! Answers come back from issues: by poll and by webhook, the same, once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::build::built;
use crate::support::host_process::{Answer, HostOptions, HostProcess, wait_until};
use crate::support::runs::{RunFolder, call, question};
use crate::support::scripted_server::{Act, ScriptedServer};
use crate::support::{parse, skipped};

const SECRET: &str = "It's a Secret to Everybody";

/// The stand-in tracker, as a process.
struct Tracker {
    child: Child,
    origin: String,
}

impl Tracker {
    fn start(hook: Option<&str>) -> Tracker {
        let mut command = Command::new(&built().host);
        command.args(["run-feedback", "stand-in-tracker"]).env("UDF_HOST_HOOK_SECRET", SECRET);
        if let Some(hook) = hook {
            command.args(["--hook", hook]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let origin = parse(&line)["origin"].as_str().unwrap().to_owned();
        Tracker { child, origin }
    }

    fn url(&self, issue: u64) -> String {
        format!("{}/repos/acme/widgets/issues/{issue}/comments", self.origin)
    }

    /// Somebody writes a comment.
    fn write(&self, issue: u64, login: &str, body: &str) -> Value {
        let mut response = ureq::post(&self.url(issue))
            .header("authorization", &format!("Bearer {login}"))
            .send(json!({ "body": body }).to_string())
            .unwrap();
        assert_eq!(response.status(), 201);
        parse(&response.body_mut().read_to_string().unwrap())
    }

    /// All comments on an issue.
    fn read(&self, issue: u64) -> Vec<Value> {
        let mut response = ureq::get(&format!("{}?per_page=100", self.url(issue)))
            .header("authorization", "Bearer reader")
            .call()
            .unwrap();
        parse(&response.body_mut().read_to_string().unwrap()).as_array().unwrap().clone()
    }

    /// The bodies of our own comments on an issue.
    fn ours(&self, issue: u64) -> Vec<String> {
        let all = self.read(issue);
        let own = all.iter().filter(|comment| comment["user"]["login"] == "bot");
        own.map(|comment| comment["body"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn environment(api: &str) -> [(&'static str, String); 5] {
    [
        ("RUN_FEEDBACK_POSTER", "github".to_owned()),
        ("GITHUB_API_URL", api.to_owned()),
        ("GITHUB_REPOSITORY", "acme/widgets".to_owned()),
        ("GITHUB_TOKEN", "bot".to_owned()),
        ("UDF_HOST_HOOK_SECRET", SECRET.to_owned()),
    ]
}

fn host(folder: &RunFolder, api: &str) -> HostProcess {
    let options = HostOptions::new().cwd(&folder.root);
    let options = environment(api)
        .into_iter()
        .fold(options, |options, (name, value)| options.env(name, value));
    HostProcess::start(&options)
}

/// `udf-host run-feedback poll`, not started yet.
fn poll_command(folder: &RunFolder, api: &str, more: &[&str]) -> Command {
    let mut command = Command::new(&built().host);
    command.args(["--only", "--udfs"]).arg(&built().udfs).args(["run-feedback", "poll"]).args(more);
    command.current_dir(&folder.root).env("XDG_CACHE_HOME", &built().cache).envs(environment(api));
    command.stdin(Stdio::null());
    command
}

/// One round on the command line: exit status and reply.
fn poll(folder: &RunFolder, api: &str) -> (i32, Value) {
    let output = poll_command(folder, api, &[]).output().unwrap();
    let text =
        String::from_utf8(if output.stdout.is_empty() { output.stderr } else { output.stdout })
            .unwrap();
    (output.status.code().unwrap(), parse(text.trim()))
}

fn sign(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let digits = mac.finalize().into_bytes();
    format!("sha256={}", digits.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// A delivery of GitHub's for a comment.
fn payload(issue: u64, comment: &Value) -> String {
    json!({"action": "created", "issue": {"number": issue}, "comment": comment,
        "repository": {"full_name": "acme/widgets"}, "sender": comment["user"]})
    .to_string()
}

/// Sends a delivery with the given headers.
fn send(host: &HostProcess, headers: &[(&str, &str)], body: &str) -> Answer {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.post(&format!("{}/hooks/github", host.origin));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send(body).unwrap();
    Answer {
        status: response.status().as_u16(),
        text: response.body_mut().read_to_string().unwrap(),
    }
}

/// Delivers a comment as GitHub does; the result.
#[track_caller]
fn deliver(host: &HostProcess, id: &str, issue: u64, comment: &Value) -> Value {
    let body = payload(issue, comment);
    let answer = send(
        host,
        &[
            // Through a tunnel, which has a name of its own.
            ("host", "hooks.acme.example"),
            ("content-type", "application/json"),
            ("user-agent", "GitHub-Hookshot/044aadd"),
            ("x-github-event", "issue_comment"),
            ("x-github-delivery", id),
            ("x-hub-signature-256", &sign(&body)),
        ],
        &body,
    );
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"]["result"].clone()
}

/// Asks on the tracker; the id of the run.
fn ask(host: &HostProcess, folder: &RunFolder, number: usize, issue: u64) -> String {
    let run = folder.add(number, &issue.to_string());
    let mut overrides = question(&run);
    overrides["post_to_issue"] = json!(true);
    let reply = call(host, "request_feedback", &overrides);
    assert_eq!(reply["notifications"]["issue_comment"], true, "{reply}");
    run
}

#[test]
fn a_poll_brings_the_answer_and_the_run_goes_on() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = ask(&host, &folder, 1, 7);
    assert!(tracker.ours(7)[0].starts_with("## Feedback Requested\n"));
    assert_eq!(
        poll(&folder, &tracker.origin).1["outcomes"],
        json!([]),
        "our own comment answers nothing"
    );

    tracker.write(7, "guest", "approve\n\n@faber resume");
    tracker.write(7, "sam", "I would say yes or no.\n\n@faber resume");
    let (exit, round) = poll(&folder, &tracker.origin);
    let outcome = |at: usize| {
        (round["outcomes"][at]["outcome"].as_str(), round["outcomes"][at]["reason"].as_str())
    };
    assert_eq!(exit, 0, "{round}");
    assert_eq!(outcome(0), (Some("ignored"), Some("association")), "{round}");
    assert_eq!(outcome(1).0, Some("replied"), "{round}");
    let ours = tracker.ours(7);
    assert_eq!(ours.len(), 2, "{ours:?}");
    assert!(
        ours[1].contains("@sam: ") && ours[1].contains("1. **approve** - Continue to next phase"),
        "{ours:?}"
    );
    assert_eq!(
        poll(&folder, &tracker.origin).1["outcomes"],
        json!([]),
        "once for each unclear comment"
    );
    assert_eq!(tracker.ours(7).len(), 2);

    let comment = tracker.write(7, "sam", "Approved\n\nbut keep the old names\n\n@faber resume");
    let (exit, round) = poll(&folder, &tracker.origin);
    let row = &round["outcomes"][0];
    assert_eq!(
        (exit, &row["outcome"], &row["response"], &row["action"]),
        (0, &json!("answered"), &json!("approve"), &json!("continue")),
        "{round}"
    );
    let state = folder.state(&run);
    let entry = &state["feedback_history"][0];
    assert_eq!(entry["provided_by"], json!({"user": "sam", "source": "issue_comment"}));
    assert_eq!(entry["comment"], "but keep the old names");
    let resumed = call(&host, "resume_run", &json!({"run_id": run}));
    assert_eq!(resumed["run_status"], "in_progress");
    // The webhook sees the same comment: nothing happens again.
    assert_eq!(deliver(&host, "d-1", 7, &comment)["outcome"], "seen");
    assert_eq!(folder.state(&run), state);
}

#[test]
fn a_webhook_and_a_poll_give_the_same_result() {
    for (body, more) in [
        ("approve\n\n@faber resume", ""),
        ("2\n@faber resume", ""),
        ("option: nothing\n@faber resume", ""),
        ("not sure @faber resume", ""),
        ("@faber cancel", ""),
        ("@faber status", ""),
        ("@faber resume", "Please reject it."),
        ("approve @faber resume --request fr-20200101-000000", ""),
        ("> approve @faber resume", ""),
        ("no command", ""),
    ] {
        let results: Vec<(Value, Value, Vec<String>)> = [true, false]
            .into_iter()
            .map(|by_hook| {
                let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
                let host = host(&folder, &tracker.origin);
                let run = folder.add_waiting(1, "7");
                if !more.is_empty() {
                    tracker.write(7, "sam", more);
                }
                let comment = tracker.write(7, "sam", body);
                let mut result = if by_hook {
                    deliver(&host, "d-1", 7, &comment)
                } else {
                    let round = call(&host, "poll_replies", &json!({}));
                    assert_eq!(round["failures"], json!([]), "{round}");
                    // What addresses nobody is not listed in a round.
                    round["outcomes"]
                        .get(0)
                        .cloned()
                        .unwrap_or_else(|| json!({"outcome": "ignored"}))
                };
                if result["outcome"] == "ignored" {
                    result = json!({"outcome": "ignored"});
                } else if let Some(members) = result.as_object_mut() {
                    members.remove("issue");
                }
                let mut state = folder.state(&run);
                state["updated_at"] = json!(null);
                if let Some(entry) = state["feedback_history"].get_mut(0) {
                    entry["received_at"] = json!(null);
                }
                (result, state, tracker.ours(7))
            })
            .collect();
        assert_eq!(results[0], results[1], "{body}");
    }
}

#[test]
fn both_at_once_record_one_answer() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = folder.add_waiting(1, "7");
    let comment = tracker.write(7, "sam", "reject\n@faber resume");
    thread::scope(|scope| {
        for n in 0..4 {
            let (host, comment) = (&host, &comment);
            scope.spawn(move || deliver(host, &format!("d-{n}"), 7, comment));
            scope.spawn(move || call(host, "poll_replies", &json!({})));
        }
        let (folder, origin) = (&folder, &tracker.origin);
        scope.spawn(move || poll(folder, origin));
    });
    let state = folder.state(&run);
    assert_eq!(state["feedback_history"].as_array().unwrap().len(), 1);
    assert_eq!(folder.count(&run, "feedback_received"), 1);
    assert_eq!(tracker.ours(7), Vec::<String>::new(), "nobody is told anything");
}

#[test]
fn a_delivery_is_taken_only_with_its_signature() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = folder.add_waiting(1, "7");
    let body = payload(7, &tracker.write(7, "sam", "approve @faber resume"));
    let right = sign(&body);
    let other = sign(&format!("{body} "));
    let good = [
        ("content-type", "application/json"),
        ("x-github-event", "issue_comment"),
        ("x-github-delivery", "d-1"),
        ("x-hub-signature-256", right.as_str()),
    ];
    for (status, name, value) in [
        (401, "x-hub-signature-256", other.as_str()),
        (401, "x-hub-signature-256", "sha256="),
        (401, "x-hub-signature-256", ""),
        (415, "content-type", "text/plain"),
        (415, "content-type", "multipart/form-data"),
        (400, "x-github-delivery", ""),
        (403, "origin", "https://evil.example"),
        (403, "sec-fetch-site", "cross-site"),
    ] {
        let mut headers: Vec<(&str, &str)> = good.to_vec();
        headers.retain(|(found, _)| *found != name);
        if !value.is_empty() {
            headers.push((name, value));
        }
        let answer = send(&host, &headers, &body);
        assert_eq!(answer.status, status, "{name}: {value}: {}", answer.text);
        assert!(answer.json()["error"].is_string());
    }
    let unsigned: Vec<_> =
        good.iter().copied().filter(|(name, _)| !name.starts_with("x-hub")).collect();
    assert_eq!(send(&host, &unsigned, &body).status, 401);
    let with_token = host.post("/hooks/github", "", "", &body).unwrap();
    assert_eq!(with_token.status, 401, "the token of the host is no signature");
    assert_eq!(host.get("/hooks/github").status, 405);
    let huge = payload(
        7,
        &json!({"id": 1, "body": "a".repeat(3 << 20), "created_at": "2999-01-01T00:00:00Z"}),
    );
    let signature = sign(&huge);
    let mut headers = good;
    headers[3].1 = &signature;
    assert_eq!(send(&host, &headers, &huge).status, 413, "GitHub's comments have 64 KiB");
    assert_eq!(folder.state(&run)["status"], "awaiting_feedback");
    assert!(!host.stderr().contains(SECRET));

    for (event, action, want) in [
        ("ping", "created", "ping"),
        ("issues", "created", "event"),
        ("issue_comment", "edited", "action"),
    ] {
        let body = body.replace("\"created\"", &format!("\"{action}\""));
        let signature = sign(&body);
        let mut headers = good;
        headers[1].1 = event;
        headers[3].1 = &signature;
        let answer = send(&host, &headers, &body);
        assert_eq!(
            (answer.status, &answer.json()["data"]["reason"]),
            (200, &json!(want)),
            "{}",
            answer.text
        );
    }
    assert_eq!(folder.state(&run)["status"], "awaiting_feedback");
    let answer = send(&host, &good, &body);
    assert_eq!(answer.json()["data"]["result"]["outcome"], "answered", "{}", answer.text);
    // The same delivery again, and the same comment in another one.
    assert_eq!(send(&host, &good, &body).json()["data"]["result"]["reason"], "delivery");
    let mut again = good;
    again[2].1 = "d-2";
    assert_eq!(send(&host, &again, &body).json()["data"]["result"]["reason"], "answered");
    drop(host);

    let without =
        HostProcess::start(&HostOptions::new().cwd(&folder.root).env("UDF_HOST_HOOK_SECRET", ""));
    assert_eq!(send(&without, &good, &body).status, 401, "like any route without a token");
    let mut foreign = good.to_vec();
    foreign.push(("host", "hooks.acme.example"));
    assert_eq!(send(&without, &foreign, &body).status, 403);
    assert_eq!(without.post("/hooks/github", "", "", &body).unwrap().status, 404);
}

#[test]
fn what_was_delivered_is_remembered_by_the_next_host() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    folder.add_waiting(1, "7");
    let comment = tracker.write(7, "sam", "perhaps @faber resume");
    for (id, want) in [
        ("d-1", ("replied", "no_option")),
        ("d-1", ("seen", "delivery")),
        ("d-2", ("seen", "replied")),
    ] {
        let mut host = host(&folder, &tracker.origin);
        let result = deliver(&host, id, 7, &comment);
        assert_eq!(
            (result["outcome"].as_str(), result["reason"].as_str()),
            (Some(want.0), Some(want.1)),
            "{result}"
        );
        host.kill();
    }
    assert_eq!(tracker.ours(7).len(), 1);
}

#[test]
fn a_host_killed_over_a_comment_loses_nothing() {
    if !cfg!(debug_assertions) {
        skipped("hosts of release builds cannot be told to die");
        return;
    }
    let mut kills = 0;
    for (body, answered) in [("approve @faber resume", true), ("perhaps @faber resume", false)] {
        for change in 1..60 {
            let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
            let run = folder.add_waiting(1, "7");
            let comment = tracker.write(7, "sam", body);
            let options = HostOptions::new().cwd(&folder.root);
            let options = environment(&tracker.origin)
                .into_iter()
                .fold(options, |options, (name, value)| options.env(name, value))
                .env("UDF_HOST_TEST_KILL_AT_CHANGE", change.to_string());
            let mortal = HostProcess::start(&options);
            let call_body = json!({"udf": "poll_replies", "overrides": {}}).to_string();
            let lived = mortal.post("/api/exec/udf", "_core", "run-feedback", &call_body).is_ok();
            drop(mortal);
            let host = host(&folder, &tracker.origin);
            // Both ways in, as the webhook may be repeated and the poll goes on.
            deliver(&host, "d-1", 7, &comment);
            let round = call(&host, "poll_replies", &json!({}));
            assert_eq!(round["failures"], json!([]), "change {change}: {round}");
            let state = folder.state(&run);
            let history = state["feedback_history"].as_array().map_or(0, Vec::len);
            assert_eq!(
                (history, tracker.ours(7).len()),
                if answered { (1, 0) } else { (0, 1) },
                "change {change}"
            );
            if lived {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 20, "only {kills} kills");
    println!("killed at {kills} places");
}

#[test]
fn a_poll_goes_on_and_takes_what_comes() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let run = folder.add_waiting(1, "7");
    let mut polling = poll_command(&folder, &tracker.origin, &["--every", "1s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(polling.stdout.take().unwrap());
    tracker.write(7, "sam", "reject @faber resume");
    let line = lines.lines().next().unwrap().unwrap();
    polling.kill().unwrap();
    polling.wait().unwrap();
    assert_eq!(parse(&line)["outcomes"][0]["response"], "reject", "{line}");
    assert_eq!(folder.state(&run)["status"], "in_progress");
}

#[test]
fn a_comment_is_delivered_by_the_stand_in_itself() {
    let folder = RunFolder::new();
    let host = host(&folder, "http://127.0.0.1:9");
    let run = folder.add_waiting(1, "7");
    let tracker = Tracker::start(Some(&format!("{}/hooks/github", host.origin)));
    tracker.write(7, "sam", "approve @faber resume");
    wait_until(Duration::from_secs(60), "the answer", || {
        (folder.state(&run)["status"] == "in_progress").then_some(())
    })
    .expect("the comment arrives");
    let refused = Command::new(&built().host)
        .args(["run-feedback", "stand-in-tracker", "--hook", "http://127.0.0.1:9"])
        .env_remove("UDF_HOST_HOOK_SECRET")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "nothing is sent unsigned");
}

#[test]
fn many_comments_are_read_to_the_last_page() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = folder.add_waiting(1, "7");
    for n in 0..205 {
        tracker.write(7, "kim", &format!("Remark {n}."));
    }
    tracker.write(7, "sam", "approve @faber resume");
    let round = call(&host, "poll_replies", &json!({}));
    assert_eq!(round["outcomes"][0]["comment_id"], "206", "{round}");
    assert_eq!(folder.state(&run)["status"], "in_progress");
}

#[test]
fn a_full_page_hides_no_answer() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = folder.add_waiting(1, "7");
    for n in 0..100 {
        tracker.write(7, "kim", &format!("Remark {n}."));
    }
    assert_eq!(call(&host, "poll_replies", &json!({}))["outcomes"], json!([]));
    tracker.write(7, "sam", "approve @faber resume");
    let round = call(&host, "poll_replies", &json!({}));
    assert_eq!(round["outcomes"][0]["comment_id"], "101", "{round}");
    assert_eq!(folder.state(&run)["status"], "in_progress");
}

/// Anybody may write on a public issue, and as long as the tracker allows.
#[test]
fn the_longest_comments_of_strangers_keep_no_answer_away() {
    let folder = RunFolder::new();
    let run = folder.add_waiting(1, "7");
    let long = "🎯".repeat(65_536);
    let said = |id: usize, association: &str, body: &str| {
        json!({"id": id, "user": {"login": "kim"}, "author_association": association, "body": body,
            "created_at": "2999-01-01T00:00:00Z"})
    };
    let mut all: Vec<Value> = (1..100).map(|id| said(id, "NONE", &long)).collect();
    all.push(said(100, "MEMBER", "approve @faber resume"));
    let page = json!(all).to_string();
    let server = ScriptedServer::start(move |_, _| Act::Answer(200, vec![], page.clone()));
    let (exit, round) = poll(&folder, &server.origin);
    assert_eq!((exit, &round["outcomes"][0]["response"]), (0, &json!("approve")), "{round}");
    assert_eq!(folder.state(&run)["status"], "in_progress");
}

#[test]
fn a_delivery_as_a_form_is_understood() {
    let (folder, tracker) = (RunFolder::new(), Tracker::start(None));
    let host = host(&folder, &tracker.origin);
    let run = folder.add_waiting(1, "7");
    let body = payload(7, &tracker.write(7, "sam", "reject: 100% sure + more\n\n@faber resume"));
    let mut form = "payload=".to_owned();
    for byte in body.bytes() {
        match byte {
            b' ' => form.push('+'),
            byte if byte.is_ascii_alphanumeric() => form.push(char::from(byte)),
            byte => form.push_str(&format!("%{byte:02X}")),
        }
    }
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-github-event", "issue_comment"),
        ("x-github-delivery", "d-1"),
        ("x-hub-signature-256", &*sign(&form)),
    ];
    let answer = send(&host, &headers, &form);
    assert_eq!((answer.status, folder.state(&run)["status"].as_str()), (200, Some("in_progress")));
    let entry = &folder.state(&run)["feedback_history"][0];
    assert_eq!(
        (&entry["response"], &entry["comment"]),
        (&json!("reject"), &json!("100% sure + more"))
    );
}

#[test]
fn a_tracker_that_fails_is_told_and_asked_again_later() {
    let folder = RunFolder::new();
    folder.add_waiting(1, "7");
    for (act, code, want) in [
        (Act::Answer(401, vec![], "{\"message\": \"Bad credentials\"}".into()), 6, "AUTH_FAILED"),
        (
            Act::Answer(403, vec![("retry-after", "90".into())], "{}".into()),
            6,
            "left alone for 91 s",
        ),
        (Act::Answer(200, vec![], "[{]".into()), 6, "not JSON"),
    ] {
        let server = ScriptedServer::start(move |_, _| act.clone());
        let (exit, round) = poll(&folder, &server.origin);
        let message = round["failures"][0]["message"].as_str().unwrap_or_default();
        assert!(exit == code && message.contains(want), "{exit} {round}");
    }
    let output =
        poll_command(&folder, "http://tracker.example", &["--every", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "what is wrong at the start stays wrong");
}
