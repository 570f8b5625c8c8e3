//! What has been done about comments of issues, durably, below the base (§16: "keep processed comment ids").
//!
//! `.comments/issue-N.json` holds `{"comments": {id: outcome}, "since", "tag"}`, `.comments/deliveries.json` the ids of
//! webhook deliveries. Everything that looks at a comment holds the one lock, so that of a poll and a webhook that see
//! the same comment one acts and the other finds it done. Walks over runs pass by, as the directory's name has a dot.

use std::time::Duration;

use sdk::{Context, Folder, FolderGuard};
use serde_json::{Map, Value, json};

use crate::after;
use crate::codes::{Code, Refusal};
use crate::outcome::Stop;
use crate::run_id::RunPaths;
use crate::state::document;

const DIRECTORY: &str = ".comments";
const LOCK: &str = ".lock";
const DELIVERIES: &str = "deliveries.json";

/// A holder may be waiting for the tracker, which has 30 s for each of two requests.
const LOCK_WAIT: Duration = Duration::from_secs(90);

/// Comments remembered of one issue. Only those count that address us; one that is forgotten finds its request closed.
const MOST_COMMENTS: usize = 5_000;

/// Deliveries remembered.
const MOST_DELIVERIES: usize = 1_000;

/// What became of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    /// We are about to record its answer to this request; after a crash the run tells whether we have.
    Answering(String),
    /// Its answer was recorded.
    Answered,
    /// It asks for nothing that we do.
    Ignored,
    /// We are about to reply to it; after a crash the issue tells whether we have.
    Replying,
    /// We have replied to it.
    Replied,
}

impl Done {
    /// Without what belongs to it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Done::Answering(_) => "answering",
            Done::Answered => "answered",
            Done::Ignored => "ignored",
            Done::Replying => "replying",
            Done::Replied => "replied",
        }
    }

    fn text(&self) -> String {
        match self {
            Done::Answering(request) => format!("{} {request}", self.word()),
            done => done.word().to_owned(),
        }
    }

    fn from_text(text: &str) -> Option<Done> {
        if let Some(request) = text.strip_prefix("answering ") {
            return Some(Done::Answering(request.to_owned()));
        }
        [Done::Answered, Done::Ignored, Done::Replying, Done::Replied]
            .into_iter()
            .find(|done| done.word() == text)
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Done::Answering(_) | Done::Replying)
    }
}

/// The directory of the memory.
#[derive(Debug)]
pub(crate) struct Memory<'c> {
    folder: Folder<'c>,
}

/// The right to act on comments.
#[derive(Debug)]
pub(crate) struct MemoryGuard<'m> {
    memory: &'m Memory<'m>,
    guard: FolderGuard<'m>,
}

impl<'c> Memory<'c> {
    /// The memory below a base; it is created if need be.
    pub(crate) fn open(ctx: &'c Context, base_path: &str) -> Result<Memory<'c>, Stop> {
        let folder = ctx.folder(RunPaths::base(base_path), DIRECTORY, LOCK)?;
        folder.create(&[], &[]).map_err(failed)?;
        Ok(Memory { folder })
    }

    pub(crate) fn lock(&self) -> Result<MemoryGuard<'_>, Stop> {
        match self.folder.lock(LOCK_WAIT).map_err(failed)? {
            Some(guard) => Ok(MemoryGuard { memory: self, guard }),
            None => Err(Refusal::new(
                Code::LockTimeout,
                format!("others were busy with comments for {} s", LOCK_WAIT.as_secs()),
            )
            .into()),
        }
    }

    /// The tag of the last look at an issue since this moment, if all of what it showed is done; else empty.
    pub(crate) fn tag(&self, number: &str, since: &str) -> Result<String, Stop> {
        let issue = self.read(&file_of(number))?;
        let same = issue.get("since").and_then(Value::as_str) == Some(since);
        let tag = issue.get("tag").and_then(Value::as_str).filter(|_| same);
        Ok(tag.unwrap_or_default().to_owned())
    }

