//! Acting on a comment: what is announced in the memory, recorded in a run, said on the issue.

use sdk::Context;

use super::verdict::Verdict;
use super::{Outcome, unavailable};
use crate::codes::Code;
use crate::github::IssueComment;
use crate::memory::{Done, Memory, MemoryGuard};
use crate::notice::{is_notice, is_notice_to};
use crate::outcome::Stop;
use crate::poster::PostError;
use crate::reply::parse_reply;
use crate::thread::Thread;

/// The rules, for one issue.
pub(crate) struct Inbox<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) base_path: &'a str,
    /// Digits.
    pub(crate) issue: &'a str,
    pub(crate) thread: &'a dyn Thread,
}

impl Inbox<'_> {
    /// Acts on a comment that was delivered.
    pub(crate) fn deliver(&self, comment: &IssueComment, delivery: &str) -> Result<Outcome, Stop> {
        if let Some(ignored) = self.at_a_glance(comment)? {
            return Ok(ignored);
        }
        let memory = Memory::open(self.ctx, self.base_path)?;
        let mut guard = memory.lock()?;
        if !delivery.is_empty() && guard.knows_delivery(delivery)? {
            return Ok(Outcome { word: "seen", reason: Some("delivery"), ..Outcome::default() });
        }
        let outcome = self.act(comment, &mut guard)?;
        if !delivery.is_empty() {
            guard.remember_delivery(delivery)?;
        }
        Ok(outcome)
    }

    /// Acts on a comment that was read.
    pub(crate) fn read(&self, comment: &IssueComment) -> Result<Outcome, Stop> {
        self.deliver(comment, "")
    }

    /// Most comments do not address us: that needs no lock and no memory.
    fn at_a_glance(&self, comment: &IssueComment) -> Result<Option<Outcome>, Stop> {
        if is_notice(&comment.body) {
            return Ok(Some(Outcome::ignored("own_comment")));
        }
        let said = parse_reply(&comment.body, "", "[]", "")?;
        Ok(match (said.trigger, said.reason) {
            (None, reason) => Some(Outcome::ignored(reason.unwrap_or("no_trigger"))),
            (Some(_), _) => None,
        })
    }

    fn act(&self, comment: &IssueComment, guard: &mut MemoryGuard<'_>) -> Result<Outcome, Stop> {
        let before = guard.done(self.issue, &comment.id)?;
        if let Some(done) = before.as_ref().filter(|done| done.is_final()) {
            return Ok(Outcome { word: "seen", reason: Some(done.word()), ..Outcome::default() });
        }
        let verdict = self.judge(comment, before.as_ref(), guard)?;
        let mut remember = |done| guard.remember(self.issue, &comment.id, &done);
        match verdict {
            Verdict::Ignore(reason) => {
                remember(Done::Ignored)?;
                Ok(Outcome::ignored(reason))
            }
            Verdict::Answered { about, answer } => {
                remember(Done::Answered)?;
                let (about, answer) = (Some(about), Some(answer));
                Ok(Outcome { word: Done::Answered.word(), about, answer, ..Outcome::default() })
            }
            Verdict::Tell { why, text, about } => {
                let outcome = Outcome {
                    word: Done::Replied.word(),
                    reason: Some(why.word()),
                    about,
                    ..Outcome::default()
                };
                if before == Some(Done::Replying) {
                    if self.has_our_reply(comment)? {
                        remember(Done::Replied)?;
                        return Ok(outcome);
                    }
                } else {
                    remember(Done::Replying)?;
                }
                match self.thread.post(&text) {
                    Ok(()) => {
                        remember(Done::Replied)?;
                        Ok(outcome)
                    }
                    // Nobody will ever hear it: asking again would change nothing.
                    Err(error @ (PostError::Off | PostError::Unknown { .. })) => {
                        remember(Done::Replied)?;
                        Ok(Outcome { warning: Some(error.to_string()), ..outcome })
                    }
                    Err(error) => Err(unavailable(Code::IssueCommentFailed, &error).into()),
                }
            }
        }
    }

    /// Whether we replied to it before a crash, or an answer that never arrived.
    fn has_our_reply(&self, comment: &IssueComment) -> Result<bool, Stop> {
        let thread = self.thread_since(&comment.created_at)?;
        Ok(thread.iter().any(|other| is_notice_to(&other.body, &comment.id)))
    }

    /// The thread, as far as it can be read at all.
    pub(super) fn thread_since(&self, since: &str) -> Result<Vec<IssueComment>, Stop> {
        match self.thread.comments(since) {
            Err(PostError::Setup(_)) => Ok(Vec::new()),
            other => {
                other.map_err(|error| Stop::from(unavailable(Code::TrackerUnavailable, &error)))
            }
        }
    }
}
