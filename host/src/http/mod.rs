//! HTTP/1.1 on the loopback interface.
//!
//! - [`router`] answers one request: guards, then the token, then the route. It knows no sockets, so tests call it
//!   in-process; [`serve`] puts it on a listener.
//! - `guard.rs` who may speak to us, `token.rs` the secret, `body.rs` sizes, `error.rs` refusals, `routes.rs` what
//!   there is, `hook.rs` the one route that others call, by its signature.
//!
//! Every reply but that of `/metrics` is JSON with the envelope, also a 404; none has a CORS header.

mod agent;
mod body;
mod error;
mod guard;
mod hook;
mod listen;
mod port_holder;
mod query;
mod request_id;
mod routes;
mod serve;
mod token;

use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, EXPECT, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Body;

use self::error::Failure;
pub(crate) use self::error::status;
use self::guard::Guard;
pub use self::listen::{Bound, bind, raise_open_files};
use self::routes::Found;
pub use self::serve::{Shutdown, serve};
pub use self::token::Token;
use crate::Host;

/// What the routes need.
#[derive(Debug)]
pub struct State {
    /// The port that clients name in `Host`.
    pub port: u16,
    /// The secret of this run.
    pub token: Token,
    /// The most bytes of a request body.
    pub body_limit: usize,
    /// The most bytes of a reply.
    pub reply_limit: usize,
    /// What answers; it may still be looking for its operations.
    pub host: Host,
}

/// Answers requests; cheap to clone.
#[derive(Debug, Clone)]
pub struct Router(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: State,
    guard: Guard,
}

/// A router for this state.
#[must_use]
pub fn router(state: State) -> Router {
    let guard = Guard::new(state.port);
    Router(Arc::new(Inner { state, guard }))
}

impl Router {
    /// Answers one request. Dropping the future cancels the call behind it.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body + Unpin,
        B::Data: Buf,
    {
        let (head, body) = request.into_parts();
        let id = request_id::of(&head.headers);
        let mut response = match self.answer(head, body, &id).await {
            Ok(response) => response,
            Err(failure) => {
                failure.log(&id);
                failure.into_response()
            }
        };
        response.headers_mut().insert(request_id::HEADER, id);
        response
    }

    async fn answer<B>(
        &self,
        head: Parts,
        body: B,
        id: &HeaderValue,
    ) -> Result<Response<Full<Bytes>>, Failure>
    where
        B: Body + Unpin,
        B::Data: Buf,
    {
        match self.admit(&head, !body.is_end_stream()) {
            Ok(Found { route, arguments }) => {
                let body = body::read(body, self.0.state.body_limit).await?;
                let incoming = routes::Incoming {
                    query: head.uri.query(),
                    headers: &head.headers,
                    body,
                    arguments,
                    id,
                };
                let body = (route.run)(&self.0.state, incoming).await?;
                let mut response = answer(StatusCode::OK, body);
                response.headers_mut().insert(CONTENT_TYPE, route.content_type());
                Ok(response)
            }
            Err(failure) if body.is_end_stream() => Err(failure),
            // It waits for our word before it sends a body: this is our word.
            Err(failure) if head.headers.contains_key(EXPECT) => Err(failure.closing()),
            Err(failure) => Err(if body::drain(body).await { failure } else { failure.closing() }),
        }
    }

    /// Guards, then the token, then the route: whoever fails an earlier one learns nothing of a later one.
    fn admit<'a>(&self, head: &'a Parts, has_body: bool) -> Result<Found<'a>, Failure> {
        let (path, query) = (head.uri.path(), head.uri.query());
        let may_have_body = has_body || !matches!(head.method, Method::GET | Method::HEAD);
        if hook::is_open(path, &self.0.state) {
            self.0.guard.check_forwarded(&head.headers, may_have_body)?;
            return routes::find(&head.method, path);
        }
        self.0.guard.check(&head.uri, &head.headers, may_have_body)?;
        if !routes::is_public(path) && !self.0.state.token.admits(query, &head.headers) {
            return Err(Failure::unauthorised());
        }
        routes::find(&head.method, path)
    }
}

/// A JSON answer.
fn answer(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
