//! [`Dispatched`]: the operations of the running host, for SQL.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_store::{AppStore, Store};
use sdk::host::Descriptor;

use super::error::{OperationFailure, SqlError};
use super::operations::{
    Answered, Arguments, Filter, LookupError, OpAddress, Operations, Signature, UniformRows,
};
use super::places::{Overloaded, Place};
use super::table::{Body, Declared, Kind};
use crate::dispatch::{Call, FIRST_BUILD, Reading};
use crate::error::HostError;
use crate::host::Host;
use crate::plugins::{Address, Catalog, Loaded};
use crate::reply::Reply;

/// An operation that has not answered after this long is waited for outside.
const OUTSIDE: Duration = Duration::from_millis(50);

/// How many calls of an operation by another are followed to see whether one of them writes.
const MOST_CALLED: usize = 256;

/// The operations of a host, for one request.
pub struct Dispatched<'a> {
    host: &'a Host,
    request_id: String,
    anywhere: bool,
    place: Option<&'a Place>,
}

impl<'a> Dispatched<'a> {
    /// For a request that the log knows by this id.
    #[must_use]
    pub fn new(host: &'a Host, request_id: &str) -> Self {
        Self { host, request_id: request_id.to_owned(), anywhere: false, place: None }
    }

    /// For a request that has this place, and leaves it to others while it waits for an operation.
    #[must_use]
    pub fn at(self, place: &'a Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// For a request that addresses no project: an operation is found in whichever project has the only one of its
    /// name.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self { anywhere: true, ..self }
    }

    fn address(&self, address: &OpAddress) -> Result<Address, HostError> {
        let whole = Address::new(&address.workspace, &address.project, &address.op);
        if !self.anywhere || !address.project.is_empty() {
            return Ok(whole);
        }
        let catalog = &self.host.catalog;
        catalog.wait_discovered(Instant::now() + FIRST_BUILD);
        let mut all = catalog.entries();
        all.retain(|entry| *entry.address.workspace == *address.workspace);
        let fits = all
            .iter()
            .map(|entry| &entry.address)
            .filter(|other| *other.op == *address.op)
            .collect::<Vec<_>>();
        match fits[..] {
            [only] => Ok(only.clone()),
            [] => Err(HostError::UnknownName {
                name: address.op.clone(),
                known: all
                    .iter()
                    .map(|entry| format!("{}.{}", entry.address.project, entry.address.op))
                    .collect(),
            }),
            _ => Err(HostError::BadRequest {
                message: format!(
                    "several projects have an operation `{}`: write {}",
                    address.op,
                    super::error::names(
                        fits.iter().map(|other| format!("{}.{}", other.project, other.op))
                    )
                ),
            }),
        }
    }

    fn loaded(&self, address: &Address) -> Result<Arc<Loaded>, HostError> {
        if let Some(loaded) = self.host.catalog.entry(address).and_then(|entry| entry.ready()) {
            return Ok(loaded);
        }
        self.outside(|leave| {
            leave();
            Ok(self.host.catalog.wait_ready(address, Instant::now() + FIRST_BUILD)?.1)
        })
    }

    /// Calls the operation; from the moment that it turns out to take long without holding the request's place.
    fn dispatch(&self, call: Call) -> Result<Reply, HostError> {
        self.outside(|leave| self.host.dispatcher.call_watched(call, OUTSIDE, leave))
    }

    /// Does what may wait long, and says when it does.
    fn outside<T>(
        &self,
        wait: impl FnOnce(&dyn Fn()) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let Some(place) = self.place else { return wait(&|| {}) };
        let left = Cell::new(false);
        let waited = wait(&|| {
            left.set(true);
            place.leave();
        });
        if left.get() {
            // What it failed with says more than that there is no place to go on at.
            let back = place.come_back().map_err(overloaded);
            return waited.and_then(|answer| back.map(|()| answer));
        }
        waited
    }

