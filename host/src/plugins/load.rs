//! Opens a checked artifact. The only `unsafe` of the plugin side is here.

use std::path::Path;

use abi_stable::library::{LibraryError, ROOT_MODULE_LOADER_NAME, lib_header_from_path};
use sdk::abi::{INTERFACE_VERSION, PluginRef};

use super::refusal::Refusal;

/// What helps against every mismatch at the boundary.
pub(super) const REBUILD: &str = "build it again with the sdk of this host";

/// Opens a checked copy. Its initialisers run, in this process: a file that nobody has probed belongs in a child.
///
/// # Errors
/// Not a plugin, or one of another interface.
pub(crate) fn open(file: &Path) -> Result<PluginRef, Box<Refusal>> {
    has_our_symbol(file)?;
    // Not `load_from_file`: that gives the first plugin it ever opened for every later path.
    let plugin: PluginRef = lib_header_from_path(file)
        .and_then(|header| header.init_root_module())
        .map_err(|error| refused_by_layout(file, &error))?;
    if plugin.interface() != INTERFACE_VERSION {
        return Err(other_interface(plugin.interface()).file(file));
    }
    Ok(plugin)
}

/// The refusal of a plugin that speaks another version of the boundary.
pub(super) fn other_interface(found: u32) -> Box<Refusal> {
    Refusal::new("it was built for another interface", REBUILD)
        .compared(format!("interface {INTERFACE_VERSION}"), format!("interface {found}"))
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
    let what = match error {
        LibraryError::AbiInstability(_) | LibraryError::InvalidAbiHeader { .. } => {
            "it was built with a boundary of another shape"
        }
        LibraryError::ParseVersionError(_) | LibraryError::IncompatibleVersionNumber { .. } => {
            "it was built with another version of the sdk"
        }
        _ => "its artifact cannot be opened as a plugin",
    };
    let refusal = Refusal::new(what, REBUILD).file(path);
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
