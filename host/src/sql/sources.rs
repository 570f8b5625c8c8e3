//! [`Sources`]: what the operations of a request answered. Equal calls are one; distinct ones run side
//! by side.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::TableCache;
use super::error::SqlError;
use super::feed::{Feed, Part, Parts};
use super::operations::{Answered, Operations, UniformRows};
use super::plan::{Call, Source};
use super::table::{Body, Table};

/// Calls of one request that run at a time.
const AT_A_TIME: usize = 8;

type Outcome = Result<Arc<Table>, SqlError>;

/// The tables behind the references of a request.
#[derive(Default)]
pub(super) struct Sources {
    tables: BTreeMap<Source, Result<Feed, SqlError>>,
}

impl Sources {
    /// Calls every operation once; with `by_parts` not those of which a statement may need few rows.
    pub(super) fn read<'a>(
        operations: &dyn Operations,
        kept: &TableCache,
        calls: impl IntoIterator<Item = &'a Call>,
        by_parts: bool,
    ) -> Self {
        let mut seen: HashSet<&Call> = HashSet::new();
        let mut tables = BTreeMap::new();
        let mut missing = Vec::new();
        for call in calls.into_iter().filter(|call| seen.insert(call)) {
            match kept.get(&call.address, &call.args) {
                Some(table) => {
                    tables.insert(Source::Call(call.clone()), Ok(Feed::Whole(table)));
                }
                None => match by_parts.then(|| parts(operations, call)).flatten() {
                    Some(parts) => {
                        tables.insert(Source::Call(call.clone()), Ok(Feed::Parts(Arc::new(parts))));
                    }
                    None => missing.push(call),
                },
            }
        }
        let outcomes = side_by_side(&missing, AT_A_TIME, |call| read(operations, kept, call));
        for (call, outcome) in missing.into_iter().zip(outcomes) {
            tables.insert(Source::Call(call.clone()), outcome.map(Feed::Whole));
        }
        Self { tables }
    }

    /// Adds what a `sql-runner` gave.
    pub(super) fn add(&mut self, runner: usize, outcome: Outcome) {
        self.tables.insert(Source::Runner(runner), outcome.map(Feed::Whole));
    }

    /// Reads a part that a statement asked for; all rows when none is named, or when nobody can tell that the part
    /// alone would look as it does among all.
    pub(super) fn fetch(
        &mut self,
        operations: &dyn Operations,
        kept: &TableCache,
        source: &Source,
        part: Option<Part>,
    ) {
        let Source::Call(call) = source else { return };
        let Some(Ok(Feed::Parts(parts))) = self.tables.get(source) else { return };
        let parts = Arc::clone(parts);
        let feed = match part.and_then(|part| narrowed(operations, call, &parts, part).transpose())
        {
            Some(feed) => feed.map(|parts| Feed::Parts(Arc::new(parts))),
            None => read(operations, kept, call).map(Feed::Whole),
        };
        self.tables.insert(source.clone(), feed);
    }

    /// What a statement gets of a source.
    pub(super) fn feed(&self, source: &Source) -> Result<Feed, SqlError> {
        match self.tables.get(source) {
            Some(outcome) => outcome.clone(),
            None => Err(SqlError::Engine("a source of the statement was not read".to_owned())),
        }
    }
}

/// The call as a table without rows yet, if its rows can be asked for by the text of a column.
fn parts(operations: &dyn Operations, call: &Call) -> Option<Parts> {
    if call.filters.is_empty() || !operations.is_uniform(&call.address, &call.args) {
        return None;
    }
    let columns = Table::new(&call.columns, Body::Records(Vec::new())).ok()?.columns().to_vec();
    let place = |name: &str| call.columns.iter().position(|column| column.name == name);
    let by = call.filters.iter().filter_map(|filter| place(&filter.column)).collect();
    Some(Parts { columns, by, ..Parts::default() })
}

/// The parts with one more; `None` when it cannot be known to be what the whole answer has.
fn narrowed(
    operations: &dyn Operations,
    call: &Call,
    parts: &Parts,
    part: Part,
) -> Result<Option<Parts>, SqlError> {
    let Some(column) = call.columns.get(part.column) else { return Ok(None) };
    let Some(filter) = call.filters.iter().find(|filter| filter.column == column.name) else {
        return Ok(None);
    };
    let mut args = call.args.clone();
    args.insert(filter.param.clone(), part.text.clone());
    let name = || format!("{}.{}", call.address.project, call.address.op);
    let records = operations
        .uniform_rows(&call.address, &args)
        .map_err(|failure| SqlError::Operation { name: name(), failure })?;
    let Some(UniformRows { rows, moment }) = records else { return Ok(None) };
    if parts.moment.as_ref().is_some_and(|first| *first != moment) {
        return Ok(None);
    }
    let table = Table::new(&call.columns, Body::Records(rows))
        .map_err(|error| SqlError::refused(format!("`{}`: {error}", name())))?;
    if table.columns() != parts.columns {
        return Ok(None);
    }
    let mut parts = parts.clone();
    parts.known.push((part, Arc::new(table)));
    parts.moment = Some(moment);
    Ok(Some(parts))
}

fn read(operations: &dyn Operations, kept: &TableCache, call: &Call) -> Outcome {
    let name = || format!("{}.{}", call.address.project, call.address.op);
    let Answered { body, fresh } = operations
        .call(&call.address, &call.args)
        .map_err(|failure| SqlError::Operation { name: name(), failure })?;
    let table = Table::new(&call.columns, body)
        .map_err(|error| SqlError::refused(format!("`{}`: {error}", name())))?;
    let table = Arc::new(table);
    if let Some(fresh) = fresh {
        kept.put(&call.address, &call.args, &table, fresh);
    }
    Ok(table)
}

/// Does something with each item, several at a time; the outcomes in the items' order.
pub(super) fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    at_a_time: usize,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if items.len() <= 1 || at_a_time <= 1 {
        return items.iter().map(run).collect();
    }
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(items.iter().map(|_| None).collect::<Vec<Option<R>>>());
    let work = || {
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            let outcome = run(item);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..items.len().min(at_a_time) {
            scope.spawn(work);
        }
        work();
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
