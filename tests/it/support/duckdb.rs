//! The DuckDB library for tests of that engine: fetched through the host's own command.

use std::process::Command;
use std::sync::OnceLock;

use super::build::built;
use super::skipped;

/// Whether hosts under test find the library; where it cannot be had, a loud line says why.
pub(crate) fn installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // It goes into the cache that every host under test has, and is found there.
        let built = built();
        let mut install = Command::new(&built.host);
        install.args(["sql", "install-duckdb"]).env("XDG_CACHE_HOME", &built.cache);
        let output = install.output().expect("the host binary runs");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            skipped(&format!("tests of DuckDB: {}", why.trim()));
        }
        output.status.success()
    })
}
