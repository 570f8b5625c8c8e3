//! [`blocks`] and [`Block`]: rows on their way into a temporary table, which may be in another process.
//!
//! A block is the cells of some rows, row by row: a letter for what it is, then its bytes; texts have their length
//! before them.

use super::ffi::Writer;
use crate::sql::table::{Table, Value};

/// The most rows in a block: what DuckDB takes at a time.
const ROWS: usize = 2048;
/// A block that is this large takes no more rows.
const BYTES: usize = 1 << 20;

/// The rows of a table.
pub(super) fn blocks(table: &Table) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut row = 0;
    std::iter::from_fn(move || {
        let (mut block, first) = (Vec::new(), row);
        while row < table.len() && row - first < ROWS && block.len() < BYTES {
            for column in 0..table.columns().len() {
                put(&table.value(row, column), &mut block);
            }
            row += 1;
        }
        (row > first).then_some(block)
    })
}

fn put(value: &Value<'_>, block: &mut Vec<u8>) {
    match value {
        Value::Null => block.push(b'n'),
        Value::Text(text) | Value::Json(text) => {
            block.push(b't');
            block.extend((text.len() as u64).to_le_bytes());
            block.extend(text.as_bytes());
        }
        Value::Integer(number) => {
            block.push(b'i');
            block.extend(number.to_le_bytes());
        }
        Value::Double(number) => {
            block.push(b'f');
            block.extend(number.to_le_bytes());
        }
        Value::Boolean(truth) => block.extend([b'b', u8::from(*truth)]),
    }
}

/// The cells of some rows.
pub(super) struct Block<'b> {
    cells: Vec<Cell<'b>>,
    columns: usize,
}

#[derive(Debug, PartialEq)]
enum Cell<'b> {
    Null,
    Text(&'b str),
    Integer(i64),
    Double(f64),
    Boolean(bool),
}

impl<'b> Block<'b> {
    /// What [`blocks`] made of a table with so many columns; `None` if it is something else.
    pub(super) fn of(bytes: &'b [u8], columns: usize) -> Option<Self> {
        let (mut rest, mut cells) = (bytes, Vec::new());
        while !rest.is_empty() {
            cells.push(cell(&mut rest)?);
        }
        (columns > 0 && cells.len() % columns == 0).then_some(Self { cells, columns })
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// Writes one cell.
    pub(super) fn write(&self, row: usize, column: usize, writer: &mut Writer<'_>) {
        match self.cells[row * self.columns + column] {
            Cell::Null => writer.null(),
            Cell::Text(text) => writer.text(text),
            Cell::Integer(number) => writer.integer(number),
            Cell::Double(number) => writer.double(number),
            Cell::Boolean(truth) => writer.boolean(truth),
        }
    }
}

fn cell<'b>(rest: &mut &'b [u8]) -> Option<Cell<'b>> {
    fn number(rest: &mut &[u8]) -> Option<[u8; 8]> {
        let (bytes, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(*bytes)
    }
    let (letter, after) = rest.split_first()?;
    *rest = after;
    Some(match letter {
        b'n' => Cell::Null,
        b't' => {
            let length = usize::try_from(u64::from_le_bytes(number(rest)?)).ok()?;
            let (text, after) = rest.split_at_checked(length)?;
            *rest = after;
            Cell::Text(std::str::from_utf8(text).ok()?)
        }
        b'i' => Cell::Integer(i64::from_le_bytes(number(rest)?)),
        b'f' => Cell::Double(f64::from_le_bytes(number(rest)?)),
        b'b' => {
            let (truth, after) = rest.split_first()?;
            *rest = after;
            Cell::Boolean(*truth != 0)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::table::{Body, Declared, Kind};

    #[test]
    fn rows_go_through_blocks() {
        let declared = [
            ("a", Kind::Text),
            ("n", Kind::Integer),
            ("x", Kind::Double),
            ("b", Kind::Boolean),
            ("j", Kind::Json),
        ]
        .map(|(name, kind)| Declared::new(name, Some(kind)));
        let record = |n: usize| {
            let text = if n == 7 { "\u{e9}".repeat(BYTES) } else { "t".repeat(n % 3) };
            format!(r#"{{"a":"{text}","n":{n},"x":1.5,"b":true,"j":[1, {n}]}}"#)
        };
        let mut records: Vec<String> = (0..ROWS + 5).map(record).collect();
        records.push("{}".to_owned());
        let table = Table::new(&declared, Body::Records(records)).unwrap();
        let mut row = 0;
        for bytes in blocks(&table) {
            let block = Block::of(&bytes, 5).unwrap();
            assert!((1..=ROWS).contains(&block.rows()));
            for cells in block.cells.chunks(5) {
                for (column, cell) in cells.iter().enumerate() {
                    let same = match (cell, table.value(row, column)) {
                        (Cell::Null, Value::Null) => true,
                        (Cell::Text(cell), Value::Text(text) | Value::Json(text)) => *cell == text,
                        (Cell::Integer(cell), Value::Integer(number)) => *cell == number,
                        (Cell::Double(cell), Value::Double(number)) => *cell == number,
                        (Cell::Boolean(cell), Value::Boolean(truth)) => *cell == truth,
                        _ => false,
                    };
                    assert!(same, "row {row} column {column}: {cell:?}");
                }
                row += 1;
            }
        }
        assert_eq!(row, table.len());
    }

    #[test]
    fn other_bytes_are_no_block() {
        for bytes in [
            &b"n"[..],
            b"nnn",
            b"t",
            b"t\x02\0\0\0\0\0\0\0a",
            b"i123",
            b"b",
            b"?",
            b"t\x01\0\0\0\0\0\0\0\xffn",
        ] {
            assert!(Block::of(bytes, 2).is_none(), "{bytes:?}");
        }
        assert!(Block::of(b"nn", 2).is_some_and(|block| block.rows() == 1));
    }
}
