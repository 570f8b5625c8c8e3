//! Writes a pack: whole, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustix::fs::{CWD, RenameFlags};
use sdk::abi::INTERFACE_VERSION;
use walkdir::{DirEntry, WalkDir};

use super::super::catalog::{Entry, EntryState};
use super::{LIBRARY, MANIFEST, PackManifest, PackedOp, TARGET, sha256};
use crate::error::HostError;

fn io_fault(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> HostError {
    move |error| HostError::io(action, place, &error)
}

fn refused(file: &Path, what: &str) -> HostError {
    HostError::BadRequest { message: format!("`{}` cannot be packed: {what}", file.display()) }
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Written {
    /// Where, resolved.
    pub(crate) folder: PathBuf,
    pub(crate) manifest: PackManifest,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

/// Packs these operations to `out`, which must not exist, be an empty folder, or be a pack, whose place is then taken.
pub(crate) fn write(out: &Path, entries: &[Arc<Entry>]) -> Result<Written, HostError> {
    // Its real name, so that what is renamed is the folder and not a link to it.
    let out = match out.canonicalize() {
        Ok(out) => out,
        Err(_) => std::path::absolute(out).map_err(io_fault("resolve", out))?,
    };
    let old = Old::at(&out)?;
    let above = out.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(above).map_err(io_fault("create", above))?;
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let temp = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(above)
        .map_err(io_fault("write beside", &out))?;
    let mut pack = Pack { folder: temp.path(), files: BTreeMap::new(), bytes: 0 };
    let operations = pack.operations(entries)?;
    let manifest = PackManifest {
        format: super::FORMAT,
        interface: INTERFACE_VERSION,
        target: TARGET.to_owned(),
        sdk: env!("CARGO_PKG_VERSION").to_owned(),
        operations,
        files: std::mem::take(&mut pack.files),
    };
    let mut text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| HostError::io("render the manifest of", &out, &error.into()))?;
    text.push(b'\n');
    pack.file(MANIFEST, &text)?;
    let bytes = pack.bytes;
    put(temp, &out, &old)?;
    Ok(Written { folder: out, manifest, bytes })
}

/// What is at the place.
#[derive(Debug, PartialEq, Eq)]
enum Old {
    Nothing,
    Pack,
}

impl Old {
    fn at(place: &Path) -> Result<Self, HostError> {
        let taken = |what: &str| HostError::BadRequest {
            message: format!(
                "`{}` {what}; it stays as it is: name another folder",
                place.display()
            ),
        };
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(taken("is no folder"));
            }
            Err(error) => return Err(io_fault("look into", place)(error)),
        };
        if entries.count() == 0 {
            return Ok(Self::Nothing);
        }
        let Some(Ok(manifest)) = PackManifest::read(place) else {
            return Err(taken("holds something that is no pack"));
        };
        // It will be removed: nothing of anybody else's may go with it.
        for entry in WalkDir::new(place).min_depth(1) {
            let entry = entry.map_err(|error| io_fault("walk", place)(error.into()))?;
            let path = entry.path().strip_prefix(place).unwrap_or(entry.path());
            let known = entry.file_type().is_dir()
                || path == Path::new(MANIFEST)
                || path.to_str().is_some_and(|path| manifest.files.contains_key(path));
            if !known {
                return Err(taken(&format!(
                    "is a pack, but `{}` in it is no part of it",
                    path.display()
                )));
            }
        }
        Ok(Self::Pack)
    }
}

/// Gives the finished folder its name. Everything is on the disk before that.
fn put(temp: tempfile::TempDir, out: &Path, old: &Old) -> Result<(), HostError> {
    let sync = |place: &Path| File::open(place).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
    sync(temp.path()).map_err(io_fault("sync", temp.path()))?;
    let above = out.parent().unwrap_or(Path::new("/"));
    match old {
        Old::Nothing => {
            // Over an empty folder, too. One that has been filled meanwhile stays.
            fs::rename(temp.path(), out).map_err(io_fault("rename to", out))?;
            // What has moved is not to be removed.
            let _moved = temp.keep();
        }
        Old::Pack => {
            // The two change places, so that at no moment there is none; the old one goes with `temp`.
            rustix::fs::renameat_with(CWD, temp.path(), CWD, out, RenameFlags::EXCHANGE)
                .map_err(io::Error::from)
                .or_else(|error| match error.kind() {
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
                        in_two_steps(temp.path(), out)
                    }
                    _ => Err(error),
                })
                .map_err(io_fault("replace", out))?;
            let leftover = temp.path().to_owned();
            if let Err(error) = temp.close() {
                tracing::warn!(folder = %leftover.display(), %error, "the pack before this one could not be removed");
            }
        }
    }
    sync(above).map_err(io_fault("sync", above))
}

/// For disks that cannot let two folders change places: for a moment there is none.
fn in_two_steps(new: &Path, out: &Path) -> io::Result<()> {
    let aside = new.with_extension("old");
    fs::rename(out, &aside)?;
    if let Err(error) = fs::rename(new, out) {
        fs::rename(&aside, out)?;
        return Err(error);
    }
    // To where the old one is looked for.
    fs::rename(&aside, new)
}

/// The folder being filled.
struct Pack<'a> {
    folder: &'a Path,
    files: BTreeMap<String, String>,
    bytes: u64,
}

