//! What one caller changes, all or nothing per collection.

use std::ops::Range;
use std::sync::Arc;

use json_text::{Layout, Specials, render};

use crate::StoreError;
use crate::collection::{check_name, rank};
use crate::commit::Slot;
use crate::group::{Batch, Turn, finish_unchanged};
use crate::lock::Guard;
use crate::snapshot::{Changes, Snapshot};
use crate::store::AppStore;

/// A transaction that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// Whether this transaction changed anything; if not, no file was rewritten for it.
    pub changed: bool,
}

/// The exclusive right to change some collections, and the changes staged so far. No other writer,
/// of this process or another, runs until it ends, so keep it short.
///
/// Positions are those of [`snapshot`](Self::snapshot), which does not show the own changes.
/// End it by [`commit`](Self::commit) or [`rollback`](Self::rollback), also when nothing was
/// staged: what it saw may be another caller's change that is being stored at this moment, and
/// both return only when it is. Dropping it discards the changes and does not wait.
#[derive(Debug)]
pub struct Transaction {
    parts: Vec<Part>,
    /// With one collection: the group this is a turn of.
    batch: Option<Batch>,
    /// With several: the lane and sentinel of each part.
    alone: Vec<Alone>,
}

#[derive(Debug)]
struct Part {
    slot: Arc<Slot>,
    base: Snapshot,
    changes: Changes,
}

#[derive(Debug)]
struct Alone {
    // The sentinel goes before the lane: fields drop in order.
    guard: Guard,
    #[expect(dead_code, reason = "dropping it is its use")]
    lane: LaneTurn,
}

#[derive(Debug)]
struct LaneTurn(Arc<Slot>);

impl Drop for LaneTurn {
    fn drop(&mut self) {
        self.0.lane.leave();
    }
}

impl Transaction {
    pub(crate) fn begin(app: &AppStore, collections: &[&str]) -> Result<Self, StoreError> {
        let mut names = collections.to_vec();
        names.sort_unstable();
        names.dedup();
        names.iter().try_for_each(|name| check_name(name))?;
        let mut transaction =
            Self { parts: Vec::with_capacity(names.len()), batch: None, alone: Vec::new() };
        if let [name] = names.as_slice() {
            let slot = app.slot(name);
            let mut batch = Batch::join(&slot)?;
            let base = batch.take();
            transaction.batch = Some(batch);
            transaction.parts.push(Part { slot, base, changes: Changes::default() });
            return Ok(transaction);
        }
        for name in names {
            let slot = app.slot(name);
            // A group is never handed to one who asked for the lane alone; if it were, it would have
            // to be written before the sentinel can be taken.
            while let Turn::Next(batch) = slot.lane.enter(true) {
                batch.abandon();
            }
            let lane = LaneTurn(Arc::clone(&slot));
            let (guard, base) = slot.lock()?;
            transaction.alone.push(Alone { guard, lane });
            transaction.parts.push(Part { slot, base, changes: Changes::default() });
        }
        let mut order: Vec<&Part> = transaction.parts.iter().collect();
        order.sort_by_key(|part| rank(&part.slot.name));
        order.into_iter().try_for_each(|part| part.slot.check_writable(&part.base))?;
        Ok(transaction)
    }

    fn part(&mut self, collection: &str) -> Result<&mut Part, StoreError> {
        self.parts
            .iter_mut()
            .find(|part| part.slot.name == collection)
            .ok_or_else(|| StoreError::NotHeld { collection: collection.to_owned() })
    }

