//! Judges one folder as a crate: an operation, a library that operations share, or something broken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::refusal::Refusal;
use super::text_file;

/// What a folder's Cargo.toml declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CrateKind {
    /// A cdylib: an operation, if the rest is in order too.
    Operation,
    /// Anything else; operations may depend on it. With a spec.md it is meant to be one.
    Library,
}

/// Reads the folder's Cargo.toml far enough to tell what it is. What only cargo can tell is left to cargo.
pub(crate) fn kind(folder: &Path) -> Result<CrateKind, Box<Refusal>> {
    let manifest = read_manifest(folder)?;
    Ok(if is_cdylib(&manifest) { CrateKind::Operation } else { CrateKind::Library })
}

/// Why a library with a spec.md cannot be called: a spec.md says that its folder is an operation.
pub(crate) fn not_cdylib(folder: &Path) -> Box<Refusal> {
    Refusal::new(
        "it has a spec.md, but its Cargo.toml makes no cdylib of it",
        "set `crate-type = [\"cdylib\"]` under [lib] in its Cargo.toml, or remove spec.md if it is a library",
    )
    .file(folder.join("Cargo.toml"))
}

/// Checks a folder that declares an operation. `package` is what its place says it must be called.
pub(crate) fn check_operation(folder: &Path, package: &str) -> Result<(), Box<Refusal>> {
    let manifest = read_manifest(folder)?;
    let path = folder.join("Cargo.toml");
    let found = package_name(&manifest);
    if found.as_deref() != Some(package) {
        let found = found.map_or_else(|| "no name".to_owned(), |name| format!("`{name}`"));
        return Err(Refusal::new(
            format!("its package is {found}, not `{package}`"),
            format!("set `name = \"{package}\"` in its Cargo.toml, which is what its folder says"),
        )
        .compared(package, found)
        .file(path));
    }
    let lib = manifest.get("lib");
    let renamed = lib.and_then(|lib| lib.get("name")).and_then(toml::Value::as_str);
    let lib_name = lib_name(package);
    if renamed.is_some_and(|name| name != lib_name) {
        return Err(Refusal::new(
            "its [lib] has a name of its own, so its artifact could overwrite another's",
            "remove `name` from [lib] in its Cargo.toml",
        )
        .file(path));
    }
    let source =
        lib.and_then(|lib| lib.get("path")).and_then(toml::Value::as_str).unwrap_or("src/lib.rs");
    if !folder.join(source).is_file() {
        return Err(Refusal::new(
            format!("it has no {source}"),
            format!("write {source}, or remove the folder"),
        )
        .file(folder.join(source)));
    }
    Ok(())
}

/// The folders of crates that this one is built from by path, and those that they are built from, as far as their
/// Cargo.toml can be read. Not the crate itself.
pub(crate) fn path_dependencies(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(manifest) = read_manifest(&folder) else { continue };
        let own = ["dependencies", "build-dependencies"].map(|kind| manifest.get(kind));
        let dependencies = own.into_iter().flatten().filter_map(toml::Value::as_table).flatten();
        for (_, dependency) in dependencies {
            let path = dependency.get("path").and_then(toml::Value::as_str);
            // One that is not there is cargo's to complain about.
            let Some(path) = path.and_then(|path| folder.join(path).canonicalize().ok()) else {
                continue;
            };
            if found.insert(path.clone()) {
                open.push(path);
            }
        }
    }
    found
}

/// The name of a package's library: what its artifact is called.
pub(crate) fn lib_name(package: &str) -> String {
    package.replace('-', "_")
}

fn read_manifest(folder: &Path) -> Result<toml::Table, Box<Refusal>> {
    let path = folder.join("Cargo.toml");
    let text = text_file::read(&path).map_err(|error| unreadable(&path, &error))?;
    text.parse().map_err(|error: toml::de::Error| {
        Refusal::new(
            format!("its Cargo.toml is not valid TOML: {}", error.message()),
            "correct its Cargo.toml",
        )
        .file(&path)
        .detail(error.to_string())
    })
}

fn unreadable(path: &PathBuf, error: &std::io::Error) -> Box<Refusal> {
    if error.kind() == std::io::ErrorKind::NotFound {
        Refusal::new(
            "it has no Cargo.toml",
            "write one (`udf-host new PROJECT/OP` makes a whole folder), or remove the folder",
        )
        .file(path)
    } else {
        Refusal::new(
            format!("its Cargo.toml cannot be read: {error}"),
            "make it a readable text file",
        )
        .file(path)
    }
}

/// The name of the package in this folder, as far as its Cargo.toml can be read.
pub(crate) fn package_of(folder: &Path) -> Option<String> {
    package_name(&read_manifest(folder).ok()?)
}

/// What a manifest calls its package.
pub(crate) fn package_name(manifest: &toml::Table) -> Option<String> {
    Some(manifest.get("package")?.get("name")?.as_str()?.to_owned())
}

/// Whether a manifest declares a library that can be opened at run time.
pub(crate) fn is_cdylib(manifest: &toml::Table) -> bool {
    let Some(lib) = manifest.get("lib") else { return false };
    let kinds =
        lib.get("crate-type").or_else(|| lib.get("crate_type")).and_then(toml::Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == Some("cdylib")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

    use super::*;

    #[test]
    fn crates_by_path_are_found_through_each_other() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        for (name, dependencies) in [
            (
                "op",
                "a = { path = \"../a\" }\nserde = \"1\"\nsdk = { workspace = true }\ngone = { path = \"../gone\" }",
            ),
            ("a", "b = { path = \"../deep/b\" }"),
            ("deep/b", "a = { path = \"../../a\" }"),
            ("c", ""),
        ] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            let text = format!("[package]\nname = \"x\"\n[dependencies]\n{dependencies}\n");
            std::fs::write(root.join(name).join("Cargo.toml"), text).unwrap();
        }
        let found: Vec<_> = path_dependencies(&root.join("op")).into_iter().collect();
        assert_eq!(found, [root.join("a"), root.join("deep/b")]);
        assert!(path_dependencies(&root.join("c")).is_empty());
        assert!(path_dependencies(&root.join("none")).is_empty());
    }
}
