//! One comment of an issue: whom it answers, and whether it does (§16). A poll and a webhook enter here alike.
//!
//! Both things that we do about a comment are announced in the memory first: after a crash the run tells whether the
//! answer was recorded, and the issue whether our reply was posted. So nothing is lost, and nothing done twice.

use sdk::Context;
use serde_json::{Value, json};

use crate::after::is_after;
use crate::answer::Answer;
use crate::codes::{Code, Refusal};
use crate::github::{GitHubSetup, IssueComment, number};
use crate::memory::{Done, Memory, MemoryGuard};
use crate::notice::{Why, is_notice, is_notice_to, notice};
use crate::outcome::Stop;
use crate::params::plain;
use crate::poster::PostError;
use crate::query::Filter;
use crate::reply::{Reply, parse_reply};
use crate::respond::respond;
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::state::State;
use crate::thread::{Thread, Tracked};

/// Who may answer; others are passed over.
const MAY_ANSWER: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

/// What cancels a question, in this order.
const CANCELS: [&str; 3] = ["cancel", "abort", "reject"];

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

/// The rules, for one issue.
pub(crate) struct Inbox<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) base_path: &'a str,
    /// Digits.
    pub(crate) issue: &'a str,
    pub(crate) thread: &'a dyn Thread,
}

/// What a comment comes to, before anything is said.
enum Verdict {
    Ignore(&'static str),
    Answered { about: (String, String), answer: (String, String) },
    Tell { why: Why, text: String, about: Option<(String, String)> },
}

/// The runs that matter to a comment.
struct Candidates {
    /// Those that wait.
    open: Vec<(RunId, State)>,
    /// Those that have been answered, whether they wait again or not.
    answered: Vec<(RunId, State)>,
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
    fn thread_since(&self, since: &str) -> Result<Vec<IssueComment>, Stop> {
        match self.thread.comments(since) {
            Err(PostError::Setup(_)) => Ok(Vec::new()),
            other => {
                other.map_err(|error| Stop::from(unavailable(Code::TrackerUnavailable, &error)))
            }
        }
    }

    fn judge(
        &self,
        comment: &IssueComment,
        before: Option<&Done>,
        guard: &mut MemoryGuard<'_>,
    ) -> Result<Verdict, Stop> {
        if !comment.association.is_empty() && !MAY_ANSWER.contains(&comment.association.as_str()) {
            return Ok(Verdict::Ignore("association"));
        }
        let mut said = parse_reply(&comment.body, "", "[]", "")?;
        let mut candidates = self.candidates(said.run.as_deref())?;
        if let Some(Done::Answering(request)) = before {
            // What it was taken for before a crash it is still; a question asked since is not meant.
            said.request = Some(request.clone());
            candidates.open.retain(|(_, state)| state.open_request_id() == Some(request));
        }
        let asked_before = |(_, state): &&(RunId, State)| {
            state.open_request().is_some_and(|request| is_after(comment, request))
        };
        let open: Vec<&(RunId, State)> = candidates.open.iter().filter(asked_before).collect();
        let listed = |open: &[&(RunId, State)], why| {
            let open: Vec<_> = open.iter().map(|(id, state)| (id, state)).collect();
            Ok(self.tell(comment, why, &open))
        };
        match open[..] {
            [(run_id, state)] => self.answer(comment, &said, run_id, state, guard),
            [] if !candidates.open.is_empty() => Ok(Verdict::Ignore("before_request")),
            [] if said.run.is_some() && candidates.answered.is_empty() => {
                // A run of another host, or a slip: worth a word only where something waits.
                let here = self.candidates(None)?;
                match here.open.iter().filter(asked_before).collect::<Vec<_>>()[..] {
                    [] => Ok(Verdict::Ignore("nothing_pending")),
                    ref open => listed(open, Why::OtherRun),
                }
            }
            [] => {
                let began = matches!(before, Some(Done::Answering(_)));
                self.too_late(comment, &said, &candidates, began)
            }
            ref open => listed(open, Why::SeveralRuns),
        }
    }

