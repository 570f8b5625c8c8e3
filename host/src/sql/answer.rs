//! [`Answer`]: the rows of a statement, already as JSON text.

use std::collections::HashSet;

use super::error::SqlError;
use super::limits::Limits;
use super::table::Declared;

/// The rows of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The columns in select order, with names that are all different.
    pub columns: Vec<Declared>,
    /// The rows: a JSON list of objects.
    pub rows: String,
    /// How many rows there are.
    pub count: usize,
    /// Whether there would have been more.
    pub cut: bool,
}

impl Answer {
    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Appends `{"columns": […], "rows": […]}`.
    pub fn write(&self, out: &mut String) {
        out.push_str("{\"columns\":[");
        for (at, name) in self.names().enumerate() {
            if at > 0 {
                out.push(',');
            }
            json_text::quote(name, out);
        }
        out.push_str("],\"rows\":");
        out.push_str(&self.rows);
        out.push('}');
    }
}

/// Writes rows as an engine gives them, within the limits.
pub struct Rows<'a> {
    limits: &'a Limits,
    columns: Vec<Declared>,
    /// `"name":` of each column.
    keys: Vec<String>,
    rows: String,
    count: usize,
    column: usize,
    keep: Option<usize>,
    cut: bool,
}

impl<'a> Rows<'a> {
    /// For columns that the engine names so; names that clash are told apart. Rows beyond `keep` are
    /// left out.
    pub fn new(mut columns: Vec<Declared>, limits: &'a Limits, keep: Option<usize>) -> Self {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = distinct(&names);
        let key = |name: &String| {
            let mut key = String::new();
            json_text::quote(name, &mut key);
            key.push(':');
            key
        };
        let keys = names.iter().map(key).collect();
        for (column, name) in columns.iter_mut().zip(names) {
            column.name = name;
        }
        Self { limits, columns, keys, rows: "[".to_owned(), count: 0, column: 0, keep, cut: false }
    }

    /// Starts a row; `false` if no more are wanted.
    ///
    /// # Errors
    /// When there are too many.
    pub fn begin(&mut self) -> Result<bool, SqlError> {
        if Some(self.count) == self.keep {
            self.cut = true;
            return Ok(false);
        }
        if self.count == self.limits.rows {
            return Err(SqlError::refused(format!(
                "the result has more than {} rows; add a LIMIT",
                self.limits.rows
            )));
        }
        self.rows.push_str(if self.count > 0 { ",{" } else { "{" });
        self.count += 1;
        self.column = 0;
        Ok(true)
    }

    /// The next cell, of `size` bytes or more: appends one JSON value to the text it is given.
    ///
    /// # Errors
    /// When the result gets too large.
    pub fn cell(&mut self, size: usize, write: impl FnOnce(&mut String)) -> Result<(), SqlError> {
        // Looked at first, so that a value of gigabytes is not copied to be refused.
        self.check(size)?;
        if self.column > 0 {
            self.rows.push(',');
        }
        self.rows.push_str(&self.keys[self.column]);
        write(&mut self.rows);
        self.column += 1;
        self.check(0)
    }

    fn check(&self, more: usize) -> Result<(), SqlError> {
        if self.rows.len().saturating_add(more) <= self.limits.bytes {
            return Ok(());
        }
        Err(SqlError::refused(format!(
            "the result takes more than {} MiB; select fewer or shorter columns, or add a LIMIT",
            self.limits.bytes >> 20
        )))
    }

    /// Ends a row.
    pub fn end(&mut self) {
        self.rows.push('}');
    }

    /// All rows are there.
    pub fn finish(mut self) -> Answer {
        self.rows.push(']');
        Answer { columns: self.columns, rows: self.rows, count: self.count, cut: self.cut }
    }
}

/// The names with every repeated one told apart: the second `id` is `id_1`, the third `id_2`.
fn distinct<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    let given: HashSet<&str> = names.iter().map(AsRef::as_ref).collect();
    let mut used: HashSet<String> = HashSet::new();
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        let name = name.as_ref();
        let mut unique = name.to_owned();
        for n in 1.. {
            if !used.contains(&unique) && (unique == name || !given.contains(unique.as_str())) {
                break;
            }
            unique = format!("{name}_{n}");
        }
        used.insert(unique.clone());
        out.push(unique);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clashing_names() {
        for (names, want) in [
            (&["id", "id", "id"][..], &["id", "id_1", "id_2"][..]),
            (&["id", "id", "id_1"], &["id", "id_2", "id_1"]),
            (&["a", "A"], &["a", "A"]),
        ] {
            assert_eq!(distinct(names), want);
        }
    }
}
