//! [`Shadow`]: a workspace of links that holds only the folders that are in order.
//!
//! Cargo refuses a whole workspace when one folder that its globs match is broken. The shadow has a copy of the
//! checkout's Cargo.toml with the members spelled out, links to everything beside it, and a link for each operation
//! and library that is in order. It shares target folder and fingerprints with the checkout, so building here costs
//! nothing that a build there has done.
//!
//! A crate from outside the checkout's `udfs/` gets a folder of links with a Cargo.toml of its own, in which paths to
//! the checkout (`sdk = { path = ".." }`) lead to the shadow: cargo would otherwise see two packages `sdk`. Its library
//! gets the place into its name: cargo puts the library of each package under its bare name into the one target folder,
//! and takes it from there for its own, though a package of that name from another folder has written it last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::crate_folder::{is_cdylib, lib_name, package_name};
use super::stamp::{replace_file, short_hash};
use super::text_file;

/// A crate that is to be in the shadow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The real folder.
    pub(crate) folder: PathBuf,
    /// Where it goes, relative to the shadow.
    pub(crate) place: PathBuf,
    /// Whether the real folder can be linked as it is: it lies in the checkout at the same place.
    native: bool,
    /// Tells its root from others, where operations of the same name may lie.
    root: String,
}

impl Member {
    /// The crate `<root>/<project>/<name>` (or `<root>/<name>`, which has no project folder).
    pub(crate) fn new(checkout: &Path, root: &Path, project: &str, folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default();
        let in_checkout = root == checkout.join("udfs");
        let base = if in_checkout {
            PathBuf::from("udfs")
        } else {
            Path::new("ext").join(short_hash(root))
        };
        let place = base.join(project).join(name);
        let native = in_checkout && checkout.join(&place) == folder;
        Self { folder: folder.to_owned(), place, native, root: short_hash(root) }
    }
}

/// A shadow workspace that is ready to build in. While it lives, no other host touches it.
#[derive(Debug)]
pub(crate) struct Shadow {
    root: PathBuf,
    checkout: PathBuf,
    members: Vec<Member>,
    /// Members that could not be read when their turn came.
    gone: Vec<Member>,
    _lock: File,
}

/// What a place in the shadow holds.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    Link(PathBuf),
    Text(String),
}

impl Shadow {
    /// Brings the folder `root` to hold exactly the members. `waiting` is told when another host is at it.
    pub(crate) fn sync(
        root: &Path,
        checkout: &Path,
        members: Vec<Member>,
        waiting: impl FnOnce(&Path),
    ) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let lock_path = root.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                waiting(&lock_path);
                lock.lock()?;
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let (root, checkout, gone) = (root.to_owned(), checkout.to_owned(), Vec::new());
        let mut shadow = Self { root, checkout, members, gone, _lock: lock };
        let wanted = shadow.wanted()?;
        shadow.apply(&wanted)?;
        shadow.copy_lock_file()?;
        Ok(shadow)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Members that went away or changed so much, since they were found, that they are left out.
    pub(crate) fn gone(&self) -> &[Member] {
        &self.gone
    }

    /// The member of this manifest, as cargo names it.
    pub(crate) fn member_of_manifest(&self, manifest: &Path) -> Option<&Member> {
        let place = manifest.parent()?.strip_prefix(&self.root).ok()?;
        self.members.iter().find(|member| member.place == place)
    }

    /// The members whose place is named in a text of cargo's.
    pub(crate) fn members_named_in(&self, text: &str) -> Vec<&Member> {
        self.members
            .iter()
            .filter(|member| {
                let place = self.root.join(&member.place);
                let place = place.to_string_lossy();
                // As a whole name: `p/a` is not named by `p/ab`.
                text.match_indices(&*place).any(|(at, _)| {
                    !text[at + place.len()..]
                        .starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                })
            })
            .collect()
    }

    /// The text with the shadow's paths replaced by the real ones.
    pub(crate) fn real_paths(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for member in self.members.iter().filter(|member| !member.native) {
            let (place, folder) = (member.place.to_string_lossy(), member.folder.to_string_lossy());
            text = text.replace(&*self.root.join(&member.place).to_string_lossy(), &folder);
            text = text.replace(&format!("{place}/"), &format!("{folder}/"));
        }
        text.replace(&*self.root.to_string_lossy(), &self.checkout.to_string_lossy())
    }

    fn wanted(&mut self) -> io::Result<BTreeMap<PathBuf, Item>> {
        let mut wanted = BTreeMap::new();
        for entry in fs::read_dir(&self.checkout)? {
            let name = entry?.file_name();
            if !matches!(
                &*name.to_string_lossy(),
                "target" | "udfs" | "ext" | "Cargo.toml" | "Cargo.lock" | ".git" | ".lock"
            ) {
                wanted.insert(PathBuf::from(&name), Item::Link(self.checkout.join(&name)));
            }
        }
        let mut gone = Vec::new();
        for member in &self.members {
            // Folders come and go while others are saved; the rest can be built all the same.
            match self.items(member) {
                Ok(items) => wanted.extend(items),
                Err(error) => {
                    tracing::debug!(folder = %member.folder.display(), %error, "not in the build");
                    gone.push(member.clone());
                }
            }
        }
        self.members.retain(|member| !gone.contains(member));
        self.gone = gone;
        let text = fs::read_to_string(self.checkout.join("Cargo.toml"))?;
        wanted.insert(PathBuf::from("Cargo.toml"), Item::Text(self.workspace_manifest(&text)?));
        Ok(wanted)
    }