impl Pack<'_> {
    fn operations(
        &mut self,
        entries: &[Arc<Entry>],
    ) -> Result<BTreeMap<String, PackedOp>, HostError> {
        let mut operations = BTreeMap::new();
        let mut projects: BTreeMap<&str, BTreeSet<PathBuf>> = BTreeMap::new();
        for entry in entries {
            let (place, packed) = self.operation(entry)?;
            operations.insert(place, packed);
            let project = entry.folder.parent().unwrap_or(&entry.folder).to_owned();
            projects.entry(&entry.address.project).or_default().insert(project);
        }
        for (project, folders) in projects {
            self.project(project, &folders)?;
        }
        Ok(operations)
    }

    fn operation(&mut self, entry: &Entry) -> Result<(String, PackedOp), HostError> {
        let not_ready = |reason: &str, remedy: &str| HostError::Refused {
            op: entry.address.clone(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        };
        let loaded = match entry.state() {
            EntryState::Ready(loaded) => loaded,
            EntryState::Building => return Err(not_ready("it is still being built", "pack again")),
            EntryState::Refused(refusal) => {
                return Err(not_ready(&refusal.reason, &refusal.remedy));
            }
        };
        let place = format!("{}/{}", entry.address.project, entry.address.op);
        let library = fs::read(&loaded.artifact).map_err(io_fault("read", &loaded.artifact))?;
        if sha256(&library) != loaded.hash {
            return Err(not_ready("its copy in the cache is damaged", "build it again"));
        }
        let path = format!("{place}/{LIBRARY}");
        let file = self.file(&path, &library)?;
        // For whoever looks; a host reads the time in the manifest.
        let times = FileTimes::new().set_modified(loaded.built_at);
        file.set_times(times).map_err(io_fault("set the time of", &self.folder.join(&path)))?;
        self.data(&entry.folder, &place, is_source)?;
        let built_at = loaded.built_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let sdk = loaded.descriptor.sdk.clone();
        Ok((place, PackedOp { address: entry.address.to_string(), built_at, sdk }))
    }

    /// `project.toml` and `widgets/` of a project, whose operations may lie in several folders.
    fn project(&mut self, project: &str, folders: &BTreeSet<PathBuf>) -> Result<(), HostError> {
        let mut settings: Option<Option<Vec<u8>>> = None;
        for folder in folders {
            let file = folder.join("project.toml");
            let own = match fs::read(&file) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(io_fault("read", &file)(error)),
            };
            // In a pack one file speaks for all of them.
            if settings.as_ref().is_some_and(|other| *other != own) {
                let what = format!(
                    "another folder has a project `{project}` with other settings; give one of them, with --only"
                );
                return Err(refused(&file, &what));
            }
            settings = Some(own);
            let widgets = folder.join("widgets");
            if widgets.is_dir() {
                self.data(&widgets, &format!("{project}/widgets"), |_| false)?;
            }
        }
        if let Some(bytes) = settings.flatten() {
            self.file(&format!("{project}/project.toml"), &bytes)?;
        }
        Ok(())
    }

    /// Every file below `folder` but the ones that `left_out` names.
    fn data(
        &mut self,
        folder: &Path,
        place: &str,
        left_out: fn(&DirEntry) -> bool,
    ) -> Result<(), HostError> {
        let hidden = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with('.');
        let walk = WalkDir::new(folder).min_depth(1).sort_by_file_name().into_iter();
        for entry in walk.filter_entry(|entry| !hidden(entry) && !left_out(entry)) {
            let entry = entry.map_err(|error| io_fault("walk", folder)(error.into()))?;
            if entry.file_type().is_dir() {
                continue;
            }
            let refused = |what| refused(entry.path(), what);
            if !entry.file_type().is_file() {
                return Err(refused(
                    "it is a link or no plain file; put a copy there, or move it away",
                ));
            }
            let below = entry.path().strip_prefix(folder).ok().and_then(Path::to_str);
            let below = below.ok_or_else(|| refused("its name is not UTF-8"))?;
            let bytes = fs::read(entry.path()).map_err(io_fault("read", entry.path()))?;
            let path = format!("{place}/{below}");
            if let Some(other) = self.files.get(&path) {
                if *other != sha256(&bytes) {
                    return Err(refused("another folder of this project has a file of this name"));
                }
                continue;
            }
            self.file(&path, &bytes)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &str, bytes: &[u8]) -> Result<File, HostError> {
        let place = self.folder.join(path);
        let write = || {
            fs::create_dir_all(place.parent().unwrap_or(self.folder))?;
            let mut file = File::create_new(&place)?;
            file.write_all(bytes)?;
            Ok(file)
        };
        let file = write().map_err(io_fault("write", &place))?;
        self.files.insert(path.to_owned(), sha256(bytes));
        self.bytes += bytes.len() as u64;
        Ok(file)
    }
}

/// What an operation's folder holds that only a build needs; and artifacts, which are packed from the cache.
fn is_source(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.depth() == 1
        && (matches!(
            &*name,
            "Cargo.toml"
                | "Cargo.lock"
                | "build.rs"
                | "src"
                | "target"
                | "tests"
                | "benches"
                | "examples"
        ) || entry.path().extension().is_some_and(|extension| extension == "so"))
}
