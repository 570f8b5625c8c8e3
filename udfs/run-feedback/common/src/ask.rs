//! Asking: parameters to a question, a question to the next state and its event (§7, §9).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::codes::{Code, Refusal, Warning};
use crate::event::Event;
use crate::params::{context, json_array, step_index};
use crate::run_id::RunId;
use crate::state::{ResumePoint, State};
use crate::types::FeedbackType;
use sdk::Timestamp;

/// What `request_feedback` is given, as text (§9).
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the parameters of the contract")]
pub struct AskParams<'a> {
    pub run_id: &'a str,
    pub phase: &'a str,
    pub step: &'a str,
    pub feedback_type: &'a str,
    pub prompt: &'a str,
    pub options: &'a str,
    pub context: &'a str,
    pub step_index: &'a str,
    pub work_id: &'a str,
    /// `None`: if there is a work id.
    pub post_to_issue: Option<bool>,
    pub cli_prompt: bool,
    pub replace: bool,
}

/// A checked question.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The run that asks.
    pub run_id: RunId,
    /// Kind of question.
    pub kind: FeedbackType,
    /// Shown to people as it is.
    pub prompt: String,
    /// What may be answered; empty for free text.
    pub options: Vec<String>,
    /// Kept whole; two members are shown.
    pub context: Map<String, Value>,
    /// Where the run goes on.
    pub point: ResumePoint,
    /// Issue the caller named; empty: that of the state.
    pub work_id: String,
    /// Whether a comment is wanted.
    pub post: bool,
    /// Whether the question is shown where the caller runs.
    pub cli: bool,
    /// Whether an open request may be replaced.
    pub replace: bool,
}

impl AskParams<'_> {
    /// Checks the parameters in the order of §9, step 1; touches nothing.
    ///
    /// # Errors
    /// `MISSING_RUN_ID`, `INVALID_RUN_ID`, `MISSING_FIELDS`, `INVALID_FEEDBACK_TYPE`, `MISSING_OPTIONS`,
    /// `INVALID_OPTIONS`, `INVALID_CONTEXT`, `INVALID_STEP_INDEX`.
    pub fn check(&self) -> Result<Ask, Refusal> {
        if self.run_id.is_empty() {
            return Err(Refusal::new(Code::MissingRunId, "run_id is missing"));
        }
        let run_id =
            RunId::parse(self.run_id).ok_or_else(|| Refusal::invalid_run_id(self.run_id))?;
        let missing: Vec<&str> = [
            ("phase", self.phase),
            ("step", self.step),
            ("feedback_type", self.feedback_type),
            ("prompt", self.prompt),
        ]
        .iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(name, _)| *name)
        .collect();
        if !missing.is_empty() {
            return Err(Refusal::missing(&missing));
        }
        let kind = FeedbackType::check(self.feedback_type)?;
        let options = options(self.options, kind)?;
        let context = context(self.context)?;
        let point = ResumePoint {
            phase: self.phase.to_owned(),
            step: self.step.to_owned(),
            step_index: step_index(self.step_index)?,
        };
        let post = self.post_to_issue.unwrap_or(!self.work_id.is_empty());
        Ok(Ask {
            run_id,
            kind,
            prompt: self.prompt.to_owned(),
            options,
            context,
            point,
            work_id: self.work_id.to_owned(),
            post,
            cli: self.cli_prompt,
            replace: self.replace,
        })
    }
}

/// Options as they are stored: trimmed, told apart by anybody; left out or empty means those of the type.
fn options(text: &str, kind: FeedbackType) -> Result<Vec<String>, Refusal> {
    let invalid = |why: String| Refusal::new(Code::InvalidOptions, why);
    let given = json_array(text, "options", Code::InvalidOptions)?.unwrap_or_default();
    let mut options: Vec<String> = Vec::with_capacity(given.len());
    let mut known = HashSet::with_capacity(given.len());
    for (at, option) in given.iter().enumerate() {
        let option = option
            .as_str()
            .ok_or_else(|| invalid(format!("option {} is not a string", at + 1)))?
            .trim();
        if option.is_empty() {
            return Err(invalid(format!("option {} is blank", at + 1)));
        }
        if option.contains(['\n', '\r']) {
            return Err(invalid(format!("option {} has several lines", at + 1)));
        }
        if !known.insert(option) {
            return Err(invalid(format!("option {option:?} is offered twice")));
        }
        options.push(option.to_owned());
    }
    if options.is_empty() {
        if kind == FeedbackType::Selection {
            return Err(Refusal::new(
                Code::MissingOptions,
                "a selection needs options to select from",
            ));
        }
        options = kind.default_options().iter().map(|&option| option.to_owned()).collect();
    }
    Ok(options)
}

