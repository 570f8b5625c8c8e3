//! What the host and the process of the engine say to each other: frames of a letter, a length and bytes.
//!
//! When the process has opened the library ([`Said::Ready`]) the host asks [`Ask`]; when the statement may run
//! ([`Said::Ready`] again) it sends the rows of each table, block by block, then [`RUN`]. Every [`Reply`] is one frame, the rows of an answer the frame after it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sql::engine::Query;
use crate::sql::error::SqlError;
use crate::sql::feed::{Feed, Part, Parts, Wants};
use crate::sql::limits::Limits;
use crate::sql::table::{Body, Column, Declared, Table};

/// A question ([`Ask`]).
pub(super) const ASK: u8 = b'a';
/// Rows of the table that is being filled.
pub(super) const BLOCK: u8 = b'b';
/// The table that is being filled has all its rows; the next one follows.
pub(super) const END: u8 = b'e';
/// All tables are filled.
pub(super) const RUN: u8 = b'r';
/// An answer ([`Reply`]), or the rows that belong to one.
pub(super) const REPLY: u8 = b'y';

/// A frame beyond this is taken for noise.
const MOST: u64 = 1 << 30;

/// Sends a frame.
pub(super) fn send(to: &mut impl Write, letter: u8, bytes: &[u8]) -> io::Result<()> {
    let mut head = [letter; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)
}

/// Reads a frame into `bytes` and gives its letter; `None` at the end of the stream.
pub(super) fn receive(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut head = [0; 9];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let [letter, length @ ..] = head;
    let length = u64::from_le_bytes(length);
    if length > MOST {
        return Err(other("a frame is too long"));
    }
    bytes.clear();
    from.take(length).read_to_end(bytes)?;
    if bytes.len() as u64 == length { Ok(Some(letter)) } else { Err(other("a frame is cut off")) }
}

/// An error of the stream itself.
pub(super) fn other(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// A statement to look at.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) sql: String,
    tables: Vec<Shape>,
    pub(super) limits: Limits,
    pub(super) keep: Option<usize>,
}

/// A table without its rows.
#[derive(Debug, Serialize, Deserialize)]
struct Shape {
    name: String,
    columns: Vec<Column>,
    /// `None` when all of it has been read.
    parts: Option<PartsRead>,
}

/// By which columns parts of a table can be read, and which have been.
#[derive(Debug, Serialize, Deserialize)]
struct PartsRead {
    by: Vec<usize>,
    known: Vec<(usize, String)>,
}

impl Ask {
    pub(super) fn of(query: &Query<'_>) -> Self {
        let tables = query.tables.iter().map(|(name, feed)| Shape {
            name: name.clone(),
            columns: feed.columns().to_vec(),
            parts: match feed {
                Feed::Whole(_) => None,
                Feed::Parts(parts) => {
                    let known = parts.known.iter();
                    let known = known.map(|(part, _)| (part.column, part.text.clone())).collect();
                    Some(PartsRead { by: parts.by.clone(), known })
                }
            },
        });
        Self {
            sql: query.sql.to_owned(),
            tables: tables.collect(),
            limits: query.limits.clone(),
            keep: query.keep,
        }
    }

    /// The tables, without rows.
    pub(super) fn tables(&self) -> io::Result<Vec<(String, Feed)>> {
        let table = |shape: &Shape| {
            let declared = shape.columns.iter().cloned().map(Declared::from);
            let empty = Table::new(&declared.collect::<Vec<_>>(), Body::Records(Vec::new()));
            let empty = Arc::new(empty.map_err(io::Error::other)?);
            let feed = match &shape.parts {
                None => Feed::Whole(empty),
                Some(PartsRead { by, known }) => {
                    let part = |(column, text): &(usize, String)| {
                        (Part { column: *column, text: text.clone() }, Arc::clone(&empty))
                    };
                    Feed::Parts(Arc::new(Parts {
                        columns: shape.columns.clone(),
                        by: by.clone(),
                        known: known.iter().map(part).collect(),
                        moment: None,
                    }))
                }
            };
            Ok((shape.name.clone(), feed))
        };
        self.tables.iter().map(table).collect()
    }
}

/// What became of a question, or of a statement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) said: Said,
    /// Whether the process ends after this: it has taken much.
    pub(super) last: bool,
}

/// The words of a [`Reply`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// The rows of a table are needed, or those of one part of it.
    Wants { table: usize, part: Option<(usize, String)> },
    /// The first question may come, or the rows of the tables.
    Ready,
    /// It has run; its rows follow.
    Answer { columns: Vec<Declared>, count: usize, cut: bool },
    /// It is refused, or took too much.
    Refused(String),
    /// It took too long.
    Timeout,
    /// The engine cannot be used.
    Engine(String),
}

impl Said {
    pub(super) fn wants(Wants { table, part }: Wants) -> Self {
        Self::Wants { table, part: part.map(|part| (part.column, part.text)) }
    }

    pub(super) fn error(error: SqlError) -> Self {
        match error {
            SqlError::Refused(message) => Self::Refused(message),
            SqlError::Timeout(_) => Self::Timeout,
            other => Self::Engine(other.to_string()),
        }
    }
}
