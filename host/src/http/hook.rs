//! `POST /hooks/github`: comments on issues as GitHub delivers them, for questions asked inside workflow runs (the
//! run-feedback contract §16).
//!
//! The route exists only where a secret is configured. It is called from outside, through a tunnel or a proxy: the name
//! in `Host` is theirs and there is no token; the signature over the body is what lets a request in, and is checked
//! before anything is read out of the body. What browsers say of themselves is held against them here as well.
//!
//! A delivery is answered when it has been dealt with. One that fails is not remembered and may be sent again.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, StatusCode};
use percent_encoding::percent_decode;
use serde_json::{Value, json};
use sha2::Sha256;

use super::State;
use super::error::Failure;
use super::routes::Incoming;
use crate::config::HookSecret;
use crate::dispatch::Call;
use crate::envelope;
use crate::error::HostError;
use crate::plugins::Address;
use crate::reply::Reply;

/// The route.
pub(crate) const PATH: &str = "/hooks/github";

/// The longest id of a delivery; GitHub's have 36 characters.
const LONGEST_ID: usize = 100;

/// Whether the route is there, and this is it.
pub(crate) fn is_open(path: &str, state: &State) -> bool {
    path == PATH && state.host.config.hook_secret.is_some()
}

/// Deals with a delivery.
pub(crate) async fn receive(state: &State, incoming: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let Some(secret) = &state.host.config.hook_secret else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "there is no such route"));
    };
    if !is_signed(secret, incoming.headers, &incoming.body) {
        return Err(Failure::new(
            StatusCode::UNAUTHORIZED,
            "the signature is missing or wrong: X-Hub-Signature-256 over the body, by the secret of the webhook",
        ));
    }
    let text = |name: &str| {
        incoming.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let delivery = text("x-github-delivery");
    if delivery.is_empty() || delivery.len() > LONGEST_ID {
        return Err(bad("the header X-GitHub-Delivery is missing or no id"));
    }
    let event = text("x-github-event");
    if event == "ping" {
        return Ok(ignored("ping"));
    }
    let payload: Value = serde_json::from_slice(&unwrapped(&incoming.body))
        .map_err(|_| bad("the body is not JSON"))?;
    if event != "issue_comment" {
        return Ok(ignored("event"));
    }
    if payload["action"] != "created" {
        // What was changed or deleted afterwards changes no answer.
        return Ok(ignored("action"));
    }
    let params = params(&payload, delivery, state.host.config.hook_base_path.as_deref())
        .ok_or_else(|| bad("the body is not a comment on an issue"))?;
    let call = Call {
        params,
        request_id: incoming.id.to_str().unwrap_or_default().to_owned(),
        ..Call::new(Address::new("_core", "run-feedback", "receive_reply"))
    };
    match state.host.dispatcher.call_async(call).await.map_err(Failure::of_call)? {
        Reply::Value(text) => answer(&text),
        Reply::Records(_) => Err(Failure::from(HostError::Internal {
            message: "the comment was not dealt with".to_owned(),
            detail: "`receive_reply` answered records".to_owned(),
        })),
    }
}

/// The JSON of a delivery. A webhook that was set up without choosing a content type sends it as the field of a form.
fn unwrapped(body: &[u8]) -> Cow<'_, [u8]> {
    let Some(field) = body.strip_prefix(b"payload=") else { return Cow::Borrowed(body) };
    let field = field.split(|byte| *byte == b'&').next().unwrap_or_default();
    let spaced: Vec<u8> =
        field.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

