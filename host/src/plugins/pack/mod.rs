//! [`PackManifest`]: `pack.json`, which says what a pack holds and what every file in it hashes to.
//!
//! A pack is a folder of operations that were built elsewhere: `<project>/project.toml`,
//! `<project>/<op>/{lib.so, spec.md, …}`. `write` makes one, `seal` checks one when a host takes it up. Hashes find
//! what was damaged or changed on the way; they are no signature: who can change a file can change `pack.json` too.

mod seal;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::refusal::Refusal;
pub(crate) use seal::{Packed, Seal};
pub(crate) use write::write;

/// The manifest's file name.
pub(crate) const MANIFEST: &str = "pack.json";
/// The artifact of an operation in a pack.
pub(crate) const LIBRARY: &str = "lib.so";
/// The only form there has been.
const FORMAT: u32 = 1;
/// What the host and its plugins are built for.
const TARGET: &str = env!("UDF_HOST_TRIPLE");

/// What `pack.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackManifest {
    /// The form of this file.
    pub(crate) format: u32,
    /// The interface that the operations were built for.
    pub(crate) interface: u32,
    /// The target triple that they were built for.
    pub(crate) target: String,
    /// The version of the host that packed them, and of its sdk.
    pub(crate) sdk: String,
    /// By folder, `<project>/<op>`.
    pub(crate) operations: BTreeMap<String, PackedOp>,
    /// By path with `/` between its parts: SHA-256, lower-case hex. All files but this one.
    pub(crate) files: BTreeMap<String, String>,
}

/// What `pack.json` says of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedOp {
    /// `workspace.project.op`.
    pub(crate) address: String,
    /// When its artifact was built, in seconds since 1970.
    pub(crate) built_at: u64,
    /// The version of the sdk it was built with.
    pub(crate) sdk: String,
}

impl PackManifest {
    /// The one in this folder; none when the folder is no pack.
    pub(crate) fn read(folder: &Path) -> Option<Result<Self, Box<Refusal>>> {
        let path = folder.join(MANIFEST);
        let refused = |what: String| {
            Refusal::new(what, "copy the pack again, or pack it again").file(path.as_path())
        };
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                Some(Err(refused(format!("the pack.json of its pack cannot be read: {error}"))))
            }
            Ok(bytes) => {
                Some(Self::parse(&bytes).map_err(|error| {
                    refused(format!("the pack.json of its pack is broken: {error}"))
                }))
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        // The form first: what a later one holds is not ours to complain about.
        let form: Form = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if form.format != FORMAT {
            return Err(format!("it has form {}, this host reads form {FORMAT}", form.format));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// SHA-256, lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
