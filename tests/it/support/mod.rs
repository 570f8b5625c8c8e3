//! What the black-box tests share.
//!
//! - [`agent`] runs agent tasks on a state folder, [`model`] answers them.
//! - [`build`] makes the host binary and every shipped plugin once per test run.
//! - [`host_process`] starts and stops a real host and speaks HTTP to it.
//! - [`fixture`] lays out a folder from case data and reads it back.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod duckdb;
pub(crate) mod fixture;
pub(crate) mod host_process;
pub(crate) mod model;
pub(crate) mod pocketbase;
pub(crate) mod processes;
pub(crate) mod runs;
pub(crate) mod scripted_server;

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The checkout these tests were built from.
pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the checkout")
        .to_path_buf()
}

/// A folder of handed cases, or another one of the same layout named by `variable`.
pub(crate) fn case_folder(variable: &str, group: &str) -> PathBuf {
    std::env::var_os(variable)
        .map_or_else(|| checkout().join("tests/cases").join(group), PathBuf::from)
}

/// Says that a test has nothing to do on this machine, and why. Past what the runner captures: a test that passes shows
/// nothing else, and a skip that nobody sees looks like a proof.
pub(crate) fn skipped(why: &str) {
    let line = format!("!!! SKIPPED: {why}\n");
    let _nobody_listens = std::io::stderr().write_all(line.as_bytes());
}

/// A JSON value for a message, cut to a readable length.
pub(crate) fn short(value: &serde_json::Value) -> String {
    shorten(&value.to_string())
}

/// A text for a message, cut to a readable length.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 300;
    match text.char_indices().nth(LIMIT) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
    }
}

/// Parses JSON of any depth; case data nests deeper than the usual limit.
#[track_caller]
pub(crate) fn parse(text: &str) -> serde_json::Value {
    try_parse(text).unwrap_or_else(|error| panic!("not JSON: {error}: {}", shorten(text)))
}

/// [`parse`] that tells instead of panicking.
pub(crate) fn try_parse(text: &str) -> Result<serde_json::Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}
