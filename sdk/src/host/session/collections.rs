//! Snapshots and the transaction of a call.

use core_store::{Snapshot, State};

use super::{Open, OpenTransaction, StoreSession, View, not_open, number, store_error};
use crate::collection::CollectionState;
use crate::error::{ErrorKind, UdfError};
use crate::wire::{
    BeginRequest, Begun, CommitRequest, FindRequest, Found, Opened, ReadRequest, RollbackRequest,
    ScanRequest, Texts, ValueRequest, Wire,
};

impl Open {
    fn snapshot(&self, number: u32) -> Result<&Snapshot, UdfError> {
        match self.views.get(number as usize) {
            Some(View::Read(snapshot)) => Ok(snapshot),
            Some(View::Held { transaction, collection }) => {
                let open = self.transaction.as_ref().filter(|open| open.number == *transaction);
                let open = open.ok_or_else(|| not_open("transaction", *transaction))?;
                open.changes.snapshot(collection).map_err(store_error)
            }
            None => Err(not_open("snapshot", number)),
        }
    }

    fn take_transaction(&mut self, number: u32) -> Result<OpenTransaction, UdfError> {
        self.transaction
            .take_if(|open| open.number == number)
            .ok_or_else(|| not_open("transaction", number))
    }
}

impl StoreSession {
    pub(super) fn read(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let collection = ReadRequest::decode(request)?.collection;
        self.access.check_read(collection)?;
        let snapshot = self.app.read(collection).map_err(store_error)?;
        let mut open = self.open();
        let number = number(open.views.len())?;
        let frame = opened(number, &snapshot, &state(&snapshot))?.encode();
        open.views.push(View::Read(snapshot));
        Ok(frame)
    }

    pub(super) fn find(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = FindRequest::decode(request)?;
        let open = self.open();
        let snapshot = open.snapshot(request.snapshot)?;
        let found = if request.limit == 1 {
            snapshot.find(request.field, request.value).into_iter().collect()
        } else {
            let mut found = snapshot.matching(request.field, request.value);
            found.truncate(request.limit as usize);
            found
        };
        let mut reply =
            Found { positions: Vec::with_capacity(found.len()), texts: Texts::default() };
        for position in found {
            if let Some(record) = snapshot.record(position) {
                reply.positions.push(number(position)?);
                reply.texts.push(record.text())?;
            }
        }
        Ok(reply.encode())
    }

    pub(super) fn scan(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = ScanRequest::decode(request)?;
        let open = self.open();
        let snapshot = open.snapshot(request.snapshot)?;
        let mut texts = Texts::default();
        let mut position = request.offset as usize;
        while let Some(record) = snapshot.record(position) {
            texts.push(record.text())?;
            if texts.joined().len() >= request.bytes as usize {
                break;
            }
            position += 1;
        }
        Ok(texts.encode())
    }

    pub(super) fn value(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = ValueRequest::decode(request)?;
        let open = self.open();
        let text = open.snapshot(request.snapshot)?.value_text();
        Ok(text.as_ref().encode())
    }

    pub(super) fn begin(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let collections = BeginRequest::decode(request)?.collections;
        collections.iter().try_for_each(|collection| self.access.check_write(collection))?;
        let mut open = self.open();
        if open.transaction.is_some() {
            // A second one would wait for the first for ever.
            return Err(UdfError::new(
                ErrorKind::Refused,
                format!(
                    "`{}` begins a transaction inside another: name all collections in one `begin`, or \
                     commit the first",
                    self.access.op
                ),
            ));
        }
        let changes = self.app.begin(&collections).map_err(store_error)?;
        open.transactions += 1;
        let transaction = open.transactions;
        let first = open.views.len();
        let mut states = Vec::with_capacity(collections.len());
        for collection in &collections {
            states.push(state(changes.snapshot(collection).map_err(store_error)?));
        }
        let mut reply = Begun { transaction, collections: Vec::with_capacity(collections.len()) };
        for ((at, collection), state) in (first..).zip(&collections).zip(&states) {
            let snapshot = changes.snapshot(collection).map_err(store_error)?;
            reply.collections.push(opened(number(at)?, snapshot, state)?);
        }
        let frame = reply.encode();
        open.views.extend(
            collections
                .into_iter()
                .map(|collection| View::Held { transaction, collection: collection.to_owned() }),
        );
        open.transaction = Some(OpenTransaction { number: transaction, changes });
        Ok(frame)
    }

    pub(super) fn commit(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let request = CommitRequest::decode(request)?;
        let mut transaction = self.open().take_transaction(request.transaction)?.changes;
        for change in &request.changes {
            let collection = change.collection;
            let stage = |result: Result<(), _>| result.map_err(store_error);
            if change.fresh {
                stage(transaction.set_list(collection))?;
                let len = transaction.snapshot(collection).map_err(store_error)?.len();
                stage(transaction.remove(collection, &(0..len).collect::<Vec<_>>()))?;
            }
            for (position, text) in &change.replaced {
                stage(transaction.replace(collection, *position as usize, text))?;
            }
            let removed: Vec<usize> = change.removed.iter().map(|at| *at as usize).collect();
            stage(transaction.remove(collection, &removed))?;
            for text in &change.pushed {
                stage(transaction.push(collection, text))?;
            }
        }
        // Without the lock on what is open from here: it may wait for other writers of the group.
        let logs: Vec<core_store::Log> = {
            let open = self.open();
            let logs = request.then_remove.iter().map(|log| open.log(*log).cloned());
            logs.collect::<Result<_, _>>()?
        };
        if logs.is_empty() {
            transaction.commit().map_err(store_error)?;
            return Ok(Vec::new());
        }
        let mut removed = Ok(());
        let remove = || {
            removed = logs.iter().try_for_each(|log| log.remove().map(drop));
        };
        transaction.commit_then(remove).map_err(store_error)?;
        removed.map_err(store_error)?;
        Ok(Vec::new())
    }

    pub(super) fn rollback(&self, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        let number = RollbackRequest::decode(request)?.transaction;
        let transaction = self.open().take_transaction(number)?.changes;
        transaction.rollback().map_err(store_error)?;
        Ok(Vec::new())
    }
}

fn state(snapshot: &Snapshot) -> CollectionState {
    match snapshot.state() {
        State::Missing => CollectionState::Missing,
        State::Stored => CollectionState::Stored,
        State::Falsy => CollectionState::Falsy,
        State::Odd => CollectionState::Odd,
        State::Corrupt(reason) => CollectionState::Corrupt(reason.clone()),
    }
}

fn opened<'a>(
    number: u32,
    snapshot: &Snapshot,
    state: &'a CollectionState,
) -> Result<Opened<'a>, UdfError> {
    let (state, reason) = state.wire();
    Ok(Opened { snapshot: number, state, len: self::number(snapshot.len())?, reason })
}
