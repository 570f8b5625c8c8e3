use std::cmp::Ordering;
use std::ops::Range;

use crate::error::UdfError;
use crate::record::Record;
use crate::reply::Reply;
use crate::text;

mod cursor;

use cursor::Cursor;

/// The part of a list a caller wants: the parameters `limit`, `after` and `fields` that every listing
/// operation takes beside its own. Left out, they mean the whole list of whole records.
///
/// A page goes on where another ended although records were added or removed meanwhile: a cursor
/// names the record and its place in the order, not a count of records. A record with an id that stays
/// is on one of the pages, whatever goes; it may be on two of them where many of one stamp went at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page<'a> {
    /// At most so many records; 0 = all.
    pub limit: u32,
    /// Go on after this record: the `cursor` it had, or its `id`. Empty = from the beginning.
    pub after: &'a str,
    /// Comma list of top-level fields: only these are kept. `*` = all of them, `cursor` = what `after`
    /// takes to go on behind the record. Empty = `*`.
    pub fields: &'a str,
}

/// The records of a page, in order.
#[derive(Debug)]
pub struct Rows<'a> {
    rows: Vec<(Record, String)>,
    fields: Fields<'a>,
}

impl<'a> Page<'a> {
    /// Ascending by `createdAt`; equal stamps keep the order they come in. What is no object is passed
    /// over, a stamp that is no string counts as `""` (the app-store contract §8 and §11, S10).
    ///
    /// # Errors
    /// `after` is neither a cursor nor the id of one of the records.
    pub fn oldest_first(self, records: Vec<Record>) -> Result<Rows<'a>, UdfError> {
        self.cut(records, str::cmp)
    }

    /// As [`Page::oldest_first`], but descending; equal stamps still keep the order they come in.
    ///
    /// # Errors
    /// As there.
    pub fn newest_first(self, records: Vec<Record>) -> Result<Rows<'a>, UdfError> {
        self.cut(records, |a, b| b.cmp(a))
    }

    /// The entries of a log: they have no ids and only ever become more, so `after` counts them.
    ///
    /// # Errors
    /// `after` is no number.
    pub fn in_order(self, entries: Vec<Record>) -> Result<Rows<'a>, UdfError> {
        let seen = match self.after {
            "" => 0,
            after => after.parse().map_err(|_| {
                let got = text::quoted(after);
                UdfError::bad_parameter(format!(
                    "`after` must be how many entries were seen, got {got}"
                ))
            })?,
        };
        let rows = entries.into_iter().zip(1_usize..).skip(seen).take(self.count());
        Ok(Rows {
            rows: rows.map(|(entry, number)| (entry, number.to_string())).collect(),
            fields: Fields::parse(self.fields),
        })
    }

    fn count(self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit as usize }
    }

    fn cut(
        self,
        records: Vec<Record>,
        order: fn(&str, &str) -> Ordering,
    ) -> Result<Rows<'a>, UdfError> {
        let objects = records.into_iter().filter(Record::is_object);
        let mut list: Vec<Stamped> = objects.map(Stamped::new).collect();
        list.sort_by(|a, b| order(&a.stamp, &b.stamp));
        let start = self.start(&list, order)?;
        let fields = Fields::parse(self.fields);
        let page = start..list.len().min(start.saturating_add(self.count()));
        let cursors = if fields.cursor { cursors(&list, page.clone()) } else { Vec::new() };
        let cursors = cursors.into_iter().chain(std::iter::repeat(String::new()));
        let rows = list.into_iter().skip(page.start).take(page.len());
        let rows = rows.map(|row| row.record).zip(cursors).collect();
        Ok(Rows { rows, fields })
    }

    /// Index of the first record after `after`.
    fn start(self, list: &[Stamped], order: fn(&str, &str) -> Ordering) -> Result<usize, UdfError> {
        if self.after.is_empty() {
            return Ok(0);
        }
        if let Some(cursor) = Cursor::parse(self.after) {
            return Ok(cursor.position(list, order));
        }
        match list.iter().position(|row| row.record.is("id", self.after)) {
            Some(at) => Ok(at + 1),
            None => Err(UdfError::bad_parameter(format!(
                "`after` is no place in this list: {}; leave it out to start from the beginning",
                text::quoted(self.after)
            ))),
        }
    }
}

impl Rows<'_> {
    /// Puts something else in the place of each record, for replies that join or add.
    ///
    /// # Errors
    /// What `change` returns.
    pub fn map(
        mut self,
        mut change: impl FnMut(&Record) -> Result<Record, UdfError>,
    ) -> Result<Self, UdfError> {
        for (record, _) in &mut self.rows {
            *record = change(record)?;
        }
        Ok(self)
    }

    /// The reply: a list of the records with the fields that were asked for.
    ///
    /// # Errors
    /// A record is too deep to be written.
    pub fn reply(self) -> Result<Reply, UdfError> {
        let chosen =
            self.rows.into_iter().map(|(record, cursor)| self.fields.choose(record, &cursor));
        Ok(Reply::records(chosen.collect::<Result<Vec<_>, _>>()?))
    }
}

/// A record with what it is ordered by.
#[derive(Debug)]
struct Stamped {
    stamp: String,
    record: Record,
}

impl Stamped {
    fn new(record: Record) -> Self {
        let stamp = record.str("createdAt").unwrap_or_default().into_owned();
        Self { stamp, record }
    }

    /// As JSON text; empty = the record has none.
    fn id(&self) -> &str {
        self.record.get("id").map_or("", |id| id.text())
    }
}

/// The cursors of the records in this range.
fn cursors(list: &[Stamped], range: Range<usize>) -> Vec<String> {
    let (before, rest) = list.split_at(range.start);
    let stamp = rest.first().map(|row| &row.stamp);
    let mut nth = before.iter().rev().take_while(|row| Some(&row.stamp) == stamp).count();
    let cursor = |at: usize| {
        if at > range.start && list[at - 1].stamp != list[at].stamp {
            nth = 0;
        }
        nth += 1;
        Cursor::of(&list[at + 1 - nth..=at]).to_string()
    };
    range.clone().map(cursor).collect()
}

/// Which fields to keep.
#[derive(Debug)]
struct Fields<'a> {
    all: bool,
    cursor: bool,
    names: Vec<&'a str>,
}

const CURSOR: &str = "cursor";

impl<'a> Fields<'a> {
    fn parse(list: &'a str) -> Self {
        let mut names: Vec<_> = list.split(',').map(text::trim).collect();
        names.retain(|name| !name.is_empty());
        // Each key of each record is looked for among them.
        names.sort_unstable();
        names.dedup();
        Self {
            all: names.is_empty() || names.contains(&"*"),
            cursor: names.contains(&CURSOR),
            names,
        }
    }

    fn choose(&self, record: Record, cursor: &str) -> Result<Record, UdfError> {
        if (self.all && !self.cursor) || !record.is_object() {
            return Ok(record);
        }
        let mut edit = record.edit();
        if !self.all {
            edit = edit.retain(|key| self.names.binary_search(&key).is_ok());
        }
        if self.cursor {
            edit = edit.set(CURSOR, cursor);
        }
        edit.into_record()
    }
}

#[cfg(test)]
mod tests;
