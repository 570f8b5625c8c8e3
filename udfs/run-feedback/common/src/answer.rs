//! Answering: an answer to the next state, its event and what the caller does (§10).

use serde_json::{Map, Value, json};

use crate::codes::{Code, Refusal};
use crate::event::Event;
use crate::params::plain;
use crate::run_id::RunId;
use crate::state::{ResumePoint, State};
use crate::types::{Action, FeedbackType};
use sdk::Timestamp;

/// An answer on its way to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The run.
    pub run_id: RunId,
    /// The request it answers; any string, old data has other forms.
    pub request_id: String,
    /// As it was given.
    pub response: String,
    /// Empty: none.
    pub comment: String,
    /// `cli`, `issue_comment`, `parallel_coordination`.
    pub source: String,
    /// Who answers; empty: the local user, whom the caller has to find.
    pub user: String,
}

impl Answer {
    /// Checks the parameters of `process_response`, step 1.
    ///
    /// An answer from an issue comment without a user is refused: it must never be credited to the local user.
    ///
    /// # Errors
    /// `MISSING_RUN_ID`, `INVALID_RUN_ID`, `MISSING_FIELDS`.
    pub fn check(
        run_id: &str,
        request_id: &str,
        response: &str,
        comment: &str,
        source: &str,
        user: &str,
    ) -> Result<Answer, Refusal> {
        if run_id.is_empty() {
            return Err(Refusal::new(Code::MissingRunId, "run_id is missing"));
        }
        let run_id = RunId::parse(run_id).ok_or_else(|| Refusal::invalid_run_id(run_id))?;
        let source = if source.is_empty() { "cli" } else { source };
        let nameless = source == "issue_comment" && user.is_empty();
        let missing: Vec<&str> = [
            ("request_id", request_id.is_empty()),
            ("response", response.is_empty()),
            ("user", nameless),
        ]
        .iter()
        .filter(|(_, missing)| *missing)
        .map(|(name, _)| *name)
        .collect();
        if !missing.is_empty() {
            return Err(Refusal::missing(&missing));
        }
        Ok(Answer {
            run_id,
            request_id: request_id.to_owned(),
            response: response.to_owned(),
            comment: comment.to_owned(),
            source: source.to_owned(),
            user: user.to_owned(),
        })
    }

    /// Whether this answer fits the open request: status, then id, then response, in this order.
    ///
    /// # Errors
    /// `NOT_AWAITING_FEEDBACK`, `REQUEST_ID_MISMATCH`, `INVALID_RESPONSE`.
    pub fn decide(&self, state: &State) -> Result<Decision, Refusal> {
        let closed = closing_entry(state, &self.request_id);
        let told = |refusal: Refusal| match closed {
            Some(entry) => refusal
                .with("already_answered", closed_answer(entry))
                .with("answered_by", entry.get("provided_by").cloned()),
            None => refusal,
        };
        let Some(request) = state.open_request() else {
            let message = match closed {
                Some(entry) => answered(entry),
                None => "the run is not waiting for feedback".to_owned(),
            };
            return Err(told(
                Refusal::new(Code::NotAwaitingFeedback, message)
                    .with("run_status", state.value("status")),
            ));
        };
        let open = request.get("request_id").cloned().unwrap_or(Value::Null);
        if open.as_str() != Some(&self.request_id) {
            let open_is = format!("the open request is {}", plain(&open));
            let message = match closed {
                Some(entry) => format!("{}; {open_is}", answered(entry)),
                None => open_is,
            };
            return Err(told(
                Refusal::new(Code::RequestIdMismatch, message).with("expected_request_id", open),
            ));
        }
        let kind = request.get("type").map_or_else(String::new, plain);
        let response = self.matching(&kind, request.get("options"))?;
        Ok(Decision {
            action: Action::of(&kind, &response),
            request_type: kind,
            response,
            point: state.resume_point(),
        })
    }

    /// The option as offered, or the free text, that the response stands for.
    fn matching(&self, kind: &str, options: Option<&Value>) -> Result<String, Refusal> {
        let offered = options.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let refused = |why: String| {
            Refusal::new(Code::InvalidResponse, why).with("valid_options", offered.to_vec())
        };
        let given = self.response.trim();
        if given.is_empty() {
            return Err(refused("the response is blank".to_owned()));
        }
        if FeedbackType::from_word(kind) == Some(FeedbackType::Clarification) {
            return Ok(given.to_owned());
        }
        let texts: Vec<String> = offered.iter().map(plain).collect();
        let exact = texts.iter().find(|option| **option == self.response);
        exact
            .or_else(|| texts.iter().find(|option| option.trim().eq_ignore_ascii_case(given)))
            .cloned()
            .ok_or_else(|| {
                refused(format!("{given:?} is not offered; one of: {}", texts.join(", ")))
            })
    }
}

