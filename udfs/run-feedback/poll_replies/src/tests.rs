use std::sync::{Arc, Mutex};

use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
use sdk::testing::TestHost;

use super::*;

fn waiting(request: &str, work_id: &str) -> String {
    json!({"status": "awaiting_feedback", "work_id": work_id, "last_event_id": 0,
        "feedback_request": {"request_id": request, "type": "approval", "prompt": "ok?",
            "options": ["approve", "reject"], "requested_at": "2026-01-31T08:00:00Z"},
        "resume_point": {"phase": "build", "step": "x", "step_index": 2}})
    .to_string()
}

fn host(disk: &RunDisk) -> TestHost {
    static TOKEN: std::sync::Once = std::sync::Once::new();
    TOKEN.call_once(|| {
        // SAFETY: the tests of this crate read the environment only after this, and nothing else writes it.
        unsafe {
            std::env::set_var("GITHUB_TOKEN", "secret");
            for name in ["GITHUB_API_URL", "GITHUB_REPOSITORY", "RUN_FEEDBACK_POSTER"] {
                std::env::remove_var(name);
            }
        }
    });
    let host = disk.host();
    host.set_setting("poster", "github");
    host.set_setting("github_repository", "acme/widgets");
    host
}

fn comment(id: u64, author: &str, body: &str) -> Value {
    json!({"id": id, "user": {"login": author}, "author_association": "MEMBER", "body": body,
        "created_at": "2026-01-31T08:05:09Z"})
}

fn reply(status: u16, headers: &[(&str, &str)], body: &Value) -> Result<HttpReply, UdfError> {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let headers = headers.iter().map(owned).collect();
    Ok(HttpReply { status, headers, body: body.to_string().into_bytes() })
}

fn poll_once(host: &TestHost) -> Value {
    host.call_json(UDF, &[("base_path", BASE)])
}

#[test]
fn a_round_acts_on_what_is_new_and_asks_no_more_than_it_must() {
    let host = host(&RunDisk::with_state(&waiting("fr-1", "7")));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    host.answer_http(move |request| {
        let tag = request.headers.iter().find(|(name, _)| name == "if-none-match");
        seen.lock().unwrap().push(request.url.clone());
        match tag {
            Some((_, tag)) if tag == "W/\"1\"" => reply(304, &[], &json!(null)),
            _ => {
                let list =
                    json!([comment(1, "bot", "## Feedback Requested"), comment(2, "sam", "hm")]);
                reply(200, &[("etag", "W/\"1\"")], &list)
            }
        }
    });
    let first = poll_once(&host);
    assert_eq!(
        first,
        json!({"status": "success", "operation": "poll-replies", "repository": "acme/widgets", "issues": 1,
            "outcomes": [], "failures": []})
    );
    assert_eq!(poll_once(&host), first, "nothing has changed");
    assert_eq!(
        asked.lock().unwrap()[0],
        "https://api.github.com/repos/acme/widgets/issues/7/comments?per_page=100&since=2026-01-31T08:00:00Z"
    );
    host.answer_http(|_| {
        let list = json!([
            comment(2, "sam", "hm"),
            comment(3, "sam", "reject\n@faber resume"),
            comment(4, "kim", "approve @faber resume --request fr-9")
        ]);
        reply(200, &[("etag", "W/\"2\"")], &list)
    });
    let third = poll_once(&host);
    assert_eq!(third["outcomes"][0]["response"], "reject", "{third}");
    // The second came too late; nobody heard that, as this server takes no comments.
    assert_eq!(third["failures"].as_array().map(Vec::len), Some(0), "{third}");
    assert_eq!(third["outcomes"][1]["outcome"], "ignored", "{third}");
    let state = Found::look(&host.context(UDF)).state.unwrap();
    assert_eq!(
        state.history()[0]["provided_by"],
        json!({"user": "sam", "source": "issue_comment"})
    );
}

