//! The low-level changes of the waiting part of a state (§13): drop-ins for a script, so they check little.

use serde_json::{Map, Value, json};

use crate::ask::{notifications, request};
use crate::codes::{Code, Refusal};
use crate::params::{context, json_array, step_index};
use crate::run_id::RunId;
use crate::state::{ResumePoint, State};
use sdk::Timestamp;

/// What `update_feedback_state` is given, as text.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the parameters of the contract")]
pub struct UpdateParams<'a> {
    pub run_id: &'a str,
    pub operation: &'a str,
    pub request_id: &'a str,
    pub kind: &'a str,
    pub prompt: &'a str,
    pub options: &'a str,
    pub context: &'a str,
    pub phase: &'a str,
    pub step: &'a str,
    pub step_index: &'a str,
    pub comment_url: &'a str,
    pub cli_notified: bool,
    pub response: &'a str,
    pub user: &'a str,
    pub source: &'a str,
    pub cli: bool,
}

/// A checked sub-operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// Opens a request, whatever was open before.
    SetAwaiting {
        /// The request object but for its time.
        request_id: String,
        /// Any word.
        kind: String,
        /// As it is.
        prompt: String,
        /// As they are.
        options: Vec<Value>,
        /// As it is.
        context: Map<String, Value>,
        /// Where the run goes on.
        point: ResumePoint,
        /// Of a comment that was posted before.
        comment_url: Option<String>,
        /// Whether the question has been shown.
        cli: bool,
    },
    /// Closes whatever is open.
    ClearAwaiting {
        /// Where the run goes on.
        point: ResumePoint,
    },
    /// Appends an answer.
    AddHistory {
        /// Of the answer.
        request_id: String,
        /// Any word.
        kind: String,
        /// As it is.
        response: String,
        /// Who answered.
        user: String,
        /// Through what.
        source: String,
    },
    /// Notes that the open request reached somebody.
    MarkNotified {
        /// Must be the open one.
        request_id: String,
        /// Shown on a terminal.
        cli: bool,
        /// Posted here.
        comment_url: Option<String>,
    },
}

/// The sub-operations, as words.
const WORDS: [&str; 4] = ["set-awaiting", "clear-awaiting", "add-history", "mark-notified"];

