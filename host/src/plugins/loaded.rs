//! [`Loaded`]: one version of an operation, checked and described, that can be called.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use sdk::abi::{INTERFACE_VERSION, PluginRef};
use sdk::host::{Access, Descriptor};

use super::artifact::Artifact;
use super::load;
use super::manifest::SHIPPED_WORKSPACE;
use super::refusal::Refusal;
use super::versions::{Entrance, Versions};
use super::{Address, LaneChoice};
use crate::lane::CrashRecord;

/// One version of an operation. It has been probed; the library itself is opened in this process by the inline lane
/// alone, at its first call, and then stays open for the rest of the process's life.
pub struct Loaded {
    /// What the plugin says of itself.
    pub descriptor: Descriptor,
    /// The same as JSON, for those who show it.
    pub descriptor_json: serde_json::Value,
    /// The content-hashed copy, which is what a lane opens.
    pub artifact: PathBuf,
    /// SHA-256 of it, lower-case hex.
    pub hash: String,
    /// Its size in bytes, which is about what it takes in memory once it is open.
    pub bytes: u64,
    /// When the artifact was built.
    pub built_at: SystemTime,
    /// What it may touch.
    pub(crate) access: Arc<Access>,
    /// Where it is counted when it is opened.
    pub(crate) versions: Arc<Versions>,
    /// Which one it is of them.
    number: u64,
    /// How often it ended its worker.
    pub(crate) crashes: CrashRecord,
    opened: OnceLock<Result<PluginRef, Arc<Refusal>>>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("op", &self.descriptor.op)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// A version from its checked copy and what a probe found it to be.
    pub(crate) fn new(
        artifact: &Artifact,
        descriptor: Descriptor,
        versions: &Arc<Versions>,
    ) -> Result<Self, Box<Refusal>> {
        let descriptor_json = serde_json::to_value(&descriptor).map_err(|error| {
            Refusal::new(format!("what it says of itself has no JSON form: {error}"), load::REBUILD)
        })?;
        Ok(Self {
            access: Arc::new(descriptor.access()),
            descriptor,
            descriptor_json,
            artifact: artifact.path.clone(),
            hash: artifact.hash.clone(),
            bytes: artifact.bytes,
            built_at: artifact.built_at,
            versions: Arc::clone(versions),
            number: versions.number(),
            crashes: CrashRecord::beside(&artifact.path),
            opened: OnceLock::new(),
        })
    }

    /// The plugin itself, opened in this process at the first asking. For the inline lane only: whoever runs calls in
    /// another process passes [`Loaded::artifact`] on instead.
    pub(crate) fn plugin(&self) -> Result<PluginRef, Arc<Refusal>> {
        let open = || {
            let plugin = load::open(&self.artifact).map_err(Arc::from)?;
            self.versions.add(&self.hash, self.bytes);
            Ok(plugin)
        };
        self.opened.get_or_init(open).clone()
    }

    /// Notes that this worker is about to open it, unless the worker has an older version of it.
    pub(crate) fn enter(&self, worker: i32) -> Entrance {
        self.versions.enter(worker, self.number, &self.hash, self.bytes)
    }

    /// Why the library could not be opened here although a probe could open it, once that has happened.
    pub(crate) fn open_failure(&self) -> Option<Arc<Refusal>> {
        self.opened.get().and_then(|opened| opened.as_ref().err().cloned())
    }

    /// Whether the operation declares nothing that changes anything.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        // Logs and folders count as changes: the declaration does not tell reading them from writing.
        let Descriptor { writes, logs, folders, net, .. } = &self.descriptor;
        writes.is_empty() && logs.is_empty() && !folders && !net
    }

    /// Whether it may run in a task of the runtime once it has proven fast: it is ours, only reads, and waits for
    /// nobody else.
    pub(crate) fn may_run_in_place(&self, address: &Address) -> bool {
        &*address.workspace == SHIPPED_WORKSPACE
            && self.is_read_only()
            && self.descriptor.calls.is_empty()
    }
}

/// Checks that what the plugin says of itself fits the folder it lies in and the lane that will run it.
pub(crate) fn check_fit(
    descriptor: &Descriptor,
    address: &Address,
    lane: LaneChoice,
) -> Result<(), Box<Refusal>> {
    if descriptor.interface != INTERFACE_VERSION {
        return Err(load::other_interface(descriptor.interface));
    }
    if descriptor.op != *address.op {
        return Err(Refusal::new(
            "its function is not called like its folder",
            "rename the function under #[udf], or the folder",
        )
        .compared(&*address.op, descriptor.op.as_str()));
    }
    if let Some(project) =
        descriptor.project.as_deref().filter(|project| *project != &*address.project)
    {
        return Err(Refusal::new(
            "its package belongs to another project",
            format!(
                "name the package `udf-{}-{}`, and build it again",
                address.project, address.op
            ),
        )
        .compared(&*address.project, project));
    }
    if descriptor.panic != "unwind" && lane == LaneChoice::Inline {
        return Err(Refusal::new(
            "it was built so that a panic would end the host, and its calls run inside the host",
            "remove `panic = \"abort\"` from the profile it is built with and build it again, or set \
             `lane = \"worker\"` in its project.toml",
        )
        .compared("panic = \"unwind\"", format!("panic = \"{}\"", descriptor.panic)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(text: &str) -> Descriptor {
        let mut json: serde_json::Value = serde_json::from_str(text).unwrap();
        json["sdk"] = "0.1.0".into();
        Descriptor::parse(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_plugin_must_be_what_its_folder_says() {
        let address = Address::new("w", "p", "a");
        for (name, text, want) in [
            ("fits", r#"{"interface":1,"project":"p","op":"a","panic":"unwind"}"#, None),
            ("no project given", r#"{"interface":1,"op":"a","panic":"unwind"}"#, None),
            (
                "other interface",
                r#"{"interface":9,"op":"a","panic":"unwind"}"#,
                Some(("interface 1", "interface 9")),
            ),
            ("other op", r#"{"interface":1,"op":"b","panic":"unwind"}"#, Some(("a", "b"))),
            (
                "other project",
                r#"{"interface":1,"project":"q","op":"a","panic":"unwind"}"#,
                Some(("p", "q")),
            ),
            (
                "aborts",
                r#"{"interface":1,"op":"a","panic":"abort"}"#,
                Some(("panic = \"unwind\"", "panic = \"abort\"")),
            ),
        ] {
            let refusal = check_fit(&descriptor(text), &address, LaneChoice::Inline).err();
            let compared = refusal.as_ref().map(|refusal| {
                (
                    refusal.expected.as_deref().unwrap_or_default(),
                    refusal.found.as_deref().unwrap_or_default(),
                )
            });
            assert_eq!(compared, want, "{name}");
        }
    }

    #[test]
    fn a_plugin_that_aborts_may_run_in_a_worker() {
        let aborts = descriptor(r#"{"interface":1,"op":"a","panic":"abort"}"#);
        let address = Address::new("w", "p", "a");
        assert!(check_fit(&aborts, &address, LaneChoice::Worker).is_ok());
        let refusal = check_fit(&aborts, &address, LaneChoice::Inline).unwrap_err();
        assert!(refusal.remedy.contains("worker"), "{refusal:?}");
    }
}
