//! [`OpenAi`]: a service with OpenAI's chat completions.

use serde_json::{Value, json};

use super::{CUT, Chat, DECLINED, HttpClient, Provider, ProviderError, Role, WITHHELD};

/// Chat completions: `POST {base}/chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    client: HttpClient,
    model: String,
}

impl OpenAi {
    /// Path behind the base URL.
    pub const PATH: &'static str = "/chat/completions";
    /// Base URL of the service itself.
    pub const BASE: &'static str = "https://api.openai.com/v1";

    /// An adapter whose client posts to the base URL followed by [`OpenAi::PATH`].
    #[must_use]
    pub fn new(client: HttpClient, model: String) -> Self {
        Self { client, model }
    }
}

impl Provider for OpenAi {
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
        let mut messages = Vec::with_capacity(chat.messages.len() + 1);
        if !chat.system.is_empty() {
            messages.push(json!({"role": "system", "content": chat.system}));
        }
        messages.extend(chat.messages.iter().map(|message| {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({"role": role, "content": message.text})
        }));
        let authorization = format!("Bearer {}", self.client.key().expose());
        // A service on this machine may want no key.
        let header = [("authorization", authorization.as_str())];
        let headers = if self.client.key().is_empty() { &[][..] } else { &header[..] };
        let reply =
            self.client.post(headers, &json!({"model": self.model, "messages": messages}))?;
        let text = text(&reply)
            .ok_or_else(|| self.client.unlike("`choices[0].message.content`", &reply))?;
        match caveat(&reply, &text) {
            None => Ok(text),
            Some((reason, text)) => {
                Err(ProviderError::Unusable { reason: reason.to_owned(), text })
            }
        }
    }
}

/// What the service says of its reply beside the text, and what is left of the text then.
fn caveat(reply: &Value, text: &str) -> Option<(&'static str, String)> {
    match reply.pointer("/choices/0/finish_reason").and_then(Value::as_str) {
        Some("length") => return Some((CUT, text.to_owned())),
        Some("content_filter") => return Some((WITHHELD, text.to_owned())),
        _ => {}
    }
    let message = reply.pointer("/choices/0/message")?;
    if !text.trim().is_empty() {
        return None;
    }
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
        return Some((DECLINED, refusal.to_owned()));
    }
    let calls = message.get("tool_calls").filter(|calls| calls.is_array())?;
    Some((CALLED, calls.to_string()))
}

/// No tools are offered to the service: actions stand in the text.
const CALLED: &str = "it calls tools instead of saying something";

/// The text of the first choice; some services send it in parts.
fn text(reply: &Value) -> Option<String> {
    match reply.pointer("/choices/0/message/content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect())
        }
        // The model said nothing; that is a reply, and a faulty decision.
        Value::Null => Some(String::new()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
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
        let reply = |content: Value| {
            Served::new(200, &json!({"choices": [{"message": {"content": content}}]}).to_string())
        };
        let service = Service::start(vec![
            reply(json!("hi")),
            reply(json!([{"type": "text", "text": "h"}, {"type": "text", "text": "o"}])),
            reply(json!(null)),
        ]);
        let key = Secret::new("sk-1");
        let client = HttpClient::new(
            service.url(OpenAi::PATH),
            key,
            Duration::from_secs(20),
            Retry { attempts: 1, ..Retry::default() },
        );
        let provider = OpenAi::new(client, "m-1".into());
        let messages = [Message::user("a"), Message::assistant("b"), Message::user("c")];
        let chat = Chat { system: "s", messages: &messages };
        for want in ["hi", "ho", ""] {
            assert_eq!(provider.complete(&chat).unwrap(), want);
        }
        let requests = service.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[0].path, "/chat/completions");
        assert_eq!(requests[0].header("authorization"), Some("Bearer sk-1"));
        assert_eq!(
            requests[0].body,
            json!({"model": "m-1", "messages": [
                {"role": "system", "content": "s"}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
            ]})
        );
    }

    #[test]
    fn what_is_not_all_of_a_reply_is_told_with_it() {
        let choice = |finish: &str, message: Value| json!({"choices": [{"index": 0, "finish_reason": finish, "message": message}]});
        for (reply, want) in [
            (choice("stop", json!({"content": "hi", "refusal": null})), None),
            (choice("length", json!({"content": "{\"acti"})), Some((CUT, "{\"acti"))),
            (choice("content_filter", json!({"content": null})), Some((WITHHELD, ""))),
            (
                choice("stop", json!({"content": null, "refusal": "I can't."})),
                Some((DECLINED, "I can't.")),
            ),
            (
                choice("tool_calls", json!({"content": null, "tool_calls": [{"id": "c"}]})),
                Some((CALLED, "[{\"id\":\"c\"}]")),
            ),
            (choice("stop", json!({"content": ""})), None),
        ] {
            let found = caveat(&reply, &text(&reply).unwrap());
            assert_eq!(found, want.map(|(reason, text)| (reason, text.to_owned())), "{reply}");
        }
    }
}
