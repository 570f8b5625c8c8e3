use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use json_text::Specials;

use crate::abi::Method;
use crate::collection::{Collection, CollectionState};
use crate::context::{Context, internal};
use crate::error::{ErrorKind, UdfError};
use crate::json::{JsonText, canonical};
use crate::log::Log;
use crate::record::Record;
use crate::wire::{Begun, Change, CommitRequest, RollbackRequest};

/// A change of one or more collections that is made as a whole or not at all. Other writers of these
/// collections wait until it ends. Dropped without [`Transaction::commit`] it changes nothing; if what it
/// saw turns out not to be stored, the call as a whole fails.
#[derive(Debug)]
pub struct Transaction<'c> {
    context: &'c Context,
    transaction: u32,
    collections: Vec<Staged<'c>>,
    open: bool,
}

/// One collection of a transaction: what it began with, and what changes.
#[derive(Debug)]
struct Staged<'c> {
    name: String,
    before: Collection<'c>,
    changes: RefCell<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    /// The collection starts over as an empty list.
    fresh: bool,
    replaced: BTreeMap<u32, Record>,
    removed: BTreeSet<u32>,
    /// Added records; their positions go on from the length of `before`. `None` was removed again.
    pushed: Vec<Option<Record>>,
}

impl<'c> Transaction<'c> {
    pub(crate) fn new(context: &'c Context, begun: &Begun<'_>, names: &[&str]) -> Self {
        let collections = names
            .iter()
            .zip(&begun.collections)
            .map(|(name, opened)| Staged {
                name: (*name).to_owned(),
                before: Collection::new(context, opened),
                changes: RefCell::default(),
            })
            .collect();
        Self { context, transaction: begun.transaction, collections, open: true }
    }

    /// One of the collections the transaction began with. Looks at it see the changes made so far.
    ///
    /// # Errors
    /// The transaction did not begin with it.
    pub fn collection(&self, name: &str) -> Result<CollectionMut<'_, 'c>, UdfError> {
        match self.collections.iter().find(|staged| staged.name == name) {
            Some(staged) => Ok(CollectionMut { staged }),
            None => Err(UdfError::new(
                ErrorKind::Refused,
                format!("the transaction did not begin with `{name}`: name it in `begin`"),
            )),
        }
    }

    /// Makes the changes durable: when this returns they survive a crash, and a collection whose
    /// records are what they were keeps its bytes.
    ///
    /// # Errors
    /// The disk refuses; then nothing has changed.
    pub fn commit(self) -> Result<(), UdfError> {
        self.commit_then_remove(&[])
    }

    /// [`Transaction::commit`], and then deletes logs, before any other writer gets its turn: a crash
    /// between the two leaves a stale log, never a record that claims what the log has lost (the
    /// app-store contract §11, S18).
    ///
    /// # Errors
    /// The disk refuses: the changes, and then nothing has changed; or a log.
    pub fn commit_then_remove(mut self, logs: &[&Log<'_>]) -> Result<(), UdfError> {
        self.open = false;
        let staged: Vec<_> =
            self.collections.iter().map(|staged| (&staged.name, staged.changes.borrow())).collect();
        let changes = staged
            .iter()
            .filter(|(_, changes)| !changes.is_empty())
            .map(|(name, changes)| Change {
                collection: name,
                fresh: changes.fresh,
                replaced: changes
                    .replaced
                    .iter()
                    .map(|(at, record)| (*at, record.text()))
                    .collect(),
                removed: changes.removed.iter().copied().collect(),
                pushed: changes.pushed.iter().flatten().map(Record::text).collect(),
            })
            .collect();
        let then_remove = logs.iter().map(|log| log.number()).collect();
        let request = CommitRequest { transaction: self.transaction, changes, then_remove };
        self.context.request(Method::COMMIT, &request)?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open {
            let request = RollbackRequest { transaction: self.transaction };
            // The host ends a transaction with its call in any case. But what this one saw may be the
            // change of another caller, written together with this one: if that could not be stored, an
            // answer made of it would tell of what is not there.
            if let Err(error) = self.context.request(Method::ROLLBACK, &request) {
                self.context.fail(error);
            }
        }
    }
}

impl Changes {
    fn is_empty(&self) -> bool {
        !self.fresh
            && self.replaced.is_empty()
            && self.removed.is_empty()
            && self.pushed.iter().all(Option::is_none)
    }