    /// Since when an issue was looked at last; `otherwise` if it was not, or only since later.
    pub(crate) fn looked_since(&self, number: &str, otherwise: &str) -> Result<String, Stop> {
        let issue = self.read(&file_of(number))?;
        let since = issue.get("since").and_then(Value::as_str);
        let since = since.filter(|since| after::is_moment(since) && *since <= otherwise);
        Ok(since.unwrap_or(otherwise).to_owned())
    }

    /// A document; an empty one if there is none. A damaged one is never written over.
    fn read(&self, name: &str) -> Result<Map<String, Value>, Stop> {
        let Some(text) = self.folder.read(name).map_err(failed)? else { return Ok(Map::new()) };
        match crate::json::read(&text) {
            Ok(Value::Object(members)) => Ok(members),
            _ => Err(Refusal::new(
                Code::StateUpdateFailed,
                format!("{DIRECTORY}/{name} is damaged: no comment is acted on until it is mended or removed"),
            )
            .into()),
        }
    }
}

impl MemoryGuard<'_> {
    /// What became of a comment, if anything.
    pub(crate) fn done(&self, number: &str, comment: &str) -> Result<Option<Done>, Stop> {
        let issue = self.memory.read(&file_of(number))?;
        let word = issue.get("comments").and_then(|comments| comments.get(comment));
        Ok(word.and_then(Value::as_str).and_then(Done::from_text))
    }

    pub(crate) fn remember(
        &mut self,
        number: &str,
        comment: &str,
        done: &Done,
    ) -> Result<(), Stop> {
        let name = file_of(number);
        let mut issue = self.memory.read(&name)?;
        let comments = issue.entry("comments").or_insert_with(|| json!({}));
        let Some(comments) = comments.as_object_mut() else {
            let message = format!("{DIRECTORY}/{name} is damaged: `comments` is no object");
            return Err(Refusal::new(Code::StateUpdateFailed, message).into());
        };
        comments.insert(comment.to_owned(), done.text().into());
        while comments.len() > MOST_COMMENTS
            && let Some(oldest) = comments.keys().next().cloned()
        {
            comments.shift_remove(&oldest);
        }
        self.write(&name, issue)
    }

    /// Notes that everything that a look showed is done.
    pub(crate) fn keep_tag(&mut self, number: &str, since: &str, tag: &str) -> Result<(), Stop> {
        let name = file_of(number);
        let mut issue = self.memory.read(&name)?;
        if issue.get("tag").and_then(Value::as_str).unwrap_or_default() == tag
            && issue.get("since").and_then(Value::as_str).unwrap_or_default() == since
        {
            return Ok(());
        }
        issue.insert("since".to_owned(), since.into());
        issue.insert("tag".to_owned(), tag.into());
        self.write(&name, issue)
    }

    /// Whether a delivery has been dealt with.
    pub(crate) fn knows_delivery(&self, id: &str) -> Result<bool, Stop> {
        let known = self.memory.read(DELIVERIES)?;
        let ids = known.get("ids").and_then(Value::as_array);
        Ok(ids.is_some_and(|ids| ids.iter().any(|known| known == id)))
    }

    pub(crate) fn remember_delivery(&mut self, id: &str) -> Result<(), Stop> {
        let mut known = self.memory.read(DELIVERIES)?;
        let mut ids = match known.remove("ids") {
            Some(Value::Array(ids)) => ids,
            _ => Vec::new(),
        };
        ids.push(id.into());
        let surplus = ids.len().saturating_sub(MOST_DELIVERIES);
        ids.drain(..surplus);
        known.insert("ids".to_owned(), ids.into());
        self.write(DELIVERIES, known)
    }

    fn write(&mut self, name: &str, members: Map<String, Value>) -> Result<(), Stop> {
        self.guard.replace(name, &document(&Value::Object(members))).map_err(failed)
    }
}

fn file_of(number: &str) -> String {
    format!("issue-{number}.json")
}

fn failed(error: sdk::UdfError) -> Stop {
    Stop::disk(error, Code::StateUpdateFailed)
}
