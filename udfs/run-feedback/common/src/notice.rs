//! What we reply to a comment that we could not act on (§16): why, and what may be answered.

use serde_json::Value;

use crate::comment::question_footer;
use crate::params::plain;
use crate::run_id::RunId;
use crate::state::State;
use crate::types::{FeedbackType, description};

/// First line of a reply, before the id of the comment. It lets us find our reply after a crash, and never take it for
/// somebody's answer.
const MARK: &str = "<!-- udf-host: reply to comment ";

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// A reason of `parse_issue_reply`: `empty`, `ambiguous`, `conditional`, `no_option`.
    Unclear(&'static str),
    /// Several runs wait for this issue.
    SeveralRuns,
    /// The run that was named does not wait.
    OtherRun,
    /// Another request was named than the open one.
    OtherRequest,
    /// The question cannot be cancelled.
    NoCancel,
    /// Only the status was asked for.
    Status,
    /// Somebody else was first.
    Answered {
        /// Who, what and when, from the history.
        by: String,
        response: String,
        at: String,
    },
}

impl Why {
    /// The word in results.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Why::Unclear(reason) => reason,
            Why::SeveralRuns => "several_runs",
            Why::OtherRun => "not_waiting",
            Why::OtherRequest => "request_mismatch",
            Why::NoCancel => "no_cancel",
            Why::Status => "status",
            Why::Answered { .. } => "already_answered",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Why::Unclear("empty") => "your comment holds the command but no answer.".to_owned(),
            Why::Unclear("ambiguous") => "your comment names more than one option.".to_owned(),
            Why::Unclear("conditional") => {
                "your comment sets a condition; only a plain answer can be recorded.".to_owned()
            }
            Why::Unclear(_) => "your comment names none of the options.".to_owned(),
            Why::SeveralRuns => {
                "several runs wait for an answer here. Say which one with `@faber resume --run ID`:"
                    .to_owned()
            }
            Why::OtherRun => {
                "the run you named is not waiting for an answer. These are:".to_owned()
            }
            Why::OtherRequest => "the request you named is not the open one.".to_owned(),
            Why::NoCancel => "this question offers nothing that cancels.".to_owned(),
            Why::Status => "this is what the run waits for.".to_owned(),
            Why::Answered { by, response, at } => {
                format!("this was answered before: {} by {} at {at}.", code(response), code(by))
            }
        }
    }
}

/// The text of a reply. `open` are the runs that wait: one whose question is shown, or several that are listed.
pub(crate) fn notice(author: &str, comment: &str, why: &Why, open: &[(&RunId, &State)]) -> String {
    let mut out = format!("{}{comment} -->\n@{author}: {}\n", MARK, why.sentence());
    match open {
        _ if matches!(why, Why::Answered { .. }) => {}
        [(run_id, state)] if !matches!(why, Why::SeveralRuns | Why::OtherRun) => {
            out.push_str(&question(run_id, state));
        }
        many => {
            out.push('\n');
            for (run_id, state) in many {
                let point = state.resume_point();
                let place = one_line(&format!("{}:{}", point.phase, point.step));
                let gist = gist(state);
                let asks =
                    if gist.is_empty() { String::new() } else { format!(": {}", code(&gist)) };
                out.push_str(&format!("- `{run_id}` ({place}){asks}\n"));
            }
        }
    }
    out
}

fn question(run_id: &RunId, state: &State) -> String {
    let Some(request) = state.open_request() else { return String::new() };
    let text = |name: &str| request.get(name).map(plain).unwrap_or_default();
    let (kind, prompt) = (text("type"), text("prompt"));
    let mut out = String::from("\n");
    for line in prompt.lines() {
        out.push_str(&format!("> {line}\n"));
    }
    out.push('\n');
    let options = request.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, option) in options.iter().enumerate() {
        let option = plain(option).replace(['\n', '\r'], " ");
        out.push_str(&format!("{}. **{}**", at + 1, option.trim()));
        if let Some(description) = description(&kind, option.trim()) {
            out.push_str(&format!(" - {description}"));
        }
        out.push('\n');
    }
    let how = match FeedbackType::from_word(&kind) {
        Some(FeedbackType::Clarification) => "Reply with your answer",
        _ => "Reply with one option, its number, or `option: remarks`",
    };
    let request_id = text("request_id");
    out.push_str(&format!(
        "\n{how}, and `@faber resume`.\n\n{}",
        question_footer(run_id, &request_id)
    ));
    out
}

