//! The thread of one issue, as the rules for comments see it: what else was said there, and saying something.

use std::cell::RefCell;
use std::time::Duration;

use sdk::Context;

use crate::choice::Choice;
use crate::github::{Comments, GitHub, GitHubSetup, IssueComment};
use crate::poster::{
    CommentPoster, POST_LIMIT, POSTER_SETTING, POSTER_VARIABLE, PostError, chosen_poster,
};

/// Kept of a call's time for noting what was done.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// One issue.
pub(crate) trait Thread {
    /// The comments since a moment, oldest first.
    ///
    /// # Errors
    /// What the tracker, or the way to it, refuses.
    fn comments(&self, since: &str) -> Result<Vec<IssueComment>, PostError>;

    /// Adds a comment of ours.
    ///
    /// # Errors
    /// As [`CommentPoster::post`].
    fn post(&self, body: &str) -> Result<(), PostError>;
}

/// The issue where it is tracked.
pub(crate) struct Tracked<'c> {
    ctx: &'c Context,
    /// Digits.
    number: String,
    setup: Result<GitHubSetup, PostError>,
    /// What a poll has read already, since this moment.
    known: RefCell<Option<(String, Vec<IssueComment>)>>,
}

impl<'c> Tracked<'c> {
    /// The issue of this number.
    pub(crate) fn new(ctx: &'c Context, number: &str) -> Tracked<'c> {
        let setup = GitHubSetup::chosen(ctx);
        Tracked { ctx, number: number.to_owned(), setup, known: RefCell::default() }
    }

    /// The same, of which the comments since a moment are known.
    pub(crate) fn knowing(self, since: &str, list: &[IssueComment]) -> Tracked<'c> {
        self.known.replace(Some((since.to_owned(), list.to_vec())));
        self
    }
}

/// What one look at the tracker, or one comment on it, may take.
pub(crate) fn limit(ctx: &Context) -> Duration {
    ctx.deadline().map_or(POST_LIMIT, |left| left.saturating_sub(AFTERWARDS)).min(POST_LIMIT)
}

impl Thread for Tracked<'_> {
    fn comments(&self, since: &str) -> Result<Vec<IssueComment>, PostError> {
        if let Some((from, list)) = &*self.known.borrow()
            && from.as_str() <= since
        {
            return Ok(list.clone());
        }
        let setup = self.setup.clone()?;
        match GitHub::new(setup, self.ctx, limit(self.ctx)).comments(&self.number, since, "")? {
            Comments::All { list, .. } => Ok(list),
            Comments::Unchanged => Ok(Vec::new()),
        }
    }

    fn post(&self, body: &str) -> Result<(), PostError> {
        let poster = self.ctx.either(POSTER_VARIABLE, POSTER_SETTING).map_err(PostError::Setup)?;
        match (&self.setup, poster.as_deref()) {
            (_, Some("none")) => Err(PostError::Off),
            // Where the comment was read is where its author looks.
            (Ok(setup), _) => {
                GitHub::new(setup.clone(), self.ctx, limit(self.ctx)).post(&self.number, body)
            }
            (Err(_), _) => chosen_poster(self.ctx, limit(self.ctx)).post(&self.number, body),
        }
        .map(|_| ())
    }
}
