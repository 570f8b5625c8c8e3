//! What commands print: results on standard output, and nothing else there.

use std::io::{self, Write};

use serde::Serialize;

use super::visible;
use crate::error::HostError;

/// Prints one line of text. A reader that has gone away (`| head`) ends nothing.
pub(super) fn line(text: &str) -> Result<(), HostError> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(HostError::Internal {
            message: "cannot write to standard output".to_owned(),
            detail: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON.
pub(super) fn json(value: &impl Serialize) -> Result<(), HostError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| HostError::Internal {
        message: "cannot render the result".to_owned(),
        detail: error.to_string(),
    })?;
    json_text(&text)
}

/// Prints JSON that is text already. It may hold what others wrote: what would steer a terminal becomes an escape, with
/// the same meaning.
pub(super) fn json_text(text: &str) -> Result<(), HostError> {
    line(&visible::json(text))
}

/// Tells people on standard error, as `main` does. Nobody may be listening there any more.
pub(super) fn error(text: &str) {
    let _closed = writeln!(io::stderr(), "udf-host: {text}");
}

/// Shows people, on standard error, what others wrote at length.
pub(super) fn aside(text: &str) {
    let mut err = io::stderr().lock();
    for line in visible::lines(text.trim_end()) {
        // As above.
        let _closed = writeln!(err, "{line}");
    }
}

/// A number of things: "1 file", "2 files".
pub(super) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Prints rows in aligned columns; the last one is not padded.
pub(super) fn table(rows: &[Vec<String>]) -> Result<(), HostError> {
    aligned(rows).iter().try_for_each(|row| line(row))
}

/// One line for each row, its columns aligned.
pub(super) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| visible::width(cell))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let text = |row: &Vec<String>| {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                let pad = widths[column] - visible::width(cell);
                text.push_str(&" ".repeat(pad + 2));
            }
        }
        text.trim_end().to_owned()
    };
    rows.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_whatever_their_letters() {
        let rows = [["ABOUT", "ID"], ["日本", "1"], ["e\u{301}t\u{e9}", "2"], ["🧪", "3"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let want = ["ABOUT  ID", "日本   1", "e\u{301}t\u{e9}    2", "🧪     3"];
        assert_eq!(aligned(&rows), want);
    }
}