    /// The collections held, in order of name.
    pub fn collections(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.slot.name.as_str())
    }

    /// The collection as it was when this transaction got its turn, changes of callers before it in
    /// the same group included.
    pub fn snapshot(&self, collection: &str) -> Result<&Snapshot, StoreError> {
        self.parts
            .iter()
            .find(|part| part.slot.name == collection)
            .map(|part| &part.base)
            .ok_or_else(|| StoreError::NotHeld { collection: collection.to_owned() })
    }

    /// Appends a record: any JSON text, written in the form of the app-store contract §4. Special
    /// numbers are refused (S16).
    pub fn push(&mut self, collection: &str, text: &str) -> Result<(), StoreError> {
        let part = self.part(collection)?;
        let range = part.render(text, None)?;
        part.changes.pushed.push(range);
        Ok(())
    }

    /// Puts another text in the place of the record at `position`. Special numbers are refused,
    /// unless the record held such already: they are kept as they were found (S16).
    pub fn replace(
        &mut self,
        collection: &str,
        position: usize,
        text: &str,
    ) -> Result<(), StoreError> {
        let part = self.part(collection)?;
        part.check_position(position)?;
        let range = part.render(text, Some(position))?;
        part.changes.replaced.insert(position, range);
        Ok(())
    }

    /// Removes the records at these positions.
    pub fn remove(&mut self, collection: &str, positions: &[usize]) -> Result<(), StoreError> {
        let part = self.part(collection)?;
        positions.iter().try_for_each(|position| part.check_position(*position))?;
        part.changes.removed.extend(positions);
        Ok(())
    }

    /// Stores the collection as a list even if nothing else changes: a falsy value on disk becomes
    /// `[]` (the app-store contract S20). A list stays as it is.
    pub fn set_list(&mut self, collection: &str) -> Result<(), StoreError> {
        self.part(collection)?.changes.as_list = true;
        Ok(())
    }

    /// Stores the changes. When this returns, each changed file is whole, renamed and (with
    /// [`Durability::Full`](crate::Durability)) synced. A collection whose content did not change is
    /// not rewritten.
    ///
    /// Several collections are several files: they are stored one after another in the fixed order,
    /// and an error leaves the ones before it stored.
    pub fn commit(self) -> Result<Commit, StoreError> {
        self.end(None)
    }

    /// [`commit`](Self::commit), and then `after`, before any other writer gets its turn: for what
    /// must not be done unless the change is stored, and must not meet what the next writer does.
    /// Not called if storing fails.
    pub fn commit_then(self, mut after: impl FnMut()) -> Result<Commit, StoreError> {
        self.end(Some(&mut after))
    }

    fn end(mut self, after: Option<&mut dyn FnMut()>) -> Result<Commit, StoreError> {
        if let Some(mut batch) = self.batch.take() {
            let Some(part) = self.parts.pop() else { return Ok(Commit { changed: false }) };
            let changed = part.changes.change_anything(&part.base);
            batch.put(part.base.apply(part.changes));
            match after {
                Some(after) => batch.finish_then(after)?,
                None if changed => batch.finish()?,
                None => finish_unchanged(batch)?,
            }
            return Ok(Commit { changed });
        }
        let mut work: Vec<(Part, &Alone)> = self.parts.drain(..).zip(&self.alone).collect();
        work.sort_by(|(a, _), (b, _)| rank(&a.slot.name).cmp(&rank(&b.slot.name)));
        let mut changed = false;
        for (part, alone) in work {
            let staged = part.base.clone().apply(part.changes);
            changed |= part.slot.save(&alone.guard, &part.base, staged)?;
        }
        if let Some(after) = after {
            after();
        }
        Ok(Commit { changed })
    }

    /// Discards the changes. Returns when what the snapshots showed is stored.
    pub fn rollback(mut self) -> Result<(), StoreError> {
        let Some(mut batch) = self.batch.take() else { return Ok(()) };
        if let Some(part) = self.parts.pop() {
            batch.put(part.base);
        }
        finish_unchanged(batch)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let (Some(mut batch), Some(part)) = (self.batch.take(), self.parts.pop()) {
            batch.put(part.base);
            batch.abandon();
        }
    }
}

impl Part {
    /// Writes a record in canonical form behind the texts staged so far.
    fn render(&mut self, text: &str, over: Option<usize>) -> Result<Range<usize>, StoreError> {
        let staged = &mut self.changes.text;
        let before = staged.len();
        if before > 0 {
            // As in a file, so that neighbours are one piece.
            staged.push_str(",\n  ");
        }
        let start = staged.len();
        let layout = Layout::Pretty { level: 1 };
        let result = match render(text, layout, Specials::Refuse, staged) {
            Err(error) => {
                let old = over.and_then(|position| self.base.record(position));
                let had =
                    old.is_some_and(|old| json_text::check(old.text(), Specials::Refuse).is_err());
                if had { render(text, layout, Specials::Accept, staged) } else { Err(error) }
            }
            ok => ok,
        };
        if let Err(source) = result {
            staged.truncate(before);
            return Err(StoreError::Record { collection: self.slot.name.clone(), source });
        }
        Ok(start..staged.len())
    }

    fn check_position(&self, position: usize) -> Result<(), StoreError> {
        if position < self.base.len() {
            return Ok(());
        }
        let (collection, len) = (self.slot.name.clone(), self.base.len());
        Err(StoreError::Position { collection, position, len })
    }
}