/// Whether the body carries the signature of whoever knows the secret. The comparison takes the same time wherever the
/// two differ.
fn is_signed(secret: &HookSecret, headers: &HeaderMap, body: &[u8]) -> bool {
    let mut signatures = headers.get_all("x-hub-signature-256").iter();
    let (Some(signature), None) = (signatures.next(), signatures.next()) else { return false };
    let signature = signature.as_bytes().strip_prefix(b"sha256=").and_then(unhex);
    let Some(signature) = signature else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.reveal()) else { return false };
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The parameters of `receive_reply`; `None` if the payload lacks something.
fn params(payload: &Value, delivery: &str, base: Option<&str>) -> Option<Vec<(String, String)>> {
    let comment = &payload["comment"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut params = vec![
        ("issue", payload["issue"]["number"].as_u64()?.to_string()),
        ("comment_id", comment["id"].as_u64()?.to_string()),
        // As GitHub calls whoever has left.
        ("author", text(&comment["user"]["login"]).unwrap_or_else(|| "ghost".to_owned())),
        ("association", text(&comment["author_association"]).unwrap_or_default()),
        ("body", text(&comment["body"]).unwrap_or_default()),
        ("created_at", text(&comment["created_at"])?),
        ("repository", text(&payload["repository"]["full_name"])?),
        ("delivery", delivery.to_owned()),
    ];
    params.extend(base.map(|base| ("base_path", base.to_owned())));
    Some(params.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
}

/// The envelope of what was done. A refusal is no success here: whoever delivers must know that it was not dealt with.
fn answer(text: &str) -> Result<Vec<u8>, Failure> {
    let reply: Value = serde_json::from_str(text).map_err(|error| HostError::Internal {
        message: "the comment was not dealt with".to_owned(),
        detail: error.to_string(),
    })?;
    let error = &reply["error"];
    if error.is_null() {
        return Ok(envelope::render_data(text));
    }
    let status = match error["number"].as_u64() {
        Some(1) => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let word = |name: &str| error[name].as_str().unwrap_or_default();
    Err(Failure::new(status, format!("{}: {}; deliver it again", word("code"), word("message"))))
}

fn ignored(reason: &str) -> Vec<u8> {
    envelope::render_data(&json!({"outcome": "ignored", "reason": reason}).to_string())
}

fn bad(message: &'static str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(secret: &str, signature: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("x-hub-signature-256", signature.parse().unwrap());
        is_signed(&HookSecret::from(secret.to_owned()), &headers, b"Hello, World!")
    }

    #[test]
    fn only_whoever_knows_the_secret_can_sign() {
        // The example of GitHub's own documentation.
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(signed("It's a Secret to Everybody", right));
        for (secret, signature) in [
            ("another", right),
            ("It's a Secret to Everybody", &right[7..]),
            ("It's a Secret to Everybody", "sha256="),
            ("It's a Secret to Everybody", "sha256=75"),
            ("It's a Secret to Everybody", &right[..right.len() - 1]),
            ("It's a Secret to Everybody", &right.replace("75", "zz")),
            ("It's a Secret to Everybody", &right.replace("sha256", "sha1")),
        ] {
            assert!(!signed(secret, signature), "{secret} {signature}");
        }
        let secret = HookSecret::from("It's a Secret to Everybody".to_owned());
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append("x-hub-signature-256", right.parse().unwrap());
        }
        assert!(!is_signed(&secret, &twice, b"Hello, World!"));
        assert!(!is_signed(&secret, &HeaderMap::new(), b"Hello, World!"));
        assert!(!format!("{secret:?}").contains("Everybody"));
    }

    #[test]
    fn a_form_holds_the_same() {
        for (body, want) in [
            ("{\"a\": \"payload=%7B+\"}", "{\"a\": \"payload=%7B+\"}"),
            ("payload=%7B%22a%22%3A+%22%C3%A9%2B%26%22%7D", "{\"a\": \"é+&\"}"),
            ("payload=%7B%7D&more=%7B", "{}"),
            ("payload=", ""),
            ("", ""),
        ] {
            assert_eq!(&*unwrapped(body.as_bytes()), want.as_bytes(), "{body}");
        }
    }

    #[test]
    fn a_payload_becomes_parameters() {
        let mut payload = json!({"action": "created", "issue": {"number": 7}, "repository": {"full_name": "acme/widgets"},
            "comment": {"id": 77, "user": {"login": "sam"}, "author_association": "OWNER", "body": "b",
                "created_at": "2026-01-31T08:05:09Z"}});
        let found = params(&payload, "d-1", Some("runs")).unwrap();
        let find = |name: &str| found.iter().find(|(found, _)| found == name).unwrap().1.as_str();
        assert_eq!((find("issue"), find("comment_id"), find("base_path")), ("7", "77", "runs"));
        payload["comment"]["id"] = json!("77");
        assert_eq!(params(&payload, "d-1", None), None);
    }
}
