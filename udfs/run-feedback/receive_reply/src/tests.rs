use std::sync::{Arc, Mutex};

use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
use sdk::testing::TestHost;

use super::*;

const WAITING: &str = r#"{"status": "awaiting_feedback", "work_id": "7", "last_event_id": 0,
    "feedback_request": {"request_id": "fr-1", "type": "approval", "prompt": "ok?", "options": ["approve", "reject"],
        "requested_at": "2026-01-31T08:00:00Z"},
    "resume_point": {"phase": "build", "step": "x", "step_index": 2}}"#;

const OTHER: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020101";

/// An issue tracker's thread that outlives the hosts which talk to it.
#[derive(Clone, Default)]
struct Thread(Arc<Mutex<Vec<(String, String)>>>);

impl Thread {
    fn serve(&self, host: &TestHost) {
        // Posting goes by the command adapter's place in line: the setting chooses, not the test's environment.
        host.set_setting("poster", "github");
        host.set_setting("github_repository", "acme/widgets");
        host.set_setting("github_api_url", "http://127.0.0.1:9");
        let thread = self.clone();
        host.answer_http(move |request| {
            let mut said = thread.0.lock().unwrap();
            if request.method == "POST" {
                let body = String::from_utf8(request.body.clone()).unwrap();
                let body: Value = body.parse().unwrap();
                said.push(("bot".to_owned(), body["body"].as_str().unwrap().to_owned()));
                let made = json!({"id": 1000 + said.len(), "html_url": "http://tracker/c"});
                let body = made.to_string().into_bytes();
                return Ok(HttpReply { status: 201, headers: vec![], body });
            }
            let list: Vec<Value> = said
                .iter()
                .enumerate()
                .map(|(at, (author, body))| {
                    json!({"id": at + 1, "user": {"login": author}, "author_association": "MEMBER", "body": body,
                        "created_at": "2026-01-31T08:05:09Z"})
                })
                .collect();
            Ok(HttpReply { status: 200, headers: vec![], body: json!(list).to_string().into_bytes() })
        });
    }

    /// Somebody writes; the id of the comment.
    fn write(&self, author: &str, body: &str) -> String {
        let mut said = self.0.lock().unwrap();
        said.push((author.to_owned(), body.to_owned()));
        said.len().to_string()
    }

    fn posts(&self) -> Vec<String> {
        let said = self.0.lock().unwrap();
        said.iter().filter(|(author, _)| author == "bot").map(|(_, body)| body.clone()).collect()
    }
}

fn host(disk: &RunDisk, thread: &Thread) -> TestHost {
    // One place for every test of this crate, before any of them reads it.
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
    thread.serve(&host);
    host
}

fn deliver(host: &TestHost, id: &str, body: &str, more: &[(&str, &str)]) -> Value {
    let mut params = vec![
        ("base_path", BASE),
        ("issue", "7"),
        ("comment_id", id),
        ("author", "sam"),
        ("association", "MEMBER"),
        ("created_at", "2026-01-31T08:05:09Z"),
        ("body", body),
    ];
    params.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    params.extend_from_slice(more);
    host.call_json(UDF, &params)
}

fn outcome(reply: &Value) -> (&str, &str) {
    let result = &reply["result"];
    (result["outcome"].as_str().unwrap_or_default(), result["reason"].as_str().unwrap_or_default())
}

fn history(host: &TestHost) -> Vec<Value> {
    Found::look(&host.context(UDF)).state.unwrap().history().to_vec()
}

#[test]
fn a_comment_answers_the_open_request_once() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    let id = thread.write("sam", "LGTM\nbut rename it\n\n@faber resume");
    let reply = deliver(&host, &id, "LGTM\nbut rename it\n\n@faber resume", &[("delivery", "d-1")]);
    assert_eq!(
        reply["result"],
        json!({"comment_id": id, "author": "sam", "outcome": "answered", "reason": null, "run_id": RUN,
            "request_id": "fr-1", "response": "approve", "action": "continue"}),
        "{reply}"
    );
    let entry = &history(&host)[0];
    assert_eq!(entry["provided_by"], json!({"user": "sam", "source": "issue_comment"}));
    assert_eq!(entry["comment"], "but rename it");
    for delivery in ["d-1", "d-2", ""] {
        let again = deliver(&host, &id, "reject\n@faber resume", &[("delivery", delivery)]);
        assert_eq!(outcome(&again).0, "seen", "{again}");
    }
    assert_eq!(history(&host).len(), 1);
    assert!(thread.posts().is_empty());
}