/// A request id out of three random bytes: `fr-YYYYMMDD-xxxxxx` (§7).
pub fn request_id(now: &Timestamp, random: [u8; 3]) -> String {
    format!("fr-{}-{:02x}{:02x}{:02x}", now.to_date(), random[0], random[1], random[2])
}

/// `{cli, issue_comment, comment_url}`.
pub fn notifications(cli: bool, comment_url: Option<&str>, posted: bool) -> Value {
    json!({ "cli": cli, "issue_comment": posted, "comment_url": comment_url })
}

impl Ask {
    /// Whether this run may ask now; the id of the request that would be replaced, if one is open.
    ///
    /// # Errors
    /// `RUN_CLOSED`, `REQUEST_PENDING`.
    pub fn admit(&self, state: &State) -> Result<Option<String>, Refusal> {
        if state.is_closed() {
            let status = state.status().unwrap_or_default();
            return Err(Refusal::new(
                Code::RunClosed,
                format!("the run is {status}; it asks nobody any more"),
            )
            .with("run_status", status));
        }
        let open = state.open_request_id().map(str::to_owned);
        if state.is_awaiting() && !self.replace {
            let message = match &open {
                Some(id) => format!("request {id} is still open; answer it, or ask with replace"),
                None => "the run already waits for feedback; ask with replace".to_owned(),
            };
            return Err(
                Refusal::new(Code::RequestPending, message).with("pending_request_id", open)
            );
        }
        Ok(open)
    }

    /// The `decision_point` event of this question.
    pub fn event(&self, request_id: &str, supersedes: Option<&str>) -> Event {
        let mut metadata = Map::new();
        metadata.insert("request_id".into(), request_id.into());
        metadata.insert("type".into(), self.kind.word().into());
        metadata.insert("options".into(), self.options.clone().into());
        if let Some(old) = supersedes {
            metadata.insert("supersedes".into(), old.into());
        }
        Event {
            kind: "decision_point".into(),
            phase: self.point.phase.clone(),
            step: self.point.step.clone(),
            message: format!("Awaiting feedback: {}", self.prompt),
            metadata,
            ..Event::default()
        }
    }

    /// The one state write of step 5: everything at once, all notification flags false.
    pub fn apply(&self, state: &mut State, request_id: &str, event_id: u64, now: &Timestamp) {
        state.set("status", "awaiting_feedback");
        state.set("current_phase", self.point.phase.as_str());
        state.set("current_step", self.point.step.as_str());
        state.set(
            "feedback_request",
            request(
                request_id,
                self.kind.word(),
                &self.prompt,
                self.options.clone().into(),
                self.context.clone(),
                now,
                notifications(false, None, false),
            ),
        );
        state.set("resume_point", self.point.to_json());
        state.note_event(event_id, now.to_seconds());
    }

    /// The reply of a success (§9): both shapes of the seed at once.
    pub fn reply(&self, request_id: &str, notifications: &Value, warnings: &[Warning]) -> Value {
        let mut reply = json!({
            "status": "success",
            "operation": "request-feedback",
            "message": "Feedback request created",
            "details": {
                "request_id": request_id,
                "type": self.kind.word(),
                "phase": self.point.phase,
                "step": self.point.step,
            },
            "notifications": notifications,
            "result": { "request_id": request_id, "state_updated": true, "notifications": notifications },
        });
        if !warnings.is_empty() {
            reply["warnings"] = warnings.iter().map(Warning::to_json).collect();
        }
        reply
    }
}

