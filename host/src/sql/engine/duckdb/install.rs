//! Where libduckdb is, and how it gets there.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// The version that is installed: of the package that carries the library.
pub const VERSION: &str = "1.5.6-r.1";

const FILE: &str = "libduckdb.so";

/// The package and the library's SHA-256, for the machine this runs on.
const PACKAGE: Option<(&str, &str)> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    Some((
        "@duckdb/node-bindings-linux-x64",
        "3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633",
    ))
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    Some((
        "@duckdb/node-bindings-linux-arm64",
        "23686593dba4ec22c6e581bb1c843b3964e84c4bc4d0063d8b4daddd2e20e30a",
    ))
} else {
    None
};

/// The library: in the folder that the user names, else in the host's cache.
#[must_use]
pub fn library(named: Option<&Path>, cache: &Path) -> PathBuf {
    match named {
        Some(folder) => folder.join(FILE),
        None => folder(cache).join(FILE),
    }
}

fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("duckdb-{VERSION}"))
}

/// Fetches the library with the `npm` client into the host's cache, unless it is there, and gives its place.
///
/// # Errors
/// When there is no package for this machine, npm fails, or the file is not the one that is expected.
pub fn install(cache: &Path) -> Result<PathBuf, String> {
    let (package, hash) = PACKAGE.ok_or(
        "there is no package of libduckdb for this machine; name its folder in DUCKDB_LIB_DIR",
    )?;
    let place = library(None, cache);
    if place.is_file() && sha256(&place)? == hash {
        return Ok(place);
    }
    std::fs::create_dir_all(cache)
        .map_err(|error| format!("cannot create the cache folder: {error}"))?;
    let work = tempfile::Builder::new()
        .prefix(".duckdb-")
        .tempdir_in(cache)
        .map_err(|error| format!("cannot create a folder in the cache: {error}"))?;
    let output = Command::new("npm")
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--no-save",
            "--prefix",
        ])
        .arg(work.path())
        .arg(format!("{package}@{VERSION}"))
        .output()
        .map_err(|error| format!("cannot run `npm`, which fetches the package: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "npm could not fetch {package}@{VERSION}: {}",
            words.lines().take(3).collect::<Vec<_>>().join(" ")
        ));
    }
    let fetched = work.path().join("node_modules").join(package).join(FILE);
    let found = sha256(&fetched)?;
    if found != hash {
        return Err(format!(
            "the fetched library is not the expected one: its SHA-256 is {found}, not {hash}"
        ));
    }
    std::fs::create_dir_all(folder(cache))
        .map_err(|error| format!("cannot create the folder: {error}"))?;
    std::fs::rename(&fetched, &place)
        .map_err(|error| format!("cannot move the library into place: {error}"))?;
    Ok(place)
}

fn sha256(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read the library: {error}"))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
