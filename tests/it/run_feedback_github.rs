//! Questions posted on GitHub: what goes out, and that nothing a tracker does fails a request.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::runs::{RunFolder, call, question};
use crate::support::scripted_server::{Act, Asked, ScriptedServer};

const TOKEN: &str = "ghp_never_shown";

fn host(folder: &RunFolder, api: &str) -> HostProcess {
    HostProcess::start(
        &HostOptions::new()
            .cwd(&folder.root)
            .arg("--log")
            .arg("trace")
            .env("RUN_FEEDBACK_POSTER", "github")
            .env("GITHUB_API_URL", api)
            .env("GITHUB_REPOSITORY", "acme/widgets")
            .env("GITHUB_TOKEN", TOKEN),
    )
}

fn ask(host: &HostProcess, run: &str) -> Value {
    let mut overrides = question(run);
    overrides["post_to_issue"] = json!(true);
    call(host, "request_feedback", &overrides)
}

fn created(origin: &str) -> Act {
    let url = format!("{origin}/acme/widgets/issues/7#issuecomment-77");
    Act::Answer(201, vec![], json!({"id": 77, "html_url": url, "body": "…"}).to_string())
}

fn said(status: u16, headers: &[(&'static str, &str)], message: &str) -> Act {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Act::Answer(status, headers, json!({ "message": message }).to_string())
}

#[test]
fn a_question_goes_out_byte_by_byte_after_the_state_is_on_disk() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let path = folder.dir(&run).join("state.json");
    let server = ScriptedServer::start(move |_, _| {
        let state = crate::support::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(state["status"], "awaiting_feedback", "the state comes first");
        created("https://tracker.example")
    });
    // As on a server of GitHub Enterprise.
    let host = host(&folder, &format!("{}/api/v3/", server.origin));
    let reply = ask(&host, &run);
    let url = "https://tracker.example/acme/widgets/issues/7#issuecomment-77";
    assert_eq!(
        reply["notifications"],
        json!({"cli": false, "issue_comment": true, "comment_url": url})
    );
    assert_eq!(reply.get("warnings"), None);
    let request = folder.state(&run)["feedback_request"].clone();
    assert_eq!(request["notification_sent"]["comment_url"], url);

    let asked = &server.asked()[0];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", "/api/v3/repos/acme/widgets/issues/7/comments")
    );
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(asked.header("accept"), "application/vnd.github+json");
    assert_eq!(asked.header("x-github-api-version"), "2022-11-28");
    assert!(asked.header("user-agent").starts_with("udf-host/"));
    let posted = asked.json();
    assert_eq!(posted.as_object().unwrap().len(), 1);
    let requested = request["requested_at"].as_str().unwrap();
    let shown = json!({"run_id": run, "request_id": request["request_id"], "type": "approval", "phase": "build",
        "step": "review", "prompt": "Ship it?", "options": ["approve", "reject"],
        "timestamp": format!("{} {} UTC", &requested[..10], &requested[11..16])});
    let comment = call(&host, "format_feedback_comment", &shown);
    assert_eq!(
        posted["body"].as_str().unwrap(),
        comment.as_str().unwrap().strip_suffix('\n').unwrap()
    );
    assert!(!host.stderr().contains(TOKEN), "the token is in the log");
}