    /// Whether the operation, or one that it calls, declares that it changes anything.
    fn writes(&self, address: &Address, loaded: Arc<Loaded>) -> bool {
        let mut seen = vec![address.clone()];
        let mut open = vec![(address.clone(), loaded)];
        while let Some((address, loaded)) = open.pop() {
            if loaded.descriptor.changes() || seen.len() > MOST_CALLED {
                return true;
            }
            for called in &loaded.descriptor.calls {
                let target = match called.split('.').collect::<Vec<_>>()[..] {
                    [project, op] => Address::new(&address.workspace, project, op),
                    [workspace, project, op] => Address::new(workspace, project, op),
                    _ => continue,
                };
                // One that cannot be called will not change anything either.
                if !seen.contains(&target)
                    && let Ok(loaded) = self.loaded(&target)
                {
                    seen.push(target.clone());
                    open.push((target, loaded));
                }
            }
        }
        false
    }
}

impl Operations for Dispatched<'_> {
    fn project(&self, workspace: &str, project: &str) -> Result<(), LookupError> {
        if self.anywhere && project.is_empty() {
            return Ok(());
        }
        let catalog = &self.host.catalog;
        let found = || match catalog.find(workspace, project, "") {
            Ok(_) | Err(HostError::UnknownOp { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        found()
            .or_else(|_| {
                catalog.wait_discovered(Instant::now() + FIRST_BUILD);
                found()
            })
            .map_err(lookup_error)
    }

    fn lookup(&self, address: &OpAddress) -> Result<Signature, LookupError> {
        let address = self.address(address).map_err(lookup_error)?;
        let loaded = self.loaded(&address).map_err(lookup_error)?;
        let descriptor = &loaded.descriptor;
        let filter = |param: &sdk::host::ParamDescriptor| {
            Some(Filter { param: param.name.clone(), column: param.filters.clone()? })
        };
        Ok(Signature {
            params: descriptor.params.iter().map(|param| param.name.clone()).collect(),
            columns: columns(descriptor),
            filters: descriptor.params.iter().filter_map(filter).collect(),
            writes: self.writes(&address, Arc::clone(&loaded)),
        })
    }

    fn call(&self, address: &OpAddress, args: &Arguments) -> Result<Answered, OperationFailure> {
        let address = self.address(address).map_err(failure)?;
        let (call, reading) = self.reading(&address, args);
        let seen = Seen::before(self.host, &address, call.app_dir.as_deref());
        let reply = self.dispatch(call).map_err(failure)?;
        let rows = self.loaded(&address).ok().and_then(|loaded| loaded.descriptor.rows.clone());
        let body = match reply {
            Reply::Value(text) => {
                rows_in(&text, rows.as_deref()).map_or(Body::Value(text), Body::Records)
            }
            Reply::Records(records) => Body::Records(records),
        };
        // What was read is what there was before and is after: then the answer belongs to it.
        let seen = seen.filter(|seen| !reading.beyond_collections() && seen.is_current());
        let fresh = seen
            .map(|seen| Arc::new(move || seen.is_current()) as Arc<dyn Fn() -> bool + Send + Sync>);
        Ok(Answered { body, fresh })
    }

    fn is_uniform(&self, address: &OpAddress, args: &Arguments) -> bool {
        let address = self.address(address);
        address.is_ok_and(|address| self.seen_uniform(&address, args).is_some())
    }

    fn uniform_rows(
        &self,
        address: &OpAddress,
        args: &Arguments,
    ) -> Result<Option<UniformRows>, OperationFailure> {
        let address = self.address(address).map_err(failure)?;
        let Some(seen) = self.seen_uniform(&address, args) else { return Ok(None) };
        let (call, reading) = self.reading(&address, args);
        match self.dispatch(call).map_err(failure)? {
            Reply::Records(rows) if !reading.beyond_collections() && seen.is_current() => {
                Ok(Some(UniformRows { rows, moment: seen.moment() }))
            }
            _ => Ok(None),
        }
    }
}

impl Dispatched<'_> {
    /// A call that may change nothing, and what it turns out to read.
    fn reading(&self, address: &Address, args: &Arguments) -> (Call, Arc<Reading>) {
        let mut call = Call { request_id: self.request_id.clone(), ..Call::new(address.clone()) };
        for (name, text) in args {
            if name == "app_dir" {
                call.app_dir = Some(text.clone());
            } else {
                call.params.push((name.clone(), text.clone()));
            }
        }
        let reading = Arc::new(Reading::default());
        call.reading = Some(Arc::clone(&reading));
        (call, reading)
    }

    /// The state of the one collection whose records the operation answers, if all of them have just the declared
    /// columns.
    fn seen_uniform(&self, address: &Address, args: &Arguments) -> Option<Seen> {
        let seen = Seen::before(self.host, address, args.get("app_dir").map(String::as_str))?;
        let descriptor = &seen.loaded.descriptor;
        let [collection] = &descriptor.reads[..] else { return None };
        if descriptor.rows.is_some() || descriptor.columns.is_empty() {
            return None;
        }
        let check = self.host.sql.shapes.check(&columns(descriptor));
        let snapshot = seen.app.read(collection).ok()?;
        let (_, version) = seen.versions.first()?;
        (snapshot.version() == *version && snapshot.all(&check)).then_some(seen)
    }
}

fn columns(descriptor: &Descriptor) -> Vec<Declared> {
    let declared = |column: &sdk::host::ColumnDescriptor| {
        Declared::new(column.name.clone(), Some(Kind::of_letter(&column.kind)))
    };
    descriptor.columns.iter().map(declared).collect()
}

/// What an answer depends on, as it was: the operation's code and the collections it reads.
struct Seen {
    catalog: Arc<Catalog>,
    address: Address,
    loaded: Arc<Loaded>,
    app: AppStore,
    versions: Vec<(String, u64)>,
}

impl Seen {
    /// The state before a call; `None` when an answer may depend on more than collections.
    fn before(host: &Host, address: &Address, app_dir: Option<&str>) -> Option<Self> {
        let loaded = host.catalog.entry(address)?.ready()?;
        // Ours only read what they declare; anything else could read a file or the clock by itself.
        if !loaded.may_run_in_place(address) {
            return None;
        }
        let store: &Store = &host.store;
        let app = store.app(&host.dispatcher.app_dir(app_dir));
        let versions = loaded
            .descriptor
            .reads
            .iter()
            .map(|name| Some((name.clone(), app.read(name).ok()?.version())))
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            catalog: Arc::clone(&host.catalog),
            address: address.clone(),
            loaded,
            app,
            versions,
        })
    }

    /// The same for two states that are one.
    fn moment(&self) -> String {
        self.versions.iter().fold(self.loaded.hash.to_string(), |moment, (name, version)| {
            format!("{moment} {name}@{version}")
        })
    }

    fn is_current(&self) -> bool {
        let same = |now: Arc<Loaded>| Arc::ptr_eq(&now, &self.loaded);
        self.catalog.entry(&self.address).and_then(|entry| entry.ready()).is_some_and(same)
            && self.versions.iter().all(|(name, version)| {
                self.app.read(name).is_ok_and(|now| now.version() == *version)
            })
    }
}

/// The rows of a reply that has them in one of its members. A reply without that list, such as a refusal, is one row.
fn rows_in(text: &str, member: Option<&str>) -> Option<Vec<String>> {
    let rows = json_text::Json::trusted(text).get(member?)?;
    (rows.kind() == json_text::Kind::Array)
        .then(|| rows.items().map(|row| row.text().to_owned()).collect())
}

fn lookup_error(error: HostError) -> LookupError {
    match error {
        HostError::UnknownWorkspace { known, .. } => {
            LookupError::Absent { what: "workspaces", known }
        }
        HostError::UnknownProject { known, .. } => LookupError::Absent { what: "projects", known },
        HostError::UnknownOp { known, .. } | HostError::UnknownName { known, .. } => {
            LookupError::Absent { what: "operations", known }
        }
        other => LookupError::Failed(failure(other)),
    }
}

fn overloaded(error: Overloaded) -> HostError {
    HostError::Sql(SqlError::Overloaded(error))
}

fn failure(error: HostError) -> OperationFailure {
    OperationFailure { status: crate::http::status(&error).as_u16(), message: error.to_string() }
}
