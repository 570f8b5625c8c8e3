use std::collections::BTreeSet;

use crate::abi::Method;
use crate::context::Context;
use crate::record::Record;
use crate::wire::{FindRequest, Found, Opened, ScanRequest, Texts, ValueRequest, Wire};

/// About how many bytes of records the host sends at a time.
const SCAN_BYTES: u32 = 1 << 20;

/// A collection at one moment.
#[derive(Debug)]
pub struct Collection<'c> {
    context: &'c Context,
    snapshot: u32,
    state: CollectionState,
    len: u32,
}

/// What the file of a collection holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionState {
    /// There is no file.
    Missing,
    /// A list.
    Stored,
    /// A falsy value such as `null` or `{}`, used as an empty list.
    Falsy,
    /// A value that is neither a list nor falsy.
    Odd,
    /// Not JSON; the text says why.
    Corrupt(String),
}

impl CollectionState {
    pub(crate) fn from_opened(opened: &Opened<'_>) -> Self {
        match opened.state {
            0 => Self::Missing,
            1 => Self::Stored,
            2 => Self::Falsy,
            3 => Self::Odd,
            _ => Self::Corrupt(opened.reason.to_owned()),
        }
    }

    /// Number and reason in an [`Opened`] frame.
    #[cfg(feature = "store")]
    pub(crate) fn wire(&self) -> (u8, &str) {
        match self {
            Self::Missing => (0, ""),
            Self::Stored => (1, ""),
            Self::Falsy => (2, ""),
            Self::Odd => (3, ""),
            Self::Corrupt(reason) => (4, reason),
        }
    }
}

impl<'c> Collection<'c> {
    pub(crate) fn new(context: &'c Context, opened: &Opened<'_>) -> Self {
        Self {
            context,
            snapshot: opened.snapshot,
            state: CollectionState::from_opened(opened),
            len: opened.len,
        }
    }

    /// The first record whose `id` is this string.
    pub fn get(&self, id: &str) -> Option<Record> {
        self.find("id", id)
    }

    /// The first record whose `field` is this string.
    pub fn find(&self, field: &str, value: &str) -> Option<Record> {
        self.found(field, value, 1).pop()
    }

    /// Every record whose `field` is this string, in file order. The store keeps an index: the cost
    /// does not grow with the collection.
    pub fn matching(&self, field: &str, value: &str) -> Vec<Record> {
        self.found(field, value, u32::MAX)
    }

    /// Every record whose `field` is one of these strings, in file order.
    pub fn matching_any(&self, field: &str, values: &[String]) -> Vec<Record> {
        let distinct: BTreeSet<&String> = values.iter().collect();
        let mut found: Vec<Record> =
            distinct.into_iter().flat_map(|value| self.matching(field, value)).collect();
        found.sort_by_key(Record::position);
        found
    }

    /// Every record in file order, also those that are not objects.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::with_capacity(self.len as usize);
        let mut offset = 0;
        while offset < self.len {
            let request = ScanRequest { snapshot: self.snapshot, offset, bytes: SCAN_BYTES };
            let chunk = self
                .context
                .look(Method::SCAN, &request, |frame| Ok(Record::of_texts(&Texts::decode(frame)?)));
            let chunk = chunk.unwrap_or_default();
            if chunk.is_empty() {
                // Either a fault, which the context keeps, or a host that breaks its word.
                self.context.fail(crate::context::internal("the host left records out"));
                break;
            }
            for record in chunk {
                records.push(record.at(self.snapshot, offset));
                offset += 1;
            }
        }
        records
    }

    /// Every record that is an object, in file order.
    pub fn objects(&self) -> Vec<Record> {
        let mut records = self.records();
        records.retain(Record::is_object);
        records
    }

    /// The whole value as JSON text, for collections that are not lists.
    pub fn value(&self) -> Record {
        self.context
            .look(Method::VALUE, &ValueRequest { snapshot: self.snapshot }, |frame| {
                <&str>::decode(frame).map(str::to_owned)
            })
            .map_or_else(|| Record::of_text("null".to_owned()), Record::of_text)
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What the file holds.
    pub fn state(&self) -> &CollectionState {
        &self.state
    }

    pub(crate) fn snapshot(&self) -> u32 {
        self.snapshot
    }

    fn found(&self, field: &str, value: &str, limit: u32) -> Vec<Record> {
        if self.is_empty() {
            return Vec::new();
        }
        let request = FindRequest { snapshot: self.snapshot, field, value, limit };
        self.context
            .look(Method::FIND, &request, |frame| {
                let found = Found::decode(frame)?;
                let records = Record::of_texts(&found.texts);
                let placed = records.into_iter().zip(found.positions);
                Ok(placed.map(|(record, at)| record.at(self.snapshot, at)).collect())
            })
            .unwrap_or_default()
    }
}
