//! [`Remote`]: a host that runs, over HTTP on this machine.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use json_text::{Json, Specials};
use serde_json::Value;

use super::visible;
use crate::envelope::REPLY_LIMIT;
use crate::error::HostError;

/// A host waits for the build of an operation that long at most, and then answers.
const LIMIT: Duration = Duration::from_secs(300);

/// Options that name a running host.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RemoteOptions {
    /// A running host, by the origin of its first line or a file with that line [env: UDF_HOST_ORIGIN]
    #[arg(long, global = true, value_name = "ORIGIN|FILE")]
    host: Option<String>,
    /// Its token, unless the file has it; the variable keeps it out of the process list [env: UDF_HOST_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
}

impl RemoteOptions {
    /// The host that flags or variables name, if they name one.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] for what names no host.
    pub(super) fn open(self) -> Result<Option<Remote>, HostError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let token = self.token.or_else(|| variable("UDF_HOST_TOKEN"));
        let Some(host) = self.host.or_else(|| variable("UDF_HOST_ORIGIN")) else { return Ok(None) };
        let (origin, token) = match handshake(&host)? {
            Some((origin, own)) => (origin, token.unwrap_or(own)),
            None => (host, token.unwrap_or_default()),
        };
        Remote::new(&origin, &token).map(Some)
    }
}

/// Origin and token of a file that holds a host's first line; none when the text is the name of no file.
fn handshake(host: &str) -> Result<Option<(String, String)>, HostError> {
    if host.contains("://") || !Path::new(host).is_file() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(host).map_err(|error| HostError::io("read", host, &error))?;
    let line = text.lines().next().unwrap_or_default();
    let field = |name: &str| {
        let json = Json::parse(line, Specials::Refuse).ok()?;
        Some(json.get(name)?.as_str()?.into_owned())
    };
    field("origin").zip(field("token")).map(Some).ok_or_else(|| HostError::BadRequest {
        message: format!("`{host}` does not hold the first line of a host: {{\"origin\", \"port\", \"token\", \"pid\"}}"),
    })
}

/// A running host.
pub(super) struct Remote {
    agent: ureq::Agent,
    origin: String,
    token: String,
}

