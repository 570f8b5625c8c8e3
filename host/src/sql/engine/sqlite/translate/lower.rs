//! From a [`Query`](super::tree::Query) to SQLite's language: tables, groups, order.

use super::tree::{Body, Expr, Order, Query, Sort};
use super::types::{Column, Scope, Type, Typed, quoted};
use super::{Result, Translated, Untranslated};
use crate::sql::feed::Feed;

mod calls;
mod casts;
mod expressions;
mod functions;
mod items;
mod operators;
mod select;
mod tables;

/// Bytes of a translation: names of earlier expressions may repeat them.
const LONGEST: usize = 256 << 10;

/// Bytes of all expressions on the way there, those in others again with them.
const MOST_WRITTEN: usize = 16 * LONGEST;

/// Writes a statement down.
pub(super) fn statement(query: &Query, tables: &[(String, Feed)]) -> Result<Translated> {
    let mut lower = Lower { tables, ctes: Vec::new(), made: 0, steps: 0, written: 0 };
    let rows = lower.query(query, None)?;
    if rows.columns.iter().any(|column| matches!(column.of, Type::Interval | Type::Unsaid)) {
        return Err(Untranslated);
    }
    Ok(Translated {
        sql: rows.sql,
        kinds: rows.columns.iter().map(|column| column.of.kind()).collect(),
    })
}

/// What writes.
struct Lower<'a> {
    tables: &'a [(String, Feed)],
    ctes: Vec<(String, Vec<Column>)>,
    /// How many names were made up.
    made: usize,
    /// How many expressions were written down.
    steps: usize,
    /// How many bytes they took.
    written: usize,
}

/// Rows, and what they are.
struct Rows {
    sql: String,
    columns: Vec<Column>,
}

impl Lower<'_> {
    /// A name that is nowhere else: only ours start like this.
    fn name(&mut self) -> String {
        self.made += 1;
        format!("_made{}", self.made)
    }

    fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Rows> {
        let before = self.ctes.len();
        let mut with = Vec::new();
        for cte in &query.with {
            let rows = self.query(&cte.query, outer)?;
            let columns = renamed(rows.columns, &cte.columns)?;
            distinct_names(&columns)?;
            with.push(format!("{}({}) AS ({})", quoted(&cte.name), names(&columns), rows.sql));
            self.ctes.push((cte.name.clone(), columns));
        }
        let rows = self.rows(query, outer)?;
        self.ctes.truncate(before);
        let with =
            if with.is_empty() { String::new() } else { format!("WITH {} ", with.join(", ")) };
        let mut sql = with + &rows.sql;
        if let Some(limit) = &query.limit {
            sql.push_str(&format!(" LIMIT {}", count(limit)?));
        } else if query.offset.is_some() {
            sql.push_str(" LIMIT -1");
        }
        if let Some(offset) = &query.offset {
            sql.push_str(&format!(" OFFSET {}", count(offset)?));
        }
        if sql.len() > LONGEST {
            Err(Untranslated)
        } else {
            Ok(Rows { sql, columns: rows.columns })
        }
    }

    /// The rows of a query in their order.
    fn rows(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Rows> {
        if let Body::Select(select) = &query.body {
            return self.select(select, &query.order, outer);
        }
        in_order(self.body(&query.body, outer)?, &query.order)
    }

    fn body(&mut self, body: &Body, outer: Option<&Scope<'_>>) -> Result<Rows> {
        match body {
            Body::Select(select) => self.select(select, &Order::By(Vec::new()), outer),
            Body::Nested(query) => {
                let rows = self.query(query, outer)?;
                Ok(Rows { sql: format!("SELECT * FROM ({})", rows.sql), columns: rows.columns })
            }
            Body::Values(values) => self.values(values, outer),
            Body::Both(operator, by_name, left, right) => {
                self.both(operator, *by_name, left, right, outer)
            }
            Body::Pivot(pivot) => self.pivot(pivot, outer),
            Body::Unpivot(unpivot) => self.unpivot(unpivot, outer),
            Body::Summarize(query) => self.summarize(query, outer),
        }
    }

    fn values(&mut self, values: &[Vec<Expr>], outer: Option<&Scope<'_>>) -> Result<Rows> {
        let scope = Scope { outer, ..Scope::default() };
        let mut rows = Vec::new();
        for row in values {
            rows.push(row.iter().map(|expr| self.expr(expr, &scope)).collect::<Result<Vec<_>>>()?);
        }
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            return Err(Untranslated);
        }
        let mut columns = Vec::new();
        for at in 0..width {
            let of = rows.iter().try_fold(Type::Null, |of, row| of.with(&row[at].of))?;
            for row in &mut rows {
                row[at] = casts::widened(row[at].clone(), &of);
            }
            columns.push(Column { name: format!("col{at}"), of });
        }
        let one = |row: &Vec<Typed>| {
            let cells = row
                .iter()
                .zip(&columns)
                .map(|(cell, column)| format!("{} AS {}", cell.sql, quoted(&column.name)));
            format!("SELECT {}", cells.collect::<Vec<_>>().join(", "))
        };
        Ok(Rows { sql: rows.iter().map(one).collect::<Vec<_>>().join(" UNION ALL "), columns })
    }

    fn both(
        &mut self,
        operator: &str,
        by_name: bool,
        left: &Body,
        right: &Body,
        outer: Option<&Scope<'_>>,
    ) -> Result<Rows> {
        let (left, right) = (self.body(left, outer)?, self.body(right, outer)?);
        let mut columns: Vec<Column> = Vec::new();
        let at = |rows: &Rows, place: usize, name: &str| match by_name {
            true => rows.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)),
            false => (place < rows.columns.len()).then_some(place),
        };
        if !by_name && left.columns.len() != right.columns.len() {
            return Err(Untranslated);
        }
        let others = right.columns.iter().filter(|_| by_name);
        for column in left.columns.iter().chain(others) {
            if by_name && columns.iter().any(|other| other.name.eq_ignore_ascii_case(&column.name))
            {
                continue;
            }
            columns.push(column.clone());
        }
        let mut arms = Vec::new();
        for (place, column) in columns.iter_mut().enumerate() {
            let of = |rows: &Rows| {
                at(rows, place, &column.name).map_or(Type::Null, |at| rows.columns[at].of.clone())
            };
            column.of = match (of(&left), of(&right)) {
                // Both are numbers to SQLite.
                (Type::Boolean, Type::Integer) | (Type::Integer, Type::Boolean) => Type::Integer,
                (left, right) => left.with(&right)?,
            };
            // What is compared by SQLite must compare as it does in DuckDB.
            if operator != "UNION ALL" && !column.of.sorts() {
                return Err(Untranslated);
            }
        }
        for rows in [&left, &right] {
            distinct_names(&rows.columns)?;
            let alias = self.name();
            let cells = columns.iter().enumerate().map(|(place, column)| {
                let cell = match at(rows, place, &column.name) {
                    Some(at) => {
                        let from = &rows.columns[at];
                        let cell = format!("{}.{}", quoted(&alias), quoted(&from.name));
                        casts::widened(Typed::new(cell, from.of.clone()), &column.of).sql
                    }
                    None => "NULL".to_owned(),
                };
                format!("{cell} AS {}", quoted(&column.name))
            });
            arms.push(format!(
                "SELECT {} FROM ({}) AS {}",
                cells.collect::<Vec<_>>().join(", "),
                rows.sql,
                quoted(&alias)
            ));
        }
        Ok(Rows { sql: format!("SELECT * FROM ({} {operator} {})", arms[0], arms[1]), columns })
    }

    /// How a column is spelled where it is stored.
    fn stored_name(&self, name: &str, scope: &Scope<'_>) -> Result<String> {
        let mut columns = scope.sources.iter().flat_map(|source| &source.columns);
        let column =
            columns.find(|column| column.name.eq_ignore_ascii_case(name)).ok_or(Untranslated)?;
        Ok(column.name.clone())
    }
}

