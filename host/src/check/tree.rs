//! [`Tree`]: what lies below a folder, so that before and after can be compared, and before brought back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Everything below a folder by relative path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<PathBuf, Node>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Folder,
    File(Vec<u8>),
    /// A link, by its target; a pipe, socket or device, by none.
    Other(Option<PathBuf>),
}

impl Tree {
    /// These folders and nothing else.
    pub(crate) fn of_folders<const N: usize>(names: [&str; N]) -> Self {
        Self(names.map(|name| (PathBuf::from(name), Node::Folder)).into())
    }

    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let mut tree = BTreeMap::new();
        for entry in WalkDir::new(folder).min_depth(1) {
            let entry = entry?;
            let kind = entry.file_type();
            let node = if kind.is_dir() {
                Node::Folder
            } else if kind.is_file() {
                Node::File(fs::read(entry.path())?)
            } else {
                Node::Other(fs::read_link(entry.path()).ok())
            };
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_owned();
            tree.insert(path, node);
        }
        Ok(Self(tree))
    }

    /// What is other in `after`: gone, new or changed.
    pub(crate) fn changed<'a>(&'a self, after: &'a Self) -> Vec<&'a Path> {
        let paths: std::collections::BTreeSet<&PathBuf> =
            self.0.keys().chain(after.0.keys()).collect();
        let differs = |path: &&&PathBuf| self.0.get(**path) != after.0.get(**path);
        paths.iter().filter(differs).map(|path| path.as_path()).collect()
    }

    /// Brings the folder back to this.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        let now = Self::of(folder)?;
        // The deepest first, so that folders are empty when their turn comes.
        for path in self.changed(&now).into_iter().rev() {
            let place = folder.join(path);
            match now.0.get(path) {
                Some(Node::Folder) => fs::remove_dir_all(&place)?,
                Some(Node::File(_) | Node::Other(_)) => fs::remove_file(&place)?,
                None => {}
            }
        }
        for (path, node) in &self.0 {
            let place = folder.join(path);
            match node {
                Node::Folder => fs::create_dir_all(&place)?,
                Node::File(bytes) if !place.exists() => File::create(&place)?.write_all(bytes)?,
                Node::Other(Some(target)) if place.symlink_metadata().is_err() => {
                    std::os::unix::fs::symlink(target, &place)?;
                }
                Node::File(_) | Node::Other(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

    use super::*;

    #[test]
    fn every_change_is_seen_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/kept"), "1").unwrap();
        fs::write(at("a/changed"), "1").unwrap();
        fs::write(at("a/b/gone"), "1").unwrap();
        let before = Tree::of(folder.path()).unwrap();
        assert!(before.changed(&before).is_empty());
        fs::write(at("a/changed"), "2").unwrap();
        fs::remove_dir_all(at("a/b")).unwrap();
        fs::create_dir_all(at("new/er")).unwrap();
        fs::write(at("new/er/file"), "").unwrap();
        std::os::unix::fs::symlink("/nowhere", at("a/link")).unwrap();
        let after = Tree::of(folder.path()).unwrap();
        let want = ["a/b", "a/b/gone", "a/changed", "a/link", "new", "new/er", "new/er/file"];
        assert_eq!(before.changed(&after), want.map(Path::new));
        before.restore(folder.path()).unwrap();
        assert_eq!(Tree::of(folder.path()).unwrap(), before);
    }
}
