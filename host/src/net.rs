//! Requests over HTTP for operations that declare `net`: sent once, answered whole, redirects left to the operation,
//! which alone knows whom it may show its secrets to.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sdk::wire::{HttpAnswer, HttpAsk, Wire};
use sdk::{ErrorKind, UdfError};

/// Bytes of an answer that are read. A page of a hundred comments of the longest kind has 25 MiB.
const ANSWER_LIMIT: u64 = 32 << 20;

/// Sends it and gives the frame of the answer; whatever status it has.
pub(crate) fn send(ask: &HttpAsk<'_>, deadline: Instant) -> Result<Vec<u8>, UdfError> {
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = Duration::from_millis(ask.limit_ms).min(left);
    if limit.is_zero() {
        return Err(UdfError::new(ErrorKind::Timeout, "no time is left for a request"));
    }
    let mut request = ureq::http::Request::builder().method(ask.method).uri(ask.url);
    for (name, value) in &ask.headers {
        request = request.header(*name, *value);
    }
    let began = Instant::now();
    // Names a header or an address of the operation's; neither is repeated, as both may hold a secret.
    let request = request
        .body(ask.body)
        .map_err(|_| UdfError::raised("the request has an address or header that cannot be one"))?;
    let host = request.uri().host().unwrap_or_default().to_owned();
    let request = agent().configure_request(request).timeout_global(Some(limit));
    // A proxy is for other machines.
    let is_here = matches!(host.as_str(), "127.0.0.1" | "localhost" | "[::1]" | "::1");
    let request = if is_here { request.proxy(None) } else { request };
    let request = request.build();
    let outcome = agent().run(request).and_then(|mut response| {
        let body = response.body_mut().with_config().limit(ANSWER_LIMIT).read_to_vec()?;
        Ok((response, body))
    });
    let (response, body) = outcome.map_err(|error| {
        let ms = began.elapsed().as_millis();
        tracing::info!(target: "udf_host::net", host, ms, outcome = "failed");
        UdfError::raised(format!("no answer of {host}: {error}"))
    })?;
    let status = response.status().as_u16();
    let ms = began.elapsed().as_millis();
    tracing::info!(target: "udf_host::net", host, ms, status);
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    Ok(HttpAnswer { status: status.into(), headers, body: &body }.encode())
}

/// One for all: it keeps connections open for the next request.
fn agent() -> &'static ureq::Agent {
    static AGENT: OnceLock<ureq::Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("udf-host/", env!("CARGO_PKG_VERSION")))
            .build()
            .into()
    })
}
