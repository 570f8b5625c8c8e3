//! `request_feedback`: asks a person and leaves the run waiting. Contract and examples: `spec.md`.

use std::time::Duration;

use run_feedback_common::{
    Ask, AskParams, Code, Comment, JsonParam, Operation, POST_LIMIT, Refusal, RunDir, State, Stop,
    Update, Warning, answer, chosen_poster, notifications, request_id,
};
use sdk::prelude::*;

/// Asks a person: event and state first, then the issue comment; the run waits from then on.
#[udf(folders, net)]
fn request_feedback(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// Phase that asks; the run goes on in it.
    #[arg(default)]
    phase: &str,
    /// Step that asks; the run goes on at it.
    #[arg(default)]
    step: &str,
    /// `approval`, `confirmation`, `selection`, `clarification`, `review` or `error_resolution`.
    #[arg(default)]
    feedback_type: &str,
    /// The question.
    #[arg(default)]
    prompt: &str,
    /// What may be answered: a list of texts; empty = those of the type.
    #[arg(default)]
    options: JsonParam,
    /// What the person should know: an object, of which `summary` and `artifact_path` are shown.
    #[arg(default)]
    context: JsonParam,
    /// Place of the step, a decimal integer; absent = null.
    #[arg(default)]
    step_index: &str,
    /// The issue; empty = that of the state.
    #[arg(default)]
    work_id: &str,
    /// Whether to post a comment on the issue; absent = if `work_id` is given.
    post_to_issue: Option<bool>,
    /// Whether the caller shows the question to the person at this machine.
    #[arg(default = true)]
    cli_prompt: bool,
    /// Whether an open request is replaced instead of refused.
    #[arg(default = false)]
    replace: bool,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let params = AskParams {
        run_id,
        phase,
        step,
        feedback_type,
        prompt,
        options: &options.0,
        context: &context.0,
        step_index,
        work_id,
        post_to_issue,
        cli_prompt,
        replace,
    };
    answer(Operation::RequestFeedback, None, request(ctx, &params, base_path))
}

fn request(ctx: &Context, params: &AskParams<'_>, base_path: &str) -> Result<Value, Stop> {
    let ask = params.check()?;
    let dir = RunDir::open(ctx, base_path, &ask.run_id)?;
    let asked = open_request(ctx, &ask, &dir)?;
    let id = &asked.id;
    // From here on the request stands, whatever else goes wrong, and no lock is held.
    let mut warnings = Vec::new();
    let mut url = None;
    if ask.post {
        match post(ctx, &ask, &asked) {
            Ok(posted) => url = Some(posted),
            Err(message) => warnings.push(Warning { code: Code::IssueCommentFailed, message }),
        }
    }
    if ask.cli || url.is_some() {
        match mark_notified(ctx, &dir, id, ask.cli, url.clone()) {
            // Answered or replaced meanwhile: the flags went with the request.
            Ok(()) => {}
            Err(Stop::Refused(refusal)) if refusal.code == Code::RequestIdMismatch => {}
            Err(Stop::Refused(refusal)) => {
                warnings.push(Warning { code: Code::StateUpdateFailed, message: refusal.message });
            }
            Err(failed) => return Err(failed),
        }
    }
    Ok(ask.reply(id, &notifications(ask.cli, url.as_deref(), url.is_some()), &warnings))
}

/// A request that stands.
struct Asked {
    id: String,
    at: Timestamp,
    /// The state that holds it.
    state: State,
}

/// Event and state, under the lock.
fn open_request(ctx: &Context, ask: &Ask, dir: &RunDir<'_>) -> Result<Asked, Stop> {
    dir.check_state_exists()?;
    let mut guard = dir.lock()?;
    let mut state = guard.state()?;
    let superseded = ask.admit(&state)?;
    let now = ctx.now();
    let id = (0..MOST_DRAWS)
        .map(|_| request_id(&now, ctx.random()))
        .find(|id| !state.knows_request(id))
        .ok_or_else(|| {
            Refusal::new(Code::StateUpdateFailed, "found no request id that this run has not used")
        })?;
    let (event_id, _) =
        guard.write_event(&ask.event(&id, superseded.as_deref()), Some(&state), &now)?;
    ask.apply(&mut state, &id, event_id, &now);
    guard.write_state(&state)?;
    Ok(Asked { id, at: now, state })
}

/// A run would have to ask thousands of questions a day before two draws clash.
const MOST_DRAWS: usize = 100;

/// Posts the comment; gives its address, or why it is not there.
fn post(ctx: &Context, ask: &Ask, asked: &Asked) -> Result<String, String> {
    let of_state = asked.state.value("work_id");
    let issue = match (&*ask.work_id, &of_state) {
        ("", Value::String(issue)) => issue.clone(),
        ("", Value::Number(issue)) => issue.to_string(),
        (issue, _) => issue.to_owned(),
    };
    if issue.is_empty() {
        return Err(
            "no work_id was given and the run has none: the question was not posted".to_owned()
        );
    }
    let options: Vec<Value> = ask.options.iter().map(|option| option.as_str().into()).collect();
    let comment = Comment {
        run_id: &ask.run_id,
        request_id: &asked.id,
        kind: ask.kind.word(),
        phase: &ask.point.phase,
        step: &ask.point.step,
        prompt: &ask.prompt,
        options: &options,
        context: &ask.context,
        timestamp: &asked.at.to_minutes(),
    }
    .render();
    // Trackers show a final newline as an empty line.
    let body = comment.strip_suffix('\n').unwrap_or(&comment);
    // A host that gives the call less time than the tracker gets must still hear that the request stands.
    let left = ctx.deadline().map_or(POST_LIMIT, |left| left.saturating_sub(AFTER_POSTING));
    chosen_poster(ctx, left)
        .post(&issue, body)
        .map(|posted| posted.url)
        .map_err(|error| error.to_string())
}