#[test]
fn whatever_the_tracker_does_the_request_stands() {
    let folder = RunFolder::new();
    let far = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600;
    let far = far.to_string();
    let acts: Vec<(&str, Act, &str)> = vec![
        ("401", said(401, &[], "Bad credentials"), "AUTH_FAILED: status 401: Bad credentials"),
        (
            "403",
            said(403, &[], "Resource not accessible by integration"),
            "AUTH_FAILED: status 403",
        ),
        (
            "403 over the limit",
            said(
                403,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &far)],
                "API rate limit exceeded",
            ),
            "API rate limit exceeded; it wants to be left alone for",
        ),
        (
            "403 over the second limit",
            said(403, &[("retry-after", "120")], "You have exceeded a secondary rate limit"),
            "left alone for 121 s",
        ),
        ("429", said(429, &[("retry-after", "90")], "Too many"), "left alone for 91 s"),
        ("404", said(404, &[], "Not Found"), "NOT_FOUND: status 404: Not Found"),
        ("410", said(410, &[], "This issue was deleted"), "NOT_FOUND: status 410"),
        (
            "422",
            said(422, &[], "Validation Failed"),
            "VALIDATION_ERROR: status 422: Validation Failed",
        ),
        ("500", said(500, &[], "Server Error"), "status 500: Server Error"),
        ("502", Act::Answer(502, vec![], "<html>".into()), "status 502"),
        ("503 that tells a secret", said(503, &[], TOKEN), "status 503: [token]"),
        ("half a head", Act::Bytes("HTTP/1.1 201 Cre".into()), "no answer of 127.0.0.1"),
        (
            "half a body",
            Act::Bytes("HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{\"id\": 77".into()),
            "no answer of 127.0.0.1",
        ),
        ("no answer at all", Act::Bytes(String::new()), "no answer of 127.0.0.1"),
        ("not HTTP", Act::Bytes("220 mail ready\r\n\r\n".into()), "no answer of 127.0.0.1"),
        ("no JSON", Act::Answer(201, vec![], "created".into()), "not JSON"),
        ("no address", Act::Answer(201, vec![], "{\"id\": 77}".into()), "no id and address"),
        (
            "a redirect away",
            said(307, &[("location", "http://127.0.0.2:1/x")], ""),
            "another server",
        ),
        ("a redirect to nowhere", said(301, &[], "Moved"), "status 301"),
    ];
    let script = acts.clone();
    let server = ScriptedServer::start(move |_, before| script[before].1.clone());
    let host = host(&folder, &server.origin);
    for (number, (what, _, want)) in acts.iter().enumerate() {
        let run = folder.add(number, "7");
        let reply = ask(&host, &run);
        assert_eq!(reply["status"], "success", "{what}: {reply}");
        let warning = &reply["warnings"][0];
        assert_eq!(
            (&warning["code"], &warning["number"]),
            (&json!("ISSUE_COMMENT_FAILED"), &json!(6)),
            "{what}"
        );
        let message = warning["message"].as_str().unwrap();
        assert!(message.contains(want), "{what}: {message}");
        assert!(!reply.to_string().contains(TOKEN), "{what}");
        let state = folder.state(&run);
        assert_eq!(state["status"], "awaiting_feedback", "{what}");
        assert_eq!(
            state["feedback_request"]["notification_sent"]["issue_comment"], false,
            "{what}"
        );
        assert_eq!(server.asked().len(), number + 1, "{what}: a comment is never posted twice");
    }
    assert!(!host.stderr().contains(TOKEN), "the token is in the log");
}

#[test]
fn what_can_be_waited_for_is_and_a_moved_repository_is_found() {
    let folder = RunFolder::new();
    let run = folder.add(1, "#7");
    let server = ScriptedServer::start(|asked: &Asked, before| match before {
        0 => said(429, &[("retry-after", "0")], "Too many"),
        1 => said(307, &[("location", "/repositories/9/issues/7/comments")], "Moved"),
        _ => {
            assert_eq!(
                (asked.method.as_str(), asked.path.as_str()),
                ("POST", "/repositories/9/issues/7/comments")
            );
            created("https://tracker.example")
        }
    });
    let host = host(&folder, &server.origin);
    let reply = ask(&host, &run);
    assert_eq!(reply["notifications"]["issue_comment"], true, "{reply}");
    let bodies: Vec<String> = server.asked().iter().map(|asked| asked.body.clone()).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn a_tracker_that_hangs_has_thirty_seconds() {
    let folder = RunFolder::new();
    let run = folder.add(1, "7");
    let server = ScriptedServer::start(|_, _| Act::Hang);
    let host = host(&folder, &server.origin);
    call(&host, "list_pending", &json!({}));
    let began = Instant::now();
    let reply = ask(&host, &run);
    let took = began.elapsed();
    assert_eq!(reply["status"], "success", "{reply}");
    assert!(reply["warnings"][0]["message"].as_str().unwrap().contains("timeout"), "{reply}");
    assert!(took > Duration::from_secs(25) && took < Duration::from_secs(45), "{took:?}");
    assert_eq!(folder.state(&run)["status"], "awaiting_feedback");
}

#[test]
fn what_is_not_set_up_is_said() {
    let folder = RunFolder::new();
    for (number, (name, value, want)) in [
        ("GITHUB_TOKEN", "", "GITHUB_TOKEN"),
        ("GITHUB_REPOSITORY", "widgets", "GITHUB_REPOSITORY"),
        ("GITHUB_API_URL", "http://tracker.example", "this machine only"),
        ("RUN_FEEDBACK_POSTER", "pigeon", "one of: command, github, none"),
    ]
    .into_iter()
    .enumerate()
    {
        let options = HostOptions::new()
            .cwd(&folder.root)
            .env("RUN_FEEDBACK_POSTER", "github")
            .env("GITHUB_API_URL", "http://127.0.0.1:9")
            .env("GITHUB_REPOSITORY", "acme/widgets")
            .env("GH_TOKEN", "")
            .env("GITHUB_TOKEN", TOKEN)
            .env(name, value);
        let host = HostProcess::start(&options);
        let reply = ask(&host, &folder.add(number, "7"));
        let message = reply["warnings"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(want), "{name}: {reply}");
    }
    let host = host(&folder, "http://127.0.0.1:9");
    let reply = ask(&host, &folder.add(9, "PROJ-12"));
    assert!(reply["warnings"][0]["message"].as_str().unwrap().contains("PROJ-12"), "{reply}");
}