impl UpdateParams<'_> {
    /// The checks that come before the state is looked at.
    ///
    /// # Errors
    /// `MISSING_RUN_ID`, `MISSING_OPERATION`, `INVALID_RUN_ID`.
    pub fn run_id(&self) -> Result<RunId, Refusal> {
        if self.run_id.is_empty() {
            return Err(Refusal::new(Code::MissingRunId, "run_id is missing"));
        }
        if self.operation.is_empty() {
            return Err(Refusal::new(Code::MissingOperation, "operation is missing"));
        }
        RunId::parse(self.run_id).ok_or_else(|| Refusal::invalid_run_id(self.run_id))
    }

    /// The word for the `operation` member of a refusal, if the sub-operation is known.
    pub fn word(&self) -> Option<&'static str> {
        WORDS.into_iter().find(|word| *word == self.operation)
    }

    /// The checks that come after it is known that there is a state.
    ///
    /// # Errors
    /// `INVALID_OPERATION`, `MISSING_FIELDS`, `INVALID_OPTIONS`, `INVALID_CONTEXT`, `INVALID_STEP_INDEX`.
    pub fn check(&self) -> Result<Update, Refusal> {
        let text = |given: &str, default: &str| {
            if given.is_empty() { default.to_owned() } else { given.to_owned() }
        };
        let url = (!self.comment_url.is_empty()).then(|| self.comment_url.to_owned());
        match self.operation {
            "set-awaiting" => {
                self.need(&[
                    ("request_id", self.request_id),
                    ("type", self.kind),
                    ("prompt", self.prompt),
                    ("phase", self.phase),
                    ("step", self.step),
                ])?;
                Ok(Update::SetAwaiting {
                    request_id: self.request_id.to_owned(),
                    kind: self.kind.to_owned(),
                    prompt: self.prompt.to_owned(),
                    options: json_array(self.options, "options", Code::InvalidOptions)?
                        .unwrap_or_default(),
                    context: context(self.context)?,
                    point: ResumePoint {
                        phase: self.phase.to_owned(),
                        step: self.step.to_owned(),
                        step_index: step_index(self.step_index)?,
                    },
                    comment_url: url,
                    cli: self.cli_notified,
                })
            }
            "clear-awaiting" => {
                self.need(&[("phase", self.phase), ("step", self.step)])?;
                let point = ResumePoint {
                    phase: self.phase.to_owned(),
                    step: self.step.to_owned(),
                    step_index: Value::Null,
                };
                Ok(Update::ClearAwaiting { point })
            }
            "add-history" => {
                self.need(&[
                    ("request_id", self.request_id),
                    ("type", self.kind),
                    ("response", self.response),
                ])?;
                Ok(Update::AddHistory {
                    request_id: self.request_id.to_owned(),
                    kind: self.kind.to_owned(),
                    response: self.response.to_owned(),
                    user: text(self.user, "unknown"),
                    source: text(self.source, "cli"),
                })
            }
            "mark-notified" => {
                let told = if self.cli || url.is_some() { "told" } else { "" };
                self.need(&[("request_id", self.request_id), ("cli or comment_url", told)])?;
                Ok(Update::MarkNotified {
                    request_id: self.request_id.to_owned(),
                    cli: self.cli,
                    comment_url: url,
                })
            }
            other => Err(Refusal::new(
                Code::InvalidOperation,
                format!("unknown operation {other:?}; one of: {}", WORDS.join(", ")),
            )),
        }
    }

    fn need(&self, fields: &[(&str, &str)]) -> Result<(), Refusal> {
        let missing: Vec<&str> =
            fields.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| *name).collect();
        if missing.is_empty() { Ok(()) } else { Err(Refusal::missing(&missing)) }
    }
}

impl Update {
    /// Changes the state and says what to answer.
    ///
    /// # Errors
    /// `REQUEST_ID_MISMATCH` (`mark-notified`), `STATE_UPDATE_FAILED` (a history that is no list).
    pub fn apply(&self, state: &mut State, now: &Timestamp) -> Result<Value, Refusal> {
        let reply = match self {
            Update::SetAwaiting {
                request_id,
                kind,
                prompt,
                options,
                context,
                point,
                comment_url,
                cli,
            } => {
                state.set("status", "awaiting_feedback");
                state.set("current_phase", point.phase.as_str());
                state.set("current_step", point.step.as_str());
                let sent = notifications(*cli, comment_url.as_deref(), comment_url.is_some());
                let request = request(
                    request_id,
                    kind,
                    prompt,
                    options.clone().into(),
                    context.clone(),
                    now,
                    sent,
                );
                state.set("feedback_request", request);
                state.set("resume_point", point.to_json());
                json!({ "status": "success", "operation": "set-awaiting", "request_id": request_id, "resume_point": point.short() })
            }
            Update::ClearAwaiting { point } => {
                state.set("status", "in_progress");
                state.set("current_phase", point.phase.as_str());
                state.set("current_step", point.step.as_str());
                state.remove("feedback_request");
                state.remove("resume_point");
                json!({ "status": "success", "operation": "clear-awaiting", "resume_point": point.short() })
            }
            Update::AddHistory { request_id, kind, response, user, source } => {
                state.push_history(json!({
                    "request_id": request_id,
                    "request_type": kind,
                    "response": response,
                    "provided_by": { "user": user, "source": source },
                    "received_at": now.to_seconds(),
                }))?;
                json!({ "status": "success", "operation": "add-history", "request_id": request_id, "response": response })
            }
            Update::MarkNotified { request_id, cli, comment_url } => {
                let sent = mark_notified(state, request_id, *cli, comment_url.as_deref())?;
                json!({ "status": "success", "operation": "mark-notified", "request_id": request_id, "notification_sent": sent })
            }
        };
        state.touch(now);
        Ok(reply)
    }
}

