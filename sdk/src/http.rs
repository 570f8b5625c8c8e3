use std::time::Duration;

use crate::abi::Method;
use crate::context::Context;
use crate::error::UdfError;
use crate::wire::{HttpAnswer, HttpAsk, Wire};

/// How long a request may take unless it says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(30);

/// A request over HTTP, sent by the host for an operation that declares `net`: the host has the TLS, the
/// plugin stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// `http://…` or `https://…`.
    pub url: String,
    /// Name and value of each header.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Vec<u8>,
    /// From the first byte sent to the last one read; the call's own deadline holds beside it.
    pub limit: Duration,
}

/// What a server answered, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// The status: 200, 404, 302 (redirects are not followed).
    pub status: u16,
    /// Name, in lower case, and value of each header; values that are not text are left out.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// A request without headers and body.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            limit: USUAL_LIMIT,
        }
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

impl HttpReply {
    /// The value of a header, named in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl Context {
    /// Sends a request and waits for the whole answer. Redirects are not followed and nothing is sent twice.
    ///
    /// # Errors
    /// The operation does not declare `net`; no server, no answer in time, an answer that breaks off or is
    /// larger than 32 MiB. Whether the server has acted on it is unknown then.
    pub fn http(&self, request: &HttpRequest) -> Result<HttpReply, UdfError> {
        let ask = HttpAsk {
            method: &request.method,
            url: &request.url,
            headers: request.headers.iter().map(|(name, value)| (&**name, &**value)).collect(),
            body: &request.body,
            limit_ms: u64::try_from(request.limit.as_millis()).unwrap_or(u64::MAX),
        };
        let frame = self.request(Method::HTTP, &ask)?;
        let answer = HttpAnswer::decode(&frame)?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(HttpReply {
            status: u16::try_from(answer.status).unwrap_or(0),
            headers: answer.headers.into_iter().map(owned).collect(),
            body: answer.body.to_vec(),
        })
    }

    /// A text of `[settings]` in the `project.toml` of the operation's project; `None` if it is not there. It is
    /// read at each ask.
    ///
    /// # Errors
    /// The file is there and cannot be read, or the value is not a text.
    pub fn setting(&self, name: &str) -> Result<Option<String>, UdfError> {
        let frame = self.request(Method::SETTING, &name)?;
        Ok(Option::<&str>::decode(&frame)?.map(str::to_owned))
    }
}
