//! What a reader sees: one commit, whole, unchanging.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use json_text::{Json, Specials, render_list};

use crate::collection::{Record, Records};
use crate::index::FieldIndex;
use crate::tally::{Check, Tallies};

/// How the file of a collection was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is no file; the collection has its default.
    Missing,
    /// The file holds a list.
    Stored,
    /// The file holds `null`, `false`, `0`, `""` or `{}`, which counts as an empty list.
    Falsy,
    /// The file holds another value than a list. It reads as empty; as a list it cannot be written.
    Odd,
    /// The file cannot be parsed, for this reason. It reads as the default and cannot be written.
    Corrupt(String),
}

/// Indexed fields per collection; a caller that asks for more gets scans.
const MAX_INDEXES: usize = 16;
/// Below this many records a scan is as fast as an index.
const SMALL: usize = 16;

/// One state of a collection. Cheap to clone; lives as long as someone holds it.
///
/// A transaction that commits on top of its own snapshot changes it in place when nobody else holds
/// it, so drop clones before committing.
#[derive(Debug, Clone)]
pub struct Snapshot(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// No two states in one process have the same.
    version: u64,
    state: State,
    /// The value when it is not a list.
    value: Arc<str>,
    records: Records,
    indexes: RwLock<BTreeMap<Box<str>, Arc<FieldIndex>>>,
    tallies: RwLock<Tallies>,
}

fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        Self {
            version: next_version(),
            state: self.state.clone(),
            value: Arc::clone(&self.value),
            records: self.records.clone(),
            indexes: RwLock::new(self.indexes().clone()),
            tallies: RwLock::new(self.tallies().clone()),
        }
    }
}

impl Inner {
    fn new(state: State, value: &str, records: Records) -> Self {
        let version = next_version();
        Self {
            version,
            state,
            value: value.into(),
            records,
            indexes: RwLock::default(),
            tallies: RwLock::default(),
        }
    }

    fn tallies(&self) -> std::sync::RwLockReadGuard<'_, Tallies> {
        self.tallies.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many records fail the check, counted when first asked for.
    fn failing(&self, check: &Check) -> usize {
        if let Some(failing) = self.tallies().failing(check) {
            return failing;
        }
        let mut tallies = self.tallies.write().unwrap_or_else(PoisonError::into_inner);
        tallies.count(check, self.records.texts())
    }

    fn indexes(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Box<str>, Arc<FieldIndex>>> {
        self.indexes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a field, built when first asked for.
    fn index(&self, field: &str) -> Option<Arc<FieldIndex>> {
        if let Some(index) = self.indexes().get(field) {
            return Some(Arc::clone(index));
        }
        if self.records.len() <= SMALL {
            return None;
        }
        // Built under the lock: whoever asks meanwhile would only build it a second time.
        let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(field) {
            return Some(Arc::clone(index));
        }
        if indexes.len() >= MAX_INDEXES {
            return None;
        }
        let index = Arc::new(FieldIndex::build(field, &self.records));
        indexes.insert(field.into(), Arc::clone(&index));
        Some(index)
    }

    fn matching(&self, field: &str, value: &str, limit: usize) -> Vec<usize> {
        if let Some(index) = self.index(field) {
            return index.matching(value, &self.records).take(limit).collect();
        }
        let pattern = json_text::FieldPattern::new(field);
        let matches = |text: &str| pattern.find(text).is_some_and(|json| json.eq_str(value));
        let texts = self.records.texts().enumerate();
        texts.filter(|(_, text)| matches(text)).map(|(position, _)| position).take(limit).collect()
    }
}

impl Snapshot {
    pub(crate) fn missing(default: &str) -> Self {
        Self(Arc::new(Inner::new(State::Missing, default, Records::default())))
    }

    /// Reads a file's content. What cannot be parsed is a state, not an error: reads go on with the
    /// default.
    pub(crate) fn of_file(content: Vec<u8>, default: &str) -> Self {
        let corrupt = |reason| {
            Self(Arc::new(Inner::new(State::Corrupt(reason), default, Records::default())))
        };
        let source = match String::from_utf8(content) {
            Ok(source) => source,
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                return corrupt(format!("not UTF-8 text at byte {at}"));
            }
        };
        let mut text = String::with_capacity(source.len());
        let mut items = Vec::new();
        if let Err(error) = render_list(&source, Specials::Accept, &mut text, &mut items) {
            return corrupt(error.to_string());
        }
        let inner = if text.starts_with('[') {
            Inner::new(State::Stored, "", Records::of_file(text, items))
        } else if Json::trusted(&text).is_falsy() {
            Inner::new(State::Falsy, &text, Records::default())
        } else {
            Inner::new(State::Odd, &text, Records::default())
        };
        Self(Arc::new(inner))
    }

    /// How the file was found.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// A number that no other state has in this process: as long as reading a collection gives a
    /// snapshot with the same one, the collection has not changed.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.0.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record at a position, from 0 in file order.
    pub fn record(&self, position: usize) -> Option<Record> {
        self.0.records.get(position)
    }

    /// All records in file order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record> + '_ {
        (0..self.len()).map(|position| {
            self.0.records.get(position).expect("every position below the length has a record")
        })
    }

