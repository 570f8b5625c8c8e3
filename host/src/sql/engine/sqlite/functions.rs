//! The functions a statement may call.

use rusqlite::{Connection, Result};

/// Functions that reach outside of the statement.
pub(super) fn is_denied(name: &str) -> bool {
    ["load_extension", "fts3_tokenizer", "sqlite_log", "writefile", "readfile", "edit"]
        .iter()
        .any(|other| other.eq_ignore_ascii_case(name))
}

/// Makes ours known.
pub(super) fn register(_: &Connection) -> Result<()> {
    Ok(())
}

/// The names of all functions.
pub(super) fn known() -> Vec<String> {
    let names = || -> Result<Vec<String>> {
        let connection = Connection::open_in_memory()?;
        register(&connection)?;
        let mut statement = connection.prepare(
            "SELECT DISTINCT name FROM pragma_function_list WHERE name GLOB '[a-z]*' ORDER BY name",
        )?;
        statement.query_map([], |row| row.get::<_, String>(0))?.collect()
    };
    names().unwrap_or_default().into_iter().filter(|name| !is_denied(name)).collect()
}
