//! The DuckDB library for tests of that engine: fetched through the host's own command.

use std::path::PathBuf;
use std::process::Command;

use super::build::built;

/// The folder that holds `libduckdb.so`, or `None` with a loud line where it cannot be had.
pub(crate) fn library() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("DUCKDB_LIB_DIR") {
        return Some(dir.into());
    }
    let built = built();
    let mut install = Command::new(&built.host);
    install.args(["sql", "install-duckdb", "--json"]).env("XDG_CACHE_HOME", &built.cache);
    let output = install.output().expect("the host binary runs");
    if !output.status.success() {
        eprintln!("!!! DuckDB tests SKIPPED: {}", String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    let told = super::parse(&String::from_utf8(output.stdout).unwrap());
    Some(told["dir"].as_str().expect("install-duckdb tells its folder").into())
}
