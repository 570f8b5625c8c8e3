//! SQL over operations: `POST /api/exec/sql`, `POST /api/exec/widget`, `udf-host sql`.
//!
//! - [`lexer`] tells code from text, by the rules of the engine in use; [`refs`] and [`params`] are what
//!   it finds there.
//! - [`plan`] checks a statement and writes it down for the engine; nothing runs before all is well.
//! - [`Operations`] is what SQL asks of the dispatcher; [`table`] makes rows and typed columns of an answer.
//! - [`engine`] runs a statement: sqlite (part of the binary) or duckdb (opened at run time).
//! - [`places`] bounds how many requests are worked on at a time.
//! - [`widget`] does the same for all queries of a widget's configuration.
//!
//! Invariant: a value can never become code, and a reference in a text never runs.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub mod answer;
mod body;
pub mod cache;
mod dispatched;
pub mod engine;
pub mod error;
pub mod feed;
pub mod lexer;
pub mod limits;
pub mod operations;
pub mod params;
pub mod places;
pub mod plan;
pub mod refs;
pub(crate) mod shapes;
mod sources;
pub mod table;
pub mod widget;

pub use answer::Answer;
pub use dispatched::Dispatched;
pub use engine::{Engine, EngineName};
pub use error::{OperationFailure, SqlError};
pub use limits::Limits;
pub use operations::Operations;
pub use places::Place;

use crate::config::Config;
use cache::TableCache;
use engine::{Outcome, Query};
use feed::Feed;
use params::Params;
use places::Places;
use plan::{Planned, Scope};
use sources::Sources;

/// Bytes of tables that are kept between requests.
const KEPT_TABLES: usize = 128 << 20;

/// How long a request waits until it may run, if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs statements and widgets.
pub struct Sql {
    engine: Box<dyn Engine>,
    limits: Limits,
    kept: TableCache,
    pub(crate) shapes: shapes::Shapes,
    places: Arc<Places>,
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sql")
            .field("dialect", &self.engine.dialect())
            .field("limits", &self.limits)
            .finish()
    }
}

/// The address in a request's query: `workspace` and `project`.
#[derive(Debug, Clone, Copy)]
pub struct Addressed<'a> {
    /// The workspace.
    pub workspace: &'a str,
    /// The project.
    pub project: &'a str,
}

/// A statement with all that belongs to it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The statement.
    pub sql: String,
    /// Values of `$name`.
    pub params: Params,
    /// Arguments for every reference whose operation declares them.
    pub overrides: Params,
}