/// Raises the flags of the open request; its time stays, flags are never lowered.
///
/// # Errors
/// `REQUEST_ID_MISMATCH` if the request is not the open one (any more).
fn mark_notified(
    state: &mut State,
    request_id: &str,
    cli: bool,
    url: Option<&str>,
) -> Result<Value, Refusal> {
    let open = state.open_request_id().map(str::to_owned);
    let request = match state.open_request_mut() {
        Some(request) if open.as_deref() == Some(request_id) => request,
        _ => {
            let message = match &open {
                Some(open) => format!("the open request is {open}"),
                None => "no request is open".to_owned(),
            };
            return Err(
                Refusal::new(Code::RequestIdMismatch, message).with("expected_request_id", open)
            );
        }
    };
    if !request.get("notification_sent").is_some_and(Value::is_object) {
        request.insert("notification_sent".into(), notifications(false, None, false));
    }
    let sent = &mut request["notification_sent"];
    if cli {
        sent["cli"] = true.into();
    }
    if let Some(url) = url {
        sent["issue_comment"] = true.into();
        sent["comment_url"] = url.into();
    }
    Ok(sent.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

    fn code(params: UpdateParams<'_>) -> Code {
        params.run_id().map(|_| ()).and_then(|()| params.check().map(|_| ())).unwrap_err().code
    }

    #[test]
    fn parameters_are_checked_in_order() {
        let set = UpdateParams {
            run_id: RUN,
            operation: "set-awaiting",
            request_id: "r",
            kind: "t",
            prompt: "p",
            phase: "a",
            step: "b",
            ..UpdateParams::default()
        };
        for (params, want) in [
            (UpdateParams { run_id: "", operation: "", ..set }, Code::MissingRunId),
            (UpdateParams { run_id: "x", operation: "", ..set }, Code::MissingOperation),
            (UpdateParams { run_id: "x", operation: "y", ..set }, Code::InvalidRunId),
            (UpdateParams { operation: "set_awaiting", ..set }, Code::InvalidOperation),
            (UpdateParams { step: "", options: "nope", ..set }, Code::MissingFields),
            (UpdateParams { options: "{}", context: "[]", ..set }, Code::InvalidOptions),
            (UpdateParams { context: "[]", step_index: "x", ..set }, Code::InvalidContext),
            (UpdateParams { step_index: "x", ..set }, Code::InvalidStepIndex),
            (UpdateParams { operation: "add-history", ..set }, Code::MissingFields),
            (UpdateParams { operation: "mark-notified", ..set }, Code::MissingFields),
            (UpdateParams { operation: "mark-notified", cli: false, ..set }, Code::MissingFields),
        ] {
            assert_eq!(code(params), want, "{params:?}");
        }
    }

    #[test]
    fn flags_are_raised_only_on_the_open_request() {
        let now = Timestamp::from_unix_ms(1_765_044_249_120);
        let text = r#"{"status":"awaiting_feedback","feedback_request":{"request_id":"fr-1","requested_at":"t","notification_sent":{"cli":true,"x":1}}}"#;
        let mark = |id: &str| Update::MarkNotified {
            request_id: id.into(),
            cli: false,
            comment_url: Some("u".into()),
        };
        let mut state = State::parse(text).unwrap();
        assert_eq!(mark("fr-2").apply(&mut state, &now).unwrap_err().code, Code::RequestIdMismatch);
        assert_eq!(state, State::parse(text).unwrap());
        mark("fr-1").apply(&mut state, &now).unwrap();
        assert_eq!(
            state.get("feedback_request").unwrap().to_string(),
            r#"{"request_id":"fr-1","requested_at":"t","notification_sent":{"cli":true,"x":1,"issue_comment":true,"comment_url":"u"}}"#
        );
        let mut closed = State::parse(r#"{"status":"in_progress"}"#).unwrap();
        assert_eq!(
            mark("fr-1").apply(&mut closed, &now).unwrap_err().details["expected_request_id"],
            Value::Null
        );
    }
}