    /// What stands at a position of `before` now: itself if untouched.
    fn current(&self, before: Record, position: u32) -> Option<Record> {
        if self.removed.contains(&position) {
            return None;
        }
        Some(self.replaced.get(&position).cloned().unwrap_or(before))
    }
}

/// A collection inside a transaction.
#[derive(Debug)]
pub struct CollectionMut<'t, 'c> {
    staged: &'t Staged<'c>,
}

impl CollectionMut<'_, '_> {
    /// The first record whose `id` is this string.
    pub fn get(&self, id: &str) -> Option<Record> {
        self.find("id", id)
    }

    /// The first record whose `field` is this string.
    pub fn find(&self, field: &str, value: &str) -> Option<Record> {
        let untouched = {
            let changes = self.staged.changes.borrow();
            !changes.fresh && changes.replaced.is_empty() && changes.removed.is_empty()
        };
        if untouched && let Some(record) = self.staged.before.find(field, value) {
            return Some(record);
        }
        self.matching(field, value).into_iter().next()
    }

    /// Every record whose `field` is this string, in order.
    pub fn matching(&self, field: &str, value: &str) -> Vec<Record> {
        let changes = self.staged.changes.borrow();
        let mut found: Vec<Record> = Vec::new();
        if !changes.fresh {
            let touched =
                |at: &u32| changes.replaced.contains_key(at) || changes.removed.contains(at);
            let before = self.staged.before.matching(field, value);
            found.extend(
                before
                    .into_iter()
                    .filter(|record| record.place.is_some_and(|place| !touched(&place.position))),
            );
            found.extend(changes.replaced.values().filter(|r| r.is(field, value)).cloned());
            found.sort_by_key(|record| record.place.map(|place| place.position));
        }
        found.extend(changes.pushed.iter().flatten().filter(|r| r.is(field, value)).cloned());
        found
    }

    /// Every record in order, also those that are not objects.
    pub fn records(&self) -> Vec<Record> {
        let changes = self.staged.changes.borrow();
        let mut records = Vec::new();
        if !changes.fresh {
            let before = self.staged.before.records().into_iter().zip(0..);
            records.extend(before.filter_map(|(record, at)| changes.current(record, at)));
        }
        records.extend(changes.pushed.iter().flatten().cloned());
        records
    }

