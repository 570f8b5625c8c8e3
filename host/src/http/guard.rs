//! Who may speak to the host at all: checks that come before authentication.
//!
//! The host listens on loopback only, so the enemy is a web page in the user's own browser. A page reaches us by
//! a name it controls (DNS rebinding: caught by `Host`), by a cross-site request (caught by `Origin` and
//! `Sec-Fetch-Site`), or by a form that needs no preflight (caught by the content type). Each check compares whole
//! strings that were made once from the port: there is no prefix or suffix for a look-alike name to fit.

use http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use http::{StatusCode, Uri};

use super::error::Failure;

/// The names under which this host answers, rendered once when the port is known.
#[derive(Debug)]
pub(crate) struct Guard {
    authorities: Vec<String>,
    origins: Vec<String>,
}

/// What the header fields say about the sender.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// Names an `Origin` or a `Sec-Fetch-Site` (ours, or it would have been refused).
    Browser,
    /// Names neither, as programs do.
    Program,
}

impl Guard {
    /// A guard for a host that listens on `port` of the loopback addresses.
    pub(crate) fn new(port: u16) -> Guard {
        let mut authorities: Vec<String> = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .map(|name| format!("{name}:{port}"))
            .collect();
        if port == 80 {
            // The default port of the scheme is left out by clients.
            authorities.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        }
        let origins = authorities.iter().map(|authority| format!("http://{authority}")).collect();
        Guard { authorities, origins }
    }

    /// Refuses what no program on this machine would send to us: 403 for a foreign name, 415 for a body that a web
    /// page can post without asking.
    pub(crate) fn check(
        &self,
        target: &Uri,
        headers: &HeaderMap,
        has_body: bool,
    ) -> Result<(), Failure> {
        self.host(target, headers)?;
        let sender = self.sender(headers)?;
        if has_body { content_type(headers, sender) } else { Ok(()) }
    }

    /// As [`Guard::check`] for a route whose requests come through a tunnel or a proxy under whatever name that has:
    /// what browsers say of themselves still counts. Who sends, the route has to find out by itself.
    pub(crate) fn check_forwarded(
        &self,
        headers: &HeaderMap,
        has_body: bool,
    ) -> Result<(), Failure> {
        let sender = self.sender(headers)?;
        if has_body { content_type(headers, sender) } else { Ok(()) }
    }

    fn host(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(refused("the request needs exactly one Host header"));
        };
        if !self.is_own_authority(host.as_bytes()) {
            return Err(refused("the Host header is not an address of this host"));
        }
        // `GET http://other/…` names its server twice; both must be us.
        if let Some(authority) = target.authority()
            && (!self.is_own_authority(authority.as_str().as_bytes())
                || target.scheme_str().is_some_and(|scheme| scheme != "http"))
        {
            return Err(refused("the request target is not an address of this host"));
        }
        Ok(())
    }

    fn is_own_authority(&self, name: &[u8]) -> bool {
        self.authorities.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }

    fn sender(&self, headers: &HeaderMap) -> Result<Sender, Failure> {
        let mut sender = Sender::Program;
        for (seen, origin) in headers.get_all(ORIGIN).iter().enumerate() {
            if seen > 0 || !self.origins.iter().any(|own| own.as_bytes() == origin.as_bytes()) {
                return Err(refused("the Origin is not this host's own"));
            }
            sender = Sender::Browser;
        }
        for (seen, site) in headers.get_all("sec-fetch-site").iter().enumerate() {
            // `same-site` is another port of this machine: as foreign as any other page.
            if seen > 0 || !matches!(site.as_bytes(), b"same-origin" | b"none") {
                return Err(refused("cross-site requests are refused"));
            }
            sender = Sender::Browser;
        }
        Ok(sender)
    }
}

fn content_type(headers: &HeaderMap, sender: Sender) -> Result<(), Failure> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let Some(first) = types.next() else { return Ok(()) };
    let fits = types.next().is_none()
        && first.to_str().is_ok_and(|text| {
            let mut parts = text.split(';');
            let essence = parts.next().unwrap_or_default().trim();
            let utf8 = parts.all(|parameter| match parameter.trim().split_once('=') {
                Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
                    value.trim_matches('"').eq_ignore_ascii_case("utf-8")
                }
                _ => true,
            });
            // `curl -d` without a header says it sends a form; a browser that says so is sending one.
            let json = essence.eq_ignore_ascii_case("application/json")
                || (sender == Sender::Program
                    && essence.eq_ignore_ascii_case("application/x-www-form-urlencoded"));
            json && utf8
        });
    if fits {
        Ok(())
    } else {
        Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json in UTF-8",
        ))
    }
}

fn refused(message: &'static str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, message)
}
