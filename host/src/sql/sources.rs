//! [`Sources`]: what the operations of a request answered. Equal calls are one; distinct ones run side
//! by side.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::TableCache;
use super::error::SqlError;
use super::operations::{Answered, Operations};
use super::plan::{Call, Source};
use super::table::Table;

/// Calls of one request that run at a time.
const AT_A_TIME: usize = 8;

type Outcome = Result<Arc<Table>, SqlError>;

/// The tables behind the references of a request.
#[derive(Default)]
pub(super) struct Sources {
    tables: BTreeMap<Source, Outcome>,
}

impl Sources {
    /// Calls every operation once.
    pub(super) fn read<'a>(
        operations: &dyn Operations,
        kept: &TableCache,
        calls: impl IntoIterator<Item = &'a Call>,
    ) -> Self {
        let mut distinct: Vec<&Call> = Vec::new();
        for call in calls {
            if !distinct.contains(&call) {
                distinct.push(call);
            }
        }
        let mut tables = BTreeMap::new();
        let mut missing = Vec::new();
        for call in distinct {
            match kept.get(&call.address, &call.args) {
                Some(table) => drop(tables.insert(Source::Call(call.clone()), Ok(table))),
                None => missing.push(call),
            }
        }
        let outcomes = side_by_side(&missing, AT_A_TIME, |call| read(operations, kept, call));
        for (call, outcome) in missing.into_iter().zip(outcomes) {
            tables.insert(Source::Call(call.clone()), outcome);
        }
        Self { tables }
    }

    /// Adds what a `sql-runner` gave.
    pub(super) fn add(&mut self, runner: usize, outcome: Outcome) {
        self.tables.insert(Source::Runner(runner), outcome);
    }

    /// The table of a source.
    pub(super) fn table(&self, source: &Source) -> Outcome {
        match self.tables.get(source) {
            Some(outcome) => outcome.clone(),
            None => Err(SqlError::Engine("a source of the statement was not read".to_owned())),
        }
    }
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