    /// The comment against the one question it can mean.
    fn answer(
        &self,
        comment: &IssueComment,
        said: &Reply,
        run_id: &RunId,
        state: &State,
        guard: &mut MemoryGuard<'_>,
    ) -> Result<Verdict, Stop> {
        let open_id = state.open_request_id().unwrap_or_default().to_owned();
        let tell = |why| Ok(self.tell(comment, why, &[(run_id, state)]));
        if said.request.as_ref().is_some_and(|named| *named != open_id) {
            return tell(Why::OtherRequest);
        }
        let Some(request) = state.open_request() else { return tell(Why::OtherRequest) };
        let kind = request.get("type").map(plain).unwrap_or_default();
        let options = request.get("options").cloned().unwrap_or_else(|| json!([]));
        let (response, remarks) = match said.trigger {
            Some("cancel") => {
                let offered: Vec<String> =
                    options.as_array().into_iter().flatten().map(plain).collect();
                let found = CANCELS.iter().find_map(|word| {
                    offered.iter().find(|option| option.trim().eq_ignore_ascii_case(word))
                });
                match found {
                    Some(option) => (option.clone(), String::new()),
                    None => return tell(Why::NoCancel),
                }
            }
            Some("resume") => {
                let mut parsed = parse_reply(&comment.body, &kind, &options.to_string(), "")?;
                if parsed.reason == Some("empty") {
                    let before = self.comment_before(comment, request.get("requested_at"))?;
                    parsed = parse_reply(&comment.body, &kind, &options.to_string(), &before)?;
                }
                match parsed.response {
                    Some(response) => (response, parsed.comment),
                    None => return tell(Why::Unclear(parsed.reason.unwrap_or("no_option"))),
                }
            }
            _ => return tell(Why::Status),
        };
        let given = Answer {
            run_id: run_id.clone(),
            request_id: open_id.clone(),
            response,
            comment: remarks,
            source: "issue_comment".to_owned(),
            user: comment.author.clone(),
        };
        guard.remember(self.issue, &comment.id, &Done::Answering(open_id.clone()))?;
        match respond(self.ctx, given, self.base_path) {
            Ok(reply) => {
                let text = |name: &str| reply["result"].get(name).map(plain).unwrap_or_default();
                Ok(Verdict::Answered {
                    about: (run_id.to_string(), open_id),
                    answer: (text("response"), text("action")),
                })
            }
            // Somebody was faster since we looked.
            Err(Stop::Refused(refusal))
                if matches!(refusal.code, Code::NotAwaitingFeedback | Code::RequestIdMismatch) =>
            {
                let candidates = self.candidates(Some(&run_id.to_string()))?;
                self.too_late(comment, said, &candidates, false)
            }
            Err(Stop::Refused(refusal)) if refusal.code == Code::InvalidResponse => {
                tell(Why::Unclear("no_option"))
            }
            Err(other) => Err(other),
        }
    }

