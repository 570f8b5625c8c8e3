//! Reading the comments of every issue with an open request, and acting on those that are new (§16). Issues whose
//! requests were answered lately are read as well, so that whoever comes too late is told who was first.

use std::collections::BTreeMap;
use std::time::Duration;

use sdk::{Context, Timestamp};
use serde_json::{Value, json};

use crate::after;
use crate::codes::{Code, Refusal};
use crate::github::{Comments, GitHub, GitHubSetup, number};
use crate::incoming::{Inbox, unavailable};
use crate::memory::Memory;
use crate::outcome::Stop;
use crate::params::plain;
use crate::poster::{POST_LIMIT, PostError};
use crate::query::Filter;
use crate::runs::Runs;
use crate::thread::{Tracked, limit};

/// For how long after an answer an issue is read on: a day.
const LATELY_MS: i64 = 24 * 60 * 60 * 1000;

/// The least that a look at an issue may take.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// What a look may take after so many that nobody answered, one after the other: a tracker that is away keeps a round
/// over many issues from its end otherwise.
fn patience(unanswered: u32) -> Duration {
    (POST_LIMIT / 2_u32.saturating_pow(unanswered)).max(LEAST_PATIENCE)
}

/// One round over all issues: `{status, operation, issues, outcomes, failures, retry_after_s?}`. Comments that do not
/// address us, and those that have been dealt with, are not listed.
///
/// # Errors
/// `TRACKER_NOT_SET_UP`; `STATE_UPDATE_FAILED` if there is no place for what has been done; `LOCK_TIMEOUT`. What goes wrong
/// with one issue is a row of `failures` and stops no other.
pub fn poll(ctx: &Context, base_path: &str) -> Result<Value, Stop> {
    let setup = GitHubSetup::chosen(ctx)
        .map_err(|error| Refusal::new(Code::TrackerNotSetUp, error.to_string()))?;
    let issues = watched_issues(ctx, base_path)?;
    let (mut outcomes, mut failures, mut wait_s) = (Vec::new(), Vec::new(), None);
    let mut unanswered = 0;
    if !issues.is_empty() {
        let memory = Memory::open(ctx, base_path)?;
        for (issue, watched) in &issues {
            let since = match watched {
                Watched::Open(asked) => Ok(asked.clone()),
                Watched::Answered(at) => memory.looked_since(issue, at),
            };
            let read = since.map_err(Failed::Here).and_then(|since| {
                let round = Round {
                    ctx,
                    base_path,
                    memory: &memory,
                    issue,
                    since: &since,
                    limit: limit(ctx).min(patience(unanswered)),
                };
                round.read(&setup, &mut outcomes, &mut failures)
            });
            let away = matches!(read, Err(Failed::Tracker(PostError::Unavailable(_))));
            unanswered = if away { unanswered + 1 } else { 0 };
            match read {
                Ok(None) => {}
                Ok(wait) => {
                    wait_s = wait;
                    break;
                }
                Err(Failed::Tracker(error)) => {
                    failures.push(failure(
                        issue,
                        None,
                        &unavailable(Code::TrackerUnavailable, &error),
                    ));
                    if let PostError::TooMuch { wait_s: wait, .. } = error {
                        // Whoever goes on asking is shut out for longer.
                        wait_s = Some(wait);
                        break;
                    }
                }
                // The memory of one issue is a file of its own; the lock is one for all.
                Err(Failed::Here(Stop::Refused(refusal))) if refusal.code != Code::LockTimeout => {
                    failures.push(failure(issue, None, &refusal));
                }
                Err(Failed::Here(stop)) => return Err(stop),
            }
            if ctx.cancelled() {
                break;
            }
        }
    }
    let mut reply = json!({
        "status": "success",
        "operation": "poll-replies",
        "repository": setup.repository(),
        "issues": issues.len(),
        "outcomes": outcomes,
        "failures": failures,
    });
    if let Some(wait) = wait_s {
        reply["retry_after_s"] = wait.into();
    }
    Ok(reply)
}

/// What is looked at of an issue: the comments since this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Watched {
    /// Since the oldest of its open requests.
    Open(String),
    /// Nothing is open any more, but whoever comes too late is told. Since the last look; if there was none, since this
    /// answer.
    Answered(String),
}

