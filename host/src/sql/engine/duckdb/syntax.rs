//! [`Syntax`]: a statement as DuckDB's own parser understands it.

use serde_json::Value;

use super::ffi::Connection;
use crate::sql::feed::{Feed, Part, Parts, Wants};
use crate::sql::table::{Column, Kind};

/// The tree of a statement, as the text that `json_serialize_sql` writes. There is none of what is no SELECT, nor of
/// a PIVOT without an IN list.
pub(super) struct Syntax(Option<String>);

impl Syntax {
    /// Has the statement parsed.
    pub(super) fn of(connection: &Connection, sql: &str) -> Self {
        let statement =
            format!("SELECT json_serialize_sql('{}')::VARCHAR", sql.replace('\'', "''"));
        let tree = connection.texts(&statement).ok().and_then(|texts| texts.into_iter().next());
        Self(tree.filter(|tree| tree.starts_with("{\"error\":false")))
    }

    /// The tree's text, if there is one.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// What must be read before the statement can run. Of a table that is given by parts it is the rows that an
    /// equality in a WHERE leaves; without such a condition, or when it cannot be told, the whole.
    pub(super) fn wants(&self, tables: &[(String, Feed)]) -> Option<Wants> {
        let by_parts = tables.iter().enumerate().filter_map(|(at, (name, feed))| match feed {
            Feed::Parts(parts) => Some((at, name, parts)),
            Feed::Whole(_) => None,
        });
        let mut by_parts = by_parts.peekable();
        // The usual case: every table is whole.
        by_parts.peek()?;
        // What nests deeper than serde_json follows reads whole tables.
        let tree = self.text().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let numbered = tree.as_ref().is_none_or(tells_places);
        by_parts.find_map(|(table, name, parts)| {
            let tree = tree.as_ref().filter(|_| !numbered);
            match tree.and_then(|tree| equality(tree, name, parts)) {
                Some(part) if parts.get(part.column, &part.text).is_some() => None,
                part => Some(Wants {
                    table,
                    part: part.filter(|part| parts.can_read(part.column, &part.text)),
                }),
            }
        })
    }
}

/// Whether a statement asks for more of a table than its rows: their numbers, or what DuckDB knows of it.
fn tells_places(tree: &Value) -> bool {
    any(tree, &mut |node| {
        let called = node["function_name"].as_str().unwrap_or_default().to_ascii_lowercase();
        let columns = node["column_names"].as_array().into_iter().flatten();
        columns.filter_map(Value::as_str).any(|name| name.eq_ignore_ascii_case("rowid"))
            || ["duckdb_", "histogram", "stats", "summary"]
                .iter()
                .any(|start| called.starts_with(start))
    })
}

/// The part of a table that is all a statement reads of it: the table stands in one FROM, and the WHERE behind that
/// keeps nothing but the rows whose column has one text. So it is with joins, too, as long as they pair rows by
/// conditions: what an outer one adds for want of a partner has null there.
fn equality(tree: &Value, table: &str, parts: &Parts) -> Option<Part> {
    let mut times = 0;
    let mut found = None;
    any(tree, &mut |node| {
        times += usize::from(is(node, "BASE_TABLE") && node["table_name"] == table);
        if is(node, "SELECT_NODE") && node["sample"].is_null() {
            let alone = is(&node["from_table"], "BASE_TABLE");
            if let Some(alias) = alias(&node["from_table"], table) {
                found = condition(&node["where_clause"], alias, alone, parts);
            }
        }
        false
    });
    found.filter(|_| times == 1)
}

/// What the columns of a table are named by in the WHERE behind a FROM, if the table is there.
fn alias<'a>(from: &'a Value, table: &'a str) -> Option<&'a str> {
    let plain = |node: &Value| {
        node["sample"].is_null()
            && node["at_clause"].is_null()
            && node["column_name_alias"].as_array().is_none_or(Vec::is_empty)
    };
    if is(from, "BASE_TABLE") {
        let is_it = from["table_name"] == table && plain(from);
        return is_it
            .then(|| from["alias"].as_str().filter(|name| !name.is_empty()).unwrap_or(table));
    }
    let pairs = is(from, "JOIN")
        && from["sample"].is_null()
        && ["REGULAR", "CROSS"].iter().any(|kind| from["ref_type"] == *kind)
        && ["INNER", "LEFT", "RIGHT", "FULL"].iter().any(|kind| from["join_type"] == *kind);
    if !pairs {
        return None;
    }
    alias(&from["left"], table).or_else(|| alias(&from["right"], table))
}

/// The first `column = 'text'` that a row must fulfil, of a column by which the table can be read.
fn condition(clause: &Value, alias: &str, alone: bool, parts: &Parts) -> Option<Part> {
    if is(clause, "CONJUNCTION_AND") {
        let terms = clause["children"].as_array()?;
        return terms.iter().find_map(|term| condition(term, alias, alone, parts));
    }
    if !is(clause, "COMPARE_EQUAL") {
        return None;
    }
    let (left, right) = (&clause["left"], &clause["right"]);
    let read = |column: &Value, text: &Value| {
        let column = column_of(column, alias, alone, parts)?;
        let constant = &text["value"];
        let is_text = is(text, "VALUE_CONSTANT") && constant["type"]["id"] == "VARCHAR";
        let text = constant["value"].as_str().filter(|_| is_text)?.to_owned();
        Some(Part { column, text })
    };
    read(left, right).or_else(|| read(right, left))
}

/// The position of the column that is named, if texts are in it by which the table can be read. Beside other tables the name must say whose it is.
fn column_of(node: &Value, alias: &str, alone: bool, parts: &Parts) -> Option<usize> {
    let names = node["column_names"].as_array().filter(|_| is(node, "COLUMN_REF"))?;
    let name = match &names[..] {
        [name] if alone => name.as_str()?,
        [table, name] if table.as_str()?.eq_ignore_ascii_case(alias) => name.as_str()?,
        _ => return None,
    };
    let is_it = |column: &Column| column.name.eq_ignore_ascii_case(name);
    let at = parts.columns.iter().position(is_it)?;
    (parts.columns[at].kind == Kind::Text && parts.by.contains(&at)).then_some(at)
}

fn is(node: &Value, kind: &str) -> bool {
    node["type"] == kind
}

/// Whether the test holds of any object in a tree.
fn any(tree: &Value, test: &mut impl FnMut(&Value) -> bool) -> bool {
    match tree {
        Value::Object(members) => {
            test(tree) || members.values().any(|member| any(member, &mut *test))
        }
        Value::Array(items) => items.iter().any(|item| any(item, &mut *test)),
        _ => false,
    }
}