    /// Nothing waits: who answered, if somebody did. `began`: we were about to record this comment's answer when
    /// something stopped us.
    fn too_late(
        &self,
        comment: &IssueComment,
        said: &Reply,
        candidates: &Candidates,
        began: bool,
    ) -> Result<Verdict, Stop> {
        let received = |entry: &Value| {
            entry.get("received_at").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let last = candidates
            .answered
            .iter()
            .flat_map(|(run_id, state)| state.history().iter().map(move |entry| (run_id, entry)))
            .filter(|(_, entry)| {
                let id = entry.get("request_id").and_then(Value::as_str);
                said.request.is_none() || said.request.as_deref() == id
            })
            .max_by_key(|(_, entry)| received(entry));
        let Some((run_id, entry)) = last else {
            return Ok(Verdict::Ignore("nothing_pending"));
        };
        let text = |value: Option<&Value>| value.map(plain).unwrap_or_default();
        let by = entry.get("provided_by");
        let user = text(by.and_then(|by| by.get("user")));
        let source = text(by.and_then(|by| by.get("source")));
        let about = (run_id.to_string(), text(entry.get("request_id")));
        let at = received(entry);
        let is_own = user == comment.author && source == "issue_comment";
        if is_own && (began || says_the_same(comment, entry)?) {
            // It was this comment, before a crash; or its author says once more what counts already.
            let answer = (text(entry.get("response")), text(entry.get("action")));
            return Ok(Verdict::Answered { about, answer });
        }
        let why = Why::Answered { by: user, response: text(entry.get("response")), at };
        let text = notice(&comment.author, &comment.id, &why, &[]);
        Ok(Verdict::Tell { why, text, about: Some(about) })
    }

    fn tell(&self, comment: &IssueComment, why: Why, open: &[(&RunId, &State)]) -> Verdict {
        let about = match open {
            [(run_id, state)] => {
                Some((run_id.to_string(), state.open_request_id().unwrap_or_default().to_owned()))
            }
            _ => None,
        };
        Verdict::Tell { text: notice(&comment.author, &comment.id, &why, open), why, about }
    }

    /// What the same author said before, since the question.
    fn comment_before(
        &self,
        comment: &IssueComment,
        requested_at: Option<&Value>,
    ) -> Result<String, Stop> {
        let since = requested_at.and_then(Value::as_str).unwrap_or(&comment.created_at);
        let thread = self.thread_since(since)?;
        let before = thread.iter().take_while(|other| other.id != comment.id).filter(|other| {
            other.author == comment.author
                && other.created_at.as_str() >= since
                && other.created_at <= comment.created_at
                && !is_notice(&other.body)
        });
        Ok(before.last().map(|other| other.body.clone()).unwrap_or_default())
    }

    /// The run that is named, by its whole id or its last segment, or else all of the issue.
    fn candidates(&self, named: Option<&str>) -> Result<Candidates, Stop> {
        let mut all = Candidates { open: Vec::new(), answered: Vec::new() };
        let filter = Filter::default();
        Runs::open(self.ctx, self.base_path)?.each(&filter, |run_id, state| {
            let Ok(state) = state else { return };
            let wanted = match named {
                Some(name) => run_id.to_string() == name || run_id.uuid() == name,
                None => is_issue(&state, self.issue),
            };
            if !wanted {
                return;
            }
            if state.open_request().is_some() {
                all.open.push((run_id.clone(), state.clone()));
            }
            if !state.history().is_empty() {
                all.answered.push((run_id, state));
            }
        })?;
        Ok(all)
    }
}

/// Whether a comment holds the answer that an entry of the history records. A number does not tell: the options are gone.
fn says_the_same(comment: &IssueComment, entry: &Value) -> Result<bool, Stop> {
    let text = |name: &str| entry.get(name).map(plain).unwrap_or_default();
    let options = json!([text("response")]).to_string();
    let parsed = parse_reply(&comment.body, &text("request_type"), &options, "")?;
    Ok(parsed.matched != Some("index")
        && parsed.response.is_some_and(|said| said == text("response")))
}

/// Whether the run belongs to the issue of this number.
pub(crate) fn is_issue(state: &State, issue: &str) -> bool {
    let id = state.get("work_id").map(plain).unwrap_or_default();
    number(&id).is_ok_and(|digits| same_number(digits, issue))
}

/// `007` is issue 7.
fn same_number(a: &str, b: &str) -> bool {
    a.trim_start_matches('0') == b.trim_start_matches('0')
}

/// What the tracker refuses, as a refusal.
pub(crate) fn unavailable(code: Code, error: &PostError) -> Refusal {
    let refusal = Refusal::new(code, error.to_string());
    match error {
        PostError::TooMuch { wait_s, .. } => refusal.with("retry_after_s", *wait_s),
        _ => refusal,
    }
}