#[test]
fn whoever_comes_too_late_is_told_for_a_day() {
    let disk = RunDisk::with_state(&waiting("fr-1", "7"));
    let host = host(&disk);
    // 2026-01-31T08:10:00Z and what follows.
    let at = |minutes: i64| {
        host.set_now(Timestamp::from_unix_ms(1_769_847_000_000 + minutes * 60_000));
    };
    let thread = Arc::new(Mutex::new(vec![comment(1, "kim", "hm")]));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (said, seen) = (Arc::clone(&thread), Arc::clone(&asked));
    host.answer_http(move |request| {
        if request.method == "POST" {
            let body: Value = String::from_utf8(request.body.clone()).unwrap().parse().unwrap();
            let mut said = said.lock().unwrap();
            let id = said.len() as u64 + 1;
            said.push(comment(id, "bot", body["body"].as_str().unwrap()));
            return reply(201, &[], &json!({"id": id, "html_url": "http://tracker/c"}));
        }
        seen.lock().unwrap().push(request.url.clone());
        reply(200, &[], &json!(*said.lock().unwrap()))
    });
    at(0);
    assert_eq!(poll_once(&host)["outcomes"], json!([]));
    // Somebody answers elsewhere, and the run has not asked again.
    let answered = waiting("fr-1", "7").replace("awaiting_feedback", "in_progress").replacen(
        '{',
        r#"{"feedback_history": [{"request_id": "fr-1", "request_type": "approval", "response": "approve",
            "provided_by": {"user": "ann", "source": "cli"}, "received_at": "2026-01-31T08:20:00Z"}],"#,
        1,
    );
    disk.put("state.json", &answered);
    at(60);
    thread.lock().unwrap().push(comment(2, "sam", "reject @faber resume"));
    let late = poll_once(&host);
    assert_eq!(late["outcomes"][0]["reason"], "already_answered", "{late}");
    let told = thread.lock().unwrap()[2]["body"].as_str().unwrap().to_owned();
    assert!(told.contains("@sam: this was answered before: `approve` by `ann`"), "{told}");
    assert_eq!(poll_once(&host)["outcomes"], json!([]), "once");
    // What was said before the answer came is not passed over: read on from where reading began.
    let urls = asked.lock().unwrap().clone();
    assert!(urls.iter().all(|url| url.ends_with("since=2026-01-31T08:00:00Z")), "{urls:?}");
    at(10 + 24 * 60);
    assert_eq!(poll_once(&host)["issues"], 1);
    at(11 + 24 * 60);
    host.answer_http(|_| panic!("that was yesterday: nobody is asked"));
    assert_eq!(poll_once(&host)["issues"], 0);
}

#[test]
fn an_answer_is_not_lost_to_a_clock_that_is_ahead() {
    let asked = waiting("fr-1", "7").replace(
        "\"requested_at\"",
        "\"notification_sent\":{\"comment_url\":\"http://tracker/acme/widgets/issues/7#issuecomment-2\"},\"requested_at\"",
    );
    // The question is of 08:00:00 here; over there it is some seconds less.
    let host = host(&RunDisk::with_state(&asked));
    host.answer_http(|request| {
        assert!(request.url.ends_with("since=2026-01-31T07:50:00Z"), "{}", request.url);
        let at = |id, body, time: &str| {
            let mut comment = comment(id, "sam", body);
            comment["created_at"] = json!(time);
            comment
        };
        let list = json!([
            at(1, "reject @faber resume", "2026-01-31T07:59:50Z"),
            at(2, "## Feedback Requested", "2026-01-31T07:59:51Z"),
            at(3, "approve @faber resume", "2026-01-31T07:59:58Z")
        ]);
        reply(200, &[], &list)
    });
    let round = poll_once(&host);
    assert_eq!(round["outcomes"][0]["reason"], "before_request", "{round}");
    assert_eq!(round["outcomes"][1]["response"], "approve", "{round}");
}

#[test]
fn a_comment_before_the_command_is_not_lost_to_a_clock_that_is_ahead() {
    let asked = waiting("fr-1", "7").replace(
        "\"requested_at\"",
        "\"notification_sent\":{\"comment_url\":\"http://tracker/acme/widgets/issues/7#issuecomment-2\"},\"requested_at\"",
    );
    let host = host(&RunDisk::with_state(&asked));
    host.answer_http(|_| {
        let list = [(1, "approve", "49"), (3, "reject", "55"), (4, "@faber resume", "58")];
        let list = list.map(|(id, body, second)| {
            let mut comment = comment(id, "sam", body);
            comment["created_at"] = json!(format!("2026-01-31T07:59:{second}Z"));
            comment
        });
        reply(200, &[], &json!(list))
    });
    let round = poll_once(&host);
    assert_eq!(round["outcomes"][0]["response"], "reject", "{round}");
}

