//! [`HttpClient`]: one JSON request to a service, asked again with back-off while the service is overloaded or away.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{ProviderError, Secret};

/// How often and how patiently a service is asked.
#[derive(Clone)]
pub struct Retry {
    /// Requests for one reply, the first included.
    pub attempts: u32,
    /// Wait before the second request; doubled each time.
    pub first_wait: Duration,
    /// The longest single wait, also when the service asks for more.
    pub longest_wait: Duration,
    /// How to wait; tests write down instead.
    pub sleep: std::sync::Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            sleep: std::sync::Arc::new(std::thread::sleep),
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("attempts", &self.attempts)
            .field("first_wait", &self.first_wait)
            .field("longest_wait", &self.longest_wait)
            .finish_non_exhaustive()
    }
}

/// Speaks JSON over HTTP to one service.
#[derive(Debug)]
pub struct HttpClient {
    agent: ureq::Agent,
    url: String,
    key: Secret,
    retry: Retry,
}

/// What one request came to.
enum Outcome {
    Reply(Value),
    /// Worth another request, after this wait if the service named one.
    Again(String, Option<Duration>),
    Refused(String),
}

/// Bytes of a reply that are read.
const REPLY_LIMIT: u64 = 8 * 1024 * 1024;
/// Characters of a service's complaint that are passed on.
const SHOWN: usize = 300;

impl HttpClient {
    /// A client for this address. `timeout` bounds one request from its first byte to the last of the reply.
    #[must_use]
    pub fn new(url: String, key: Secret, timeout: Duration, retry: Retry) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            // A key goes where it was meant to go, and nowhere else.
            .max_redirects(0)
            .user_agent(concat!("udf-host/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Self { agent, url, key, retry }
    }

    /// The key, for the header it goes into.
    pub(super) fn key(&self) -> &Secret {
        &self.key
    }

    /// A reply without what makes it one: some services put their complaints into it.
    pub(super) fn unlike(&self, what: &str, reply: &Value) -> ProviderError {
        let text: String = reply.to_string().chars().take(SHOWN).collect();
        let message = self.key.redact(&format!("the reply has no {what}; {text}"));
        ProviderError::Unavailable { message }
    }

    /// Sends `body` until there is a reply, a refusal, or no patience left.
    ///
    /// # Errors
    /// `Unavailable` or `Refused`; the key is never part of the message.
    pub(super) fn post(
        &self,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, ProviderError> {
        let body = body.to_string();
        let mut wait = self.retry.first_wait;
        let mut attempt = 1;
        loop {
            let (message, named) = match self.send(headers, &body) {
                Outcome::Reply(value) => return Ok(value),
                Outcome::Refused(message) => {
                    return Err(ProviderError::Refused { message: self.key.redact(&message) });
                }
                Outcome::Again(message, named) => (self.key.redact(&message), named),
            };
            if attempt >= self.retry.attempts {
                return Err(ProviderError::Unavailable { message });
            }
            tracing::warn!(target: "udf_host::agent", attempt, "the model provider is asked again: {message}");
            (self.retry.sleep)(named.unwrap_or(wait).min(self.retry.longest_wait));
            wait *= 2;
            attempt += 1;
        }
    }

    fn send(&self, headers: &[(&str, &str)], body: &str) -> Outcome {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            // An address that cannot be one stays so.
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::Http(_))) => {
                return Outcome::Refused(error.to_string());
            }
            Err(error) => return Outcome::Again(error.to_string(), None),
        };
        let status = response.status().as_u16();
        let named = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok())
            .and_then(|text| waits(text, Timestamp::now()));
        let text = match response.body_mut().with_config().limit(REPLY_LIMIT).read_to_string() {
            Ok(text) => text,
            Err(error) => return Outcome::Again(format!("status {status}: {error}"), named),
        };
        let complaint = || {
            let text: String = text.chars().take(SHOWN).collect();
            format!("status {status}: {}", text.trim())
        };
        match status {
            300..400 => Outcome::Refused(format!("it leads elsewhere; {}", complaint())),
            200..300 => match serde_json::from_str(&text) {
                Ok(value) => Outcome::Reply(value),
                Err(_) => Outcome::Again(format!("the reply is not JSON; {}", complaint()), None),
            },
            408 | 409 | 425 | 429 | 500.. => Outcome::Again(complaint(), named),
            _ => Outcome::Refused(complaint()),
        }
    }
}

