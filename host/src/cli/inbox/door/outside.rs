//! [`Outside`]: a host that runs, over HTTP on this machine.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use json_text::{Json, Specials, quote};

use super::super::super::visible;
use super::{Door, WORKSPACE};
use crate::envelope::REPLY_LIMIT;
use crate::error::HostError;

/// A host waits for the build of an operation that long at most, and then answers.
const LIMIT: Duration = Duration::from_secs(300);

/// A running host.
pub(in super::super) struct Outside {
    agent: ureq::Agent,
    origin: String,
    token: String,
    /// Goes with every call.
    app_dir: Option<String>,
}

impl Outside {
    /// For the host whose handshake line gave `origin` and `token`. With `app_dir`, its operations work there.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] for an origin that is not `http://HOST:PORT`, or an empty token.
    pub(in super::super) fn new(
        origin: &str,
        token: &str,
        app_dir: Option<&Path>,
    ) -> Result<Self, HostError> {
        let bad = |message: String| HostError::BadRequest { message };
        let origin = origin.trim().trim_end_matches('/');
        let plain = origin
            .strip_prefix("http://")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']));
        if !plain {
            return Err(bad(format!(
                "`{origin}` is no origin of a host: write it as `http://127.0.0.1:PORT`"
            )));
        }
        let token = token.trim();
        if token.is_empty() || token.chars().any(char::is_control) {
            return Err(bad("a running host needs its token: give the one of its first line as `--token` or UDF_HOST_TOKEN".to_owned()));
        }
        let app_dir = app_dir
            .map(std::path::absolute)
            .transpose()
            .map_err(|error| bad(format!("`--app-dir`: {error}")))?;
        let app_dir = app_dir.map(|dir| {
            dir.to_str()
                .map(str::to_owned)
                .ok_or_else(|| bad("`--app-dir` is not UTF-8".to_owned()))
        });
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT))
            .max_redirects(0)
            .proxy(None)
            .build();
        Ok(Self {
            agent: agent.into(),
            origin: origin.to_owned(),
            token: token.to_owned(),
            app_dir: app_dir.transpose()?,
        })
    }

    fn post(&self, project: &str, body: &str) -> Result<(u16, Vec<u8>), ureq::Error> {
        let url = format!("{}/api/exec/udf?workspace={WORKSPACE}&project={project}", self.origin);
        let request =
            self.agent.post(&url).header("Authorization", format!("Bearer {}", self.token));
        let mut response = request.header("Content-Type", "application/json").send(body)?;
        let mut reply = Vec::new();
        // One byte more than a host sends, so that a stranger on that port cannot fill the memory.
        let limit = REPLY_LIMIT as u64 + (1 << 10);
        response.body_mut().as_reader().take(limit).read_to_end(&mut reply)?;
        Ok((response.status().as_u16(), reply))
    }

    fn error(&self, status: Option<u16>, message: &str) -> HostError {
        let message = visible::cut(message, 2000);
        HostError::Remote { origin: self.origin.clone(), status, message }
    }
}

impl Door for Outside {
    fn call(&self, project: &str, op: &str, params: &[(&str, &str)]) -> Result<String, HostError> {
        let given =
            params.iter().copied().chain(self.app_dir.as_deref().map(|dir| ("app_dir", dir)));
        let sent = self.post(project, &body(op, given));
        let (status, reply) = sent.map_err(|error| self.error(None, &error.to_string()))?;
        match envelope(&reply) {
            Some(Ok(())) if status == 200 => super::data(reply),
            Some(Err(message)) => Err(self.error(Some(status), &message)),
            _ => Err(self.error(Some(status), "what answers there is no udf-host")),
        }
    }

    fn stamp(&self) -> Option<u64> {
        None
    }
}

/// `{"udf":…,"overrides":{…}}`.
fn body<'a>(op: &str, params: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut body = String::from("{\"udf\":");
    quote(op, &mut body);
    body.push_str(",\"overrides\":{");
    for (at, (name, value)) in params.enumerate() {
        if at > 0 {
            body.push(',');
        }
        quote(name, &mut body);
        body.push(':');
        quote(value, &mut body);
    }
    body.push_str("}}");
    body
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
            match (Outside::new(origin, token, None), want) {
                (Ok(_), None) => {}
                (Err(error), Some(want)) => assert!(error.to_string().contains(want), "{error}"),
                (made, want) => panic!("{origin} {token:?}: {:?}, wanted {want:?}", made.err()),
            }
        }
    }

    #[test]
    fn a_body_quotes_everything() {
        let params = [("id", "a\"b\n"), ("result", "{\"text\":\"é\"}")];
        let body = body("resolve_card", params.into_iter());
        assert_eq!(
            body,
            r#"{"udf":"resolve_card","overrides":{"id":"a\"b\n","result":"{\"text\":\"é\"}"}}"#
        );
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
