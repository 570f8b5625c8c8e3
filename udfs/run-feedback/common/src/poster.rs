//! Posting a comment on an issue (§16): a port, and its adapters.

use std::time::Duration;

use sdk::Context;
use serde_json::Value;

use crate::choice::Choice;
use crate::github::{GitHub, GitHubSetup};
use crate::params::plain;
use crate::process::{self, ProcessError};

/// Chooses the adapter, `command` (also if unset), `github` or `none`; before the setting `poster` of `project.toml`.
pub const POSTER_VARIABLE: &str = "RUN_FEEDBACK_POSTER";

/// The setting that chooses it where the environment does not.
pub(crate) const POSTER_SETTING: &str = "poster";

/// How long a comment may take.
pub const POST_LIMIT: Duration = Duration::from_secs(30);

/// Puts comments on issues.
pub trait CommentPoster {
    /// Posts `body` as it is on the issue with this id.
    ///
    /// # Errors
    /// The comment is not there, as far as anybody knows. Never a reason to fail a request.
    fn post(&self, issue: &str, body: &str) -> Result<Posted, PostError>;
}

/// A comment that has been posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Its id, opaque.
    pub id: String,
    /// Where people see it.
    pub url: String,
}

/// Why a comment was not posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// Posting is switched off.
    #[error("posting is switched off ({POSTER_VARIABLE}=none, or `poster` in project.toml)")]
    Off,
    /// The name of the adapter is unknown.
    #[error(
        "{POSTER_VARIABLE} or `poster` in project.toml is {name:?}; one of: command, github, none"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// The id would be read as a flag, or is empty.
    #[error("{issue:?} cannot be an issue id")]
    Issue {
        /// The id.
        issue: String,
    },
    /// The tracker says no.
    #[error("{word}: {message}")]
    Refused {
        /// `VALIDATION_ERROR`, `NOT_FOUND`, `AUTH_FAILED`, …
        word: String,
        /// For people.
        message: String,
    },
    /// The program is missing, too slow, or answers something else than it should.
    #[error("{0}")]
    Program(String),
    /// What the adapter needs is missing or makes no sense.
    #[error("{0}")]
    Setup(String),
    /// The server is away, too slow, or answers something else than it should; whether it has acted is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The tracker wants to be left alone for longer than there is time; it has done nothing.
    #[error("{message}; it wants to be left alone for {wait_s} s")]
    TooMuch {
        /// Seconds until the next request may be made.
        wait_s: u64,
        /// For people.
        message: String,
    },
}

/// No comments at all.
#[derive(Debug, Clone, Copy)]
pub struct NoPoster;

impl CommentPoster for NoPoster {
    fn post(&self, _issue: &str, _body: &str) -> Result<Posted, PostError> {
        Err(PostError::Off)
    }
}

/// A choice that stands for nothing: every comment says so.
#[derive(Debug, Clone)]
struct NoSuchPoster(PostError);

impl CommentPoster for NoSuchPoster {
    fn post(&self, _issue: &str, _body: &str) -> Result<Posted, PostError> {
        Err(self.0.clone())
    }
}

/// `fractary work comment create {issue} --body {body} --json`, as an argument vector.
#[derive(Debug, Clone)]
pub struct CommandPoster {
    /// Found on the `PATH`.
    pub program: String,
    /// After which the program is killed.
    pub limit: Duration,
}

impl CommentPoster for CommandPoster {
    fn post(&self, issue: &str, body: &str) -> Result<Posted, PostError> {
        // Ids are opaque, but one that starts with a dash would be a flag of the program.
        if issue.is_empty() || issue.starts_with('-') {
            return Err(PostError::Issue { issue: issue.to_owned() });
        }
        let arguments = ["work", "comment", "create", issue, "--body", body, "--json"];
        let outcome =
            process::run(&self.program, &arguments, self.limit).map_err(|error| match error {
                ProcessError::Start { .. } => PostError::Program(format!(
                    "{error}; {POSTER_VARIABLE} chooses another way to post: github, or none"
                )),
                error => PostError::Program(error.to_string()),
            })?;
        let said = [&outcome.stdout, &outcome.stderr];
        let read = said.iter().find_map(|text| serde_json::from_str::<Value>(text.trim()).ok());
        if let Some(error) =
            read.as_ref().and_then(|reply| reply.get("error")).filter(|error| error.is_object())
        {
            let text = |name: &str| error.get(name).map(plain).unwrap_or_default();
            return Err(PostError::Refused { word: text("code"), message: text("message") });
        }
        if !outcome.status.success() {
            let last = said
                .iter()
                .rev()
                .find_map(|text| text.trim().lines().last())
                .unwrap_or("no output");
            return Err(PostError::Program(format!(
                "`{}` failed ({}): {last}",
                self.program, outcome.status
            )));
        }
        let data =
            read.as_ref().filter(|reply| reply["status"] == "success").map(|reply| &reply["data"]);
        let text = |name: &str| {
            data?
                .get(name)
                .filter(|value| !value.is_null())
                .map(plain)
                .filter(|text| !text.is_empty())
        };
        let url = text("url").ok_or_else(|| {
            PostError::Program(format!(
                "`{}` does not answer {{status: \"success\", data: {{id, url}}}}",
                self.program
            ))
        })?;
        Ok(Posted { id: text("id").unwrap_or_default(), url })
    }
}

/// The adapter that the environment or the project chooses; `limit` caps what one comment may take.
pub fn chosen_poster(ctx: &Context, limit: Duration) -> Box<dyn CommentPoster + '_> {
    let limit = limit.min(POST_LIMIT);
    let chosen = ctx.either(POSTER_VARIABLE, POSTER_SETTING).map_err(PostError::Setup);
    let poster = chosen.and_then(|name| -> Result<Box<dyn CommentPoster + '_>, PostError> {
        Ok(match name.as_deref() {
            None | Some("command") => {
                Box::new(CommandPoster { program: "fractary".to_owned(), limit })
            }
            Some("github") => Box::new(GitHub::new(GitHubSetup::chosen(ctx)?, ctx, limit)),
            Some("none") => Box::new(NoPoster),
            Some(other) => return Err(PostError::Unknown { name: other.to_owned() }),
        })
    });
    poster.unwrap_or_else(|error| Box::new(NoSuchPoster(error)))
}

#[cfg(test)]
mod tests;
