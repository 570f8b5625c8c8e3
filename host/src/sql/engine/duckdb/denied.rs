//! [`Denied`]: functions that a statement may not call. They write files, change the process or tell of
//! it, and no setting of DuckDB turns them off: `enable_logging` to a folder it may not write to ends the
//! process.
//!
//! Which functions a statement calls is told by DuckDB's own parser, as JSON. What the parser cannot tell
//! that way (a PIVOT without an IN list) is told by the words before a parenthesis.

use std::collections::HashSet;

use super::ffi::Connection;
use super::syntax::Syntax;
use crate::sql::error::SqlError;
use crate::sql::lexer::{Dialect, Piece, split};

/// Table functions that only look at their arguments, or at the statement's own tables. All others of
/// the library's version are denied.
const TABLES: &[&str] = &[
    "duckdb_columns",
    "duckdb_functions",
    "duckdb_keywords",
    "duckdb_tables",
    "duckdb_types",
    "generate_series",
    "histogram",
    "histogram_values",
    "json_each",
    "json_tree",
    "range",
    "repeat",
    "repeat_row",
    "summary",
    "unnest",
];

/// Scalar functions that tell of the process, or change it.
const SCALARS: &[&str] = &["current_setting", "currval", "getenv", "nextval", "write_log"];

/// Functions that make values of any size at once, beyond the memory limit and deaf to an interrupt: ours, of
/// the same names, look at the size first. A quarter of the result limit is more than any use for them.
pub(super) const GUARDS: &[&str] = &[
    "CREATE MACRO repeat(s, n) AS system.main.repeat(s, CASE WHEN n * greatest(len(s), 1) > 67108864 \
     THEN error('repeat: the value would be too large') ELSE n END)",
    "CREATE MACRO lpad(s, n, c) AS system.main.lpad(s, CASE WHEN n > 67108864 \
     THEN error('lpad: the value would be too large') ELSE n END, c)",
    "CREATE MACRO rpad(s, n, c) AS system.main.rpad(s, CASE WHEN n > 67108864 \
     THEN error('rpad: the value would be too large') ELSE n END, c)",
    "CREATE MACRO list_resize(l, n) AS system.main.list_resize(l, CASE WHEN n > 8388608 \
     THEN error('list_resize: the list would be too long') ELSE n END), \
     (l, n, v) AS system.main.list_resize(l, CASE WHEN n > 8388608 \
     THEN error('list_resize: the list would be too long') ELSE n END, v)",
    "CREATE MACRO array_resize(l, n) AS list_resize(l, n), (l, n, v) AS list_resize(l, n, v)",
    "CREATE MACRO bitstring(s, n) AS system.main.bitstring(s, CASE WHEN n > 67108864 \
     THEN error('bitstring: the value would be too large') ELSE n END)",
    // From where to where in steps of what, of numbers or of times.
    "CREATE MACRO too_many_items(a, b, c) AS coalesce( \
     abs(TRY_CAST(b::VARCHAR AS DOUBLE) - TRY_CAST(a::VARCHAR AS DOUBLE)) \
     / nullif(abs(TRY_CAST(c::VARCHAR AS DOUBLE)), 0), \
     abs(epoch(TRY_CAST(b::VARCHAR AS TIMESTAMP)) - epoch(TRY_CAST(a::VARCHAR AS TIMESTAMP))) \
     / nullif(abs(epoch(TRY_CAST(c::VARCHAR AS INTERVAL))), 0)) > 8388608",
    "CREATE MACRO range(b) AS system.main.range(CASE WHEN b > 8388608 \
     THEN error('range: the list would be too long') ELSE b END), \
     (a, b) AS system.main.range(a, CASE WHEN too_many_items(a, b, 1) \
     THEN error('range: the list would be too long') ELSE b END), \
     (a, b, c) AS system.main.range(a, CASE WHEN too_many_items(a, b, c) \
     THEN error('range: the list would be too long') ELSE b END, c)",
    "CREATE MACRO generate_series(b) AS system.main.generate_series(CASE WHEN b > 8388608 \
     THEN error('generate_series: the list would be too long') ELSE b END), \
     (a, b) AS system.main.generate_series(a, CASE WHEN too_many_items(a, b, 1) \
     THEN error('generate_series: the list would be too long') ELSE b END), \
     (a, b, c) AS system.main.generate_series(a, CASE WHEN too_many_items(a, b, c) \
     THEN error('generate_series: the list would be too long') ELSE b END, c)",
];

