//! A plugin of the first interface version keeps loading and answering, and new requests do not change that.
//!
//! `fixtures/first_interface` holds the boundary file as it was and a plugin that writes the frames by
//! hand. The test builds them in a copy below the target directory, offline, from the versions in the
//! workspace's lock file.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail as the test does")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use abi_stable::library::lib_header_from_path;
use core_store::{Store, StoreOptions};
use sdk::abi::{INTERFACE_VERSION, Method, PluginRef};
use sdk::host::{Descriptor, HostService, StoreSession, invoke};
use sdk::{ErrorKind, Params, UdfError};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/first_interface");

/// Copies the fixture, lets `change` edit its boundary file, and builds one package of it.
fn build(copy: &str, package: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first_interface").join(copy);
    copy_tree(Path::new(FIXTURE), &root);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    put(&root.join("Cargo.lock"), &fs::read_to_string(lock).unwrap());
    let abi = root.join("sdk/src/abi.rs");
    put(&abi, &change(fs::read_to_string(&abi).unwrap()));
    // One for each copy: cargo tells packages apart by their place in the workspace, which is the same in both.
    let target = root.join("target");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet", "--package", package, "--target-dir"])
        .arg(&target)
        .current_dir(&root)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{package} of {copy} does not build:\n{stderr}");
    target.join("debug")
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            put(&to, &fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// Leaves a file that is already right alone, so that cargo does not build it again.
fn put(path: &Path, text: &str) {
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        #[expect(clippy::disallowed_methods, reason = "a test lays out a crate")]
        fs::write(path, text).unwrap();
    }
}

static PLUGIN: LazyLock<PathBuf> =
    LazyLock::new(|| build("first", "plugin", |abi| abi).join("libplugin.so"));

fn load(path: &Path) -> PluginRef {
    lib_header_from_path(path)
        .and_then(|header| header.init_root_module::<PluginRef>())
        .unwrap_or_else(|error| panic!("refused: {error}"))
}

struct Host(StoreSession);

impl HostService for Host {
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        self.0.call(method, request).unwrap_or_else(|| Err(self.unsupported(method)))
    }

    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_plugin_of_the_first_interface_loads_and_answers() {
    let plugin = load(&PLUGIN);
    assert_eq!(plugin.interface(), 1);
    let descriptor = Descriptor::of(plugin).unwrap();
    assert_eq!(
        (descriptor.op.as_str(), descriptor.reads.as_slice()),
        ("old", &["cards".to_owned()][..])
    );

    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    put(&dir.path().join("state/cards.json"), r#"[{"id": "card_0"}, {"id": "card_1", "n": 1}]"#);
    let store = Store::open(StoreOptions::default());
    let call = |id: &str, access: sdk::host::Access| {
        let session = StoreSession::new(&store, store.app(dir.path()), access.into());
        let params: Params = [("id", id)].into_iter().collect();
        invoke(plugin, &Host(session), &params)
    };
    let reply = call("card_1", descriptor.access()).unwrap();
    assert_eq!(reply.to_json().unwrap(), "{\n    \"id\": \"card_1\",\n    \"n\": 1\n  }");
    assert_eq!(call("card_2", descriptor.access()), Err(UdfError::raised("no such card")));
    // A request no host of today knows: what a plugin of a later interface meets here.
    let error = call("unknown", descriptor.access()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("request 9999"), "{error}");
    // Errors of the host reach it, too.
    let error = call("card_1", sdk::host::Access::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

/// Why the boundary grows by numbers of requests: a host with a field more in a struct refuses older plugins, in words.
#[test]
fn a_host_whose_struct_has_grown_refuses_it() {
    let debug = build("grown", "loader", |abi| {
        let last = "pub cancelled: extern \"C\" fn(HostHandle) -> bool,\n";
        assert_eq!(abi.matches(last).count(), 1);
        abi.replace(last, &format!("{last}    pub later: extern \"C\" fn(HostHandle) -> u64,\n"))
    });
    let output = Command::new(debug.join("loader")).arg(&*PLUGIN).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "a struct may grow after all: say so in abi.rs");
    assert!(stderr.contains("refused"), "{stderr}");
    assert!(stderr.contains("HostApi"), "{stderr}");
}

/// The first version is history once it is released; until the next one both files are the same.
#[test]
fn the_pinned_boundary_is_that_of_version_one() {
    let pinned = fs::read_to_string(Path::new(FIXTURE).join("sdk/src/abi.rs")).unwrap();
    assert!(pinned.contains("pub const INTERFACE_VERSION: u32 = 1;"));
    assert_eq!(INTERFACE_VERSION, 1, "pin the new version beside the first and serve both");
}
