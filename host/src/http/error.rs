//! A refusal as a status and an envelope.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

use super::answer;
use crate::envelope;
use crate::error::HostError;
use crate::logging::CALL_TARGET;

/// A request that gets no result: status and the sentence for the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    message: Cow<'static, str>,
    allow: Option<&'static str>,
    closing: bool,
    logged: bool,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure { status, message: message.into(), allow: None, closing: false, logged: false }
    }

    /// 401 with its challenge.
    pub(crate) fn unauthorised() -> Failure {
        Failure::new(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: send the one of the handshake line as `?t=` or `Authorization: Bearer`",
        )
    }

    /// 405; `allow` lists the methods that the route has.
    pub(crate) fn method(allow: &'static str) -> Failure {
        Failure {
            allow: Some(allow),
            ..Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("use {} here", allow.replace(", ", " or ")),
            )
        }
    }

    /// The same refusal, after which the connection cannot be used again.
    pub(crate) fn closing(self) -> Failure {
        Failure { closing: true, ..self }
    }

    /// The failure of a call, which dispatch has logged.
    pub(crate) fn of_call(error: HostError) -> Failure {
        Failure { logged: true, ..Failure::from(error) }
    }

    /// The log line of a request that never became a call. No address: a token could stand in it.
    pub(crate) fn log(&self, request: &HeaderValue) {
        if !self.logged {
            let outcome = self.status.as_str();
            let request = request.to_str().unwrap_or_default();
            tracing::info!(target: CALL_TARGET, outcome, request, "refused");
        }
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = answer(self.status, envelope::render_error(&self.message));
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"udf-host\""));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.closing {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        let message = match &error {
            // These name files of the host's own: the log has them.
            HostError::Config { .. } | HostError::PortTaken { .. } | HostError::Io { .. } => {
                tracing::error!(error = %error, "a request failed");
                Cow::Borrowed("internal error: the host's log says more")
            }
            _ => Cow::Owned(error.to_string()),
        };
        Failure::new(status(&error), message)
    }
}

/// The one place where a status is chosen for what went wrong behind the routes.
pub(crate) fn status(error: &HostError) -> StatusCode {
    match error {
        HostError::Sql(error) => {
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        HostError::BadRequest { .. } | HostError::BadParameter { .. } => StatusCode::BAD_REQUEST,
        HostError::UnknownWorkspace { .. }
        | HostError::UnknownProject { .. }
        | HostError::UnknownOp { .. }
        | HostError::UnknownName { .. } => StatusCode::NOT_FOUND,
        HostError::Raised { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        HostError::Panicked { .. }
        | HostError::Crashed { .. }
        | HostError::Undeclared { .. }
        | HostError::Refused { .. }
        | HostError::Internal { .. }
        | HostError::Config { .. }
        | HostError::PortTaken { .. }
        | HostError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        HostError::Overloaded { .. } | HostError::Cancelled { .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        HostError::Remote { .. } => StatusCode::BAD_GATEWAY,
        HostError::Timeout { .. } | HostError::StillBuilding { .. } => StatusCode::GATEWAY_TIMEOUT,
    }
}