    /// What makes up one member.
    fn items(&self, member: &Member) -> io::Result<Vec<(PathBuf, Item)>> {
        let text = text_file::read(&member.folder.join("Cargo.toml"))?;
        if member.native {
            return Ok(vec![(member.place.clone(), Item::Link(member.folder.clone()))]);
        }
        let manifest = Item::Text(self.member_manifest(&text, member));
        let mut items = vec![(member.place.join("Cargo.toml"), manifest)];
        for entry in fs::read_dir(&member.folder)? {
            let name = entry?.file_name();
            if !matches!(&*name.to_string_lossy(), "target" | "Cargo.toml" | "Cargo.lock" | ".git")
            {
                items.push((member.place.join(&name), Item::Link(member.folder.join(&name))));
            }
        }
        Ok(items)
    }

    /// The checkout's Cargo.toml with the members spelled out.
    fn workspace_manifest(&self, text: &str) -> io::Result<String> {
        let mut manifest: toml::Table = text.parse().map_err(io::Error::other)?;
        let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
        let workspace = workspace
            .ok_or_else(|| io::Error::other("the checkout's Cargo.toml is no workspace"))?;
        let listed =
            workspace.get("members").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let mut members: Vec<toml::Value> = listed
            .into_iter()
            .filter(|member| {
                !member.as_str().is_some_and(|member| Path::new(member).starts_with("udfs"))
            })
            .collect();
        members.extend(
            self.members.iter().map(|member| toml::Value::from(&*member.place.to_string_lossy())),
        );
        workspace.insert("members".to_owned(), toml::Value::Array(members));
        toml::to_string(&manifest).map_err(io::Error::other)
    }

    /// A member's own Cargo.toml for a place that is not the one it was written for. One that is no longer valid is
    /// passed on as it is, for cargo to say what is wrong.
    fn member_manifest(&self, text: &str, member: &Member) -> String {
        let Ok(mut manifest) = text.parse::<toml::Table>() else { return text.to_owned() };
        let folder = &*member.folder;
        if let Some(name) = package_name(&manifest)
            && is_cdylib(&manifest)
            && let Some(lib) = manifest.get_mut("lib").and_then(toml::Value::as_table_mut)
        {
            let name = format!("{}_{}", lib_name(&name), &member.root[..8]);
            lib.insert("name".to_owned(), toml::Value::from(name));
        }
        // These make it a workspace of its own; here it is a member of ours.
        for key in ["workspace", "profile", "patch"] {
            manifest.remove(key);
        }
        self.redirect(&mut manifest, folder);
        if let Some(targets) = manifest.get_mut("target").and_then(toml::Value::as_table_mut) {
            for (_, target) in targets.iter_mut() {
                if let Some(target) = target.as_table_mut() {
                    self.redirect(target, folder);
                }
            }
        }
        toml::to_string(&manifest).unwrap_or_else(|_| text.to_owned())
    }

    fn redirect(&self, table: &mut toml::Table, folder: &Path) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = table.get_mut(kind).and_then(toml::Value::as_table_mut) else {
                continue;
            };
            for (_, dependency) in dependencies.iter_mut() {
                let Some(dependency) = dependency.as_table_mut() else { continue };
                if let Some(path) = dependency.get("path").and_then(toml::Value::as_str) {
                    let path = self.redirected(&folder.join(path));
                    dependency
                        .insert("path".to_owned(), toml::Value::from(&*path.to_string_lossy()));
                }
            }
        }
    }

    /// Where the shadow has this folder; the folder itself if it has not.
    fn redirected(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| lexical(path));
        if let Some(member) = self.members.iter().find(|member| member.folder == path) {
            return self.root.join(&member.place);
        }
        match path.strip_prefix(&self.checkout) {
            Ok(inside) => self.root.join(inside),
            Err(_) => path,
        }
    }

    /// Makes the folder hold exactly what is wanted; what is right already is not touched.
    fn apply(&self, wanted: &BTreeMap<PathBuf, Item>) -> io::Result<()> {
        let folders: BTreeSet<&Path> =
            wanted.keys().flat_map(|place| place.ancestors().skip(1)).collect();
        self.remove_others(Path::new(""), wanted, &folders)?;
        for (place, item) in wanted {
            let path = self.root.join(place);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            match item {
                Item::Link(target) => {
                    if fs::read_link(&path).ok().as_ref() != Some(target) {
                        remove(&path)?;
                        symlink(target, &path)?;
                    }
                }
                Item::Text(text) => {
                    if fs::read_to_string(&path).ok().as_ref() != Some(text) {
                        replace_file(&path, text.as_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn remove_others(
        &self,
        folder: &Path,
        wanted: &BTreeMap<PathBuf, Item>,
        folders: &BTreeSet<&Path>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            let place = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() && folders.contains(&*place) {
                self.remove_others(&place, wanted, folders)?;
            } else if !wanted.contains_key(&place) && !self.is_own(&place) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn is_own(&self, place: &Path) -> bool {
        matches!(place.to_str(), Some(".lock" | "Cargo.lock" | ".lock-origin"))
    }

    /// The shadow's Cargo.lock starts as the checkout's and then keeps what its own members add to it.
    fn copy_lock_file(&self) -> io::Result<()> {
        let lock = match fs::read(self.checkout.join("Cargo.lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let (own, origin) = (self.root.join("Cargo.lock"), self.root.join(".lock-origin"));
        if !own.exists() || fs::read(&origin).ok().as_ref() != Some(&lock) {
            replace_file(&own, &lock)?;
            replace_file(&origin, &lock)?;
        }
        Ok(())
    }
}

/// Removes a link, file or folder; links are not followed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Resolves `..` and `.` in a path that need not exist.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests;
