//! `process_response`: records an answer and says how the run goes on. Contract and examples: `spec.md`.

use run_feedback_common::{Answer, Operation, Stop, answer, respond};
use sdk::prelude::*;

/// Checks an answer against the open request, records it once, and says what the caller does next.
#[udf(folders)]
fn process_response(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// The request it answers.
    #[arg(default)]
    request_id: &str,
    /// An option of the request, case and blanks around it aside; any text for a clarification.
    #[arg(default)]
    response: &str,
    /// What else was said; empty = none.
    #[arg(default)]
    comment: &str,
    /// `cli`, `issue_comment` or `parallel_coordination`.
    #[arg(default = "cli")]
    source: &str,
    /// Who answers; empty = the person at this machine. Needed for `issue_comment`.
    #[arg(default)]
    user: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let given = Answer::check(run_id, request_id, response, comment, source, user);
    let outcome = given.map_err(Stop::from).and_then(|given| respond(ctx, given, base_path));
    answer(Operation::ProcessResponse, None, outcome)
}

#[cfg(test)]
mod tests {
    use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
    use sdk::testing::TestHost;

    use super::*;

    const WAITING: &str = r#"{"status": "awaiting_feedback", "last_event_id": 0,
        "feedback_request": {"request_id": "fr-1", "type": "approval", "options": ["approve", "reject"]},
        "resume_point": {"phase": "build", "step": "x", "step_index": 2}}"#;

    fn respond(host: &TestHost) -> Value {
        let params = [
            ("base_path", BASE),
            ("run_id", RUN),
            ("request_id", "fr-1"),
            ("response", "approve"),
            ("user", "alex"),
        ];
        host.call_json(UDF, &params)
    }

    #[test]
    fn a_crash_leaves_the_request_open_or_answered_once() {
        let mut stopped = 0;
        for steps in 0.. {
            let disk = RunDisk::with_state(WAITING);
            disk.0.stop_after(steps);
            let acknowledged = respond(&disk.host())["status"] == "success";
            for left in disk.crashes() {
                let host = left.host();
                let found = Found::look(&host.context(UDF));
                let state = found.state.as_ref().expect("the state never goes away");
                if state.is_awaiting() {
                    assert!(!acknowledged, "an acknowledged answer is there after step {steps}");
                    assert!(state.history().is_empty());
                    assert_eq!(found.open_request_id(), Some("fr-1"));
                    assert_eq!(respond(&host)["status"], "success");
                }
                let found = Found::look(&host.context(UDF));
                let state = found.state.as_ref().unwrap();
                assert_eq!(state.history().len(), 1);
                assert_eq!(state.history()[0]["action"], "continue", "where to go on is not lost");
                assert!(
                    state.get("feedback_request").is_none() && state.get("resume_point").is_none()
                );
                assert!(
                    found.events_of("feedback_received", "fr-1") >= 1,
                    "an answer has its event"
                );
                assert_eq!(state.last_event_id(), found.events.last().unwrap().0);
                assert_eq!(respond(&host)["error"]["number"], 3);
            }
            if acknowledged {
                break;
            }
            stopped += 1;
        }
        assert!(stopped > 8, "only {stopped} steps were cut off");
    }

    #[test]
    fn of_twenty_equal_answers_one_counts() {
        let host = RunDisk::with_state(WAITING).host();
        let replies: Vec<Value> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| respond(&host))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            replies.iter().partition(|reply| reply["status"] == "success");
        assert_eq!((won.len(), lost.len()), (1, 19));
        for reply in lost {
            assert_eq!(reply["error"]["code"], "NOT_AWAITING_FEEDBACK");
            assert_eq!(reply["error"]["already_answered"]["response"], "approve");
        }
        let found = Found::look(&host.context(UDF));
        assert_eq!(found.events_of("feedback_received", "fr-1"), 1);
    }

    #[test]
    fn a_history_that_is_no_list_stops_the_answer_before_its_event() {
        let disk =
            RunDisk::with_state(&WAITING.replacen('{', r#"{"feedback_history": "lost", "#, 1));
        let host = disk.host();
        assert_eq!(respond(&host)["error"]["code"], "STATE_UPDATE_FAILED");
        assert!(Found::look(&host.context(UDF)).events.is_empty());
    }
}