#[test]
fn whoever_may_not_answer_and_what_is_no_answer_is_passed_over() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    let footer = format!("approve\n@faber resume\n_Run ID: `{RUN}` | Request ID: `fr-1`_");
    for (body, more, want) in [
        ("approve", &[][..], "no_trigger"),
        ("> approve\n> @faber resume", &[], "no_trigger"),
        ("```\n@faber resume\n```\napprove", &[], "no_trigger"),
        (footer.as_str(), &[], "own_comment"),
        ("<!-- udf-host: reply to comment 1 -->\napprove @faber resume", &[], "own_comment"),
        ("approve @faber resume", &[("association", "NONE")], "association"),
        ("approve @faber resume", &[("association", "CONTRIBUTOR")], "association"),
        ("approve @faber resume", &[("created_at", "2026-01-31T07:59:59Z")], "before_request"),
        ("approve @faber resume", &[("issue", "8")], "nothing_pending"),
        ("approve @faber resume", &[("repository", "acme/gadgets")], "other_repository"),
        ("approve @faber resume --run nobody/knows/it", &[("issue", "8")], "nothing_pending"),
    ] {
        let id = thread.write("sam", body);
        let reply = deliver(&host, &id, body, more);
        assert_eq!(outcome(&reply), ("ignored", want), "{body} {more:?}");
    }
    assert!(history(&host).is_empty() && thread.posts().is_empty());
    // Whoever becomes a member later has not answered before.
    let id = thread.write("eve", "approve @faber resume");
    deliver(&host, &id, "approve @faber resume", &[("association", "NONE")]);
    assert_eq!(outcome(&deliver(&host, &id, "approve @faber resume", &[])), ("seen", "ignored"));
    let unknown = deliver(
        &host,
        "900",
        "approve @faber resume",
        &[("association", ""), ("repository", "Acme/Widgets")],
    );
    assert_eq!(outcome(&unknown).0, "answered", "an association that is not known is no reason");
}

#[test]
fn an_unclear_comment_gets_the_options_once() {
    for (body, want) in [
        ("approve or reject @faber resume", "ambiguous"),
        ("approve if the tests pass @faber resume", "conditional"),
        ("maybe @faber resume", "no_option"),
        ("@faber resume", "empty"),
        ("@faber status", "status"),
        ("approve @faber resume --request fr-0", "request_mismatch"),
        ("approve @faber resume --run nobody/knows/it", "not_waiting"),
    ] {
        let thread = Thread::default();
        let host = host(&RunDisk::with_state(WAITING), &thread);
        let id = thread.write("sam", body);
        let reply = deliver(&host, &id, body, &[]);
        assert_eq!(outcome(&reply), ("replied", want), "{body}: {reply}");
        assert_eq!(outcome(&deliver(&host, &id, body, &[])), ("seen", "replied"), "{body}");
        let posts = thread.posts();
        assert_eq!(posts.len(), 1, "{body}");
        assert!(posts[0].contains("@sam: "), "{posts:?}");
        let shown =
            if want == "not_waiting" { RUN } else { "1. **approve** - Continue to next phase" };
        assert!(posts[0].contains(shown), "{posts:?}");
        // Our own reply, read back, says nothing.
        let own = deliver(&host, "999", &posts[0], &[("author", "bot")]);
        assert_eq!(outcome(&own), ("ignored", "own_comment"));
        assert!(history(&host).is_empty());
    }
}

#[test]
fn a_command_alone_takes_the_comment_before() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    thread.write("sam", "Please reject this.");
    thread.write("kim", "approve");
    let id = thread.write("sam", "@faber resume");
    let reply = deliver(&host, &id, "@faber resume", &[]);
    assert_eq!((outcome(&reply).0, &reply["result"]["response"]), ("answered", &json!("reject")));
}

#[test]
fn a_question_is_nobodys_answer_before_it() {
    // Whoever lends us a token is the author of our questions as well.
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    thread.write("sam", "Please reject this.");
    thread.write("sam", &format!("Another?\n\n_Run ID: `{OTHER}` | Request ID: `fr-2`_"));
    let id = thread.write("sam", "@faber resume");
    let reply = deliver(&host, &id, "@faber resume", &[]);
    assert_eq!((outcome(&reply).0, &reply["result"]["response"]), ("answered", &json!("reject")));
}