impl Remote {
    /// The host whose handshake line gave `origin` and `token`.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] for an origin that is not `http://HOST:PORT`, or an empty token.
    pub(super) fn new(origin: &str, token: &str) -> Result<Self, HostError> {
        let bad = |message: String| HostError::BadRequest { message };
        let origin = origin.trim().trim_end_matches('/');
        let plain = origin
            .strip_prefix("http://")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']));
        if !plain {
            return Err(bad(format!(
                "`{origin}` is no origin of a host, nor a file with its first line: write it as `http://127.0.0.1:PORT`"
            )));
        }
        let token = token.trim();
        if token.is_empty() || token.chars().any(char::is_control) {
            return Err(bad("a running host needs its token: give the one of its first line as `--token` or UDF_HOST_TOKEN".to_owned()));
        }
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT))
            .max_redirects(0)
            .proxy(None)
            .build();
        Ok(Self { agent: agent.into(), origin: origin.to_owned(), token: token.to_owned() })
    }

    /// The envelope of a GET that went well.
    ///
    /// # Errors
    /// [`HostError::Remote`]: the error that the host answered, or that there is none.
    pub(super) fn get(&self, route: &str) -> Result<Vec<u8>, HostError> {
        let request = self.agent.get(format!("{}{route}", self.origin));
        self.judge(request.header("Authorization", self.bearer()).call())
    }

    /// The data of a GET that went well.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub(super) fn data(&self, route: &str) -> Result<Value, HostError> {
        let envelope = self.get(route)?;
        let mut envelope: Value =
            serde_json::from_slice(&envelope).map_err(|error| HostError::Internal {
                message: "the host's answer cannot be read".to_owned(),
                detail: error.to_string(),
            })?;
        Ok(envelope["data"].take())
    }

    /// The envelope of a POST that went well.
    ///
    /// # Errors
    /// As [`Remote::get`].
    pub(super) fn post(&self, route: &str, body: &str) -> Result<Vec<u8>, HostError> {
        let request = self.agent.post(format!("{}{route}", self.origin));
        let request = request.header("Authorization", self.bearer());
        self.judge(request.header("Content-Type", "application/json").send(body))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn judge(
        &self,
        sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Vec<u8>, HostError> {
        let read = sent.and_then(|mut response| {
            let mut reply = Vec::new();
            // One byte more than a host sends, so that a stranger on that port cannot fill the memory.
            let limit = REPLY_LIMIT as u64 + (1 << 10);
            response.body_mut().as_reader().take(limit).read_to_end(&mut reply)?;
            Ok((response.status().as_u16(), reply))
        });
        let (status, reply) = read.map_err(|error| self.error(None, &error.to_string()))?;
        match envelope(&reply) {
            Some(Ok(())) if status == 200 => Ok(reply),
            Some(Err(message)) => Err(self.error(Some(status), &message)),
            _ => Err(self.error(Some(status), "what answers there is no udf-host")),
        }
    }

    fn error(&self, status: Option<u16>, message: &str) -> HostError {
        let message = visible::cut(message, 2000);
        HostError::Remote { origin: self.origin.clone(), status, message }
    }
}

/// Whether the envelope holds data, or its error; `None` if it is no envelope.
fn envelope(reply: &[u8]) -> Option<Result<(), String>> {
    let json = Json::parse(std::str::from_utf8(reply).ok()?, Specials::Refuse).ok()?;
    let error = json.get("error")?;
    json.get("data")?;
    Some(if error.is_null() {
        Ok(())
    } else {
        Err(error.as_str().unwrap_or_default().into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_origin_and_a_token_lead_to_a_host() {
        for (origin, token, want) in [
            ("http://127.0.0.1:7", "t", None),
            (" http://127.0.0.1:7/ ", " t\n", None),
            ("http://[::1]:7", "t", None),
            ("127.0.0.1:7", "t", Some("no origin")),
            ("https://127.0.0.1:7", "t", Some("no origin")),
            ("http://", "t", Some("no origin")),
            ("http://127.0.0.1:7/api", "t", Some("no origin")),
            ("http://u@127.0.0.1:7", "t", Some("no origin")),
            ("http://127.0.0.1:7", " ", Some("needs its token")),
            ("http://127.0.0.1:7", "a\nb", Some("needs its token")),
        ] {
            match (Remote::new(origin, token), want) {
                (Ok(_), None) => {}
                (Err(error), Some(want)) => assert!(error.to_string().contains(want), "{error}"),
                (made, want) => panic!("{origin} {token:?}: {:?}, wanted {want:?}", made.err()),
            }
        }
    }

    #[test]
    fn a_file_with_the_first_line_names_origin_and_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("handshake.json");
        let name = file.to_str().unwrap();
        assert_eq!(handshake(name).unwrap(), None, "no file of that name");
        let put = |text: &str| {
            #[expect(clippy::disallowed_methods, reason = "a test's own file")]
            std::fs::write(&file, text).unwrap();
        };
        put("{\"origin\":\"http://127.0.0.1:7\",\"port\":7,\"token\":\"t\",\"pid\":1}\n");
        let found = ("http://127.0.0.1:7".to_owned(), "t".to_owned());
        assert_eq!(handshake(name).unwrap(), Some(found));
        for text in ["", "{\"origin\":\"x\"}\n", "text\n"] {
            put(text);
            let error = handshake(name).unwrap_err().to_string();
            assert!(error.contains("first line of a host"), "{text:?}: {error}");
        }
    }

    #[test]
    fn an_envelope_is_told_from_anything_else() {
        for (reply, want) in [
            (&b"{\"data\":[1],\"error\":null}"[..], Some(Ok(()))),
            (b"{\"data\":null,\"error\":\"no\"}", Some(Err("no".to_owned()))),
            (b"{\"ok\":true}", None),
            (b"<html>", None),
            (b"\xff", None),
            (b"", None),
        ] {
            assert_eq!(envelope(reply), want);
        }
    }
}