/// The guarded names; with a schema before them they would mean the unguarded ones.
const GUARDED: &[&str] = &[
    "repeat",
    "lpad",
    "rpad",
    "list_resize",
    "array_resize",
    "bitstring",
    "range",
    "generate_series",
];

/// Functions that a statement may not call.
pub(super) struct Denied(HashSet<String>);

impl Denied {
    /// For the library that this connection is of.
    pub(super) fn of(connection: &Connection) -> Result<Self, String> {
        let all = connection.texts(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() \
             WHERE function_type IN ('table', 'table_macro', 'pragma')",
        )?;
        let tables = all.into_iter().filter(|name| !TABLES.contains(&name.as_str()));
        Ok(Self(tables.chain(SCALARS.iter().map(|name| (*name).to_owned())).collect()))
    }

    /// Refuses a statement that calls one of them.
    pub(super) fn check(&self, syntax: &Syntax, sql: &str) -> Result<(), SqlError> {
        let called = syntax.text().map_or_else(|| before_parentheses(sql), called);
        let refused = |(name, schema): &(String, bool)| {
            self.0.contains(name) || *schema && GUARDED.contains(&name.as_str())
        };
        match called.into_iter().find(refused) {
            None => Ok(()),
            Some((name, _)) => {
                Err(SqlError::refused(format!("the function `{name}` is not available here")))
            }
        }
    }
}

/// The functions in a tree that the parser wrote, and whether a schema stands before them. A text of the user's cannot look like this: the quotes
/// in it are escaped.
fn called(tree: &str) -> Vec<(String, bool)> {
    let parts = tree.split("\"function_name\":\"").skip(1);
    parts
        .filter_map(|part| {
            let (name, rest) = part.split_once('"')?;
            Some((name.to_lowercase(), !rest.starts_with(",\"schema\":\"\"")))
        })
        .collect()
}

/// The words and quoted names that stand before a parenthesis.
fn before_parentheses(sql: &str) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut last = String::new();
    for piece in split(sql, Dialect::DuckDb).0 {
        match piece {
            Piece::Code(code) => {
                let mut word = std::mem::take(&mut last);
                let mut ended = !word.is_empty();
                for c in code.chars() {
                    if c.is_alphanumeric() || c == '_' || c == '$' {
                        if std::mem::take(&mut ended) {
                            word.clear();
                        }
                        word.push(c);
                    } else if c == '(' {
                        names.push(std::mem::take(&mut word).to_lowercase());
                    } else if c.is_whitespace() {
                        ended = true;
                    } else {
                        word.clear();
                    }
                }
                last = word;
            }
            Piece::Quoted(text) => last = text.trim_matches('"').replace("\"\"", "\""),
            Piece::Blank | Piece::Comment(_) | Piece::Param(..) | Piece::Ref(_) => {}
        }
    }
    names.into_iter().map(|name| (name, true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_before_parentheses() {
        for (sql, want) in [
            ("SELECT f(1), g (2), h /* x */ (3)", &["f", "g", "h"][..]),
            ("SELECT \"F\"(1), a b(2), 'c'", &["f", "b"]),
            ("SELECT (1), x.y\n(2)", &["select", "y"]),
        ] {
            let names =
                before_parentheses(sql).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert_eq!(names, want, "{sql}");
        }
    }

    #[test]
    fn names_in_a_tree() {
        let tree = r#"{"error":false,"x":[{"function_name":"Range","schema":"main"},{"value":"\"function_name\":\"no\""},{"function_name":"+","schema":"","x":1}]}"#;
        assert_eq!(called(tree), [("range".to_owned(), true), ("+".to_owned(), false)]);
    }
}
