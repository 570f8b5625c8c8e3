//! Issues on GitHub, or a GitHub Enterprise server, over its REST API: posting a comment, reading comments (§16).
//!
//! A request is repeated only where that cannot do the same thing twice: after a refusal for too many requests, or when
//! it only reads. Everything together stays within one time limit.

mod answer;
mod setup;

use std::time::{Duration, Instant};

use sdk::{HttpReply, HttpRequest};
use serde_json::{Value, json};

use crate::poster::{CommentPoster, PostError, Posted};
use crate::web::Web;

use answer::{Refused, refusal};
pub use setup::GitHubSetup;

/// Comments on one page; the most the API gives.
const PAGE: usize = 100;

/// Pages that are read of one issue: ten thousand comments since one question are more than anybody wrote.
const MOST_PAGES: usize = 100;

/// Redirects that are followed on the way to one answer.
const MOST_REDIRECTS: usize = 3;

/// Waits for the sake of one answer: a server that wants to be left alone again and again is not asked any further.
const MOST_WAITS: usize = 3;

/// Times that a look is repeated after a fault of the server.
const MOST_LOOKS: usize = 3;

/// Wait before a look is repeated.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A comment as the tracker has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueComment {
    /// Its id, opaque; ids on one issue grow.
    pub id: String,
    /// Login of the author.
    pub author: String,
    /// What the author is to the repository, `MEMBER`; empty if not known.
    pub association: String,
    /// As it was written.
    pub body: String,
    /// `2026-01-31T08:05:09Z`.
    pub created_at: String,
}

/// The comments of an issue since some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comments {
    /// Nothing has changed since the look whose tag was given.
    Unchanged,
    /// All of them, oldest first.
    All {
        /// The comments.
        list: Vec<IssueComment>,
        /// Names this state of them for the next look; empty if there is no such name.
        tag: String,
    },
}

/// The API of one repository.
pub struct GitHub<'w> {
    setup: GitHubSetup,
    web: &'w dyn Web,
    /// When the time is up for all requests together.
    until: Instant,
}

impl IssueComment {
    /// Reads the API's form of a comment, which is also that of a webhook.
    pub fn from_json(comment: &Value) -> Option<IssueComment> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(IssueComment {
            id: comment.get("id")?.as_u64()?.to_string(),
            // As the tracker calls whoever has left.
            author: text(&comment["user"]["login"]).unwrap_or_else(|| "ghost".to_owned()),
            association: text(&comment["author_association"]).unwrap_or_default(),
            body: text(&comment["body"]).unwrap_or_default(),
            created_at: text(comment.get("created_at")?)?,
        })
    }
}

