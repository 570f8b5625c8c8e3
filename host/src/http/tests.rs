mod guards;
mod sockets;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::{Router, State, Token, router};
use crate::Host;
use crate::config::Config;

const PORT: u16 = 4567;

/// A router over a host without any operation, and the token that it takes.
fn empty_router(port: u16) -> (Router, String) {
    let mut config = Config::resolve(&[], None, None, None);
    config.only = true;
    config.no_build = true;
    // Never opened: there is nothing to load.
    config.cache_dir = "/nonexistent".into();
    config.timeout = Duration::from_secs(5);
    let token = Token::mint().unwrap();
    let reveal = token.reveal().to_owned();
    let host = Host::start(config).unwrap();
    (router(State { port, token, body_limit: 1000, reply_limit: 1 << 20, host }), reveal)
}

/// What came back, after the checks that hold for every reply.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: Value,
}

async fn ask(router: &Router, request: Request<Full<Bytes>>) -> Answer {
    let sent_id = request.headers().get("x-request-id").cloned();
    let response = router.handle(request).await;
    let (head, body) = response.into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    let body: Value =
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
    assert_eq!(head.headers["content-type"], "application/json");
    assert!(
        !head.headers.keys().any(|name| name.as_str().starts_with("access-control-")),
        "{head:?}"
    );
    if head.status.is_success() {
        assert!(body["ok"] == true || body["error"].is_null(), "{body}");
    } else {
        assert!(body["data"].is_null() && body["error"].is_string(), "{body}");
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
    }
    let id = head.headers["x-request-id"].to_str().unwrap();
    assert!(
        !id.is_empty() && sent_id.is_none_or(|sent: HeaderValue| sent == id || !id.contains(' '))
    );
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

/// A request as a well-behaved program sends it, to be spoilt by `with`.
fn request(method: Method, target: &str, body: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(target)
        .header("host", format!("127.0.0.1:{PORT}"))
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap()
}
