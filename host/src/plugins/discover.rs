//! Walks the roots: which operations there are, and which folders are broken and how.
//!
//! `<root>/<project>/<op>/` is an operation, `<root>/<op>/` one of project `main`. A folder whose Cargo.toml
//! declares no cdylib is a library; `widgets/`, `target/` and folders whose name starts with a dot are passed over.
//! What is wrong with one folder concerns that folder only.

mod claims;

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::Address;
use super::catalog::Problem;
use super::crate_folder::{self, CrateKind};
use super::manifest::{self, DEFAULT_WORKSPACE, OpSettings, ProjectManifest};
use super::pack::{Packed, Seal};
use super::refusal::Refusal;
use super::roots::{Root, RootKind};
use super::text_file;

/// The project of operations that lie directly in a root.
pub const MAIN_PROJECT: &str = "main";

/// A folder that claims to be an operation.
#[derive(Debug, Clone)]
pub(crate) struct FoundOp {
    pub(crate) address: Address,
    pub(crate) folder: PathBuf,
    /// Which of the roots it lies in.
    pub(crate) root: usize,
    pub(crate) spec: String,
    pub(crate) settings: OpSettings,
    /// Where its artifact comes from, unless something is wrong with the folder.
    pub(crate) source: Result<Source, Box<Refusal>>,
}

/// Where an artifact comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Cargo builds it.
    Crate {
        /// The package's name, `udf-<project>-<op>`.
        package: String,
    },
    /// It was built elsewhere and lies here.
    Prebuilt {
        /// The file.
        library: PathBuf,
        /// What its pack says of it, if it lies in one.
        packed: Option<Packed>,
    },
}

/// A crate that operations may depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLibrary {
    pub(crate) folder: PathBuf,
    pub(crate) root: usize,
}

/// What the roots hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discovery {
    pub(crate) ops: Vec<FoundOp>,
    pub(crate) libraries: Vec<FoundLibrary>,
    pub(crate) problems: Vec<Problem>,
}

/// Walks the roots.
pub(crate) fn discover(roots: &[Root]) -> Discovery {
    let mut found = Discovery::default();
    for (at, root) in roots.iter().enumerate() {
        let seal = match root.kind {
            RootKind::Sources => None,
            RootKind::Prebuilt => Seal::open(&root.path),
        };
        if let Some(Ok(seal)) = &seal {
            found.problems.extend(seal.problems());
        }
        Walk { root, at, seal, found: &mut found }.root();
    }
    claims::settle(roots, &mut found);
    found
}

/// The walk of one root.
struct Walk<'a> {
    root: &'a Root,
    at: usize,
    /// Of a root that is a pack.
    seal: Option<Result<Seal, Box<Refusal>>>,
    found: &'a mut Discovery,
}

