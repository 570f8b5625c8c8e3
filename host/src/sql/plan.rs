//! From a statement as written to one that an engine can run: references checked and replaced by
//! table names, parameters put in. Runs nothing (the SQL contract §2, order of work).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::error::{SqlError, names};
use super::lexer::{Dialect, Piece, split};
use super::operations::{Arguments, Filter, LookupError, OpAddress, Operations, Signature};
use super::params::{self, Params};
use super::refs::{Part, Ref};
use super::table::Declared;

/// Where a statement stands.
pub struct Scope<'a> {
    /// The operations there are.
    pub operations: &'a dyn Operations,
    /// The addressed workspace.
    pub workspace: &'a str,
    /// The addressed project.
    pub project: &'a str,
    /// Values of `$name`.
    pub params: &'a Params,
    /// Arguments for every reference whose operation declares them.
    pub overrides: &'a Params,
    /// The `sql-runner`s around it, outermost first: their names.
    pub runners: &'a [Runner],
    /// Whose rules hold.
    pub dialect: Dialect,
}

/// A table of a widget that is named like an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// `{{name}}`.
    pub name: String,
    /// Which `sql-runner` of the widget it is.
    pub id: usize,
}

/// A statement that an engine can run once its sources have rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The SQL.
    pub sql: String,
    /// Its tables: the name in the SQL, and where the rows come from. No source twice.
    pub tables: Vec<(String, Source)>,
}

/// A call with all its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// The operation.
    pub address: OpAddress,
    /// Its arguments, parameters put in.
    pub args: Arguments,
    /// The columns that the operation declares.
    pub columns: Vec<Declared>,
    /// Parameters that could still filter the rows.
    pub filters: Vec<Filter>,
}

/// Where rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A call; equal ones are one call.
    Call(Call),
    /// A `sql-runner` of the widget.
    Runner(usize),
}

/// Checks a statement and writes it down for the engine.
///
/// # Errors
/// Everything that can be known before anything runs.
pub fn plan(sql: &str, scope: &Scope<'_>) -> Result<Planned, SqlError> {
    let (pieces, outcome) = split(sql, scope.dialect);
    outcome?;
    let mut sources: HashMap<Source, usize> = HashMap::new();
    let mut unused: BTreeSet<&str> = scope.overrides.keys().map(String::as_str).collect();
    let mut declared = BTreeSet::new();
    // First the references, so that the message about one does not depend on parameters.
    let mut places = Vec::new();
    for piece in &pieces {
        if let Piece::Ref(reference) = piece {
            let source = resolve(reference, scope, &mut unused, &mut declared)?;
            let next = sources.len();
            places.push(*sources.entry(source).or_insert(next));
        }
    }
    if let Some(key) = unused.first() {
        return Err(SqlError::refused(format!(
            "the override `{key}` is no parameter of any referenced operation; declared: {}",
            names(declared)
        )));
    }
    let prefix = free_prefix(sql, scope.params);
    let name = |place: usize| format!("{prefix}{place}");
    let mut out = String::with_capacity(sql.len() + 64);
    let mut places = places.into_iter();
    for piece in &pieces {
        match piece {
            Piece::Code(text) | Piece::Quoted(text) | Piece::Comment(text) => out.push_str(text),
            Piece::Blank => out.push(' '),
            Piece::Param(name, quoting) => params::write(scope.params, name, *quoting, &mut out)?,
            Piece::Ref(_) => {
                out.push_str(&format!(" {} ", name(places.next().unwrap_or_default())))
            }
        }
    }
    let mut sources = sources.into_iter().collect::<Vec<_>>();
    sources.sort_unstable_by_key(|(_, place)| *place);
    let tables = sources.into_iter().map(|(source, place)| (name(place), source)).collect();
    Ok(Planned { sql: out, tables })
}

/// The names of the parameters that a statement uses, each once, by first appearance. Of a malformed
/// statement those before the fault.
pub fn params_used(sql: &str, dialect: Dialect) -> Vec<String> {
    let (pieces, _) = split(sql, dialect);
    let mut seen = HashSet::new();
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if seen.insert(name.to_owned()) {
            found.push(name.to_owned());
        }
    };
    for piece in &pieces {
        match piece {
            Piece::Param(name, _) => add(name),
            Piece::Ref(reference) => {
                for part in reference.args.iter().flat_map(|arg| &arg.value) {
                    if let Part::Param(name) = part {
                        add(name);
                    }
                }
            }
            Piece::Code(_) | Piece::Blank | Piece::Quoted(_) | Piece::Comment(_) => {}
        }
    }
    found
}

/// The one-word names that a statement references: `sql-runner`s, if there are such.
pub fn short_refs(sql: &str, dialect: Dialect) -> Vec<String> {
    let (pieces, _) = split(sql, dialect);
    let short = pieces.iter().filter_map(|piece| match piece {
        Piece::Ref(reference) if !reference.name.contains('.') => Some(reference.name.to_owned()),
        _ => None,
    });
    short.collect()
}

/// Whether a statement limits its own rows: the word LIMIT outside of all parentheses.
pub fn has_limit(sql: &str, dialect: Dialect) -> bool {
    let mut depth = 0_i64;
    for piece in split(sql, dialect).0 {
        let Piece::Code(text) = piece else { continue };
        let mut word = String::new();
        for c in text.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '_' || c == '$' {
                word.push(c);
                continue;
            }
            if depth == 0
                && (word.eq_ignore_ascii_case("limit") || word.eq_ignore_ascii_case("fetch"))
            {
                return true;
            }
            word.clear();
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
        }
    }
    false
}

