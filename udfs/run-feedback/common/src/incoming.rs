//! One comment of an issue: whom it answers, and whether it does (§16). A poll and a webhook enter here alike.
//!
//! Both things that we do about a comment are announced in the memory first: after a crash the run tells whether the
//! answer was recorded, and the issue whether our reply was posted. So nothing is lost, and nothing done twice.

mod candidates;
mod inbox;
mod verdict;

use sdk::Context;
use serde_json::{Value, json};

use crate::codes::{Code, Refusal};
use crate::github::{GitHubSetup, IssueComment, number};
use crate::memory::Done;
use crate::outcome::Stop;
use crate::poster::PostError;
use crate::thread::Tracked;

pub(crate) use inbox::Inbox;

/// A comment as a webhook delivers it.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id; empty: not from a webhook.
    pub id: String,
    /// The issue, a number.
    pub issue: String,
    /// `owner/name`; empty: not known.
    pub repository: String,
    /// The comment.
    pub comment: IssueComment,
}

/// Acts on one comment; a delivery that has been dealt with is not looked at again.
///
/// # Errors
/// `MISSING_FIELDS`, `INVALID_COMMENT`; what the disk or the tracker refuses: then the delivery is to be repeated.
pub fn receive(ctx: &Context, base_path: &str, delivery: &Delivery) -> Result<Value, Stop> {
    let Delivery { id, issue, repository, comment } = delivery;
    let missing: Vec<&str> = [
        ("issue", issue.is_empty()),
        ("comment_id", comment.id.is_empty()),
        ("author", comment.author.is_empty()),
        ("created_at", comment.created_at.is_empty()),
    ]
    .iter()
    .filter(|(_, missing)| *missing)
    .map(|(name, _)| *name)
    .collect();
    if !missing.is_empty() {
        return Err(Refusal::missing(&missing).into());
    }
    let Ok(issue) = number(issue) else {
        let message = format!("{issue:?} is not an issue number");
        return Err(Refusal::new(Code::InvalidComment, message).into());
    };
    let issue = issue.trim_start_matches('0');
    let ours = GitHubSetup::chosen_repository(ctx);
    let outcome = if ours
        .is_some_and(|ours| !repository.is_empty() && !ours.eq_ignore_ascii_case(repository))
    {
        Outcome::ignored("other_repository")
    } else {
        let thread = &Tracked::new(ctx, issue);
        Inbox { ctx, base_path, issue, thread }.deliver(comment, id)?
    };
    Ok(
        json!({ "status": "success", "operation": "receive-reply", "result": outcome.to_json(comment) }),
    )
}

/// What became of a comment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// `answered`, `replied`, `ignored`, `seen`.
    pub(crate) word: &'static str,
    /// Why it was ignored or replied to.
    pub(crate) reason: Option<&'static str>,
    /// The run and request it is about.
    pub(crate) about: Option<(String, String)>,
    /// The answer and what follows, if it was recorded.
    pub(crate) answer: Option<(String, String)>,
    /// Why our reply is not there.
    pub(crate) warning: Option<String>,
}

impl Outcome {
    fn ignored(reason: &'static str) -> Outcome {
        Outcome { word: Done::Ignored.word(), reason: Some(reason), ..Outcome::default() }
    }

    /// `{comment_id, author, outcome, reason, run_id, request_id, response, action, warning?}`.
    pub(crate) fn to_json(&self, comment: &IssueComment) -> Value {
        let (run_id, request_id) = self.about.clone().unzip();
        let (response, action) = self.answer.clone().unzip();
        let mut row = json!({
            "comment_id": comment.id,
            "author": comment.author,
            "outcome": self.word,
            "reason": self.reason,
            "run_id": run_id,
            "request_id": request_id,
            "response": response,
            "action": action,
        });
        if let Some(warning) = &self.warning {
            row["warning"] = warning.as_str().into();
        }
        row
    }
}

/// What the tracker refuses, as a refusal.
pub(crate) fn unavailable(code: Code, error: &PostError) -> Refusal {
    let refusal = Refusal::new(code, error.to_string());
    match error {
        PostError::TooMuch { wait_s, .. } => refusal.with("retry_after_s", *wait_s),
        _ => refusal,
    }
}
