//! `udf-host run-feedback stand-in-tracker`: comments on issues in memory, over the routes of GitHub's REST API that
//! run feedback uses. For trying things out and for tests; everybody is who their token says.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use clap::Args;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sdk::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;

use crate::cli::{Exit, output};
use crate::error::HostError;
use crate::http::bind;

const MOST_BODY: usize = 1 << 20;
const MOST_PER_PAGE: usize = 100;

const HELP: &str = "\
Prints {\"origin\"} and serves until it is ended:

  GITHUB_API_URL=ORIGIN GITHUB_REPOSITORY=owner/name GITHUB_TOKEN=bot udf-host run-feedback …
  curl -H 'Authorization: Bearer sam' -d '{\"body\": \"…\"}' ORIGIN/repos/owner/name/issues/7/comments
  curl ORIGIN/owner/name/issues/7

The token is the login of whoever writes; one that begins with `guest` is of nobody who may answer. With --hook every
comment is delivered there as well, signed with UDF_HOST_HOOK_SECRET.";

/// Stand in for GitHub's issues, in memory.
#[derive(Debug, Args)]
#[command(hide = true, after_help = HELP)]
pub(super) struct StandIn {
    /// The port of 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
    /// Where comments are delivered, as `http://127.0.0.1:PORT/hooks/github`
    #[arg(long, value_name = "URL")]
    hook: Option<String>,
}

/// Everything that was said.
#[derive(Debug, Default)]
struct Tracker {
    origin: String,
    /// By the path of the issue.
    issues: Mutex<HashMap<String, Vec<Value>>>,
    hook: Option<(String, String)>,
}

impl StandIn {
    pub(super) fn run(self) -> Result<Exit, HostError> {
        let secret = std::env::var("UDF_HOST_HOOK_SECRET").unwrap_or_default();
        if self.hook.is_some() && secret.is_empty() {
            return Err(HostError::Config {
                place: "UDF_HOST_HOOK_SECRET".to_owned(),
                message: "is needed to sign what goes to --hook".to_owned(),
            });
        }
        let bound = bind(self.port)?;
        let tracker = Arc::new(Tracker {
            origin: bound.origin(),
            issues: Mutex::default(),
            hook: self.hook.map(|url| (url, secret)),
        });
        let runtime =
            tokio::runtime::Runtime::new().map_err(|error| internal("cannot start", &error))?;
        output::line(&json!({ "origin": tracker.origin }).to_string())?;
        runtime.block_on(async {
            for socket in bound.sockets {
                let serve = serve(socket, Arc::clone(&tracker));
                tokio::spawn(async move {
                    if let Err(error) = serve.await {
                        tracing::error!(%error, "the stand-in ends");
                    }
                });
            }
            std::future::pending::<()>().await;
        });
        Ok(Exit::Done)
    }
}

async fn serve(socket: std::net::TcpListener, tracker: Arc<Tracker>) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let tracker = Arc::clone(&tracker);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&tracker), request));
            // A client that breaks off is its own affair.
            let _ended = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    tracker: Arc<Tracker>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, MOST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(refusal(StatusCode::PAYLOAD_TOO_LARGE, "Payload too large")),
    };
    if head.method == Method::GET
        && let Some(issue) = page(head.uri.path())
    {
        return Ok(tracker.show(issue));
    }
    let Some(login) = login(&head.headers) else {
        return Ok(refusal(StatusCode::UNAUTHORIZED, "Requires authentication"));
    };
    let Some(issue) = issue(head.uri.path()) else {
        return Ok(refusal(StatusCode::NOT_FOUND, "Not Found"));
    };
    Ok(match head.method {
        Method::GET => tracker.list(&issue, &head.uri, &head.headers),
        Method::POST => tracker.add(&issue, &login, &body),
        _ => refusal(StatusCode::NOT_FOUND, "Not Found"),
    })
}

/// Whoever writes: the token.
fn login(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    (known && !token.is_empty()).then(|| token.to_owned())
}

/// `owner/name/issues/7` of the path of its comments, also below the prefix of GitHub Enterprise.
fn issue(path: &str) -> Option<String> {
    let path = path.strip_prefix("/api/v3").unwrap_or(path);
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "repos", owner, name, "issues", number, "comments"]
            if number.parse::<u64>().is_ok() && !owner.is_empty() && !name.is_empty() =>
        {
            Some(format!("{owner}/{name}/issues/{number}"))
        }
        _ => None,
    }
}

/// `owner/name/issues/7` of the address that people open.
fn page(path: &str) -> Option<&str> {
    let issue = path.strip_prefix('/')?;
    match issue.split('/').collect::<Vec<_>>()[..] {
        [owner, name, "issues", number]
            if number.parse::<u64>().is_ok() && !owner.is_empty() && !name.is_empty() =>
        {
            Some(issue)
        }
        _ => None,
    }
}