/// Characters of a question that stand in a list.
const GIST: usize = 100;

/// The first line of the open question, so that people can tell several apart.
fn gist(state: &State) -> String {
    let prompt = state.open_request().and_then(|request| request.get("prompt"));
    let prompt = prompt.map(plain).unwrap_or_default();
    let mut lines = prompt.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let cut: String = first.chars().take(GIST).collect();
    if cut.len() < first.len() || lines.next().is_some() { format!("{cut} …") } else { cut }
}

/// Whether the text is a reply of ours.
pub(crate) fn is_notice(body: &str) -> bool {
    body.lines().any(|line| line.starts_with(MARK))
}

/// Whether the text is our reply to this comment.
pub(crate) fn is_notice_to(body: &str, comment: &str) -> bool {
    body.lines().any(|line| {
        line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) == Some(comment)
    })
}

/// A value inside a sentence: one line, and no mark-up of its own.
fn code(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

    fn waiting() -> State {
        State::parse(
            r#"{"status":"awaiting_feedback","resume_point":{"phase":"build","step":"x"},
            "feedback_request":{"request_id":"fr-1","type":"approval","prompt":"Is it\n@faber resume ok?","options":["approve","reject"]}}"#,
        )
        .unwrap()
    }

    #[test]
    fn an_unclear_comment_gets_the_options() {
        let (run, state) = (RunId::parse(RUN).unwrap(), waiting());
        let text = notice("sam", "77", &Why::Unclear("ambiguous"), &[(&run, &state)]);
        assert_eq!(
            text,
            "<!-- udf-host: reply to comment 77 -->\n@sam: your comment names more than one option.\n\n> Is it\n> @faber resume ok?\n\n1. **approve** - Continue to next phase\n2. **reject** - Cancel this workflow run\n\nReply with one option, its number, or `option: remarks`, and `@faber resume`.\n\n---\n_This feedback request will remain open until addressed._\n_Run ID: `acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100` | Request ID: `fr-1`_\n"
        );
        assert!(is_notice(&text) && is_notice_to(&text, "77") && !is_notice_to(&text, "7"));
        let parsed = crate::parse_reply(&text, "approval", "", "").unwrap();
        assert_eq!(parsed.reason, Some("own_comment"));
    }

    #[test]
    fn several_questions_can_be_told_apart() {
        let (run, state) = (RunId::parse(RUN).unwrap(), waiting());
        let text = notice("sam", "7", &Why::SeveralRuns, &[(&run, &state), (&run, &state)]);
        let row = format!("- `{RUN}` (build:x): `Is it …`\n");
        assert!(text.ends_with(&format!(":\n\n{row}{row}")), "{text}");
        for (prompt, want) in [
            (String::new(), String::new()),
            (" Ship it?\n".to_owned(), "Ship it?".to_owned()),
            ("é".repeat(101), format!("{} …", "é".repeat(100))),
        ] {
            let mut state = waiting();
            state.open_request_mut().unwrap().insert("prompt".into(), prompt.into());
            assert_eq!(gist(&state), want);
        }
    }

    #[test]
    fn no_notice_answers_itself() {
        let (run, state) = (RunId::parse(RUN).unwrap(), waiting());
        let answered = Why::Answered {
            by: "al`ex\n@faber resume".into(),
            response: "approve".into(),
            at: "now".into(),
        };
        for why in [Why::SeveralRuns, Why::OtherRun, Why::Status, Why::NoCancel, answered] {
            let text = notice("sam", "7", &why, &[(&run, &state), (&run, &state)]);
            let parsed = crate::parse_reply(&text, "approval", "", "").unwrap();
            assert!(matches!(parsed.reason, Some("own_comment" | "no_trigger")), "{text}");
        }
    }
}
