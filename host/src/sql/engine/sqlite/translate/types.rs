//! [`Type`]: what an expression is to DuckDB, and [`Scope`]: which names mean what.

use super::{Result, Untranslated};
use crate::sql::table::Kind;

/// What an expression is to DuckDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Text,
    Integer,
    /// A literal such as `0.5`: exact to DuckDB, a double here. Good for little but beside a double.
    Decimal,
    Double,
    Boolean,
    Json,
    Date,
    Timestamp,
    Interval,
    List(Box<Type>),
    Struct(Vec<(String, Type)>),
    /// From texts.
    Map(Box<Type>),
    /// Of a column that exists in DuckDB, with values that are not known here.
    Unsaid,
}

impl Type {
    pub(super) fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Integer => Self::Integer,
            Kind::Double => Self::Double,
            Kind::Boolean => Self::Boolean,
            Kind::Json => Self::Json,
        }
    }

    /// How a column of it is sent.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Boolean => Some(Kind::Boolean),
            Self::Integer => Some(Kind::Integer),
            Self::Double => Some(Kind::Double),
            Self::Json | Self::List(_) | Self::Struct(_) | Self::Map(_) => Some(Kind::Json),
            Self::Null
            | Self::Text
            | Self::Decimal
            | Self::Date
            | Self::Timestamp
            | Self::Interval
            | Self::Unsaid => None,
        }
    }

    /// How many types it is made of.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::List(of) | Self::Map(of) => of.size(),
            Self::Struct(fields) => fields.iter().map(|(_, of)| of.size()).sum(),
            _ => 0,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Integer | Self::Decimal | Self::Double)
    }

    /// Whether it is kept as a JSON text.
    pub(super) fn is_json_text(&self) -> bool {
        self.kind() == Some(Kind::Json)
    }

    /// Whether values of it can be ordered and told apart as SQLite does it.
    pub(super) fn sorts(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Text
                | Self::Integer
                | Self::Double
                | Self::Boolean
                | Self::Date
                | Self::Timestamp
        )
    }

    /// The type that holds values of both.
    pub(super) fn with(&self, other: &Self) -> Result<Self> {
        match (self, other) {
            (a, b) if a == b => Ok(a.clone()),
            (Self::Null, other) | (other, Self::Null) => Ok(other.clone()),
            (Self::Integer | Self::Decimal | Self::Double, Self::Double)
            | (Self::Double, Self::Integer | Self::Decimal) => Ok(Self::Double),
            _ => Err(Untranslated),
        }
    }
}

/// An expression in SQLite's language, with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) sql: String,
    pub(super) of: Type,
}

impl Typed {
    pub(super) fn new(sql: impl Into<String>, of: Type) -> Self {
        Self { sql: sql.into(), of }
    }
}

/// A column of a table or of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) of: Type,
}

/// A table in scope.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// What it is called in the statement.
    pub(super) alias: String,
    pub(super) columns: Vec<Column>,
    /// What its only column is called in SQLite, if that is something else.
    pub(super) own_name: Option<&'static str>,
    /// Columns that are found only with the table's name: another table has them as well, by `USING`.
    pub(super) hidden: Vec<String>,
}

/// Which names mean what.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) outer: Option<&'a Scope<'a>>,
    pub(super) sources: Vec<Source>,
    /// What was selected before, by its name.
    pub(super) aliases: Vec<(String, Typed)>,
    /// The terms of `GROUP BY`, in a statement that has groups.
    pub(super) groups: Option<Vec<String>>,
    /// Those of them that are null here: the terms of other grouping sets.
    pub(super) nulls: Vec<String>,
}

impl Scope<'_> {
    /// A column by its name alone.
    fn column(&self, name: &str) -> Result<Option<Typed>> {
        let mut found = None;
        for source in &self.sources {
            if source.hidden.iter().any(|hidden| hidden.eq_ignore_ascii_case(name)) {
                continue;
            }
            if let Some(column) = source.column(name) {
                if found.is_some() {
                    return Err(Untranslated);
                }
                found = Some(column);
            }
        }
        Ok(found)
    }

    /// What a path of names starts with, and how many of the names that takes.
    pub(super) fn resolve(&self, path: &[String]) -> Result<(Typed, usize)> {
        let mut scope = Some(self);
        while let Some(at) = scope {
            if let [table, name, ..] = path
                && let Some(source) =
                    at.sources.iter().find(|source| source.alias.eq_ignore_ascii_case(table))
            {
                if let Some(column) = source.column(name) {
                    return Ok((at.grouped(column)?, 2));
                }
                // A table further out of this name is hidden, and what is written down would not find it.
                if at.column(table)?.is_none() {
                    return Err(Untranslated);
                }
            }
            if let Some(column) = at.column(&path[0])? {
                return Ok((at.grouped(column)?, 1));
            }
            if let Some((_, typed)) =
                at.aliases.iter().find(|(name, _)| name.eq_ignore_ascii_case(&path[0]))
            {
                return Ok((typed.clone(), 1));
            }
            scope = at.outer;
        }
        Err(Untranslated)
    }

    /// A column of a statement with groups has one value only if it is a term of them.
    fn grouped(&self, column: Typed) -> Result<Typed> {
        match &self.groups {
            Some(groups) if !groups.contains(&column.sql) => Err(Untranslated),
            _ => Ok(self.nulled(column)),
        }
    }

    /// The value, or null where another grouping set has it.
    pub(super) fn nulled(&self, typed: Typed) -> Typed {
        if self.nulls.contains(&typed.sql) { Typed::new("NULL", typed.of) } else { typed }
    }
}

impl Source {
    fn column(&self, name: &str) -> Option<Typed> {
        let column = self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))?;
        Some(Typed::new(
            format!("{}.{}", quoted(&self.alias), quoted(self.own_name.unwrap_or(&column.name))),
            column.of.clone(),
        ))
    }
}

/// A name as SQLite takes it, whatever it is.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