#[test]
fn a_tracker_that_does_not_answer_gets_less_time_until_it_does() {
    let disk = RunDisk::with_state(&waiting("fr-1", "7"));
    for (uuid, work_id) in [("1", "8"), ("2", "9")] {
        let run = RUN.replace("050403020100", &format!("05040302010{uuid}"));
        let state = std::path::Path::new(BASE).join(run).join("state.json");
        disk.0.put(&state, waiting("fr-1", work_id).as_bytes()).unwrap();
    }
    let host = host(&disk);
    let limits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&limits);
    host.answer_http(move |request| {
        let mut seen = seen.lock().unwrap();
        seen.push(request.limit.as_secs());
        reply(200, &[], &if seen.len() == 1 { json!("what?") } else { json!([]) })
    });
    let round = poll_once(&host);
    assert_eq!(round["failures"].as_array().unwrap().len(), 1, "{round}");
    let limits = limits.lock().unwrap();
    assert!(limits.len() == 3 && limits[1] <= 15 && limits[2] > 15, "{limits:?}");
}

#[test]
fn a_damaged_memory_of_one_issue_stops_no_other() {
    let disk = RunDisk::with_state(&waiting("fr-1", "7"));
    let other = format!("{}1", &RUN[..RUN.len() - 1]);
    let path = std::path::Path::new(BASE).join(other).join("state.json");
    disk.0.put(&path, waiting("fr-2", "8").as_bytes()).unwrap();
    let memory = std::path::Path::new(BASE).join(".comments/issue-7.json");
    disk.0.put(&memory, b"{oops").unwrap();
    let host = host(&disk);
    host.answer_http(|_| reply(200, &[], &json!([comment(5, "sam", "approve @faber resume")])));
    let round = poll_once(&host);
    assert_eq!(round["failures"][0]["issue"], "7", "{round}");
    assert_eq!(round["failures"][0]["code"], "STATE_UPDATE_FAILED", "{round}");
    assert_eq!(round["outcomes"][0]["issue"], "8", "{round}");
    assert_eq!(round["outcomes"][0]["response"], "approve", "{round}");
}

#[test]
fn one_issue_that_fails_stops_no_other() {
    let disk = RunDisk::with_state(&waiting("fr-1", "7"));
    for (uuid, work_id) in [("1", "8"), ("2", "PROJ-12"), ("3", "#9")] {
        let run = format!("{}{uuid}", &RUN[..RUN.len() - 1]);
        let path = std::path::Path::new(BASE).join(run).join("state.json");
        disk.0.put(&path, waiting("fr-2", work_id).as_bytes()).unwrap();
    }
    let host = host(&disk);
    host.answer_http(|request| {
        if request.url.contains("/issues/7/") {
            return reply(404, &[], &json!({"message": "Not Found"}));
        }
        reply(200, &[], &json!([comment(5, "sam", "approve @faber resume")]))
    });
    let round = poll_once(&host);
    assert_eq!(round["issues"], 3, "a foreign id is not an issue of ours");
    assert_eq!(round["failures"][0]["issue"], "7");
    assert_eq!(round["failures"][0]["code"], "TRACKER_UNAVAILABLE");
    assert!(round["failures"][0]["message"].as_str().unwrap().contains("NOT_FOUND"));
    let answered: Vec<&Value> =
        round["outcomes"].as_array().unwrap().iter().map(|row| &row["issue"]).collect();
    assert_eq!(answered, ["8", "9"]);
}

#[test]
fn a_tracker_that_has_had_enough_is_left_alone() {
    let disk = RunDisk::with_state(&waiting("fr-1", "7"));
    let run = format!("{}1", &RUN[..RUN.len() - 1]);
    let path = std::path::Path::new(BASE).join(run).join("state.json");
    disk.0.put(&path, waiting("fr-2", "8").as_bytes()).unwrap();
    let host = host(&disk);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    host.answer_http(move |_| {
        *count.lock().unwrap() += 1;
        reply(
            403,
            &[("retry-after", "600")],
            &json!({"message": "You have exceeded a secondary rate limit."}),
        )
    });
    let round = poll_once(&host);
    assert_eq!(
        (round["retry_after_s"].as_u64(), *asked.lock().unwrap()),
        (Some(601), 1),
        "{round}"
    );
}

#[test]
fn without_a_tracker_it_says_what_to_set() {
    let host = host(&RunDisk::with_state(&waiting("fr-1", "7")));
    host.set_setting("github_repository", "widgets");
    let refused = poll_once(&host);
    assert_eq!(refused["error"]["code"], "TRACKER_NOT_SET_UP");
    assert!(refused["error"]["message"].as_str().unwrap().contains("GITHUB_REPOSITORY"));
}