    /// The text of each record in file order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.records.texts()
    }

    /// Position of the first record that is an object whose top-level `field` is the string `value`.
    pub fn find(&self, field: &str, value: &str) -> Option<usize> {
        self.0.matching(field, value, 1).first().copied()
    }

    /// Positions of all such records, in file order.
    pub fn matching(&self, field: &str, value: &str) -> Vec<usize> {
        self.0.matching(field, value, usize::MAX)
    }

    /// Whether every record passes the check; true of none. The first answer looks at all records, later ones and
    /// those of the states that commits make of this one only at what changed.
    pub fn all(&self, check: &Check) -> bool {
        self.0.failing(check) == 0
    }

    /// The whole value as a canonical file has it; the default when missing or corrupt.
    pub fn value_text(&self) -> Cow<'_, str> {
        if self.0.state != State::Stored {
            return Cow::Borrowed(&self.0.value);
        }
        let pieces = self.0.records.pieces();
        let mut text = String::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        // Pieces are cut between characters, so each one is text.
        pieces.iter().for_each(|piece| text.push_str(&String::from_utf8_lossy(piece)));
        Cow::Owned(text)
    }

    /// The bytes of the file.
    pub(crate) fn pieces(&self) -> Vec<&[u8]> {
        self.0.records.pieces()
    }

    /// Whether a file with this state must be rewritten to have the content of `self`, which was
    /// made from it.
    pub(crate) fn differs_from(&self, before: &Snapshot) -> bool {
        if Arc::ptr_eq(&self.0, &before.0) {
            return false;
        }
        // The default of a missing file is not written for its own sake.
        let list = |state: &State| matches!(state, State::Missing | State::Stored);
        !(list(&self.0.state) && list(&before.0.state) || self.0.state == before.0.state)
            || !self.0.records.same_as_before(&before.0.records)
    }

    /// The state after the changes. Works in place when nobody else holds `self`.
    pub(crate) fn apply(self, changes: Changes) -> Self {
        if !changes.change_anything(&self) {
            return self;
        }
        let mut inner = Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone());
        inner.version = next_version();
        inner.state = State::Stored;
        let records = &mut inner.records;
        let old_len = records.len();
        let tallies = inner.tallies.get_mut().unwrap_or_else(PoisonError::into_inner);
        changes
            .replaced
            .keys()
            .filter_map(|at| records.text(*at))
            .for_each(|old| tallies.left(old));
        let buffer = records.add_buffer(changes.text);
        for (position, range) in &changes.replaced {
            records.replace(*position, buffer, range.clone());
        }
        for range in changes.pushed {
            records.push(buffer, range);
        }
        let changed = || changes.replaced.keys().copied().chain(old_len..records.len());
        changed().filter_map(|at| records.text(at)).for_each(|new| tallies.came(new));
        changes.removed.iter().filter_map(|at| records.text(*at)).for_each(|old| tallies.left(old));
        let indexes = inner.indexes.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !changes.removed.is_empty() {
            records.retain(|position| !changes.removed.contains(&position));
            // All positions behind a removed one move.
            indexes.clear();
        }
        indexes.retain(|_, index| !index.is_worn(records.len()));
        for index in indexes.values_mut() {
            let index = Arc::make_mut(index);
            for position in changes.replaced.keys().copied().chain(old_len..records.len()) {
                index.add(position, records.text(position).unwrap_or(""));
            }
        }
        Self(Arc::new(inner))
    }

    /// Makes a staged state ready to be written and read: see [`Records::tidy`]. `base` is the state
    /// its group began with; indexes built there since then are built here too, or a steady stream
    /// of writes would leave readers without.
    pub(crate) fn settle(self, base: &Snapshot) -> Self {
        let mut inner = Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone());
        inner.records.tidy(base.0.records.buffers());
        for field in base.0.indexes().keys() {
            inner.index(field);
        }
        for check in base.0.tallies().checks() {
            inner.failing(check);
        }
        Self(Arc::new(inner))
    }
}

/// What one transaction changes in one collection. Positions are those of the snapshot that it
/// began with.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Texts of pushed and replacing records.
    pub(crate) text: String,
    pub(crate) pushed: Vec<Range<usize>>,
    pub(crate) replaced: BTreeMap<usize, Range<usize>>,
    pub(crate) removed: BTreeSet<usize>,
    /// A value that is no list becomes `[]` even when nothing is pushed.
    pub(crate) as_list: bool,
}

impl Changes {
    pub(crate) fn change_anything(&self, base: &Snapshot) -> bool {
        let replaces = |(position, range): (&usize, &Range<usize>)| {
            base.0.records.text(*position) != Some(&self.text[range.clone()])
        };
        !self.pushed.is_empty()
            || !self.removed.is_empty()
            || (self.as_list && matches!(base.0.state, State::Falsy | State::Odd))
            || self.replaced.iter().any(replaces)
    }
}
