//! [`Seal`]: holds a pack's files against its `pack.json`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sdk::abi::INTERFACE_VERSION;
use walkdir::WalkDir;

use super::super::catalog::Problem;
use super::super::refusal::Refusal;
use super::{LIBRARY, MANIFEST, PackManifest, PackedOp, TARGET, sha256};

const COPY_AGAIN: &str = "copy the pack again, or pack it again";

/// A pack that may be taken up, as far as its `pack.json` goes.
#[derive(Debug)]
pub(crate) struct Seal {
    folder: PathBuf,
    manifest: PackManifest,
}

/// What a pack says of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// SHA-256, lower-case hex.
    pub(crate) sha256: String,
    /// When it was built; the file's own time is that of a copy.
    pub(crate) built_at: SystemTime,
}

impl Seal {
    /// Of this folder; none when it is no pack.
    pub(crate) fn open(folder: &Path) -> Option<Result<Self, Box<Refusal>>> {
        Some(PackManifest::read(folder)?.and_then(|manifest| {
            let file = folder.join(MANIFEST);
            if manifest.target != TARGET {
                return Err(Refusal::new(
                    "its pack is for another machine",
                    "pack it on a machine like this one",
                )
                .compared(TARGET, manifest.target)
                .file(file));
            }
            if manifest.interface != INTERFACE_VERSION {
                return Err(Refusal::new(
                    "its pack was built for another interface",
                    "pack it again with this version of the host",
                )
                .compared(
                    format!("interface {INTERFACE_VERSION}"),
                    format!("interface {} of sdk {}", manifest.interface, manifest.sdk),
                )
                .file(file));
            }
            Ok(Self { folder: folder.to_owned(), manifest })
        }))
    }

    /// The workspace that the operation in this folder was packed from, whatever its project.toml says now.
    pub(crate) fn workspace(&self, folder: &Path) -> Option<&str> {
        Some(self.operation(folder)?.address.split('.').next().unwrap_or_default())
    }

    fn operation(&self, folder: &Path) -> Option<&PackedOp> {
        self.manifest.operations.get(&self.relative(folder)?)
    }

    /// The path below the pack as the manifest writes it.
    fn relative(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.folder).ok()?.to_str()?.to_owned())
    }

    /// Checks all files of the operation in this folder but the artifact itself, which is hashed when it is taken:
    /// what is opened later must be what was hashed.
    pub(crate) fn check(&self, folder: &Path) -> Result<Packed, Box<Refusal>> {
        let packed = self.operation(folder).ok_or_else(|| {
            Refusal::new("pack.json does not know it", "remove the folder, or pack it again")
                .file(folder)
        })?;
        let own = self.relative(folder).unwrap_or_default();
        let library = format!("{own}/{LIBRARY}");
        let mut sealed: BTreeSet<String> = self
            .manifest
            .files
            .keys()
            .filter(|path| path.starts_with(&format!("{own}/")))
            .cloned()
            .collect();
        let project =
            own.rsplit_once('/').map_or_else(String::new, |(project, _)| format!("{project}/"));
        sealed.insert(format!("{project}project.toml"));
        sealed.extend(self.present(folder)?);
        for path in sealed.iter().filter(|path| **path != library) {
            self.check_file(path)?;
        }
        let sha256 = self.manifest.files.get(&library).cloned().ok_or_else(|| {
            Refusal::new("pack.json does not list its artifact", COPY_AGAIN)
                .file(self.folder.join(&library))
        })?;
        let since = Duration::from_secs(packed.built_at);
        let built_at = UNIX_EPOCH.checked_add(since).ok_or_else(|| {
            Refusal::new("pack.json says it was built at a time that no clock tells", COPY_AGAIN)
                .file(folder)
        })?;
        Ok(Packed { sha256, built_at })
    }

    /// Every file in the folder, hidden ones left out: desktops scatter those.
    fn present(&self, folder: &Path) -> Result<Vec<String>, Box<Refusal>> {
        let walk = WalkDir::new(folder).min_depth(1).into_iter();
        let shown =
            |entry: &walkdir::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
        let mut paths = Vec::new();
        for entry in walk.filter_entry(shown) {
            let entry = entry.map_err(|error| {
                Refusal::new(format!("its folder cannot be walked: {error}"), COPY_AGAIN)
                    .file(folder)
            })?;
            if entry.file_type().is_dir() {
                continue;
            }
            let path = self.relative(entry.path()).ok_or_else(|| {
                Refusal::new("a file of it is not in pack.json", "remove the file")
                    .file(entry.path())
            })?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn check_file(&self, path: &str) -> Result<(), Box<Refusal>> {
        let file = self.folder.join(path);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let regular = fs::symlink_metadata(&file).is_ok_and(|facts| facts.is_file());
        match (self.manifest.files.get(path), regular.then(|| fs::read(&file))) {
            (None, None) if !file.exists() => Ok(()),
            (None, _) => Err(Refusal::new(
                format!("{name} is there, but not in pack.json"),
                "remove the file, or pack it again",
            )
            .file(file)),
            (Some(_), None) => Err(Refusal::new(
                format!("{name} of its pack is missing or no plain file"),
                COPY_AGAIN,
            )
            .file(file)),
            (Some(_), Some(Err(error))) => {
                Err(Refusal::new(format!("{name} of its pack cannot be read: {error}"), COPY_AGAIN)
                    .file(file))
            }
            (Some(want), Some(Ok(bytes))) => {
                let found = sha256(&bytes);
                if *want == found {
                    return Ok(());
                }
                Err(Refusal::new(format!("{name} is not the file that was packed"), COPY_AGAIN)
                    .compared(format!("SHA-256 {want}"), format!("SHA-256 {found}"))
                    .file(file))
            }
        }
    }

    /// What is wrong with it and belongs to no operation that is there: operations that the manifest lists and the folder
    /// no longer holds, and files of whole projects that are not what was packed.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let gone = |folder: &&String| !self.folder.join(folder).is_dir();
        let missing = |folder: &String| Problem {
            place: self.folder.join(folder),
            reason: "pack.json lists an operation that is not there".to_owned(),
            remedy: COPY_AGAIN.to_owned(),
        };
        let changed = |path: &String| {
            let refusal = self.check_file(path).err()?;
            let place = self.folder.join(path);
            Some(Problem { place, reason: refusal.reason, remedy: refusal.remedy })
        };
        let operations = self.manifest.operations.keys();
        let shared = self.manifest.files.keys().filter(|path| !self.is_of_an_operation(path));
        operations.filter(gone).map(missing).chain(shared.filter_map(changed)).collect()
    }

    /// Whether the path lies in the folder of an operation, or is checked with each of a project's operations.
    fn is_of_an_operation(&self, path: &str) -> bool {
        let inside = |folder: &String| {
            path.strip_prefix(&**folder).is_some_and(|rest| rest.starts_with('/'))
        };
        path.ends_with("/project.toml") || self.manifest.operations.keys().any(inside)
    }
}
