use std::cell::RefCell;
use std::collections::VecDeque;

use super::*;
use crate::choice::Choice;
use sdk::UdfError;

const NOW: u64 = 1_800_000_000;

/// A server of the given answers; it notes what it is asked and how long it is left alone.
#[derive(Default)]
struct Server {
    answers: RefCell<VecDeque<Result<HttpReply, UdfError>>>,
    requests: RefCell<Vec<HttpRequest>>,
    pauses: RefCell<Vec<u64>>,
}

impl Web for Server {
    fn send(&self, request: &HttpRequest) -> Result<HttpReply, UdfError> {
        self.requests.borrow_mut().push(request.clone());
        self.answers.borrow_mut().pop_front().expect("no more requests than answers")
    }
    fn pause(&self, time: Duration) {
        self.pauses.borrow_mut().push(time.as_secs());
    }
    fn unix_now(&self) -> u64 {
        NOW
    }
}

struct Chosen;

impl Choice for Chosen {
    fn setting(&self, _: &str) -> Result<Option<String>, String> {
        Ok(None)
    }
    fn variable(&self, name: &str) -> Option<String> {
        let text = match name {
            "GITHUB_API_URL" => "https://git.acme.example/api/v3",
            "GITHUB_REPOSITORY" => "acme/widgets",
            "GITHUB_TOKEN" => "ghp_secret",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Result<HttpReply, UdfError> {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Ok(HttpReply { status, headers: headers.iter().map(owned).collect(), body: body.into() })
}

fn server(answers: Vec<Result<HttpReply, UdfError>>) -> Server {
    Server { answers: RefCell::new(answers.into()), ..Server::default() }
}

fn github(server: &Server) -> GitHub<'_> {
    GitHub::new(GitHubSetup::chosen(&Chosen).unwrap(), server, Duration::from_secs(30))
}

const CREATED: &str =
    r#"{"id": 77, "html_url": "https://git.acme.example/acme/widgets/issues/7#issuecomment-77"}"#;

#[test]
fn a_comment_is_posted_as_it_is() {
    let server = server(vec![reply(201, &[], CREATED)]);
    let posted = github(&server).post("#7", "two\n\"lines\" é 🎯").unwrap();
    assert_eq!(posted.id, "77");
    assert_eq!(posted.url, "https://git.acme.example/acme/widgets/issues/7#issuecomment-77");
    let requests = server.requests.borrow();
    let request = &requests[0];
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://git.acme.example/api/v3/repos/acme/widgets/issues/7/comments")
    );
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"body": "two\n\"lines\" é 🎯"}));
    assert!(request.headers.contains(&("authorization".into(), "Bearer ghp_secret".into())));
    assert!(request.limit <= Duration::from_secs(30));
}

#[test]
fn only_numbers_are_issues() {
    for issue in ["", "#", "PROJ-12", "7/comments", "-1", "７", "12345678901234567890"] {
        let server = server(vec![]);
        assert_eq!(github(&server).post(issue, "b"), Err(PostError::Issue { issue: issue.into() }));
    }
}

#[test]
fn what_the_tracker_refuses_has_its_word() {
    for (status, body, want) in [
        (401, r#"{"message": "Bad credentials"}"#, "AUTH_FAILED: status 401: Bad credentials"),
        (
            403,
            r#"{"message": "Resource not accessible by personal access token"}"#,
            "AUTH_FAILED: status 403: Resource not",
        ),
        (404, r#"{"message": "Not Found"}"#, "NOT_FOUND: status 404: Not Found"),
        (410, r#"{"message": "This issue was deleted"}"#, "NOT_FOUND: status 410"),
        (
            422,
            r#"{"message": "Validation Failed", "errors": [{"code": "custom", "message": "body is too long"}]}"#,
            "VALIDATION_ERROR: status 422: Validation Failed (body is too long)",
        ),
        (500, "oops", "status 500"),
        (502, "<html>", "status 502"),
        (503, "ghp_secret", "status 503"),
        (200, "{\"id\": 1", "not JSON"),
        (201, "{\"id\": 1}", "no id and address"),
        (201, "[]", "no id and address"),
        (418, "", "status 418"),
    ] {
        let server = server(vec![reply(status, &[], body)]);
        let error = github(&server).post("7", "b").unwrap_err().to_string();
        assert!(error.contains(want), "{status} {body}: {error}");
        assert_eq!(server.requests.borrow().len(), 1, "a comment is never posted twice");
        assert!(!error.contains("ghp_secret"));
    }
    let hung = server(vec![Err(UdfError::raised("no answer of git: timeout: ghp_secret"))]);
    let error = github(&hung).post("7", "b").unwrap_err();
    assert_eq!(error, PostError::Unavailable("no answer of git: timeout: [token]".into()));
}

#[test]
fn a_limit_is_waited_for_if_there_is_time() {
    let reset = (NOW + 12).to_string();
    let server = server(vec![
        reply(429, &[("retry-after", "3")], "{}"),
        reply(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &reset)], "{}"),
        reply(
            403,
            &[("retry-after", "0")],
            r#"{"message": "You have exceeded a secondary rate limit"}"#,
        ),
        reply(201, &[], CREATED),
    ]);
    assert!(github(&server).post("7", "b").is_ok());
    assert_eq!(*server.pauses.borrow(), [4, 13, 1]);
}

#[test]
fn a_limit_beyond_the_time_is_told_at_once() {
    let reset = (NOW + 1800).to_string();
    for (headers, body, wait) in [
        (vec![("retry-after", "3600")], "{}", 3601),
        (vec![("retry-after", "18446744073709551615")], "{}", u64::MAX),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())], "{}", 1801),
        (vec![], r#"{"message": "You have exceeded a secondary rate limit."}"#, 61),
        (vec![], r#"{"message": "You have triggered an abuse detection mechanism."}"#, 61),
    ] {
        let server = server(vec![reply(403, &headers, body)]);
        match github(&server).post("7", "b").unwrap_err() {
            PostError::TooMuch { wait_s, .. } => assert_eq!(wait_s, wait, "{body}"),
            other => panic!("{other}"),
        }
        assert!(server.pauses.borrow().is_empty());
    }
}