/// Kept of the call's time for noting what was posted.
const AFTER_POSTING: Duration = Duration::from_secs(2);

/// Raises the flags of what reached somebody, if the request is still the open one.
fn mark_notified(
    ctx: &Context,
    dir: &RunDir<'_>,
    id: &str,
    cli: bool,
    url: Option<String>,
) -> Result<(), Stop> {
    let mut guard = dir.lock()?;
    let mut state = guard.state()?;
    Update::MarkNotified { request_id: id.to_owned(), cli, comment_url: url }
        .apply(&mut state, &ctx.now())?;
    guard.write_state(&state)
}

#[cfg(test)]
mod tests {
    use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
    use sdk::testing::TestHost;

    use super::*;

    const FRESH: &str =
        r#"{"status": "in_progress", "work_id": "-1", "last_event_id": 0, "custom": [1.50, 1e3]}"#;

    fn ask(host: &TestHost, more: &[(&str, &str)]) -> Value {
        let mut params = vec![
            ("base_path", BASE),
            ("run_id", RUN),
            ("phase", "build"),
            ("step", "x"),
            ("feedback_type", "approval"),
            ("prompt", "ok?"),
        ];
        params.extend_from_slice(more);
        host.call_json(UDF, &params)
    }

    #[test]
    fn a_crash_leaves_no_request_or_a_whole_one() {
        let mut stopped = 0;
        for steps in 0.. {
            let disk = RunDisk::with_state(FRESH);
            disk.0.stop_after(steps);
            let reply = ask(&disk.host(), &[]);
            let acknowledged = reply["status"] == "success";
            for left in disk.crashes() {
                let host = left.host();
                let found = Found::look(&host.context(UDF));
                let state = found.state.as_ref().expect("the state never goes away");
                assert_eq!(state.value("custom").to_string(), "[1.50,1e3]");
                match found.open_request_id() {
                    Some(id) => {
                        assert_eq!(
                            found.events_of("decision_point", id),
                            1,
                            "a request has its event"
                        );
                        let again = ask(&host, &[]);
                        assert_eq!(again["error"]["code"], "REQUEST_PENDING");
                        assert_eq!(again["error"]["pending_request_id"], *id);
                    }
                    None => {
                        assert!(
                            !acknowledged,
                            "an acknowledged request is there after step {steps}"
                        );
                        assert_eq!(state.status(), Some("in_progress"));
                        let again = ask(&host, &[]);
                        assert_eq!(again["status"], "success", "{again}");
                        let id = again["result"]["request_id"].as_str().unwrap();
                        let found = Found::look(&host.context(UDF));
                        assert_eq!(found.events_of("decision_point", id), 1);
                    }
                }
            }
            if acknowledged && reply.get("warnings").is_none() {
                break;
            }
            stopped += 1;
        }
        assert!(stopped > 10, "only {stopped} steps were cut off");
    }

    #[test]
    fn a_full_disk_at_any_step_is_told_and_leaves_all_or_nothing() {
        for steps in 0.. {
            let disk = RunDisk::with_state(FRESH);
            disk.0.fail_after(steps);
            let host = disk.host();
            let reply = ask(&host, &[]);
            let found = Found::look(&host.context(UDF));
            if reply["status"] == "success" {
                let id = reply["result"]["request_id"].as_str().unwrap();
                assert_eq!(found.open_request_id(), Some(id));
                if reply.get("warnings").is_none() {
                    break;
                }
                // Only the flags are missing.
                assert_eq!(reply["warnings"][0]["code"], "STATE_UPDATE_FAILED");
            } else {
                assert_eq!(reply["error"]["number"], 7, "{reply}");
                assert_eq!(
                    ask(&host, &[("replace", "true")])["status"],
                    "success",
                    "it works again"
                );
            }
        }
    }

    #[test]
    fn an_issue_id_that_would_be_a_flag_is_a_warning() {
        let host = RunDisk::with_state(FRESH).host();
        let reply = ask(&host, &[("post_to_issue", "true"), ("cli_prompt", "false")]);
        assert_eq!(reply["warnings"][0]["code"], "ISSUE_COMMENT_FAILED");
        assert_eq!(
            reply["notifications"],
            json!({"cli": false, "issue_comment": false, "comment_url": null})
        );
    }

    #[test]
    fn of_many_equal_requests_one_is_opened() {
        let host = RunDisk::with_state(FRESH).host();
        let codes: Vec<String> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&host, &[]))).collect();
            calls
                .into_iter()
                .map(|call| call.join().unwrap()["error"]["code"].to_string())
                .collect()
        });
        assert_eq!(codes.iter().filter(|code| *code == "null").count(), 1, "{codes:?}");
        assert_eq!(
            codes.iter().filter(|code| *code == "\"REQUEST_PENDING\"").count(),
            7,
            "{codes:?}"
        );
    }
}
