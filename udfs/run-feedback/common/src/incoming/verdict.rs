//! What a comment comes to, before anything is said.

use serde_json::{Map, Value, json};

use super::candidates::Candidates;
use super::inbox::Inbox;
use crate::after::{is_after, since};
use crate::answer::Answer;
use crate::codes::{Code, Refusal};
use crate::comment::is_question;
use crate::github::IssueComment;
use crate::memory::{Done, MemoryGuard};
use crate::notice::{Why, is_notice, notice};
use crate::outcome::Stop;
use crate::params::plain;
use crate::reply::{Reply, parse_reply};
use crate::respond::respond;
use crate::run_id::RunId;
use crate::state::State;

/// Who may answer; others are passed over.
const MAY_ANSWER: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

/// What cancels a question, in this order.
const CANCELS: [&str; 3] = ["cancel", "abort", "reject"];

/// What a comment comes to, before anything is said.
pub(super) enum Verdict {
    Ignore(&'static str),
    Answered { about: (String, String), answer: (String, String) },
    Tell { why: Why, text: String, about: Option<(String, String)> },
}

impl Inbox<'_> {
    pub(super) fn judge(
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
                    [] => nobody(&candidates),
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
                    let before = self.comment_before(comment, request)?;
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
            return nobody(candidates);
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
        request: &Map<String, Value>,
    ) -> Result<String, Stop> {
        let thread = self.thread_since(&since(request))?;
        let before = thread.iter().take_while(|other| other.id != comment.id).filter(|other| {
            other.author == comment.author
                && is_after(other, request)
                && other.created_at <= comment.created_at
                && !is_notice(&other.body)
                && !is_question(&other.body)
        });
        Ok(before.last().map(|other| other.body.clone()).unwrap_or_default())
    }
}

/// Nothing that can be read waits. To pass the comment over would be for good, so not while it may be the answer to a
/// question that cannot be read now.
fn nobody(candidates: &Candidates) -> Result<Verdict, Stop> {
    let Some(run_id) = candidates.unreadable.first() else {
        return Ok(Verdict::Ignore("nothing_pending"));
    };
    let message =
        format!("the state of run {run_id} cannot be read: the comment waits until it can");
    Err(Refusal::new(Code::StateUpdateFailed, message).into())
}

/// Whether a comment holds the answer that an entry of the history records. A number does not tell: the options are gone.
fn says_the_same(comment: &IssueComment, entry: &Value) -> Result<bool, Stop> {
    let text = |name: &str| entry.get(name).map(plain).unwrap_or_default();
    let options = json!([text("response")]).to_string();
    let parsed = parse_reply(&comment.body, &text("request_type"), &options, "")?;
    Ok(parsed.matched != Some("index")
        && parsed.response.is_some_and(|said| said == text("response")))
}