/// The position of what is sorted by, from 1, if it is one or names one.
fn place(by: &Expr, columns: &[Column]) -> Result<Option<usize>> {
    let place = match by {
        Expr::Number(number) => {
            let place = number.parse::<usize>().map_err(|_| Untranslated)?;
            if place == 0 || place > columns.len() {
                return Err(Untranslated);
            }
            Some(place)
        }
        Expr::Name(path) if path.len() == 1 => columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(&path[0]))
            .map(|at| at + 1),
        _ => None,
    };
    match place {
        Some(place) if !columns[place - 1].of.sorts() => Err(Untranslated),
        place => Ok(place),
    }
}

/// Rows in an order that only their columns give.
fn in_order(rows: Rows, order: &Order) -> Result<Rows> {
    let Rows { sql, columns } = rows;
    let terms = match order {
        Order::All(descending) => all(columns.iter().map(|column| &column.of), *descending)?,
        Order::By(sorts) => sorts
            .iter()
            .map(|sort| {
                Ok(sorted(&place(&sort.by, &columns)?.ok_or(Untranslated)?.to_string(), sort))
            })
            .collect::<Result<Vec<_>>>()?,
    };
    Ok(Rows { sql: sql + &order_by(&terms), columns })
}

/// What stands behind a statement to have it sorted; nothing without terms.
fn order_by(terms: &[String]) -> String {
    if terms.is_empty() { String::new() } else { format!(" ORDER BY {}", terms.join(", ")) }
}

/// Expressions under the names of their columns, as they stand behind `SELECT`.
fn cells<'a>(cells: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let cells = cells.map(|(sql, name)| format!("{sql} AS {}", quoted(name)));
    cells.collect::<Vec<_>>().join(", ")
}

/// A term of `ORDER BY`, with the nulls where DuckDB has them.
fn sorted(what: &str, sort: &Sort) -> String {
    let direction = if sort.descending { " DESC" } else { "" };
    let nulls = if sort.nulls_first { "FIRST" } else { "LAST" };
    format!("{what}{direction} NULLS {nulls}")
}

/// `ORDER BY ALL`.
fn all<'a>(types: impl Iterator<Item = &'a Type>, descending: bool) -> Result<Vec<String>> {
    let direction = if descending { " DESC" } else { "" };
    types
        .enumerate()
        .map(|(at, of)| {
            if of.sorts() {
                Ok(format!("{}{direction} NULLS LAST", at + 1))
            } else {
                Err(Untranslated)
            }
        })
        .collect()
}

/// `LIMIT` and `OFFSET`.
fn count(expr: &Expr) -> Result<u32> {
    match expr {
        Expr::Number(text) | Expr::Text(text) => text.parse().map_err(|_| Untranslated),
        _ => Err(Untranslated),
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// Columns under other names; fewer names are for the first of them.
fn renamed(mut columns: Vec<Column>, names: &[String]) -> Result<Vec<Column>> {
    if names.len() > columns.len() {
        return Err(Untranslated);
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    Ok(columns)
}

/// Two columns of one name cannot be told apart by those that read them.
fn distinct_names(columns: &[Column]) -> Result<()> {
    let twice = columns.iter().enumerate().any(|(at, column)| {
        columns[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&column.name))
    });
    if twice { Err(Untranslated) } else { Ok(()) }
}
