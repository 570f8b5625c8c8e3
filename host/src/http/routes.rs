//! What there is to ask for: one line for each route, one function behind it.
//!
//! Guards, token, method and body are dealt with before a function here runs; it gets the query, the body and the
//! parts of the path, and returns the whole envelope as bytes.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use serde::Serialize;

use super::State;
use super::agent;
use super::error::Failure;
use super::hook;
use super::query;
use crate::Host;
use crate::dispatch::{Call, CancelFlag};
use crate::envelope::{self, UdfRequest, qualify};
use crate::error::HostError;
use crate::metrics;
use crate::plugins::{Address, EntryView, Problem, Progress};
use crate::sql::{Addressed, Dispatched, Operations, Sql, SqlError};

/// How long a look at the catalog waits for the folders to be walked after a start.
const DISCOVERY: Duration = Duration::from_secs(10);

/// The one answer that is no JSON.
const METRICS: &str = "/metrics";

/// All routes. `{}` stands for one part of the path.
static ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/health",
        run: |state, incoming| Box::pin(health(state, incoming)),
    },
    Route {
        verb: Verb::Post,
        path: "/api/exec/udf",
        run: |state, incoming| Box::pin(exec_udf(state, incoming)),
    },
    Route {
        verb: Verb::Post,
        path: "/api/exec/sql",
        run: |state, incoming| Box::pin(exec_sql(state, incoming, Sql::exec)),
    },
    Route {
        verb: Verb::Post,
        path: "/api/exec/widget",
        run: |state, incoming| Box::pin(exec_sql(state, incoming, Sql::widget)),
    },
    Route {
        verb: Verb::Get,
        path: "/api/udfs",
        run: |state, incoming| Box::pin(list(state, incoming)),
    },
    Route {
        verb: Verb::Get,
        path: "/api/udfs/{}/{}/{}",
        run: |state, incoming| Box::pin(describe(state, incoming)),
    },
    Route {
        verb: Verb::Get,
        path: METRICS,
        run: |state, _| Box::pin(async { Ok(metrics::render(&state.host).into_bytes()) }),
    },
    Route {
        verb: Verb::Post,
        path: hook::PATH,
        run: |state, incoming| Box::pin(hook::receive(state, incoming)),
    },
    Route {
        verb: Verb::Post,
        path: "/api/agent/message",
        run: |state, incoming| Box::pin(agent::message(state, incoming)),
    },
    Route {
        verb: Verb::Get,
        path: "/api/agent/tasks",
        run: |state, incoming| Box::pin(agent::tasks(state, incoming)),
    },
    Route {
        verb: Verb::Get,
        path: "/api/agent/tasks/{}",
        run: |state, incoming| Box::pin(agent::task(state, incoming)),
    },
];

/// One route.
pub(crate) struct Route {
    verb: Verb,
    path: &'static str,
    pub(crate) run: Handler,
}

impl Route {
    /// What its answers are.
    pub(crate) fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(if self.path == METRICS {
            metrics::CONTENT_TYPE
        } else {
            "application/json"
        })
    }
}

/// Answers with the whole envelope. The box is one small allocation; it lets the table above be data.
type Handler = for<'a> fn(
    &'a State,
    Incoming<'a>,
) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, Failure>> + Send + 'a>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// `GET`, and `HEAD` for the same without a body.
    Get,
    Post,
}

/// A request that may be answered.
pub(crate) struct Incoming<'a> {
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    /// What stands for the `{}` of the route, decoded.
    pub(crate) arguments: Vec<Cow<'a, str>>,
    pub(crate) id: &'a HeaderValue,
}

/// The route of a path, and what its `{}` stand for.
pub(crate) struct Found<'a> {
    pub(crate) route: &'static Route,
    pub(crate) arguments: Vec<Cow<'a, str>>,
}

/// Whether anybody on this machine may ask.
pub(crate) fn is_public(path: &str) -> bool {
    path == "/health"
}

/// 404 for an unknown path, 405 for a method that the path does not have.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Found<'a>, Failure> {
    let (route, arguments) = ROUTES
        .iter()
        .find_map(|route| Some((route, arguments(route.path, path)?)))
        .ok_or_else(|| Failure::new(http::StatusCode::NOT_FOUND, "there is no such route"))?;
    match route.verb {
        Verb::Get if method == Method::GET || method == Method::HEAD => {
            Ok(Found { route, arguments })
        }
        Verb::Post if method == Method::POST => Ok(Found { route, arguments }),
        Verb::Get => Err(Failure::method("GET, HEAD")),
        Verb::Post => Err(Failure::method("POST")),
    }
}