/// The entry of the history that closed a request.
fn closing_entry<'s>(state: &'s State, request_id: &str) -> Option<&'s Value> {
    let is_it =
        |entry: &&Value| entry.get("request_id").and_then(Value::as_str) == Some(request_id);
    state.history().iter().rev().find(is_it)
}

/// `{response, received_at}`.
fn closed_answer(entry: &Value) -> Value {
    json!({ "response": entry.get("response"), "received_at": entry.get("received_at") })
}

/// Who was first, and with what.
fn answered(entry: &Value) -> String {
    let text = |value: Option<&Value>| value.map(plain).unwrap_or_default();
    let by = entry.get("provided_by").and_then(|by| by.get("user"));
    format!(
        "this request has been answered: {:?} by {:?} at {}",
        text(entry.get("response")),
        text(by),
        text(entry.get("received_at"))
    )
}

/// A fitting answer: what is recorded and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Type of the request.
    pub request_type: String,
    /// The option as offered, or the free text.
    pub response: String,
    /// What the caller does.
    pub action: Action,
    /// Where the run goes on.
    pub point: ResumePoint,
}

impl Decision {
    /// The `feedback_received` event.
    pub fn event(&self, answer: &Answer) -> Event {
        let mut metadata = Map::new();
        metadata.insert("request_id".into(), answer.request_id.as_str().into());
        metadata.insert("response".into(), self.response.as_str().into());
        metadata.insert("user".into(), answer.user.as_str().into());
        metadata.insert("source".into(), answer.source.as_str().into());
        Event {
            kind: "feedback_received".into(),
            phase: self.point.phase.clone(),
            step: self.point.step.clone(),
            message: format!("Feedback received: {}", self.response),
            metadata,
            ..Event::default()
        }
    }

    /// The one state write of step 7. The history entry keeps action and resume point, so that a crash after it does
    /// not lose where to go on.
    ///
    /// # Errors
    /// `STATE_UPDATE_FAILED` if the history is no list.
    pub fn apply(
        &self,
        answer: &Answer,
        state: &mut State,
        event_id: u64,
        now: &Timestamp,
    ) -> Result<(), Refusal> {
        let mut entry = Map::new();
        entry.insert("request_id".into(), answer.request_id.as_str().into());
        entry.insert("request_type".into(), self.request_type.as_str().into());
        entry.insert("response".into(), self.response.as_str().into());
        if !answer.comment.is_empty() {
            entry.insert("comment".into(), answer.comment.as_str().into());
        }
        entry.insert("provided_by".into(), json!({ "user": answer.user, "source": answer.source }));
        entry.insert("action".into(), self.action.word().into());
        entry.insert("resume_point".into(), self.point.to_json());
        entry.insert("received_at".into(), now.to_seconds().into());
        state.push_history(Value::Object(entry))?;
        state.set("status", "in_progress");
        if !self.point.phase.is_empty() {
            state.set("current_phase", self.point.phase.as_str());
        }
        if !self.point.step.is_empty() {
            state.set("current_step", self.point.step.as_str());
        }
        state.remove("feedback_request");
        state.remove("resume_point");
        state.note_event(event_id, now.to_seconds());
        Ok(())
    }

