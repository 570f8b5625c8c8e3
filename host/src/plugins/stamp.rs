//! [`Stamps`]: what each artifact was built from, so that a start with nothing changed needs no cargo.
//!
//! A key is a hash over everything that a build of the operation depends on: its own folder, the libraries beside it,
//! the sdk and the store, the lock file, the toolchain, the profile. Files count by path, size and time, as cargo
//! itself does it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use super::refusal::Refusal;
use super::tool_homes::ToolHomes;

/// The part of a key that all operations of a host share.
#[derive(Debug, Clone)]
pub(crate) struct BaseKey(Digest);

/// What an operation is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// A hash over all of it.
    pub(crate) all: String,
    /// A hash over its own folder.
    pub(crate) own: String,
    /// The time of its newest file.
    pub(crate) newest: SystemTime,
}

/// A hash that grows, and the time of the newest file in it.
#[derive(Debug, Clone)]
struct Digest {
    hash: Sha256,
    newest: SystemTime,
}

impl BaseKey {
    /// `libraries` are the folders that operations may depend on, `build` names profile and target.
    pub(crate) fn new(checkout: &Path, libraries: &[&Path], build: &str) -> Self {
        let mut key = Digest::new();
        key.add(build);
        key.add(&format!("interface {}", sdk::abi::INTERFACE_VERSION));
        key.add(&toolchain(checkout));
        for name in [
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
        ] {
            key.add(&format!("{name}={:?}", std::env::var_os(name)));
        }
        for (name, value) in settings_of_cargo() {
            key.add(&format!("{name}={value}"));
        }
        for file in [
            "Cargo.toml",
            "Cargo.lock",
            ".cargo/config.toml",
            "rust-toolchain.toml",
            "rust-toolchain",
        ] {
            key.add_file(&checkout.join(file));
        }
        for folder in ["sdk", "core-store"] {
            key.add_folder(&checkout.join(folder));
        }
        for folder in libraries {
            key.add_folder(folder);
        }
        Self(key)
    }

    /// The key of the operation in this folder, which is also built from these other ones.
    pub(crate) fn of<'a>(&self, folder: &Path, others: impl IntoIterator<Item = &'a Path>) -> Key {
        let mut own = Digest::new();
        own.add_folder(folder);
        let newest = own.newest;
        let own = own.hex();
        let mut all = self.0.clone();
        all.add(&own);
        for other in others {
            all.add_folder(other);
        }
        let newest = all.newest.max(newest);
        Key { all: all.hex(), own, newest }
    }
}

impl Digest {
    fn new() -> Self {
        Self { hash: Sha256::new(), newest: UNIX_EPOCH }
    }

    fn hex(self) -> String {
        hex(&self.hash.finalize())
    }

    fn add(&mut self, text: &str) {
        self.hash.update((text.len() as u64).to_le_bytes());
        self.hash.update(text);
    }

    fn add_file(&mut self, path: &Path) {
        self.add(&path.to_string_lossy());
        match fs::metadata(path) {
            Ok(facts) => {
                for number in [facts.len().cast_signed(), facts.mtime(), facts.mtime_nsec()] {
                    self.hash.update(number.to_le_bytes());
                }
                self.newest = self.newest.max(facts.modified().unwrap_or(UNIX_EPOCH));
            }
            Err(_) => self.add("absent"),
        }
    }

    /// Every file in it, except what no build of a library reads.
    fn add_folder(&mut self, folder: &Path) {
        let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        let walk = walk.filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            let skipped = if entry.file_type().is_dir() {
                name.starts_with('.')
                    || matches!(&*name, "target" | "tests" | "benches" | "examples")
            } else {
                is_of_an_editor(&name)
            };
            entry.depth() == 0 || !skipped
        });
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_file() => self.add_file(entry.path()),
                Ok(_) => {}
                Err(error) => self.add(&error.to_string()),
            }
        }
    }
}