/// The issues with open requests, and those with requests that were answered lately, by number.
fn watched_issues(ctx: &Context, base_path: &str) -> Result<BTreeMap<String, Watched>, Stop> {
    let lately = Timestamp::from_unix_ms(ctx.now().unix_ms() - LATELY_MS).to_seconds();
    let mut issues: BTreeMap<String, Watched> = BTreeMap::new();
    Runs::open(ctx, base_path)?.each_asked(&Filter::default(), |_, state| {
        let Ok(state) = state else { return };
        let work_id = state.get("work_id").map(plain).unwrap_or_default();
        // Other trackers' ids are not ours to read.
        let Ok(digits) = number(&work_id) else { return };
        let found = if let Some(request) = state.open_request() {
            Watched::Open(after::since(request))
        } else {
            let last = state.history().last().and_then(|entry| entry.get("received_at"));
            match last.and_then(Value::as_str).filter(|at| after::is_moment(at)) {
                Some(at) if at >= lately.as_str() => Watched::Answered(at.to_owned()),
                _ => return,
            }
        };
        issues
            .entry(digits.trim_start_matches('0').to_owned())
            .and_modify(|known| known.join(&found))
            .or_insert(found);
    })?;
    Ok(issues)
}

impl Watched {
    /// Both of two runs of one issue.
    fn join(&mut self, other: &Watched) {
        *self = match (&*self, other) {
            (Watched::Open(a), Watched::Open(b)) => Watched::Open(a.min(b).clone()),
            (Watched::Answered(a), Watched::Answered(b)) => Watched::Answered(a.min(b).clone()),
            (open @ Watched::Open(_), _) | (_, open) => open.clone(),
        };
    }
}

enum Failed {
    /// Of this issue; the others may go well.
    Tracker(PostError),
    /// What is done about it cannot be remembered.
    Here(Stop),
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Failed {
        Failed::Here(stop)
    }
}

/// One issue of a round.
struct Round<'a> {
    ctx: &'a Context,
    base_path: &'a str,
    memory: &'a Memory<'a>,
    issue: &'a str,
    since: &'a str,
    /// What reading it may take.
    limit: Duration,
}

impl Round<'_> {
    /// Reads and acts; how long the tracker wants to be left alone, if it said so.
    fn read(
        &self,
        setup: &GitHubSetup,
        outcomes: &mut Vec<Value>,
        failures: &mut Vec<Value>,
    ) -> Result<Option<u64>, Failed> {
        let tag = self.memory.tag(self.issue, self.since)?;
        let github = GitHub::new(setup.clone(), self.ctx, self.limit);
        let comments = github.comments(self.issue, self.since, &tag).map_err(Failed::Tracker)?;
        let Comments::All { list, tag } = comments else { return Ok(None) };
        let thread = Tracked::new(self.ctx, self.issue).knowing(self.since, &list);
        let inbox =
            Inbox { ctx: self.ctx, base_path: self.base_path, issue: self.issue, thread: &thread };
        let mut whole = true;
        for comment in &list {
            match inbox.read(comment) {
                Ok(outcome) => {
                    let dull = outcome.word == "seen"
                        || matches!(outcome.reason, Some("no_trigger" | "own_comment"));
                    if !dull {
                        let mut row = outcome.to_json(comment);
                        row["issue"] = self.issue.into();
                        outcomes.push(row);
                    }
                }
                Err(Stop::Refused(refusal)) => {
                    whole = false;
                    failures.push(failure(self.issue, Some(&comment.id), &refusal));
                    if let Some(wait) = refusal.details.get("retry_after_s").and_then(Value::as_u64)
                    {
                        return Ok(Some(wait));
                    }
                }
                Err(failed) => return Err(failed.into()),
            }
        }
        if whole {
            self.memory.lock()?.keep_tag(self.issue, self.since, &tag)?;
        }
        Ok(None)
    }
}

/// `{issue, comment_id, code, message, retry_after_s?}`.
fn failure(issue: &str, comment: Option<&str>, refusal: &Refusal) -> Value {
    let mut row = json!({
        "issue": issue,
        "comment_id": comment,
        "code": refusal.code.word(),
        "message": refusal.message,
    });
    if let Some(details) = row.as_object_mut() {
        details.extend(refusal.details.clone());
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_gets_shorter_but_never_ends() {
        let seconds: Vec<u64> = [0, 1, 2, 4, 5, 40].map(|times| patience(times).as_secs()).into();
        assert_eq!(seconds, [30, 15, 7, 1, 1, 1]);
    }
}
