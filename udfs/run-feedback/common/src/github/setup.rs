//! Which repository, where, and with which token.

use std::fmt;

use sdk::HttpRequest;

use crate::choice::Choice;
use crate::poster::PostError;

/// The API unless something else is said.
const PUBLIC_API: &str = "https://api.github.com";

/// The version of the API that is spoken here.
const API_VERSION: &str = "2022-11-28";

/// Tokens of trackers have 40 characters and more; what stands in for one on a stand-in has few.
const SHORTEST_SECRET: usize = 6;

/// Where the issues are. Environment (the names that GitHub's own tools use) before `[settings]`:
///
/// | what | variable | setting |
/// |---|---|---|
/// | base of the API | `GITHUB_API_URL` | `github_api_url`; `https://api.github.com` if neither |
/// | repository | `GITHUB_REPOSITORY` | `github_repository`, as `owner/name` |
/// | token | `GITHUB_TOKEN`, `GH_TOKEN` | none: a secret does not belong into a file that is shared |
#[derive(Debug, Clone)]
pub struct GitHubSetup {
    api: String,
    repository: String,
    pub(super) token: Token,
}

/// A secret that no message shows.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// The text without the secret, whoever put it there.
    pub(super) fn hide(&self, text: &str) -> String {
        // What is as short as a word is no secret, and stands in words.
        if self.0.len() < SHORTEST_SECRET {
            return text.to_owned();
        }
        text.replace(&self.0, "[token]")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl GitHubSetup {
    /// What the user chose.
    ///
    /// # Errors
    /// `Setup`: something is missing or makes no sense; the message says what to set.
    pub(crate) fn chosen(choice: &dyn Choice) -> Result<GitHubSetup, PostError> {
        let either = |variable, setting| choice.either(variable, setting).map_err(PostError::Setup);
        let api = either("GITHUB_API_URL", "github_api_url")?
            .map_or_else(|| PUBLIC_API.to_owned(), |api| api.trim_end_matches('/').to_owned());
        let repository = either("GITHUB_REPOSITORY", "github_repository")?.unwrap_or_default();
        let token = choice
            .variable("GITHUB_TOKEN")
            .or_else(|| choice.variable("GH_TOKEN"))
            .unwrap_or_default();
        let setup = GitHubSetup { api, repository, token: Token(token) };
        setup.check()?;
        Ok(setup)
    }

    /// The repository that was chosen, whether the rest is set up or not.
    pub(crate) fn chosen_repository(choice: &dyn Choice) -> Option<String> {
        choice.either("GITHUB_REPOSITORY", "github_repository").ok().flatten()
    }

    fn check(&self) -> Result<(), PostError> {
        let wrong = |what: String| Err(PostError::Setup(what));
        if !self.origin_is_safe() {
            return wrong(format!(
                "GITHUB_API_URL {:?} must be https://HOST/…; plain http is for this machine only",
                self.api
            ));
        }
        let part = |text: &str| {
            !matches!(text, "" | "." | "..")
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if self.repository.is_empty() {
            return wrong("GITHUB_REPOSITORY is not set: it must be owner/name".to_owned());
        }
        if !self.repository.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name)) {
            return wrong(format!("GITHUB_REPOSITORY {:?} must be owner/name", self.repository));
        }
        // A space or line end would not survive the way into a header.
        if self.token.0.is_empty() || !self.token.0.bytes().all(|b| b.is_ascii_graphic()) {
            return wrong("GITHUB_TOKEN must hold a token that may write comments".to_owned());
        }
        Ok(())
    }

    /// Whether the token may go there: encrypted, or to this machine.
    fn origin_is_safe(&self) -> bool {
        let plain = |text: &str| {
            !text.contains(['@', '?', '#', '\\']) && !text.contains(char::is_whitespace)
        };
        if let Some(rest) = self.api.strip_prefix("https://") {
            return plain(rest) && !rest.is_empty() && !rest.starts_with('/');
        }
        let Some(rest) = self.api.strip_prefix("http://") else { return false };
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix("[::1]") {
            Some(_) => "[::1]",
            None => authority.split(':').next().unwrap_or_default(),
        };
        plain(rest) && matches!(host, "127.0.0.1" | "localhost" | "[::1]")
    }

    /// `owner/name`.
    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// Scheme, host and port of the API.
    pub(super) fn origin(&self) -> &str {
        origin(&self.api)
    }

    /// The address of an issue's comments.
    pub(super) fn comments_of(&self, number: &str) -> String {
        format!("{}/repos/{}/issues/{number}/comments", self.api, self.repository)
    }

    /// A request with what every request carries.
    pub(super) fn request(&self, method: &str, url: &str) -> HttpRequest {
        HttpRequest::new(method, url)
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", API_VERSION)
            .header("authorization", format!("Bearer {}", self.token.0))
    }

    /// An address the server named, if it is on the server itself: the token is shown to nobody else.
    ///
    /// # Errors
    /// It leads elsewhere.
    pub(super) fn own(&self, location: &str, from: &str) -> Result<String, PostError> {
        let url = match location.strip_prefix('/') {
            Some(path) if !path.starts_with('/') => format!("{}/{path}", origin(from)),
            _ => location.to_owned(),
        };
        let (own, at) = (self.origin(), self.origin().len());
        let is_own = url.get(..at).is_some_and(|start| start.eq_ignore_ascii_case(own));
        match is_own && url[at..].starts_with('/') {
            true => Ok(url),
            false => Err(PostError::Setup(format!(
                "{} sends us to another server, which will not see the token: set GITHUB_API_URL to it",
                self.origin()
            ))),
        }
    }
}

fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find(['/', '?']).map_or(url, |end| &url[..start + end])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    struct Chosen(HashMap<&'static str, &'static str>);

    impl Choice for Chosen {
        fn setting(&self, name: &str) -> Result<Option<String>, String> {
            Ok(self.0.get(name).map(|text| (*text).to_owned()))
        }
        fn variable(&self, name: &str) -> Option<String> {
            self.0.get(name).map(|text| (*text).to_owned())
        }
    }

    fn chosen(more: &[(&'static str, &'static str)]) -> Result<GitHubSetup, String> {
        let all = [("GITHUB_TOKEN", "ghp_secret"), ("github_repository", "acme/widgets")];
        GitHubSetup::chosen(&Chosen(all.into_iter().chain(more.iter().copied()).collect()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_comes_first() {
        let setup = chosen(&[]).unwrap();
        assert_eq!(
            setup.comments_of("7"),
            "https://api.github.com/repos/acme/widgets/issues/7/comments"
        );
        let setup = chosen(&[
            ("GITHUB_REPOSITORY", "acme/gadgets"),
            ("github_api_url", "https://git.acme.example/api/v3/"),
        ])
        .unwrap();
        assert_eq!(
            setup.comments_of("7"),
            "https://git.acme.example/api/v3/repos/acme/gadgets/issues/7/comments"
        );
        assert!(!format!("{setup:?}").contains("ghp_secret"));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (name, text, want) in [
            ("GITHUB_API_URL", "ftp://x", "https://HOST"),
            ("GITHUB_API_URL", "https://", "https://HOST"),
            ("GITHUB_API_URL", "https://user:pw@host", "https://HOST"),
            ("GITHUB_API_URL", "http://tracker.example", "this machine only"),
            ("GITHUB_API_URL", "http://127.0.0.1.evil.example", "this machine only"),
            ("GITHUB_API_URL", "http://localhost@evil.example", "this machine only"),
            ("GITHUB_REPOSITORY", "widgets", "owner/name"),
            ("GITHUB_REPOSITORY", "acme/widgets/x", "owner/name"),
            ("GITHUB_REPOSITORY", "acme/..", "owner/name"),
            ("GITHUB_TOKEN", "a b", "GITHUB_TOKEN"),
        ] {
            let error = chosen(&[(name, text)]).unwrap_err();
            assert!(error.contains(want), "{name}={text}: {error}");
        }
        for url in ["http://127.0.0.1:8080", "http://[::1]:1/api/v3", "http://localhost"] {
            assert!(chosen(&[("GITHUB_API_URL", url)]).is_ok(), "{url}");
        }
    }

    #[test]
    fn the_token_stays_with_its_server() {
        let setup = chosen(&[("GITHUB_API_URL", "https://git.acme.example/api/v3")]).unwrap();
        let from = "https://git.acme.example/api/v3/repos/a/b";
        assert_eq!(
            setup.own("/repositories/1", from).unwrap(),
            "https://git.acme.example/repositories/1"
        );
        assert!(setup.own("https://git.acme.example/x", from).is_ok());
        let upper = chosen(&[("GITHUB_API_URL", "https://Git.Acme.Example/api/v3")]).unwrap();
        assert!(upper.own("https://git.acme.example/x", from).is_ok(), "a name has no case");
        for elsewhere in [
            "https://evil.example/x",
            "https://git.acme.example.evil.example/x",
            "http://git.acme.example/x",
            "https://git.acme.example:8443/x",
            "//evil.example/x",
            "x",
            "",
        ] {
            assert!(setup.own(elsewhere, from).is_err(), "{elsewhere}");
        }
    }
}