/// `Retry-After`: seconds, or a date.
fn waits(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    // A date that is over says: now.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::testing::{Served, Service};
    use super::*;

    /// A client that writes its waits down instead of waiting.
    fn client(service: &Service) -> (HttpClient, Arc<Mutex<Vec<Duration>>>) {
        let waits = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&waits);
        let sleep = Arc::new(move |wait| written.lock().unwrap().push(wait));
        let retry = Retry { sleep, ..Retry::default() };
        let key = Secret::new("sk-very-secret");
        (HttpClient::new(service.url("/x"), key, Duration::from_secs(20), retry), waits)
    }

    #[test]
    fn an_overloaded_service_is_asked_again_when_it_says() {
        let service = Service::start(vec![
            Served::new(429, "slow down").header("retry-after", "7"),
            Served::new(503, "busy").header("retry-after", "100000"),
            Served::new(500, "oops"),
            Served::new(200, "{\"a\":1}"),
        ]);
        let (client, waits) = client(&service);
        assert_eq!(client.post(&[], &serde_json::json!({})).unwrap()["a"], 1);
        let seconds: Vec<u64> = waits.lock().unwrap().iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [7, 60, 2]);
        assert_eq!(service.requests().len(), 4);
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = "2026-11-30T09:00:00Z".parse().unwrap();
        for (text, want) in [
            (" 7 ", Some(7)),
            ("0.4", Some(0)),
            ("1e3", Some(1000)),
            ("NaN", None),
            ("Mon, 30 Nov 2026 09:01:30 GMT", Some(90)),
            ("Mon, 30 Nov 2026 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(waits(text, now).map(|wait| wait.as_secs()), want, "{text}");
        }
    }

    #[test]
    fn patience_ends_and_refusals_are_final() {
        let service = Service::start((0..4).map(|_| Served::new(502, "down")).collect());
        let (client, waits) = client(&service);
        let error = client.post(&[], &serde_json::json!({})).unwrap_err();
        assert!(!error.is_fatal(), "{error}");
        assert_eq!(error.to_string(), "the model provider is unavailable: status 502: down");
        assert_eq!(waits.lock().unwrap().len(), 3);

        let service = Service::start(vec![Served::new(401, "bad key sk-very-secret")]);
        let (client, waits) = self::client(&service);
        let error = client.post(&[], &serde_json::json!({})).unwrap_err();
        assert!(error.is_fatal() && waits.lock().unwrap().is_empty());
        assert_eq!(error.to_string(), "the model provider refuses: status 401: bad key [key]");
        assert!(!format!("{client:?}").contains("very-secret"));
    }

    #[test]
    fn a_reply_without_end_is_cut_off() {
        use std::io::{Read, Write};
        // A byte now and then, each in time; and more bytes than anybody asked for.
        for (pause, bytes) in [(100, 1), (0, 1 << 20)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/x", listener.local_addr().unwrap());
            let served = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _asked = stream.read(&mut [0; 4096]).unwrap();
                let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[";
                let mut sent = stream.write_all(head);
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(pause));
                    sent = stream.write_all(&vec![b' '; bytes]);
                }
            });
            let retry = Retry { attempts: 1, ..Retry::default() };
            let client = HttpClient::new(url, Secret::new(""), Duration::from_secs(2), retry);
            let error = client.post(&[], &serde_json::json!({})).unwrap_err();
            assert!(matches!(error, ProviderError::Unavailable { .. }), "{error}");
            drop(client);
            served.join().unwrap();
        }
    }

    #[test]
    fn a_service_that_is_not_there_is_unavailable() {
        let gone = Service::start(vec![]);
        let url = gone.url("/x");
        drop(gone);
        let retry = Retry { sleep: Arc::new(|_| {}), attempts: 2, ..Retry::default() };
        let client = HttpClient::new(url, Secret::new(""), Duration::from_secs(20), retry);
        assert!(matches!(
            client.post(&[], &serde_json::json!({})),
            Err(ProviderError::Unavailable { .. })
        ));
    }
}