impl<'w> GitHub<'w> {
    /// The API that `setup` leads to. All requests together take at most `limit`.
    pub(crate) fn new(setup: GitHubSetup, web: &'w dyn Web, limit: Duration) -> GitHub<'w> {
        GitHub { setup, web, until: Instant::now() + limit }
    }

    /// The comments written or changed at `since` or later (`2026-01-31T08:05:09Z`). `tag` is that of an earlier look.
    ///
    /// # Errors
    /// What the tracker, or the way to it, refuses.
    pub fn comments(&self, issue: &str, since: &str, tag: &str) -> Result<Comments, PostError> {
        let mut url =
            format!("{}?per_page={PAGE}&since={since}", self.setup.comments_of(number(issue)?));
        let (mut list, mut first_tag) = (Vec::new(), String::new());
        for page in 0..MOST_PAGES {
            let mut request = self.setup.request("GET", &url);
            if page == 0 && !tag.is_empty() {
                request = request.header("if-none-match", tag);
            }
            let reply = self.look(request)?;
            if reply.status == 304 {
                return Ok(Comments::Unchanged);
            }
            let body: Vec<Value> = serde_json::from_slice(&reply.body)
                .map_err(|_| self.fault("the comments it lists are not JSON"))?;
            let comments = body.iter().map(IssueComment::from_json).collect::<Option<Vec<_>>>();
            list.extend(
                comments.ok_or_else(|| self.fault("it lists something else than comments"))?,
            );
            if page == 0 {
                first_tag = reply.header("etag").unwrap_or_default().to_owned();
            }
            match answer::next_page(&reply) {
                // A full first page never changes when another comment comes: its tag says nothing.
                None if page > 0 || list.len() >= PAGE => {
                    return Ok(Comments::All { list, tag: String::new() });
                }
                None => return Ok(Comments::All { list, tag: first_tag }),
                Some(next) => url = self.setup.own(&next, &url)?,
            }
        }
        Err(self.fault("it has no end of comments"))
    }

    /// Repeats what only reads while the server is away.
    fn look(&self, request: HttpRequest) -> Result<HttpReply, PostError> {
        for _ in 1..MOST_LOOKS {
            match self.send(request.clone()) {
                Err(PostError::Unavailable(_)) if self.left() > LOOK_PAUSE => {
                    self.web.pause(LOOK_PAUSE);
                }
                other => return other,
            }
        }
        self.send(request)
    }

    /// One request, repeated where the server asked for that, to where it asked.
    fn send(&self, mut request: HttpRequest) -> Result<HttpReply, PostError> {
        let (mut redirects, mut waits) = (0, 0);
        loop {
            request.limit = self.left();
            if request.limit.is_zero() {
                return Err(PostError::Unavailable(
                    "the tracker has had its time without an answer".to_owned(),
                ));
            }
            let reply = self
                .web
                .send(&request)
                .map_err(|error| PostError::Unavailable(self.setup.token.hide(error.message())))?;
            match refusal(&reply, self.web.unix_now()) {
                None => return Ok(reply),
                Some(Refused::Elsewhere(location)) if redirects < MOST_REDIRECTS => {
                    redirects += 1;
                    request.url = self.setup.own(&location, &request.url)?;
                }
                Some(Refused::Elsewhere(_)) => {
                    return Err(self.fault("it sends us in circles"));
                }
                Some(Refused::TooMuch { wait, message }) => {
                    // A second more: clocks differ, and coming early makes it worse.
                    let wait = wait.saturating_add(Duration::from_secs(1));
                    waits += 1;
                    if wait >= self.left() || waits > MOST_WAITS {
                        let message = self.setup.token.hide(&message);
                        return Err(PostError::TooMuch { wait_s: wait.as_secs(), message });
                    }
                    self.web.pause(wait);
                }
                Some(Refused::No { word, message }) => {
                    let message = self.setup.token.hide(&message);
                    return Err(PostError::Refused { word: word.to_owned(), message });
                }
                Some(Refused::Away(message)) => {
                    return Err(PostError::Unavailable(self.setup.token.hide(&message)));
                }
            }
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn fault(&self, what: &str) -> PostError {
        PostError::Unavailable(format!(
            "{} does not answer as GitHub does: {what}",
            self.setup.origin()
        ))
    }
}

impl CommentPoster for GitHub<'_> {
    fn post(&self, issue: &str, body: &str) -> Result<Posted, PostError> {
        let mut request = self.setup.request("POST", &self.setup.comments_of(number(issue)?));
        request.body = json!({ "body": body }).to_string().into_bytes();
        let request = request.header("content-type", "application/json");
        let reply = self.send(request)?;
        let posted: Value = serde_json::from_slice(&reply.body)
            .map_err(|_| self.fault("the comment it made is not JSON"))?;
        match (posted["id"].as_u64(), posted["html_url"].as_str()) {
            (Some(id), Some(url)) if !url.is_empty() => {
                Ok(Posted { id: id.to_string(), url: url.to_owned() })
            }
            _ => Err(self.fault("the comment it made has no id and address")),
        }
    }
}

/// The number of an issue, `258` or `#258`. Nothing else can stand in the address, and there is no issue 0.
pub(crate) fn number(issue: &str) -> Result<&str, PostError> {
    let digits = issue.strip_prefix('#').unwrap_or(issue);
    let is_number = (1..=18).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.bytes().any(|b| b != b'0');
    match is_number {
        true => Ok(digits),
        false => Err(PostError::Issue { issue: issue.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
