//! From the text of an issue reply to an answer (§16). Pure; the front ends decide what becomes of it.

mod markdown;
mod matching;
mod trigger;

use serde_json::{Value, json};

use crate::codes::{Code, Refusal};
use crate::comment::is_question;
use crate::params::{json_array, plain};
use crate::types::FeedbackType;

use matching::Found;
use trigger::Trigger;

/// What a reply says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// `resume`, `status` or `cancel`.
    pub trigger: Option<&'static str>,
    /// The run it names, as it was written.
    pub run: Option<String>,
    /// The request it names, as it was written.
    pub request: Option<String>,
    /// The option as offered, or free text.
    pub response: Option<String>,
    /// What was said beside the answer; the whole text when no answer was found in it.
    pub comment: String,
    /// How the answer was found.
    pub matched: Option<&'static str>,
    /// Why there is none.
    pub reason: Option<&'static str>,
}

impl Reply {
    fn nothing(reason: &'static str) -> Reply {
        Reply { reason: Some(reason), ..Reply::default() }
    }

    /// `{status, operation, trigger, run, request, response, comment, match, reason}`.
    pub fn to_json(&self) -> Value {
        json!({
            "status": "success",
            "operation": "parse-issue-reply",
            "trigger": self.trigger,
            "run": self.run,
            "request": self.request,
            "response": self.response,
            "comment": self.comment,
            "match": self.matched,
            "reason": self.reason,
        })
    }
}

/// Reads a reply. `options` is a JSON array as text; empty means those of the type. `previous_body` is the same author's
/// comment before this one, used when this one holds nothing but the trigger.
///
/// # Errors
/// `INVALID_OPTIONS`.
pub fn parse_reply(
    body: &str,
    kind: &str,
    options: &str,
    previous_body: &str,
) -> Result<Reply, Refusal> {
    let kind = FeedbackType::from_word(kind);
    let options: Vec<String> = match json_array(options, "options", Code::InvalidOptions)? {
        Some(options) => options.iter().map(plain).collect(),
        None => kind
            .map_or(&[][..], FeedbackType::default_options)
            .iter()
            .map(|&option| option.to_owned())
            .collect(),
    };
    let body = lines(body);
    if is_question(&body) {
        return Ok(Reply::nothing("own_comment"));
    }
    let (text, trigger) = trigger::take(&markdown::spoken(&body));
    let Some(Trigger { command, run, request }) = trigger else {
        return Ok(Reply::nothing("no_trigger"));
    };
    let mut reply = Reply { trigger: Some(command), run, request, ..Reply::default() };
    if command != "resume" {
        return Ok(reply);
    }
    let mut text = tidy(&text);
    if text.is_empty() {
        text = previous(previous_body);
    }
    if text.is_empty() {
        reply.reason = Some("empty");
        return Ok(reply);
    }
    match matching::find(&text, kind == Some(FeedbackType::Clarification), &options) {
        Found::Answer { response, comment, matched } => {
            (reply.response, reply.comment, reply.matched) =
                (Some(response), comment, Some(matched));
        }
        Found::Nothing(reason) => (reply.comment, reply.reason) = (text, Some(reason)),
    }
    Ok(reply)
}

/// What the comment before says; nothing if it is one of ours.
fn previous(body: &str) -> String {
    let body = lines(body);
    if is_question(&body) {
        String::new()
    } else {
        tidy(&trigger::take(&markdown::spoken(&body)).0)
    }
}

fn lines(body: &str) -> String {
    body.replace("\r\n", "\n")
}

/// Trailing blanks off each line, several blank lines one, nothing around the text.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.split('\n').map(str::trim_end) {
        if line.is_empty() {
            blank = true;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank { "\n\n" } else { "\n" });
        }
        blank = false;
        out.push_str(line);
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests;
