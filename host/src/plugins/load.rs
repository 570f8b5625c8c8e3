//! Opens a checked artifact. The only `unsafe` of the host is here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use abi_stable::library::{LibraryError, ROOT_MODULE_LOADER_NAME, lib_header_from_path};
use sdk::abi::{INTERFACE_VERSION, PluginRef};
use sdk::host::{Access, Descriptor};

use super::Address;
use super::artifact::Artifact;
use super::refusal::Refusal;

/// An operation that can be called: one version of it, loaded for the rest of the process's life.
pub struct Loaded {
    /// What the plugin says of itself.
    pub descriptor: Descriptor,
    /// The same as JSON, for those who show it.
    pub descriptor_json: serde_json::Value,
    /// The content-hashed copy that was opened.
    pub artifact: PathBuf,
    /// SHA-256 of it, lower-case hex.
    pub hash: String,
    /// When the artifact was built.
    pub built_at: SystemTime,
    /// What it may touch.
    pub(crate) access: Arc<Access>,
    pub(crate) plugin: PluginRef,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("op", &self.descriptor.op)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// The workspace of the operations that ship with the host.
const SHIPPED: &str = "_core";

impl Loaded {
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
        &*address.workspace == SHIPPED && self.is_read_only() && self.descriptor.calls.is_empty()
    }
}

/// Opens the artifact of the operation at `address`. Its initialisers run, in this process.
///
/// # Errors
/// Not a plugin, another interface, another operation, built to abort on panics.
pub(crate) fn load(artifact: &Artifact, address: &Address) -> Result<Loaded, Box<Refusal>> {
    let rebuild = "build it again with the sdk of this host";
    has_our_symbol(&artifact.path)?;
    // Not `load_from_file`: that gives the first plugin it ever opened for every later path.
    let plugin: PluginRef = lib_header_from_path(&artifact.path)
        .and_then(|header| header.init_root_module())
        .map_err(|error| refused_by_layout(&artifact.path, &error))?;
    if plugin.interface() != INTERFACE_VERSION {
        return Err(Refusal::new("it was built for another interface", rebuild)
            .compared(
                format!("interface {INTERFACE_VERSION}"),
                format!("interface {}", plugin.interface()),
            )
            .file(&artifact.path));
    }
    let descriptor = Descriptor::of(plugin)
        .map_err(|error| Refusal::new(error.message(), rebuild).file(&artifact.path))?;
    check(&descriptor, address).map_err(|refusal| refusal.file(&artifact.path))?;
    let descriptor_json = serde_json::to_value(&descriptor).map_err(|error| {
        Refusal::new(format!("what it says of itself has no JSON form: {error}"), rebuild)
    })?;
    Ok(Loaded {
        access: Arc::new(descriptor.access()),
        descriptor,
        descriptor_json,
        artifact: artifact.path.clone(),
        hash: artifact.hash.clone(),
        built_at: artifact.built_at,
        plugin,
    })
}

/// Whether what the plugin says of itself fits the folder it lies in and the lane it will run in.
fn check(descriptor: &Descriptor, address: &Address) -> Result<(), Box<Refusal>> {
    if descriptor.interface != INTERFACE_VERSION {
        return Err(Refusal::new(
            "it was built for another interface",
            "build it again with the sdk of this host",
        )
        .compared(
            format!("interface {INTERFACE_VERSION}"),
            format!("interface {}", descriptor.interface),
        ));
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
    if descriptor.panic != "unwind" {
        return Err(Refusal::new(
            "it was built so that a panic would end the host",
            "remove `panic = \"abort\"` from the profile it is built with, and build it again",
        )
        .compared("panic = \"unwind\"", format!("panic = \"{}\"", descriptor.panic)));
    }
    Ok(())
}

/// Opens the file and looks for the one symbol that makes it a plugin, in that library alone. The header route would
/// refuse it as well, but in words about a mangled name.
fn has_our_symbol(path: &Path) -> Result<(), Box<Refusal>> {
    // SAFETY: opening runs the file's initialisers, which may be any code: that is what a plugin is. The file is a
    // whole ELF library for this machine (`artifact.rs` checked it) that nobody changes while it is open, since it
    // is a read-only copy in a folder that belongs to this user alone.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|error| refused_by_linker(path, &error))?;
    // SAFETY: the symbol is only looked for; the pointer is never read or called through this type.
    let found = unsafe { library.get::<*const ()>(ROOT_MODULE_LOADER_NAME.as_bytes()) }.is_ok();
    // Never closed: a Rust library that has run may have left destructors behind in threads.
    std::mem::forget(library);
    if found {
        return Ok(());
    }
    Err(Refusal::new(
        "its artifact is a shared library, but not a plugin",
        "put #[udf] on the operation's function",
    )
    .compared("a library that exports a plugin", "a library that does not")
    .file(path))
}

fn refused_by_linker(path: &Path, error: &libloading::Error) -> Box<Refusal> {
    let text =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let (reason, remedy) = if text.contains("static TLS") {
        (
            "the system has no room left for its thread-local data",
            "build it without a global allocator of its own, or restart the host",
        )
    } else if text.contains("failed to map segment") {
        (
            "the cache folder is on a disk that allows no programs",
            "set UDF_HOST_CACHE to a folder on another disk",
        )
    } else if text.contains("undefined symbol") || text.contains("cannot open shared object file") {
        ("it needs a library that is not here", "install what it links to, or build it without")
    } else {
        ("the system's linker refuses its artifact", "build it again")
    };
    Refusal::new(reason, remedy).file(path).detail(text)
}

/// The layout check tells its story over hundreds of lines; what matters is the last comparison of it.
fn refused_by_layout(path: &Path, error: &LibraryError) -> Box<Refusal> {
    let text = error.to_string();
    let rebuild = "build it again with the sdk of this host";
    let what = match error {
        LibraryError::AbiInstability(_) | LibraryError::InvalidAbiHeader { .. } => {
            "it was built with a boundary of another shape"
        }
        LibraryError::ParseVersionError(_) | LibraryError::IncompatibleVersionNumber { .. } => {
            "it was built with another version of the sdk"
        }
        _ => "its artifact cannot be opened as a plugin",
    };
    let refusal = Refusal::new(what, rebuild).file(path);
    let refusal = match last_comparison(&text) {
        Some((expected, found)) => refusal.compared(expected, found),
        None => refusal,
    };
    refusal.detail(text)
}

/// The last `Expected:` and `Found:` of the text, one line each.
fn last_comparison(text: &str) -> Option<(String, String)> {
    let (before, found) = text.rsplit_once("Found:")?;
    let (_, expected) = before.rsplit_once("Expected:")?;
    let first = |part: &str| {
        let line = part.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        line.chars().take(200).collect::<String>()
    };
    Some((first(expected), first(found)))
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
            let refusal = check(&descriptor(text), &address).err();
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
    fn the_last_comparison_of_a_long_story_is_taken() {
        let text = "Expected:\n  a\nFound:\n  b\n\nError: x\nExpected:\n    struct Plugin v1\nFound:\n    struct Plugin v2\n";
        assert_eq!(
            last_comparison(text),
            Some(("struct Plugin v1".to_owned(), "struct Plugin v2".to_owned()))
        );
        assert_eq!(last_comparison("nothing of the kind"), None);
    }
}