    /// The reply of a success (§10): both shapes of the seed at once.
    pub fn reply(&self, answer: &Answer) -> Value {
        let mut reply = json!({
            "status": "success",
            "operation": "process-response",
            "message": format!("Feedback processed: {}", self.response),
            "details": {
                "request_id": answer.request_id,
                "response": self.response,
                "action": self.action.word(),
                "resume_point": self.point.short(),
            },
            "result": {
                "request_id": answer.request_id,
                "response": self.response,
                "action": self.action.word(),
                "resume_point": self.point.to_json(),
            },
        });
        if !answer.comment.is_empty() {
            reply["result"]["comment"] = answer.comment.as_str().into();
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

    fn answer(request_id: &str, response: &str) -> Answer {
        Answer::check(RUN, request_id, response, "", "", "alex").unwrap()
    }

    fn waiting(kind: &str, options: &str) -> State {
        State::parse(&format!(
            r#"{{"status":"awaiting_feedback","feedback_request":{{"request_id":"fr-1","type":"{kind}","options":{options}}},
                 "resume_point":{{"phase":"build","step":"s","step_index":2}},
                 "feedback_history":[{{"request_id":"fr-0","response":"approve","provided_by":{{"user":"kim","source":"cli"}},"received_at":"t"}}]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn parameters_are_checked_in_order() {
        let code = |run: &str, request: &str, response: &str, source: &str, user: &str| {
            Answer::check(run, request, response, "", source, user)
                .map_err(|refusal| (refusal.code, refusal.details.get("missing").cloned()))
        };
        assert_eq!(code("", "", "", "", "").unwrap_err().0, Code::MissingRunId);
        assert_eq!(code(&format!("{RUN}\n"), "", "", "", "").unwrap_err().0, Code::InvalidRunId);
        assert_eq!(
            code(RUN, "", "", "", "").unwrap_err().1,
            Some(json!(["request_id", "response"]))
        );
        assert_eq!(code(RUN, "a", "b", "issue_comment", "").unwrap_err().1, Some(json!(["user"])));
        assert!(code(RUN, "a", "b", "issue_comment", "octo").is_ok());
        assert_eq!(code(RUN, "a", " ", "", "").unwrap().source, "cli");
    }

    #[test]
    fn status_then_id_then_response() {
        let closed =
            State::parse(r#"{"status":"failed","feedback_request":{"request_id":"fr-1"}}"#)
                .unwrap();
        let refusal = answer("fr-9", "nonsense").decide(&closed).unwrap_err();
        assert_eq!(
            (refusal.code, &refusal.details["run_status"]),
            (Code::NotAwaitingFeedback, &json!("failed"))
        );

        let open = waiting("approval", r#"["approve","reject"]"#);
        let refusal = answer("fr-9", "nonsense").decide(&open).unwrap_err();
        assert_eq!(
            (refusal.code, &refusal.details["expected_request_id"]),
            (Code::RequestIdMismatch, &json!("fr-1"))
        );
        assert_eq!(refusal.details.get("already_answered"), None);

        let refusal = answer("fr-0", "approve").decide(&open).unwrap_err();
        assert_eq!(
            refusal.details["already_answered"],
            json!({"response": "approve", "received_at": "t"})
        );
        assert_eq!(refusal.details["answered_by"], json!({"user": "kim", "source": "cli"}));
        assert_eq!(
            refusal.message,
            r#"this request has been answered: "approve" by "kim" at t; the open request is fr-1"#
        );

        let refusal = answer("fr-1", "nonsense").decide(&open).unwrap_err();
        assert_eq!(
            (refusal.code, &refusal.details["valid_options"]),
            (Code::InvalidResponse, &json!(["approve", "reject"]))
        );
    }

    #[test]
    fn answers_match_exactly_or_folded() {
        for (kind, options, response, want) in [
            ("approval", r#"["approve","reject"]"#, "approve", Some("approve")),
            ("approval", r#"["approve","reject"]"#, " APPROVE \n", Some("approve")),
            ("selection", r#"["Yes","yes"]"#, "yes", Some("yes")),
            ("selection", r#"["Yes","yes"]"#, "YES", Some("Yes")),
            ("selection", r#"[1,"b"]"#, "1", Some("1")),
            ("approval", r#"["approve","reject"]"#, "1", None),
            ("approval", r#"["approve","reject"]"#, "lgtm", None),
            ("approval", "[]", "approve", None),
            ("clarification", r#"["a"]"#, " free text\n", Some("free text")),
            ("clarification", "[]", " \n", None),
        ] {
            let got = answer("fr-1", response)
                .decide(&waiting(kind, options))
                .ok()
                .map(|decision| decision.response);
            assert_eq!(got.as_deref(), want, "{kind} {options} {response:?}");
        }
    }

    #[test]
    fn one_state_write_closes_the_request() {
        let mut state = waiting("review", r#"["approve","request_changes"]"#);
        let mut given = answer("fr-1", "request_changes");
        given.comment = "Split it".into();
        let decision = given.decide(&state).unwrap();
        let now = Timestamp::from_unix_ms(1_765_044_249_120);
        decision.apply(&given, &mut state, 7, &now).unwrap();
        assert_eq!(
            state.into_json().to_string(),
            r#"{"status":"in_progress","feedback_history":[{"request_id":"fr-0","response":"approve","provided_by":{"user":"kim","source":"cli"},"received_at":"t"},{"request_id":"fr-1","request_type":"review","response":"request_changes","comment":"Split it","provided_by":{"user":"alex","source":"cli"},"action":"revise","resume_point":{"phase":"build","step":"s","step_index":2},"received_at":"2025-12-06T18:04:09Z"}],"current_phase":"build","current_step":"s","last_event_id":7,"updated_at":"2025-12-06T18:04:09Z"}"#
        );
        assert_eq!(decision.reply(&given)["result"]["comment"], "Split it");
    }
}