fn arguments<'a>(pattern: &str, path: &'a str) -> Option<Vec<Cow<'a, str>>> {
    if pattern == path {
        return Some(Vec::new());
    }
    let mut arguments = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected == "{}" {
            arguments.push(percent_encoding::percent_decode_str(part).decode_utf8().ok()?);
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(arguments)
}

impl Incoming<'_> {
    /// The value of a query parameter; 400 when it is given twice.
    pub(super) fn parameter<'b>(
        &'b self,
        name: &'b str,
    ) -> Result<Option<Cow<'b, str>>, HostError> {
        let mut values = query::values(self.query, name);
        let value = values.next();
        match values.next() {
            Some(_) => {
                Err(HostError::BadRequest { message: format!("`{name}` is in the query twice") })
            }
            None => Ok(value),
        }
    }
}

async fn health(_: &State, _: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    Ok(br#"{"ok":true}"#.to_vec())
}

async fn exec_udf(state: &State, incoming: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let UdfRequest { udf, overrides } = UdfRequest::parse(&incoming.body)?;
    let (workspace, project) = (incoming.parameter("workspace")?, incoming.parameter("project")?);
    let (workspace, project, op) = qualify(&udf, workspace.as_deref(), project.as_deref())?;
    let (params, app_dir) = envelope::split_app_dir(overrides);
    let call = Call {
        address: Address::new(workspace, project, op),
        params,
        app_dir,
        request_id: incoming.id.to_str().unwrap_or_default().to_owned(),
        deadline: None,
        cancel: CancelFlag::default(),
        reading: None,
    };
    let reply = state.host.dispatcher.call_async(call).await.map_err(Failure::of_call)?;
    Ok(envelope::render_reply(&reply, state.reply_limit)?)
}

/// What a statement or a widget answers.
type Answer = fn(&Sql, &dyn Operations, Addressed<'_>, &[u8]) -> Result<String, SqlError>;

async fn exec_sql(
    state: &State,
    incoming: Incoming<'_>,
    answer: Answer,
) -> Result<Vec<u8>, Failure> {
    let parameter = |name| {
        incoming.parameter(name)?.filter(|value| !value.is_empty()).map(Cow::into_owned).ok_or_else(
            || HostError::BadRequest {
                message: format!(
                    "`{name}` is missing: address a project with `?workspace=…&project=…`"
                ),
            },
        )
    };
    let (workspace, project) = (parameter("workspace")?, parameter("project")?);
    let (host, body) = (state.host.clone(), incoming.body.clone());
    let id = incoming.id.to_str().unwrap_or_default().to_owned();
    let place = host.sql.place().await.map_err(HostError::from)?;
    let job = move || {
        let at = Addressed { workspace: &workspace, project: &project };
        answer(&host.sql, &Dispatched::new(&host, &id).at(&place), at, &body)
    };
    let text = tokio::task::spawn_blocking(job).await.map_err(|join| HostError::Internal {
        message: "the statement ended without a result".to_owned(),
        detail: join.to_string(),
    })?;
    Ok(text.map_err(HostError::from)?.into_bytes())
}

#[derive(Serialize)]
struct List {
    udfs: Vec<EntryView>,
    problems: Vec<Problem>,
    progress: Progress,
}

async fn list(state: &State, _: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    let catalog = &state.host.catalog;
    discovered(&state.host).await;
    data(&List { udfs: catalog.list(), problems: catalog.problems(), progress: catalog.progress() })
}

#[derive(Serialize)]
struct Description<'a> {
    #[serde(flatten)]
    view: EntryView,
    spec: &'a str,
}

async fn describe(state: &State, incoming: Incoming<'_>) -> Result<Vec<u8>, Failure> {
    discovered(&state.host).await;
    let [workspace, project, op] = &incoming.arguments[..] else {
        return Err(Failure::new(http::StatusCode::NOT_FOUND, "there is no such route"));
    };
    let entry = state.host.catalog.find(workspace, project, op)?;
    data(&Description { view: entry.view(), spec: &entry.spec })
}

async fn discovered(host: &Host) {
    let mut progress = host.catalog.subscribe();
    // What is there by then is shown; `progress` in the answer says that more may come.
    let _late =
        tokio::time::timeout(DISCOVERY, progress.wait_for(|progress| progress.discovered)).await;
}

pub(super) fn data(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let text = serde_json::to_string(value).map_err(|error| HostError::Internal {
        message: "cannot render the answer".to_owned(),
        detail: error.to_string(),
    })?;
    Ok(envelope::render_data(&text))
}
