//! [`Widget`]: all queries of a widget's configuration, planned and run together (the SQL contract §6).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::error::SqlError;
use super::lexer::Dialect;
use super::operations::Operations;
use super::params::Params;
use super::plan::{self, Planned, Runner, Scope};
use super::sources::{Sources, side_by_side};
use super::table::Table;
use super::{Addressed, Sql};

mod walk;

use walk::Walk;

/// Rows that a `sql-runner` keeps unless it says otherwise.
const RUNNER_ROWS: usize = 10_000;

/// A configuration whose queries have been found and stamped.
pub struct Widget {
    config: Value,
    queries: Vec<QueryAt>,
    runners: Vec<RunnerAt>,
    params: Params,
}

/// A query, and the `sql-runner`s around it.
struct QueryAt {
    id: String,
    sql: String,
    scope: Arc<[Runner]>,
}

/// A `sql-runner`, and those around it.
struct RunnerAt {
    name: String,
    sql: String,
    rows: usize,
    /// What stands under `maxRows` and is no number of rows.
    unfit: Option<Value>,
    scope: Arc<[Runner]>,
}

/// What a widget's queries gave.
pub struct Outcome {
    /// By query id, in walk order.
    pub answers: Vec<(String, Result<Answer, SqlError>)>,
    /// Which queries use a parameter.
    pub dep_map: Vec<(String, Vec<String>)>,
    /// The configuration with its stamps.
    pub config: Value,
    /// What the user should know.
    pub warnings: Vec<Value>,
}

impl Widget {
    /// Finds and stamps the queries; `params` win over the defaults in the configuration.
    #[must_use]
    pub fn new(config: Map<String, Value>, params: Params) -> Self {
        let mut config = Value::Object(config);
        let mut walk = Walk::default();
        walk.node(&mut config, &Arc::from([]));
        let Walk { queries, runners, mut defaults } = walk;
        defaults.extend(params);
        Self { config, queries, runners, params: defaults }
    }

    /// Whether there is no query in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Runs the queries, or just those in `only`.
    #[must_use]
    pub fn run(
        self,
        sql: &Sql,
        operations: &dyn Operations,
        at: Addressed<'_>,
        only: Option<&[String]>,
    ) -> Outcome {
        let dialect = sql.engine.dialect();
        let none = Params::new();
        let plan = |text: &str, runners: &[Runner]| {
            let (workspace, project) = (at.workspace, at.project);
            let scope = Scope {
                operations,
                workspace,
                project,
                params: &self.params,
                overrides: &none,
                runners,
                dialect,
            };
            plan::plan(text, &scope)
        };
        let only = only.map(|ids| ids.iter().map(String::as_str).collect::<HashSet<_>>());
        let wanted = self
            .queries
            .iter()
            .filter(|query| only.as_ref().is_none_or(|ids| ids.contains(query.id.as_str())))
            .map(|query| (query, plan(&query.sql, &query.scope)))
            .collect::<Vec<_>>();
        let mut runners = BTreeMap::new();
        let mut open = wanted
            .iter()
            .filter_map(|(_, p)| p.as_ref().ok())
            .flat_map(Planned::runners)
            .collect::<Vec<_>>();
        while let Some(id) = open.pop() {
            if let Entry::Vacant(unseen) = runners.entry(id) {
                let planned = plan(&self.runners[id].sql, &self.runners[id].scope);
                open.extend(planned.iter().flat_map(Planned::runners));
                unseen.insert(planned);
            }
        }
        // A query whose runner cannot run has that error: nothing is called for it. A runner can only
        // read those around it, which come before it.
        let mut broken = BTreeMap::new();
        for (id, planned) in &runners {
            let error = match planned {
                Ok(planned) => fault(planned, &broken).cloned(),
                Err(error) => Some(self.blame(*id, error.clone())),
            };
            broken.extend(error.map(|error| (*id, error)));
        }
        let ready = wanted.iter().map(|(_, planned)| planned).chain(runners.values()).flatten();
        let calls =
            ready.filter(|planned| fault(planned, &broken).is_none()).flat_map(Planned::calls);
        let mut sources = Sources::read(operations, &sql.kept, calls, false);
        let mut warnings = Vec::new();
        for (id, planned) in &runners {
            if let (Ok(planned), None) = (planned, broken.get(id)) {
                let outcome = self.runner(*id, planned, sql, &sources, &mut warnings);
                sources.add(*id, outcome);
            }
        }
        let at_a_time = std::thread::available_parallelism().map_or(1, Into::into);
        let answers = side_by_side(&wanted, at_a_time, |(query, planned)| {
            let outcome = match planned {
                Ok(planned) => match fault(planned, &broken) {
                    Some(error) => Err(error.clone()),
                    None => sql.query(planned, &sources, None),
                },
                Err(error) => Err(error.clone()),
            };
            (query.id.clone(), outcome)
        });
        let dep_map = self.dep_map(dialect);
        Outcome { answers, dep_map, config: self.config, warnings }
    }

