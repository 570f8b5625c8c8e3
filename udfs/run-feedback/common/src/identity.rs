//! Who is answering (§15).

use serde_json::{Map, Value};

use crate::codes::{Code, Refusal};
use sdk::Timestamp;

/// What the process can see of its user. Empty texts count as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// git `user.name`.
    pub git_name: String,
    /// git `user.email`.
    pub git_email: String,
    /// Environment `USER`.
    pub user: String,
    /// Environment `LOGNAME`.
    pub logname: String,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentitySource {
    /// Whoever sits at this machine.
    Cli,
    /// The author of an issue comment.
    Issue,
}

impl IdentitySource {
    /// `cli` (also the empty text) or `issue`.
    ///
    /// # Errors
    /// `INVALID_SOURCE`.
    pub fn parse(word: &str) -> Result<IdentitySource, Refusal> {
        match word {
            "" | "cli" => Ok(IdentitySource::Cli),
            "issue" => Ok(IdentitySource::Issue),
            other => Err(Refusal::new(
                Code::InvalidSource,
                format!("source is cli or issue, not {other:?}"),
            )),
        }
    }
}

/// Somebody, and how we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub user: String,
    /// Only from git; never stored in a run.
    pub email: Option<String>,
    /// `cli` or `issue_comment`.
    pub source: &'static str,
    /// `git_config`, `environment` or `issue_comment_author`.
    pub method: &'static str,
}

impl Identity {
    /// `{user, email?, source, timestamp, method}`.
    pub fn to_json(&self, now: &Timestamp) -> Value {
        let mut members = Map::new();
        members.insert("user".into(), self.user.as_str().into());
        if let Some(email) = &self.email {
            members.insert("email".into(), email.as_str().into());
        }
        members.insert("source".into(), self.source.into());
        members.insert("timestamp".into(), now.to_seconds().into());
        members.insert("method".into(), self.method.into());
        Value::Object(members)
    }
}

/// The person at this machine: git `user.name`, else `USER`, else `LOGNAME`, else `unknown`.
pub fn local_user(around: &Surroundings) -> Identity {
    let (user, method) = if around.git_name.is_empty() {
        let name = [&around.user, &around.logname].into_iter().find(|name| !name.is_empty());
        (name.map_or("unknown", String::as_str), "environment")
    } else {
        (around.git_name.as_str(), "git_config")
    };
    let email = (!around.git_email.is_empty()).then(|| around.git_email.clone());
    Identity { user: user.to_owned(), email, source: "cli", method }
}

/// Who answers from `source`. An issue comment belongs to its author, never to the local user.
///
/// # Errors
/// `MISSING_FIELDS` for an issue comment without author.
pub fn identify(
    source: IdentitySource,
    issue_author: &str,
    around: impl FnOnce() -> Surroundings,
) -> Result<Identity, Refusal> {
    match source {
        IdentitySource::Cli => Ok(local_user(&around())),
        IdentitySource::Issue if issue_author.is_empty() => {
            Err(Refusal::missing(&["issue_author"]))
        }
        IdentitySource::Issue => Ok(Identity {
            user: issue_author.to_owned(),
            email: None,
            source: "issue_comment",
            method: "issue_comment_author",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_user_is_found_in_order() {
        let around = |git_name: &str, user: &str, logname: &str| Surroundings {
            git_name: git_name.to_owned(),
            user: user.to_owned(),
            logname: logname.to_owned(),
            ..Surroundings::default()
        };
        for (around, user, method) in [
            (around("Alex", "alex", "sam"), "Alex", "git_config"),
            (around("", "alex", "sam"), "alex", "environment"),
            (around("", "", "sam"), "sam", "environment"),
            (around("", "", ""), "unknown", "environment"),
        ] {
            let identity = local_user(&around);
            assert_eq!((identity.user.as_str(), identity.method), (user, method));
        }
    }

    #[test]
    fn an_issue_comment_is_never_credited_to_the_local_user() {
        let around = || -> Surroundings { panic!("not consulted") };
        assert_eq!(
            identify(IdentitySource::Issue, "", around).unwrap_err().code,
            Code::MissingFields
        );
        assert_eq!(identify(IdentitySource::Issue, "octo", around).unwrap().user, "octo");
        assert_eq!(IdentitySource::parse("mail").unwrap_err().code, Code::InvalidSource);
    }
}
