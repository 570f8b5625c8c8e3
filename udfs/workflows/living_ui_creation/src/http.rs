//! One request to a program on this machine: a health check, an import, a look at an app.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use sdk::HttpRequest;
use sdk::prelude::*;

use crate::app::url;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// As text; what is no UTF-8 is replaced.
    pub(crate) body: String,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// JSON; empty is none.
    pub(crate) body: &'a str,
    pub(crate) within: Duration,
}

/// Whether somebody listens on a port of this machine.
pub(crate) fn listens(port: u16) -> bool {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&here, Duration::from_secs(1)).is_ok()
}

/// Asks the program on this port.
///
/// # Errors
/// Nobody answers, or what comes is no HTTP; in words.
pub(crate) fn ask(ctx: &Context, port: u16, request: &Request<'_>) -> Result<Answer, String> {
    let Request { method, path, headers, body, within } = *request;
    let plain = |text: &str| !text.chars().any(|c| c.is_control() || c == ' ');
    // Whatever follows the port must be a path: `@elsewhere` would lead to another machine.
    if !path.starts_with('/') || !plain(path) || method.is_empty() || !plain(method) {
        return Err(format!(
            "`{method} {path}` is no request: a path starts with `/` and has no blanks"
        ));
    }
    // The program behind a port changes; a connection that is kept would lead to one that has ended.
    let mut sent =
        HttpRequest::new(method, format!("{}{path}", url(port))).header("connection", "close");
    for (name, value) in headers {
        sent = sent.header(name, *value);
    }
    if !body.is_empty() {
        sent = sent.header("content-type", "application/json");
        sent.body = body.as_bytes().to_vec();
    }
    sent.limit = within;
    let reply = ctx
        .http(&sent)
        .map_err(|error| format!("{method} {path} on port {port}: {}", error.message()))?;
    Ok(Answer {
        status: reply.status,
        content_type: reply.header("content-type").unwrap_or_default().to_owned(),
        body: String::from_utf8_lossy(&reply.body).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use sdk::testing::TestHost;

    use super::*;
    use crate::UDF;

    #[test]
    fn what_is_no_request_is_not_sent() {
        let host = TestHost::new();
        for (method, path) in [
            ("GET", "x"),
            ("GET", "@elsewhere/"),
            ("GET", "/a b"),
            ("GET", "/a\r\nX: y"),
            ("", "/"),
            ("G T", "/"),
        ] {
            let request =
                Request { method, path, headers: &[], body: "", within: Duration::from_secs(1) };
            let refused = ask(&host.context(UDF), 1, &request).unwrap_err();
            assert!(refused.contains("is no request"), "{method} {path}");
        }
    }
}