/// The request object of §7.
pub(crate) fn request(
    request_id: &str,
    kind: &str,
    prompt: &str,
    options: Value,
    context: Map<String, Value>,
    now: &Timestamp,
    notification_sent: Value,
) -> Value {
    json!({
        "request_id": request_id,
        "type": kind,
        "prompt": prompt,
        "options": options,
        "context": context,
        "requested_at": now.to_seconds(),
        "notification_sent": notification_sent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

    fn params() -> AskParams<'static> {
        AskParams {
            run_id: RUN,
            phase: "build",
            step: "s",
            feedback_type: "approval",
            prompt: "ok?",
            ..AskParams::default()
        }
    }

    fn now() -> Timestamp {
        Timestamp::from_unix_ms(1_765_044_249_120)
    }

    #[test]
    fn parameters_are_checked_in_order() {
        for (params, want) in [
            (AskParams { run_id: "", ..params() }, Code::MissingRunId),
            (
                AskParams {
                    run_id: "../../../0f0e0d0c-0b0a-4908-8706-050403020100",
                    phase: "",
                    ..params()
                },
                Code::InvalidRunId,
            ),
            (AskParams { phase: "", feedback_type: "vote", ..params() }, Code::MissingFields),
            (
                AskParams { feedback_type: "Approval", options: "{", ..params() },
                Code::InvalidFeedbackType,
            ),
            (AskParams { feedback_type: "selection", ..params() }, Code::MissingOptions),
            (
                AskParams { feedback_type: "selection", options: "[]", ..params() },
                Code::MissingOptions,
            ),
            (AskParams { options: "{}", context: "[]", ..params() }, Code::InvalidOptions),
            (AskParams { options: "[1]", ..params() }, Code::InvalidOptions),
            (AskParams { options: r#"["a"," "]"#, ..params() }, Code::InvalidOptions),
            (AskParams { options: r#"["a","a "]"#, ..params() }, Code::InvalidOptions),
            (AskParams { options: r#"["a\nb"]"#, ..params() }, Code::InvalidOptions),
            (AskParams { context: "[]", step_index: "x", ..params() }, Code::InvalidContext),
            (AskParams { step_index: "x", ..params() }, Code::InvalidStepIndex),
        ] {
            assert_eq!(params.check().unwrap_err().code, want, "{params:?}");
        }
        let refusal = AskParams { step: "", prompt: "", ..params() }.check().unwrap_err();
        assert_eq!(refusal.details["missing"], json!(["step", "prompt"]));
    }

    #[test]
    fn options_are_trimmed_or_those_of_the_type() {
        for (kind, options, want) in [
            ("approval", "", vec!["approve", "reject"]),
            ("review", "[]", vec!["approve", "request_changes", "reject"]),
            ("clarification", "", vec![]),
            ("selection", r#"[" flat files ","b"]"#, vec!["flat files", "b"]),
        ] {
            let ask = AskParams { feedback_type: kind, options, ..params() }.check().unwrap();
            assert_eq!(ask.options, want, "{kind} {options}");
        }
    }

    #[test]
    fn posting_follows_the_work_id_unless_said() {
        for (work_id, post, want) in [
            ("", None, false),
            ("258", None, true),
            ("258", Some(false), false),
            ("", Some(true), true),
        ] {
            let ask = AskParams { work_id, post_to_issue: post, ..params() }.check().unwrap();
            assert_eq!(
                (ask.post, ask.cli, ask.replace),
                (want, false, false),
                "{work_id} {post:?}"
            );
        }
    }

    #[test]
    fn who_may_ask_depends_on_the_status() {
        let code = |text: &str, replace: bool| {
            let ask = AskParams { replace, ..params() }.check().unwrap();
            ask.admit(&State::parse(text).unwrap()).map_err(|refusal| refusal.code)
        };
        for status in ["pending", "in_progress", "failed", "paused"] {
            assert_eq!(code(&format!(r#"{{"status":"{status}"}}"#), false), Ok(None));
        }
        assert_eq!(code("{}", false), Ok(None));
        for status in ["completed", "cancelled"] {
            assert_eq!(code(&format!(r#"{{"status":"{status}"}}"#), true), Err(Code::RunClosed));
        }
        let open = r#"{"status":"awaiting_feedback","feedback_request":{"request_id":"fr-1"}}"#;
        assert_eq!(code(open, false), Err(Code::RequestPending));
        assert_eq!(code(open, true), Ok(Some("fr-1".into())));
        assert_eq!(code(r#"{"status":"awaiting_feedback"}"#, false), Err(Code::RequestPending));
        assert_eq!(code(r#"{"status":"awaiting_feedback"}"#, true), Ok(None));
    }

    #[test]
    fn one_state_write_holds_everything() {
        let ask = AskParams { step_index: "0", context: r#"{"summary":"s","n":1.0}"#, ..params() }
            .check()
            .unwrap();
        let mut state =
            State::parse(r#"{"status":"pending","custom":[1],"last_event_id":4}"#).unwrap();
        ask.apply(&mut state, "fr-20251206-a1b2c3", 5, &now());
        assert_eq!(
            state.into_json().to_string(),
            r#"{"status":"awaiting_feedback","custom":[1],"last_event_id":5,"current_phase":"build","current_step":"s","feedback_request":{"request_id":"fr-20251206-a1b2c3","type":"approval","prompt":"ok?","options":["approve","reject"],"context":{"summary":"s","n":1.0},"requested_at":"2025-12-06T18:04:09Z","notification_sent":{"cli":false,"issue_comment":false,"comment_url":null}},"resume_point":{"phase":"build","step":"s","step_index":0},"updated_at":"2025-12-06T18:04:09Z"}"#
        );
        let event = ask.event("fr-2", Some("fr-1"));
        assert_eq!(event.message, "Awaiting feedback: ok?");
        assert_eq!(
            Value::Object(event.metadata).to_string(),
            r#"{"request_id":"fr-2","type":"approval","options":["approve","reject"],"supersedes":"fr-1"}"#
        );
    }

    #[test]
    fn request_ids_carry_the_date() {
        assert_eq!(request_id(&now(), [0, 0xab, 7]), "fr-20251206-00ab07");
    }
}