#[test]
fn a_limit_counts_by_the_clock_of_the_server() {
    // Ours is decades ahead of it.
    let reset = (784_111_777 + 10).to_string();
    let headers = [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", reset.as_str()),
    ];
    let server = server(vec![reply(403, &headers, "{}"), reply(201, &[], CREATED)]);
    assert!(github(&server).post("7", "b").is_ok());
    assert_eq!(*server.pauses.borrow(), [11]);
}

#[test]
fn a_server_that_is_never_content_is_left_alone() {
    let again = || reply(429, &[("retry-after", "0")], "{}");
    let server = server((0..4).map(|_| again()).collect());
    assert!(matches!(github(&server).post("7", "b"), Err(PostError::TooMuch { wait_s: 1, .. })));
    assert_eq!(*server.pauses.borrow(), [1, 1, 1]);
}

#[test]
fn a_redirect_is_followed_on_the_server_itself() {
    let to = "https://git.acme.example/api/v3/repositories/1/issues/7/comments";
    for status in [301, 302, 307, 308] {
        let server = server(vec![reply(status, &[("location", to)], ""), reply(201, &[], CREATED)]);
        assert!(github(&server).post("7", "b").is_ok());
        let requests = server.requests.borrow();
        assert_eq!((requests[1].url.as_str(), requests[1].method.as_str()), (to, "POST"));
        assert_eq!(requests[1].body, requests[0].body);
    }
    let away = server(vec![reply(301, &[("location", "https://evil.example/x")], "")]);
    assert!(matches!(github(&away).post("7", "b"), Err(PostError::Setup(_))));
    assert_eq!(away.requests.borrow().len(), 1, "the token went nowhere else");
    let circle = server((0..4).map(|_| reply(307, &[("location", to)], "")).collect());
    assert!(github(&circle).post("7", "b").unwrap_err().to_string().contains("circles"));
}

fn comment(id: u64) -> String {
    format!(
        r#"{{"id": {id}, "user": {{"login": "sam"}}, "author_association": "MEMBER", "body": "b{id}", "created_at": "2026-01-31T08:05:09Z"}}"#
    )
}

#[test]
fn all_pages_are_read() {
    let next = r#"<https://git.acme.example/api/v3/repositories/1/issues/7/comments?page=2>; rel="next", <https://x>; rel="last""#;
    let server = server(vec![
        reply(200, &[("link", next), ("etag", "W/\"a\"")], &format!("[{}]", comment(1))),
        reply(503, &[], ""),
        reply(200, &[], &format!("[{},{}]", comment(2), comment(3))),
    ]);
    let comments = github(&server).comments("7", "2026-01-31T08:00:00Z", "old").unwrap();
    let Comments::All { list, tag } = comments else { panic!("{comments:?}") };
    assert_eq!(list.iter().map(|comment| comment.id.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(tag, "", "a tag of one page does not speak for two");
    assert_eq!((list[0].author.as_str(), list[0].body.as_str()), ("sam", "b1"));
    let requests = server.requests.borrow();
    assert!(
        requests[0].url.ends_with("/issues/7/comments?per_page=100&since=2026-01-31T08:00:00Z")
    );
    assert!(requests[0].headers.contains(&("if-none-match".into(), "old".into())));
    assert!(requests[2].url.ends_with("?page=2"));
    assert_eq!(*server.pauses.borrow(), [1], "a look is repeated after a fault of the server");
}

#[test]
fn an_unchanged_issue_is_not_read_again() {
    let server = server(vec![reply(200, &[("etag", "W/\"a\"")], "[]"), reply(304, &[], "")]);
    let github = github(&server);
    let since = "2026-01-31T08:00:00Z";
    assert_eq!(
        github.comments("7", since, "").unwrap(),
        Comments::All { list: vec![], tag: "W/\"a\"".into() }
    );
    assert_eq!(github.comments("7", since, "W/\"a\"").unwrap(), Comments::Unchanged);
}

#[test]
fn a_full_page_has_no_tag() {
    // The next comment comes on a page of its own, and the first stays what it is.
    for (count, want) in [(99, "W/\"a\""), (100, "")] {
        let all: Vec<String> = (1..=count).map(comment).collect();
        let body = format!("[{}]", all.join(","));
        let server = server(vec![reply(200, &[("etag", "W/\"a\"")], &body)]);
        let comments = github(&server).comments("7", "2026-01-31T08:00:00Z", "").unwrap();
        let Comments::All { list, tag } = comments else { panic!("{comments:?}") };
        assert_eq!((list.len() as u64, tag.as_str()), (count, want));
    }
}

#[test]
fn a_listing_that_is_none_is_a_fault() {
    let server = server((0..3).map(|_| reply(500, &[], "")).collect());
    assert!(matches!(github(&server).comments("7", "x", ""), Err(PostError::Unavailable(_))));
    for body in ["{}", "[1]", "[{\"id\": 1}]", "[{\"id\"", "null"] {
        let server = self::server(vec![reply(200, &[], body)]);
        assert!(github(&server).comments("7", "x", "").is_err(), "{body}");
    }
    let evil =
        self::server(vec![reply(200, &[("link", "<https://evil.example/x>; rel=\"next\"")], "[]")]);
    assert!(matches!(github(&evil).comments("7", "x", ""), Err(PostError::Setup(_))));
}