/// What the environment sets in cargo's place of a file: profiles, flags of targets. Not where it builds, which we say.
fn settings_of_cargo() -> BTreeMap<String, String> {
    let text = |it: OsString| it.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let kinds = ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_"];
    let is_setting = |name: &str| {
        kinds.iter().any(|kind| name.starts_with(kind)) && !name.ends_with("_TARGET_DIR")
    };
    variables.filter(|(name, _)| is_setting(name)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a file of this name is an editor's own: a backup, a lock, a save that is not finished.
pub(crate) fn is_of_an_editor(name: &str) -> bool {
    name.ends_with('~')
        || name.starts_with('#')
        || name.starts_with(".#")
        || name == "4913"
        || (name.starts_with('.') && matches!(name.rsplit('.').next(), Some("swp" | "swo" | "swx")))
}

/// Which compiler will be used, told without starting it: that alone would take longer than loading every operation.
fn toolchain(checkout: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let rustup = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| ToolHomes::find().rustup())
        .or_else(|| home.map(|home| home.join(".rustup")));
    let name = std::env::var("RUSTUP_TOOLCHAIN").ok().filter(|name| !name.is_empty());
    let chosen = rustup.as_deref().and_then(|rustup| {
        let name = name.or_else(|| rustup_choice(rustup, checkout))?;
        Some(rustup.join("toolchains").join(name).join("bin/rustc"))
    });
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("rustc"))
            .find(|rustc| rustc.is_file())
    };
    let rustc = chosen.filter(|rustc| rustc.is_file()).or_else(in_path);
    let Some(rustc) = rustc.and_then(|rustc| rustc.canonicalize().ok()) else {
        return "no rustc".to_owned();
    };
    let (size, time) =
        fs::metadata(&rustc).map(|facts| (facts.len(), facts.mtime())).unwrap_or_default();
    format!("{} {size} {time}", rustc.display())
}

/// The toolchain that rustup's settings choose for this folder.
fn rustup_choice(rustup: &Path, checkout: &Path) -> Option<String> {
    let settings: toml::Table =
        fs::read_to_string(rustup.join("settings.toml")).ok()?.parse().ok()?;
    let overrides = settings.get("overrides").and_then(toml::Value::as_table);
    let chosen = checkout
        .ancestors()
        .find_map(|folder| overrides?.get(&*folder.to_string_lossy()))
        .or_else(|| settings.get("default_toolchain"));
    Some(chosen?.as_str()?.to_owned())
}

/// The folder of stamps.
#[derive(Debug, Clone)]
pub(crate) struct Stamps {
    folder: PathBuf,
}

/// What was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    /// What it was built from, as [`Key::all`].
    pub(crate) key: String,
    /// As [`Key::own`].
    #[serde(default)]
    own: String,
    /// SHA-256 of the artifact.
    pub(crate) hash: String,
    /// When, in nanoseconds since 1970.
    built_at: u64,
    /// The file that cargo made. The host that reads this may have a cache of its own, which lacks the copy.
    pub(crate) library: PathBuf,
}

/// What changed without being newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// The operation's own folder.
    Own,
    /// What it is built from beside that.
    Others,
}

/// What was not built.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    key: String,
    refusal: Box<Refusal>,
}

impl Stamp {
    pub(crate) fn new(key: &Key, hash: &str, built_at: SystemTime, library: &Path) -> Self {
        let since = built_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let built_at = u64::try_from(since.as_nanos()).unwrap_or_default();
        let Key { all, own, .. } = key.clone();
        Self { key: all, own, hash: hash.to_owned(), built_at, library: library.to_owned() }
    }

    /// Whether other sources stand where those of this build stood, and cargo cannot see it: none of them is newer.
    pub(crate) fn hides(&self, key: &Key) -> Option<Hidden> {
        let known = !self.own.is_empty();
        let hides = known && self.key != key.all && key.newest <= self.built_at();
        hides.then_some(if self.own == key.own { Hidden::Others } else { Hidden::Own })
    }

    pub(crate) fn built_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.built_at)
    }
}

impl Stamps {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The stamp of the operation in this folder. One that cannot be read is none.
    pub(crate) fn get(&self, folder: &Path) -> Option<Stamp> {
        serde_json::from_slice(&fs::read(self.place(folder)).ok()?).ok()
    }

    /// Keeps it. When that fails the next start builds again, which is all that is lost.
    pub(crate) fn put(&self, folder: &Path, stamp: &Stamp) {
        self.write(&self.place(folder), stamp);
    }

    /// Why the sources with this key do not build, if that was tried.
    pub(crate) fn failure(&self, folder: &Path, key: &str) -> Option<Box<Refusal>> {
        let text = fs::read(self.failure_place(folder)).ok()?;
        let failure: Failure = serde_json::from_slice(&text).ok()?;
        (failure.key == key).then_some(failure.refusal)
    }

    /// Keeps why the sources with this key do not build.
    pub(crate) fn put_failure(&self, folder: &Path, key: &str, refusal: &Refusal) {
        let failure = Failure { key: key.to_owned(), refusal: Box::new(refusal.clone()) };
        self.write(&self.failure_place(folder), &failure);
    }