/// Why an address leads nowhere, as an error.
pub fn absent(error: LookupError, name: &str) -> SqlError {
    match error {
        LookupError::Absent { what, known } => {
            SqlError::Unknown(format!("unknown endpoint `{name}`; {what}: {}", names(known)))
        }
        LookupError::Failed(failure) => SqlError::Operation { name: name.to_owned(), failure },
    }
}

fn resolve<'a>(
    reference: &Ref<'a>,
    scope: &Scope<'_>,
    unused: &mut BTreeSet<&str>,
    declared: &mut BTreeSet<String>,
) -> Result<Source, SqlError> {
    let name = reference.name;
    let (address, signature) = match runner(reference, scope)? {
        Found::Runner(id) => return Ok(Source::Runner(id)),
        Found::Op(address, signature) => (address, signature),
    };
    if signature.writes {
        return Err(SqlError::refused(format!(
            "`{name}` changes data and cannot be read in SQL; call it by itself"
        )));
    }
    let declares =
        |key: &str| key == "app_dir" || signature.params.iter().any(|param| param == key);
    let mut args = Arguments::new();
    for arg in &reference.args {
        if !declares(arg.key) {
            return Err(SqlError::refused(format!(
                "`{name}` has no parameter `{}`; it has: {}",
                arg.key,
                names(signature.params.iter().map(String::as_str).chain(["app_dir"]))
            )));
        }
        let value = params::argument(scope.params, &arg.value)?;
        // Every operation takes it, but the text of a statement does not choose which folder the host reads; the
        // request does, by its overrides.
        if arg.key != "app_dir" {
            args.insert(arg.key.to_owned(), value);
        }
    }
    for (key, value) in scope.overrides {
        if declares(key) {
            unused.remove(key.as_str());
            if !value.is_null() && !args.contains_key(key) {
                args.insert(key.clone(), params::text(value).into_owned());
            }
        }
    }
    let Signature { params, columns, filters, .. } = signature;
    // Any other argument may make other rows of the records than they are.
    let plain =
        |key: &String| key == "app_dir" || filters.iter().any(|filter| filter.param == *key);
    let filters = if args.keys().all(plain) {
        filters.into_iter().filter(|filter| !args.contains_key(&filter.param)).collect()
    } else {
        Vec::new()
    };
    declared.extend(params);
    declared.insert("app_dir".to_owned());
    Ok(Source::Call(Call { address, args, columns, filters }))
}

enum Found {
    Runner(usize),
    Op(OpAddress, Signature),
}

/// What a name means here: a `sql-runner` in scope comes first.
fn runner(reference: &Ref<'_>, scope: &Scope<'_>) -> Result<Found, SqlError> {
    let name = reference.name;
    let address = address(name, scope);
    let runner = scope.runners.iter().rev().find(|runner| runner.name == name);
    match (runner, address.ok_or_else(|| foreign(name, scope))) {
        (Some(runner), Ok(address)) => match scope.operations.lookup(&address) {
            Err(LookupError::Absent { .. }) if reference.args.is_empty() => {
                Ok(Found::Runner(runner.id))
            }
            Err(LookupError::Absent { .. }) => Err(SqlError::refused(format!(
                "`{name}` is a sql-runner of this widget and takes no arguments"
            ))),
            Ok(_) | Err(LookupError::Failed(_)) => Err(SqlError::refused(format!(
                "`{name}` is a sql-runner of this widget and an operation of the project; give the sql-runner another name"
            ))),
        },
        (_, Err(error)) => Err(error),
        (None, Ok(address)) => match scope.operations.lookup(&address) {
            Ok(signature) => Ok(Found::Op(address, signature)),
            Err(error) => Err(absent(error, name)),
        },
    }
}

/// The address behind a name; `None` for a workspace that does not exist here.
fn address(name: &str, scope: &Scope<'_>) -> Option<OpAddress> {
    let parts = name.split('.').collect::<Vec<_>>();
    let (workspace, project, op) = match parts[..] {
        [workspace, project, op] => (workspace, project, op),
        [project, op] => (scope.workspace, project, op),
        _ => (scope.workspace, scope.project, name),
    };
    (workspace == scope.workspace || workspace == "_core").then(|| OpAddress {
        workspace: workspace.to_owned(),
        project: project.to_owned(),
        op: op.to_owned(),
    })
}

fn foreign(name: &str, scope: &Scope<'_>) -> SqlError {
    let mut known = vec!["_core", scope.workspace];
    known.dedup();
    SqlError::Unknown(format!(
        "unknown endpoint `{name}`; workspaces that can be read here: {}",
        names(known)
    ))
}

/// A prefix for table names that occurs neither in the statement nor in any value put into it.
fn free_prefix(sql: &str, params: &Params) -> String {
    let mut text = sql.to_ascii_lowercase();
    for value in params.values() {
        text.push_str(&params::text(value).to_ascii_lowercase());
    }
    let mut taken = text.split(PREFIX).skip(1).peekable();
    if taken.peek().is_none() {
        return PREFIX.to_owned();
    }
    let numbers = taken
        .filter_map(|rest| rest.split_once('_')?.0.parse::<usize>().ok())
        .collect::<BTreeSet<_>>();
    let free = (1..).find(|n| !numbers.contains(n)).unwrap_or_default();
    format!("{PREFIX}{free}_")
}

/// How the names of tables start where nothing else does.
const PREFIX: &str = "__ref";

impl Planned {
    /// The calls it needs.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.tables.iter().filter_map(|(_, source)| match source {
            Source::Call(call) => Some(call),
            Source::Runner(_) => None,
        })
    }

    /// The `sql-runner`s it reads.
    pub fn runners(&self) -> impl Iterator<Item = usize> {
        self.tables.iter().filter_map(|(_, source)| match source {
            Source::Call(_) => None,
            Source::Runner(id) => Some(*id),
        })
    }
}