    /// Every record that is an object, in order.
    pub fn objects(&self) -> Vec<Record> {
        let mut records = self.records();
        records.retain(Record::is_object);
        records
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        let changes = self.staged.changes.borrow();
        let before = if changes.fresh { 0 } else { self.staged.before.len() };
        before - changes.removed.len() + changes.pushed.iter().flatten().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the file held when the transaction began.
    pub fn state(&self) -> &CollectionState {
        self.staged.before.state()
    }

    /// Adds a record at the end and gives it back as it will stand in the file.
    ///
    /// # Errors
    /// The value cannot be stored: it holds NaN or an infinity, or is too deep.
    pub fn push(&mut self, record: impl Into<JsonText>) -> Result<Record, UdfError> {
        let text = canonical(record.into().as_str(), Specials::Refuse)?;
        let mut changes = self.staged.changes.borrow_mut();
        let position = u32::try_from(self.staged.before.len() + changes.pushed.len())
            .map_err(|_| internal("a collection holds at most 4 294 967 295 records"))?;
        let record = Record::of_text(text).at(self.staged.before.snapshot(), position);
        changes.pushed.push(Some(record.clone()));
        Ok(record)
    }

    /// Puts a changed record in the place of `record` and gives it back as it will stand in the file:
    /// `cards.update(&card, card.edit().set("status", "answered"))`.
    ///
    /// # Errors
    /// `record` is not of this transaction, was changed or removed in it since, or is not an object; or
    /// the value cannot be stored.
    pub fn update(
        &mut self,
        record: &Record,
        changed: impl Into<JsonText>,
    ) -> Result<Record, UdfError> {
        let position = self.position(record)?;
        if !record.is_object() {
            return Err(internal(format!(
                "record {position} of `{}` is not an object and cannot be edited",
                self.staged.name
            )));
        }
        // What another program left in fields that stay is none of this operation's business.
        let text = canonical(changed.into().as_str(), Specials::Accept)?;
        let updated = Record::of_text(text).at(self.staged.before.snapshot(), position);
        let mut changes = self.staged.changes.borrow_mut();
        match self.pushed_index(position) {
            Some(index) => changes.pushed[index] = Some(updated.clone()),
            None => {
                changes.replaced.insert(position, updated.clone());
            }
        }
        Ok(updated)
    }

    /// Takes a record out.
    ///
    /// # Errors
    /// `record` is not of this transaction, or was changed or removed in it since.
    pub fn remove(&mut self, record: &Record) -> Result<(), UdfError> {
        let position = self.position(record)?;
        self.remove_at(position);
        Ok(())
    }

    /// Keeps the records for which `keep` says so and gives back the others. It is asked about every
    /// record, also those that are not objects.
    pub fn retain(&mut self, mut keep: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let mut gone = self.records();
        gone.retain(|record| !keep(record));
        for record in &gone {
            if let Some(place) = record.place {
                self.remove_at(place.position);
            }
        }
        gone
    }

    /// Takes out every record whose `field` is this string and says how many there were.
    pub fn remove_matching(&mut self, field: &str, value: &str) -> usize {
        let gone = self.matching(field, value);
        for place in gone.iter().filter_map(|record| record.place) {
            self.remove_at(place.position);
        }
        gone.len()
    }

    /// Makes an empty list of a falsy value such as `null`; removals do so even if they find nothing
    /// (the app-store contract §11, S20).
    pub fn make_list(&mut self) {
        if *self.state() == CollectionState::Falsy {
            self.staged.changes.borrow_mut().fresh = true;
        }
    }

    /// Starts over with an empty list, whatever the collection was.
    pub fn clear(&mut self) {
        *self.staged.changes.borrow_mut() = Changes { fresh: true, ..Changes::default() };
    }

    fn remove_at(&self, position: u32) {
        let mut changes = self.staged.changes.borrow_mut();
        match self.pushed_index(position) {
            Some(index) => changes.pushed[index] = None,
            None => {
                changes.replaced.remove(&position);
                changes.removed.insert(position);
            }
        }
    }

    /// Index among the added records, for a position beyond those of `before`.
    fn pushed_index(&self, position: u32) -> Option<usize> {
        (position as usize).checked_sub(self.staged.before.len())
    }

    /// The position of a record that is still what the transaction has there. A record found before an
    /// update of it would undo that update.
    fn position(&self, record: &Record) -> Result<u32, UdfError> {
        let place = record.place.filter(|place| place.snapshot == self.staged.before.snapshot());
        let Some(place) = place else {
            return Err(internal(format!(
                "the record was not found in this transaction: look it up in its `{}`",
                self.staged.name
            )));
        };
        let changes = self.staged.changes.borrow();
        let known = match self.pushed_index(place.position) {
            Some(index) => changes.pushed.get(index).cloned().flatten(),
            None if changes.fresh => None,
            None => changes.current(record.clone(), place.position),
        };
        if known.as_ref() == Some(record) {
            return Ok(place.position);
        }
        Err(internal(format!(
            "the record of `{}` was changed in this transaction since it was found: use the one that \
             the change gave back",
            self.staged.name
        )))
    }
}