#[test]
fn cancel_takes_what_is_offered() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    let reply = deliver(&host, "1", "@faber cancel", &[]);
    assert_eq!((outcome(&reply).0, &reply["result"]["action"]), ("answered", &json!("abort")));
    let nothing = WAITING.replace(r#"["approve", "reject"]"#, r#"["yes", "no"]"#);
    let host = self::host(&RunDisk::with_state(&nothing), &thread);
    let reply = deliver(&host, "2", "@faber cancel", &[]);
    assert_eq!(outcome(&reply), ("replied", "no_cancel"));
}

#[test]
fn of_several_runs_one_must_be_named() {
    let thread = Thread::default();
    let disk = RunDisk::with_state(WAITING);
    let other = WAITING.replace("fr-1", "fr-2");
    disk.0
        .put(&std::path::Path::new(BASE).join(OTHER).join("state.json"), other.as_bytes())
        .unwrap();
    let host = host(&disk, &thread);
    let reply = deliver(&host, "1", "approve @faber resume", &[]);
    assert_eq!(outcome(&reply), ("replied", "several_runs"));
    assert!(thread.posts()[0].contains(RUN) && thread.posts()[0].contains(OTHER));
    let uuid = OTHER.rsplit('/').next().unwrap();
    let reply = deliver(&host, "2", &format!("approve @faber resume --run {uuid}"), &[]);
    assert_eq!(reply["result"]["run_id"], OTHER);
    let reply = deliver(&host, "3", &format!("reject @faber resume --run {RUN}"), &[]);
    assert_eq!(reply["result"]["response"], "reject");
}

#[test]
fn whoever_comes_second_is_told_who_and_what() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    deliver(&host, "1", "approve @faber resume", &[]);
    let second = deliver(&host, "2", "reject @faber resume", &[("author", "kim")]);
    assert_eq!(outcome(&second), ("replied", "already_answered"));
    assert!(
        thread.posts()[0].contains("@kim: this was answered before: `approve` by `sam`"),
        "{:?}",
        thread.posts()
    );
    assert_eq!(history(&host).len(), 1);
}

#[test]
fn whoever_has_second_thoughts_is_told_what_counts() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    deliver(&host, "1", "approve @faber resume", &[]);
    // Written in the same second, by the same person: still another answer.
    let second = deliver(&host, "2", "Sorry, reject it. @faber resume", &[]);
    assert_eq!(outcome(&second), ("replied", "already_answered"));
    assert!(thread.posts()[0].contains("@sam: this was answered before: `approve` by `sam`"));
    // The same once more needs no word.
    let again = deliver(&host, "3", "LGTM\n@faber resume", &[]);
    assert_eq!((outcome(&again).0, thread.posts().len()), ("answered", 1));
    let number = deliver(&host, "4", "1\n@faber resume", &[]);
    assert_eq!(outcome(&number), ("replied", "already_answered"), "the options are gone");
    assert_eq!(history(&host).len(), 1);
}

#[test]
fn many_deliveries_of_one_comment_answer_once() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    let one = |n: usize| {
        let delivery = format!("d-{n}");
        deliver(&host, "1", "approve @faber resume", &[("delivery", &delivery)])
    };
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let one = &one;
        let calls: Vec<_> = (0..12).map(|n| scope.spawn(move || one(n))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let answered = replies.iter().filter(|reply| outcome(reply).0 == "answered").count();
    let seen = replies.iter().filter(|reply| outcome(reply).0 == "seen").count();
    assert_eq!((answered, seen, history(&host).len()), (1, 11, 1), "{replies:?}");
}

/// Stops the disk after every step in turn: whatever a crash leaves, the comment delivered again has its one effect.
#[track_caller]
fn check_crashes(body: &str, author: &str, want: impl Fn(&TestHost, &Thread)) {
    let mut stopped = 0;
    for steps in 0.. {
        let disk = RunDisk::with_state(WAITING);
        let thread = Thread::default();
        let id = thread.write(author, body);
        let host = host(&disk, &thread);
        disk.0.stop_after(steps);
        let done = deliver(&host, &id, body, &[("delivery", "d-1")])["status"] == "success";
        for left in disk.crashes() {
            // Each way to crash goes on with the thread as it was then.
            let thread = Thread(Arc::new(Mutex::new(thread.0.lock().unwrap().clone())));
            let host = self::host(&left, &thread);
            for _ in 0..2 {
                let again = deliver(&host, &id, body, &[("delivery", "d-1")]);
                assert_eq!(again["status"], "success", "step {steps}: {again}");
                want(&host, &thread);
            }
        }
        if done {
            break;
        }
        stopped += 1;
    }
    assert!(stopped > 12, "only {stopped} steps were cut off");
}