impl Sql {
    /// With the engine that was chosen.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, limits: Limits) -> Self {
        Self {
            engine,
            limits,
            kept: TableCache::new(KEPT_TABLES),
            shapes: shapes::Shapes::default(),
            places: Arc::new(Places::new(PATIENCE)),
        }
    }

    /// Waits until one more request may run; it may as long as it holds what this gives.
    ///
    /// # Errors
    /// [`SqlError::Overloaded`] when that took longer than a call may.
    pub async fn place(&self) -> Result<Place, SqlError> {
        Ok(self.places.take().await?)
    }

    /// With the engine and the limits of the configuration. Nothing is opened yet.
    #[must_use]
    pub fn of_config(config: &Config) -> Self {
        let limits = Limits { time: config.sql_timeout, ..Limits::default() };
        let engine: Box<dyn Engine> = match config.sql_engine {
            EngineName::Sqlite => Box::new(engine::sqlite::Sqlite),
            EngineName::DuckDb => {
                let library = engine::duckdb::install::library(
                    config.duckdb_lib_dir.as_deref(),
                    &config.cache_dir,
                );
                Box::new(engine::duckdb::DuckDb::new(library, limits.clone()))
            }
        };
        Self { places: Arc::new(Places::new(config.timeout)), ..Self::new(engine, limits) }
    }

    /// The reply to `POST /api/exec/sql` (the SQL contract §1): the whole body, as JSON.
    ///
    /// # Errors
    /// [`SqlError`], with the status that belongs to it.
    pub fn exec(
        &self,
        operations: &dyn Operations,
        at: Addressed<'_>,
        body: &[u8],
    ) -> Result<String, SqlError> {
        let (request, format) = body::statement(body)?;
        let answer = self.run(operations, at, &request)?;
        let mut out = String::with_capacity(answer.rows.len() + 256);
        out.push_str("{\"data\":");
        if format == body::Format::Table {
            out.push_str("{\"q0\":");
            answer.write(&mut out);
            out.push('}');
        } else {
            out.push_str(&answer.rows);
        }
        out.push_str(",\"error\":null}");
        Ok(out)
    }

    /// The reply to `POST /api/exec/widget` (the SQL contract §6): the whole body, as JSON.
    ///
    /// # Errors
    /// Only for a bad body or address; a query that fails is part of the reply.
    pub fn widget(
        &self,
        operations: &dyn Operations,
        at: Addressed<'_>,
        body: &[u8],
    ) -> Result<String, SqlError> {
        let body::WidgetRequest { config, params, only } = body::widget(body)?;
        addressed(operations, at)?;
        Ok(widget::Widget::new(config, params).run(self, operations, at, only.as_deref()).to_json())
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// [`SqlError`], with the status that belongs to it.
    pub fn run(
        &self,
        operations: &dyn Operations,
        at: Addressed<'_>,
        request: &Request,
    ) -> Result<Answer, SqlError> {
        addressed(operations, at)?;
        let planned = plan::plan(
            &request.sql,
            &Scope {
                operations,
                workspace: at.workspace,
                project: at.project,
                params: &request.params,
                overrides: &request.overrides,
                runners: &[],
                dialect: self.engine.dialect(),
            },
        )?;
        let mut sources = Sources::read(operations, &self.kept, planned.calls(), true);
        // All attempts together have the time of one.
        let mut spent = Duration::ZERO;
        loop {
            let began = Instant::now();
            let outcome = self.attempt(&planned, &sources, (None, spent))?;
            spent += began.elapsed();
            match outcome {
                Outcome::Answer(answer) => return Ok(answer),
                Outcome::WantsAll => {
                    for (_, source) in &planned.tables {
                        sources.fetch(operations, &self.kept, source, None);
                    }
                }
                Outcome::Wants(wants) => {
                    let (_, source) = planned.tables.get(wants.table).ok_or_else(unread)?;
                    sources.fetch(operations, &self.kept, source, wants.part);
                }
            }
        }
    }

    /// Runs a planned statement over what its sources answered, all of it.
    fn query(
        &self,
        planned: &Planned,
        sources: &Sources,
        keep: Option<usize>,
    ) -> Result<Answer, SqlError> {
        match self.attempt(planned, sources, (keep, Duration::ZERO))? {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Wants(_) | Outcome::WantsAll => Err(unread()),
        }
    }

    fn attempt(
        &self,
        planned: &Planned,
        sources: &Sources,
        (keep, spent): (Option<usize>, Duration),
    ) -> Result<Outcome, SqlError> {
        let tables = planned
            .tables
            .iter()
            .map(|(name, source)| Ok((name.clone(), sources.feed(source)?)))
            .collect::<Result<Vec<(String, Feed)>, SqlError>>()?;
        self.engine.run(&Query {
            sql: &planned.sql,
            tables: &tables,
            limits: &self.limits,
            keep,
            spent,
        })
    }
}

fn unread() -> SqlError {
    SqlError::Engine("a source of the statement was not read".to_owned())
}

/// Whether the addressed project exists.
pub(crate) fn addressed(operations: &dyn Operations, at: Addressed<'_>) -> Result<(), SqlError> {
    operations.project(at.workspace, at.project).map_err(|error| plan::absent(error, at.project))
}

#[cfg(test)]
mod tests;