    fn write(&self, path: &Path, value: &impl Serialize) {
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            replace_file(path, &serde_json::to_vec(value)?)
        };
        if let Err(error) = write() {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot keep what was built");
        }
    }

    fn place(&self, folder: &Path) -> PathBuf {
        self.folder.join(format!("{}.json", short_hash(folder)))
    }

    fn failure_place(&self, folder: &Path) -> PathBuf {
        self.folder.join(format!("{}.failed.json", short_hash(folder)))
    }
}

/// A name for a path, of 16 hex digits.
pub(crate) fn short_hash(path: &Path) -> String {
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..8])
}

/// Writes a file whole: its old content or its new, never a part.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut temp = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
    temp.write_all(bytes)?;
    temp.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

    use super::*;

    #[test]
    fn a_key_follows_every_input_and_nothing_else() {
        let tree = tempfile::tempdir().unwrap();
        let at = |path: &str| tree.path().join(path);
        for path in [
            "sdk/src/lib.rs",
            "core-store/src/lib.rs",
            "common/src/lib.rs",
            "op/src/lib.rs",
            "op/Cargo.toml",
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "1").unwrap();
        }
        let key = || BaseKey::new(tree.path(), &[&at("common")], "release").of(&at("op"), []).all;
        let mut last = key();
        assert_eq!(key(), last);
        for path in [
            "sdk/src/lib.rs",
            "core-store/src/lib.rs",
            "common/src/lib.rs",
            "op/src/lib.rs",
            "Cargo.lock",
            "op/new.rs",
        ] {
            fs::write(at(path), "22").unwrap();
            assert_ne!(key(), last, "{path}");
            last = key();
        }
        fs::remove_file(at("op/new.rs")).unwrap();
        assert_ne!(key(), last, "a file that is gone");
        last = key();
        for path in [
            "op/tests/it.rs",
            "op/target/x",
            "sdk/tests/it.rs",
            "op/src/lib.rs~",
            "op/src/.lib.rs.swp",
            "op/src/4913",
            "op/src/.#lib.rs",
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "1").unwrap();
            assert_eq!(key(), last, "{path}");
        }
        let other = BaseKey::new(tree.path(), &[&at("common")], "debug").of(&at("op"), []).all;
        assert_ne!(other, last, "the profile");
    }

    #[test]
    fn stamps_come_back_and_broken_ones_do_not() {
        let tree = tempfile::tempdir().unwrap();
        let stamps = Stamps::new(tree.path().join("stamps"));
        let op = tree.path().join("op");
        assert_eq!(stamps.get(&op), None);
        let built_at = UNIX_EPOCH + Duration::from_nanos(5);
        let key = Key { all: "k".to_owned(), own: "o".to_owned(), newest: built_at };
        let stamp = Stamp::new(&key, "h", built_at, Path::new("/target/lib.so"));
        stamps.put(&op, &stamp);
        assert_eq!(stamps.get(&op), Some(stamp.clone()));
        assert_eq!(stamp.built_at(), built_at);
        let (all, own) = ("k2".to_owned(), "o2".to_owned());
        let later = built_at + Duration::from_nanos(1);
        for (found, want) in [
            (key.clone(), None),
            (Key { all: all.clone(), ..key.clone() }, Some(Hidden::Others)),
            (Key { all: all.clone(), own: own.clone(), ..key.clone() }, Some(Hidden::Own)),
            (Key { all, own, newest: later }, None),
        ] {
            assert_eq!(stamp.hides(&found), want, "{found:?}");
        }
        fs::write(stamps.place(&op), "{").unwrap();
        assert_eq!(stamps.get(&op), None);
        let refusal = Refusal::new("no", "yes").detail("a long story");
        stamps.put_failure(&op, "k", &refusal);
        assert_eq!(stamps.failure(&op, "k"), Some(refusal));
        assert_eq!(stamps.failure(&op, "another"), None);
    }

    #[test]
    fn rustup_chooses_by_folder_then_by_default() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(
            tree.path().join("settings.toml"),
            "default_toolchain = \"d\"\n[overrides]\n\"/a/b\" = \"o\"\n",
        )
        .unwrap();
        for (checkout, want) in [("/a/b/c", "o"), ("/a/b", "o"), ("/a", "d")] {
            assert_eq!(
                rustup_choice(tree.path(), Path::new(checkout)).as_deref(),
                Some(want),
                "{checkout}"
            );
        }
        assert_eq!(rustup_choice(Path::new("/nowhere"), Path::new("/a")), None);
    }
}