#[test]
fn a_crash_loses_no_answer_and_doubles_none() {
    check_crashes("approve @faber resume", "sam", |host, thread| {
        assert_eq!(history(host).len(), 1);
        assert!(thread.posts().is_empty(), "{:?}", thread.posts());
    });
}

#[test]
fn a_crash_loses_no_reply_and_doubles_none() {
    check_crashes("perhaps @faber resume", "sam", |host, thread| {
        assert!(history(host).is_empty());
        assert_eq!(thread.posts().len(), 1, "{:?}", thread.posts());
    });
}

#[test]
fn a_question_asked_since_is_not_meant() {
    // The answer was recorded and the run asked again within the same second, then came the crash.
    let thread = Thread::default();
    let state = WAITING.replacen(
        '{',
        r#"{"feedback_history": [{"request_id": "fr-0", "response": "approve", "action": "continue",
            "provided_by": {"user": "sam", "source": "issue_comment"}, "received_at": "2026-01-31T08:05:09Z"}],"#,
        1,
    );
    let disk = RunDisk::with_state(&state.replace("08:00:00Z", "08:05:09Z"));
    let memory = std::path::Path::new(BASE).join(".comments/issue-7.json");
    disk.0.put(&memory, br#"{"comments": {"1": "answering fr-0"}}"#).unwrap();
    let host = host(&disk, &thread);
    let reply = deliver(&host, "1", "approve @faber resume", &[]);
    assert_eq!((outcome(&reply).0, &reply["result"]["request_id"]), ("answered", &json!("fr-0")));
    assert_eq!(history(&host).len(), 1);
    assert_eq!(Found::look(&host.context(UDF)).open_request_id(), Some("fr-1"));
}

#[test]
fn a_damaged_memory_stops_everything_and_stays_as_it_is() {
    let thread = Thread::default();
    let disk = RunDisk::with_state(WAITING);
    let memory = std::path::Path::new(BASE).join(".comments/issue-7.json");
    disk.0.put(&memory, b"{oops").unwrap();
    let host = host(&disk, &thread);
    let reply = deliver(&host, "1", "approve @faber resume", &[]);
    assert_eq!(reply["error"]["code"], "STATE_UPDATE_FAILED");
    assert!(history(&host).is_empty());
    let ctx = host.context(UDF);
    let folder = ctx.folder(BASE, ".comments", ".lock").unwrap();
    assert_eq!(folder.read("issue-7.json").unwrap().as_deref(), Some("{oops"));
}

#[test]
fn a_question_that_cannot_be_read_now_keeps_its_answer_waiting() {
    let thread = Thread::default();
    let disk = RunDisk::with_state("{\"status\": \"awai");
    let host = host(&disk, &thread);
    let other = format!("approve @faber resume --run {OTHER}");
    for (id, body, want) in [("1", "approve @faber resume", "error"), ("2", &other, "success")] {
        let reply = deliver(&host, id, body, &[]);
        assert_eq!(reply["status"], want, "{body}: {reply}");
    }
    let message = deliver(&host, "1", "approve @faber resume", &[])["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains(RUN), "{message}");
    disk.put("state.json", WAITING);
    let reply = deliver(&host, "1", "approve @faber resume", &[]);
    assert_eq!(outcome(&reply).0, "answered", "{reply}");
}

#[test]
fn what_is_missing_is_named() {
    let thread = Thread::default();
    let host = host(&RunDisk::with_state(WAITING), &thread);
    let reply = deliver(&host, "", "b", &[("issue", ""), ("author", "")]);
    assert_eq!(reply["error"]["missing"], json!(["issue", "comment_id", "author"]));
    let reply = deliver(&host, "1", "b", &[("issue", "PROJ-12")]);
    assert_eq!(reply["error"]["code"], "INVALID_COMMENT");
    assert_eq!(deliver(&host, "1", "b", &[("issue", "000")])["error"]["code"], "INVALID_COMMENT");
    assert_eq!(reply.as_object().map(|members| members.len()), Some(3));
}