    /// The error of a `sql-runner`, for those that read it.
    fn blame(&self, id: usize, error: SqlError) -> SqlError {
        let words = |message: String| {
            format!("the sql-runner `{}` failed: {message}", self.runners[id].name)
        };
        match error {
            SqlError::Refused(message) => SqlError::Refused(words(message)),
            SqlError::Unknown(message) => SqlError::Unknown(words(message)),
            SqlError::Engine(message) => SqlError::Engine(words(message)),
            other @ (SqlError::Timeout(_)
            | SqlError::Operation { .. }
            | SqlError::Overloaded(_)) => other,
        }
    }

    fn runner(
        &self,
        id: usize,
        planned: &Planned,
        sql: &Sql,
        sources: &Sources,
        warnings: &mut Vec<Value>,
    ) -> Result<Arc<Table>, SqlError> {
        let runner = &self.runners[id];
        let keep = (!plan::has_limit(&runner.sql, sql.engine.dialect())).then_some(runner.rows);
        if let (Some(unfit), Some(_)) = (&runner.unfit, keep) {
            warnings.push(json!({
                "type": "sql-runner",
                "props": ["maxRows"],
                "message": format!(
                    "`maxRows` of `{}` is {unfit}, which is no number of rows, so {} apply",
                    runner.name, runner.rows
                ),
            }));
        }
        let answer = sql.query(planned, sources, keep).map_err(|error| self.blame(id, error))?;
        if answer.cut {
            warnings.push(json!({
                "type": "sql-runner",
                "props": ["maxRows"],
                "message": format!(
                    "`{}` has more than {} rows and was cut there; totals over it are too small. Raise `maxRows`, or give its SQL a LIMIT",
                    runner.name, runner.rows
                ),
            }));
        }
        let table =
            Table::of_answer(&answer).map_err(|error| SqlError::refused(error.to_string()))?;
        Ok(Arc::new(table))
    }

    /// Parameter → the queries that use it, directly or through a `sql-runner`.
    fn dep_map(&self, dialect: Dialect) -> Vec<(String, Vec<String>)> {
        let mut map: Vec<(String, Vec<String>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for query in &self.queries {
            let mut used = plan::params_used(&query.sql, dialect);
            let mut seen = BTreeSet::new();
            let mut open = named(&query.sql, &query.scope, dialect);
            while let Some(id) = open.pop() {
                if seen.insert(id) {
                    let runner = &self.runners[id];
                    used.extend(plan::params_used(&runner.sql, dialect));
                    open.extend(named(&runner.sql, &runner.scope, dialect));
                }
            }
            for param in used {
                let at = *places.entry(param.clone()).or_insert(map.len());
                if at == map.len() {
                    map.push((param, Vec::new()));
                }
                if map[at].1.last() != Some(&query.id) {
                    map[at].1.push(query.id.clone());
                }
            }
        }
        map
    }
}

/// Why a statement cannot run: the fault of a `sql-runner` that it reads, directly or not.
fn fault<'a>(planned: &Planned, broken: &'a BTreeMap<usize, SqlError>) -> Option<&'a SqlError> {
    planned.runners().find_map(|id| broken.get(&id))
}

/// The `sql-runner`s in scope that a statement names.
fn named(sql: &str, scope: &[Runner], dialect: Dialect) -> Vec<usize> {
    let refs = plan::short_refs(sql, dialect);
    refs.iter()
        .filter_map(|name| Some(scope.iter().rev().find(|runner| runner.name == *name)?.id))
        .collect()
}

impl Outcome {
    /// The reply's body.
    #[must_use]
    pub fn to_json(&self) -> String {
        let size = self
            .answers
            .iter()
            .filter_map(|(_, a)| a.as_ref().ok())
            .map(|a| a.rows.len() + 256)
            .sum::<usize>();
        let mut out = String::with_capacity(size + 1024);
        let mut errors = Map::new();
        out.push_str("{\"data\":{");
        let mut first = true;
        for (id, outcome) in &self.answers {
            match outcome {
                Ok(answer) => {
                    if !first {
                        out.push(',');
                    }
                    first = false;
                    json_text::quote(id, &mut out);
                    out.push(':');
                    answer.write(&mut out);
                }
                Err(error) => drop(errors.insert(id.clone(), Value::String(error.to_string()))),
            }
        }
        let dep_map = self
            .dep_map
            .iter()
            .map(|(param, ids)| (param.clone(), json!(ids)))
            .collect::<Map<_, _>>();
        out.push_str("},\"errors\":");
        out.push_str(&Value::Object(errors).to_string());
        out.push_str(",\"depMap\":");
        out.push_str(&Value::Object(dep_map).to_string());
        out.push_str(",\"config\":");
        out.push_str(&self.config.to_string());
        out.push_str(",\"warnings\":");
        out.push_str(&Value::Array(self.warnings.clone()).to_string());
        out.push('}');
        out
    }
}

#[cfg(test)]
mod tests;