impl Tracker {
    /// The thread as people read it.
    fn show(&self, issue: &str) -> Response<Full<Bytes>> {
        let issues = self.issues.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = format!("{issue}\n");
        for comment in issues.get(issue).into_iter().flatten() {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (login, at) = (word(&comment["user"]["login"]), word(&comment["created_at"]));
            text.push_str(&format!("\n--- {login}, {at} ---\n\n{}\n", word(&comment["body"])));
        }
        let mut response = Response::new(Full::new(Bytes::from(text)));
        let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        response
    }

    fn add(self: &Arc<Self>, issue: &str, login: &str, body: &[u8]) -> Response<Full<Bytes>> {
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let Some(text) = sent["body"].as_str().filter(|text| !text.trim().is_empty()) else {
            return refusal(StatusCode::UNPROCESSABLE_ENTITY, "Validation Failed");
        };
        let comment = {
            let mut issues = self.issues.lock().unwrap_or_else(PoisonError::into_inner);
            let id = issues.values().map(Vec::len).sum::<usize>() + 1;
            let association = if login.starts_with("guest") { "NONE" } else { "MEMBER" };
            let now = now();
            let comment = json!({
                "id": id,
                "html_url": format!("{}/{issue}#issuecomment-{id}", self.origin),
                "user": {"login": login},
                "author_association": association,
                "body": text,
                "created_at": now,
                "updated_at": now,
            });
            issues.entry(issue.to_owned()).or_default().push(comment.clone());
            comment
        };
        self.deliver(issue, &comment);
        respond(StatusCode::CREATED, &comment)
    }

    fn list(&self, issue: &str, uri: &Uri, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let parameter = |name: &str| {
            let pairs = uri.query().unwrap_or_default().split('&');
            pairs.filter_map(|pair| pair.split_once('=')).find(|(found, _)| *found == name)
        };
        let number = |name: &str| parameter(name).and_then(|(_, text)| text.parse::<usize>().ok());
        let per_page = number("per_page").unwrap_or(30).clamp(1, MOST_PER_PAGE);
        let page = number("page").unwrap_or(1).max(1);
        let since = parameter("since").map_or(String::new(), |(_, text)| {
            percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
        });
        let all: Vec<Value> = {
            let issues = self.issues.lock().unwrap_or_else(PoisonError::into_inner);
            let comments = issues.get(issue).map_or(&[][..], Vec::as_slice).iter();
            let new = |comment: &&Value| comment["updated_at"].as_str() >= Some(since.as_str());
            comments.filter(new).cloned().collect()
        };
        let shown: Vec<&Value> = all.iter().skip((page - 1) * per_page).take(per_page).collect();
        // Comments are never changed here: the last one names the page.
        let last = shown.last().map_or(&Value::Null, |comment| &comment["id"]);
        let tag = format!("W/\"{page}-{}-{last}\"", shown.len());
        if headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
            let mut unchanged = Response::new(Full::default());
            *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
            return unchanged;
        }
        let mut response = respond(StatusCode::OK, &json!(shown));
        let headers = response.headers_mut();
        if let Ok(tag) = tag.parse() {
            headers.insert(ETAG, tag);
        }
        if page * per_page < all.len() {
            let next = format!(
                "<{}{}?per_page={per_page}&since={since}&page={}>; rel=\"next\"",
                self.origin,
                uri.path(),
                page + 1
            );
            if let Ok(next) = next.parse() {
                headers.insert(LINK, next);
            }
        }
        response
    }

    /// Sends the comment to the hook, signed, on a thread of its own; nobody here waits for the answer.
    fn deliver(&self, issue: &str, comment: &Value) {
        let Some((url, secret)) = self.hook.clone() else { return };
        let mut parts = issue.rsplitn(3, '/');
        let number = parts.next().and_then(|number| number.parse::<u64>().ok());
        let repository = parts.nth(1).unwrap_or_default();
        let payload = json!({
            "action": "created",
            "issue": {"number": number},
            "comment": comment,
            "repository": {"full_name": repository},
        })
        .to_string();
        let delivery = format!("stand-in-{}", comment["id"]);
        std::thread::spawn(move || {
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return };
            mac.update(payload.as_bytes());
            let digits: String =
                mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let sent = ureq::post(&url)
                .header("content-type", "application/json")
                .header("x-github-event", "issue_comment")
                .header("x-github-delivery", &delivery)
                .header("x-hub-signature-256", &format!("sha256={digits}"))
                .send(&payload);
            if let Err(error) = sent {
                tracing::warn!(%error, delivery, "not delivered");
            }
        });
    }
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_seconds()
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn refusal(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    respond(status, &json!({ "message": message }))
}

fn internal(message: &str, error: &impl ToString) -> HostError {
    HostError::Internal { message: message.to_owned(), detail: error.to_string() }
}