impl Walk<'_> {
    fn root(&mut self) {
        let main = self.project_manifest(&self.root.path);
        let mut direct = Vec::new();
        for folder in self.subfolders(&self.root.path) {
            if self.is_operation_place(&folder) {
                direct.push(folder);
            } else {
                let manifest = self.project_manifest(&folder);
                let folders = self.subfolders(&folder);
                self.project(&name_of(&folder), &manifest, &folders, &folder);
            }
        }
        self.project(MAIN_PROJECT, &main, &direct, &self.root.path);
    }

    /// Whether a folder directly in the root is an operation (or library) rather than a project.
    fn is_operation_place(&self, folder: &Path) -> bool {
        let own = match self.root.kind {
            RootKind::Sources => folder.join("Cargo.toml").exists(),
            RootKind::Prebuilt => library_of(folder).is_some(),
        };
        own || (folder.join("spec.md").is_file() && !folder.join("project.toml").exists())
    }

    fn project(
        &mut self,
        project: &str,
        manifest: &Result<ProjectManifest, Box<Refusal>>,
        folders: &[PathBuf],
        place: &Path,
    ) {
        let before = self.found.ops.len();
        for folder in folders {
            self.operation(project, manifest, folder);
        }
        let Ok(manifest) = manifest else { return };
        let file = place.join("project.toml");
        for key in &manifest.unknown {
            self.found.problems.push(Problem {
                place: file.clone(),
                reason: format!("unknown key `{key}`; it has no effect"),
                remedy: "known are `workspace`, `lane` and, in [udfs.<op>], `cache_max_age`, `lane`, `timeout`"
                    .to_owned(),
            });
        }
        if self.root.kind == RootKind::Prebuilt {
            // A pack may hold some operations of a project, and its project.toml whole.
            return;
        }
        let here = &self.found.ops[before..];
        let is_here = |name: &str| here.iter().any(|found| &*found.address.op == name);
        for (old, name) in &manifest.aliases {
            let reason = if old.trim().is_empty() || is_here(old) {
                format!("the alias `{old}` is taken; it has no effect")
            } else if !is_here(name) {
                format!("the alias `{old}` leads to `{name}`, which is not there")
            } else {
                continue;
            };
            self.found.problems.push(Problem {
                place: file.clone(),
                reason,
                remedy: "an alias is an id that nothing has any more, and leads to an operation of this project"
                    .to_owned(),
            });
        }
        let strangers: Vec<_> = manifest
            .ops
            .keys()
            .filter(|op| !here.iter().any(|found| *found.address.op == ***op))
            .collect();
        for op in strangers {
            self.found.problems.push(Problem {
                place: file.clone(),
                reason: format!("[udfs.{op}] is about an operation that is not there"),
                remedy: format!("correct the name, or remove [udfs.{op}]"),
            });
        }
    }

    fn operation(
        &mut self,
        project: &str,
        manifest: &Result<ProjectManifest, Box<Refusal>>,
        folder: &Path,
    ) {
        let op = name_of(folder);
        let source = match self.root.kind {
            RootKind::Sources => match crate_folder::kind(folder) {
                Ok(CrateKind::Library) => {
                    self.found
                        .libraries
                        .push(FoundLibrary { folder: folder.to_owned(), root: self.at });
                    if !folder.join("spec.md").exists() {
                        return;
                    }
                    Err(crate_folder::not_cdylib(folder))
                }
                Ok(CrateKind::Operation) => {
                    let package = format!("udf-{project}-{op}");
                    crate_folder::check_operation(folder, &package)
                        .map(|()| Source::Crate { package })
                }
                Err(refusal) => Err(refusal),
            },
            RootKind::Prebuilt => match library_of(folder) {
                Some(library) => {
                    self.packed(folder).map(|packed| Source::Prebuilt { library, packed })
                }
                None => {
                    Err(Refusal::new("it holds no .so file", "pack it again, or remove the folder")
                        .file(folder))
                }
            },
        };
        let spec = read_spec(folder);
        let (workspace, settings) = match manifest {
            Ok(manifest) => (manifest.workspace(), manifest.settings(&op)),
            Err(_) => (DEFAULT_WORKSPACE, OpSettings::default()),
        };
        let sealed = self.seal.as_ref().and_then(|seal| seal.as_ref().ok()?.workspace(folder));
        let workspace = sealed.unwrap_or(workspace);
        let source = check_names(project, &op, folder)
            .and(manifest.as_ref().map(|_| ()).map_err(Clone::clone))
            .and(source)
            .and_then(|source| spec.as_ref().map(|_| source).map_err(Clone::clone));
        self.found.ops.push(FoundOp {
            address: Address::new(workspace, project, &op),
            folder: folder.to_owned(),
            root: self.at,
            spec: spec.unwrap_or_default(),
            settings,
            source,
        });
    }

    /// What the root's pack says of this folder; nothing when the root is none.
    fn packed(&self, folder: &Path) -> Result<Option<Packed>, Box<Refusal>> {
        match &self.seal {
            None => Ok(None),
            Some(Ok(seal)) => seal.check(folder).map(Some),
            Some(Err(refusal)) => Err(refusal.clone()),
        }
    }

    fn project_manifest(&self, folder: &Path) -> Result<ProjectManifest, Box<Refusal>> {
        let path = folder.join("project.toml");
        let text = match text_file::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(ProjectManifest::default());
            }
            Err(error) => {
                return Err(Refusal::new(
                    format!("the project.toml of its project cannot be read: {error}"),
                    "make it a readable text file",
                )
                .file(path));
            }
        };
        ProjectManifest::parse(&text).map_err(|fault| {
            Refusal::new(
                format!("the project.toml of its project is broken: {fault}"),
                "correct project.toml",
            )
            .file(path)
        })
    }

    /// The folders in `place` that may be projects or operations, by name.
    fn subfolders(&mut self, place: &Path) -> Vec<PathBuf> {
        let walk =
            WalkDir::new(place).min_depth(1).max_depth(1).follow_links(true).sort_by_file_name();
        let mut folders = Vec::new();
        for entry in walk.into_iter().filter_entry(|entry| !is_passed_over(entry)) {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => folders.push(entry.into_path()),
                Ok(_) => {}
                Err(error) => self.found.problems.push(Problem {
                    place: error.path().unwrap_or(place).to_owned(),
                    reason: match error.io_error() {
                        Some(error) => format!("it cannot be opened: {error}"),
                        None => "it is a link that leads back to itself".to_owned(),
                    },
                    remedy: "make it readable, or remove it".to_owned(),
                }),
            }
        }
        folders
    }
}

fn is_passed_over(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    name.starts_with('.') || matches!(&*name, "widgets" | "target" | "node_modules")
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn check_names(project: &str, op: &str, folder: &Path) -> Result<(), Box<Refusal>> {
    for (what, name) in [("a project", project), ("an operation", op)] {
        if !manifest::is_name(name) {
            return Err(Refusal::new(
                format!("`{name}` cannot name {what}"),
                format!("rename the folder: {}", manifest::NAME_RULE),
            )
            .file(folder));
        }
    }
    Ok(())
}

/// The artifact of a prebuilt folder: `lib.so`, or the only `.so` file there is.
fn library_of(folder: &Path) -> Option<PathBuf> {
    let usual = folder.join("lib.so");
    if usual.symlink_metadata().is_ok() {
        return Some(usual);
    }
    let mut libraries = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "so"));
    let only = libraries.next()?;
    libraries.next().is_none().then_some(only)
}

fn read_spec(folder: &Path) -> Result<String, Box<Refusal>> {
    let path = folder.join("spec.md");
    let fault = match text_file::read(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text),
        Ok(_) => "its spec.md is empty".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "it has no spec.md".to_owned()
        }
        Err(error) => {
            let fault = format!("its spec.md cannot be read: {error}");
            return Err(Refusal::new(fault, "make it a text file of at most 1 MiB").file(path));
        }
    };
    Err(Refusal::new(fault, "write a spec.md: purpose, inputs, output, errors, examples")
        .file(path))
}

#[cfg(test)]
mod tests;
