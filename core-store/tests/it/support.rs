//! A state directory of its own for each test.

use std::path::{Path, PathBuf};

use core_store::{AppStore, Snapshot, Store, StoreOptions};

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With one collection's file in place.
    pub(crate) fn with(collection: &str, content: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        place.put(&format!("state/{collection}.json"), content);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn at(&self, relative: &str) -> PathBuf {
        self.path().join(relative)
    }

    #[expect(clippy::disallowed_methods, reason = "the part of another program is played here")]
    pub(crate) fn put(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.at(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[track_caller]
    pub(crate) fn text(&self, relative: &str) -> String {
        std::fs::read_to_string(self.at(relative)).unwrap()
    }

    /// Every file below `relative`, in order.
    pub(crate) fn files(&self, relative: &str) -> Vec<String> {
        fn collect(dir: &Path, root: &Path, files: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, root, files);
                } else {
                    files.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut files = Vec::new();
        collect(&self.at(relative), self.path(), &mut files);
        files.sort();
        files
    }

    /// A store that knows nothing yet.
    pub(crate) fn store(&self) -> Store {
        Store::open(StoreOptions::default())
    }

    pub(crate) fn app(&self) -> AppStore {
        self.store().app(self.path())
    }
}

pub(crate) fn texts(snapshot: &Snapshot) -> Vec<String> {
    snapshot.texts().map(str::to_owned).collect()
}

/// Pushes one record to one collection.
#[track_caller]
pub(crate) fn push(app: &AppStore, collection: &str, text: &str) {
    let mut tx = app.begin(&[collection]).unwrap();
    tx.push(collection, text).unwrap();
    tx.commit().unwrap();
}

/// The causes of an error below it, joined.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
