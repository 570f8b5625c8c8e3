//! Paths in JSON. A name that is not UTF-8 is shown with marks in its place: serde would refuse the path, and one bad
//! folder would keep the whole catalog from being shown.

use std::path::{Path, PathBuf};

use serde::Serializer;

/// One path.
pub(super) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// Several of them.
pub(super) fn paths<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
