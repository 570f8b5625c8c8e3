//! [`Interest`]: which folders are watched, and which events in them are a reason to look.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind};
use walkdir::{DirEntry, WalkDir};

use super::Watched;
use crate::plugins::stamp::is_of_an_editor;

/// Tells a folder from another one that stands in its place later.
pub(super) type FolderId = (u64, u64);

/// What is to be watched, folder by folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interest {
    /// Every folder that takes a watch.
    pub(super) folders: BTreeMap<PathBuf, FolderId>,
    /// Those of them in which every file counts.
    whole: BTreeSet<PathBuf>,
    /// Single paths in the others: roots that may come and go, and what links lead to.
    single: BTreeSet<PathBuf>,
    /// Folders whose watch has gone with them, though another folder may stand there by now.
    lost: BTreeSet<PathBuf>,
}

impl Interest {
    /// What there is of it now.
    pub(super) fn of(watched: &Watched) -> Self {
        let mut interest = Self::default();
        for root in &watched.roots {
            interest.tree(root);
            // So that it is seen when the root itself is renamed or replaced.
            interest.single(root);
        }
        for path in &watched.awaited {
            interest.single(path);
        }
        interest
    }

    fn tree(&mut self, root: &Path) {
        let walk = WalkDir::new(root).follow_links(true).into_iter();
        let entries = walk.filter_entry(|entry| !is_passed_over(entry));
        // What cannot be opened cannot be served either; discovery says so.
        for entry in entries.filter_map(Result::ok) {
            if entry.file_type().is_dir() {
                if let Ok(facts) = std::fs::metadata(entry.path()) {
                    self.whole.insert(entry.path().to_owned());
                    self.folders.insert(entry.into_path(), id(&facts));
                }
            } else if entry.path_is_symlink()
                && let Ok(file) = entry.path().canonicalize()
            {
                self.single(&file);
            }
        }
    }

    fn single(&mut self, path: &Path) {
        let Some(folder) = path.parent() else { return };
        if let Ok(facts) = std::fs::metadata(folder) {
            self.folders.entry(folder.to_owned()).or_insert_with(|| id(&facts));
            self.single.insert(path.to_owned());
        }
    }

    /// Whether the event is a reason to look.
    pub(super) fn takes(&mut self, event: &Event) -> bool {
        let reading = matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write));
        if reading {
            return false;
        }
        if event.need_rescan() {
            return true;
        }
        let mut matters = false;
        for path in &event.paths {
            if self.folders.contains_key(path) && !matches!(event.kind, EventKind::Access(_)) {
                let goes = matches!(
                    event.kind,
                    EventKind::Remove(_) | EventKind::Modify(notify::event::ModifyKind::Name(_))
                );
                if goes {
                    self.lost.insert(path.clone());
                }
                matters = true;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let inside = path.parent().is_some_and(|folder| self.whole.contains(folder));
            matters |= self.single.contains(path)
                || (inside && !is_of_an_editor(&name) && !is_passed_over_name(&name));
        }
        matters
    }

    /// The folders whose watch has gone with them.
    pub(super) fn take_lost(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.lost)
    }
}

fn id(facts: &Metadata) -> FolderId {
    (facts.dev(), facts.ino())
}

fn is_passed_over(entry: &DirEntry) -> bool {
    entry.depth() > 0
        && entry.file_type().is_dir()
        && is_passed_over_name(&entry.file_name().to_string_lossy())
}

/// What no look reads: hidden things, and what builds and package managers write.
fn is_passed_over_name(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "target" | "node_modules")
}
