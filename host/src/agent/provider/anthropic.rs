//! [`Anthropic`]: a service with Anthropic's messages.

use serde_json::{Value, json};

use super::{CUT, Chat, DECLINED, HttpClient, Provider, ProviderError, Role};

/// Messages: `POST {base}/v1/messages`.
#[derive(Debug)]
pub struct Anthropic {
    client: HttpClient,
    model: String,
    max_tokens: u32,
}

/// Version of the interface that is spoken.
const VERSION: &str = "2023-06-01";

impl Anthropic {
    /// Path behind the base URL.
    pub const PATH: &'static str = "/v1/messages";
    /// Base URL of the service itself.
    pub const BASE: &'static str = "https://api.anthropic.com";

    /// An adapter whose client posts to the base URL followed by [`Anthropic::PATH`]; a reply is cut at `max_tokens`.
    #[must_use]
    pub fn new(client: HttpClient, model: String, max_tokens: u32) -> Self {
        Self { client, model, max_tokens }
    }
}

impl Provider for Anthropic {
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
        let messages: Vec<Value> = chat
            .messages
            .iter()
            .map(|message| {
                let role = match message.role {
                    Role::User => "user",
                    Role::Assistant => "assistant",
                };
                json!({"role": role, "content": message.text})
            })
            .collect();
        let mut body =
            json!({"model": self.model, "max_tokens": self.max_tokens, "messages": messages});
        if !chat.system.is_empty() {
            body["system"] = chat.system.into();
        }
        let headers = [("x-api-key", self.client.key().expose()), ("anthropic-version", VERSION)];
        let reply = self.client.post(&headers, &body)?;
        let parts = reply.get("content").and_then(Value::as_array);
        let parts = parts.ok_or_else(|| self.client.unlike("`content` list", &reply))?;
        let text: String = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        match caveat(reply.get("stop_reason").and_then(Value::as_str)) {
            None => Ok(text),
            Some(reason) => Err(ProviderError::Unusable { reason: reason.to_owned(), text }),
        }
    }
}

/// What the reason for which a reply ended says of it.
fn caveat(stop_reason: Option<&str>) -> Option<&'static str> {
    match stop_reason? {
        "max_tokens" | "model_context_window_exceeded" => Some(CUT),
        "refusal" => Some(DECLINED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{Served, Service};
    use super::super::{Message, Retry, Secret};
    use super::*;

    #[test]
    fn a_conversation_over_a_socket() {
        let content = json!({"content": [
            {"type": "text", "text": "h"}, {"type": "other"}, {"type": "text", "text": "i"},
        ]});
        let service = Service::start(vec![
            Served::new(529, "overloaded"),
            Served::new(200, &content.to_string()),
        ]);
        let retry = Retry { sleep: std::sync::Arc::new(|_| {}), ..Retry::default() };
        let client = HttpClient::new(
            service.url(Anthropic::PATH),
            Secret::new("ak-1"),
            Duration::from_secs(20),
            retry,
        );
        let provider = Anthropic::new(client, "m-2".into(), 100);
        let messages = [Message::user("a")];
        assert_eq!(provider.complete(&Chat { system: "s", messages: &messages }).unwrap(), "hi");
        let requests = service.requests();
        assert_eq!(requests[1].path, "/v1/messages");
        assert_eq!(requests[1].header("x-api-key"), Some("ak-1"));
        assert_eq!(requests[1].header("anthropic-version"), Some(VERSION));
        assert_eq!(
            requests[1].body,
            json!({"model": "m-2", "max_tokens": 100, "messages": [{"role": "user", "content": "a"}], "system": "s"})
        );
    }

    #[test]
    fn what_is_not_all_of_a_reply_is_told_with_it() {
        for (reason, want) in [
            ("end_turn", None),
            ("stop_sequence", None),
            ("max_tokens", Some(CUT)),
            ("model_context_window_exceeded", Some(CUT)),
            ("refusal", Some(DECLINED)),
        ] {
            assert_eq!(caveat(Some(reason)), want, "{reason}");
        }
        assert_eq!(caveat(None), None);
    }
}
