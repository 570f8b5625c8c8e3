//! The host binary and the plugins, made once per test run by the tests themselves.
//!
//! They land in the target directory and the profile of the running test, so nothing is compiled twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::checkout;

/// The built host and what belongs to it.
pub(crate) struct Built {
    /// The `udf-host` binary.
    pub(crate) host: PathBuf,
    /// The shipped operations.
    pub(crate) udfs: PathBuf,
    /// Where hosts under test keep their copies of plugins, apart from the user's own cache.
    pub(crate) cache: PathBuf,
}

/// Builds host and plugins on first use; later calls return at once.
///
/// # Panics
/// When the build fails; its own messages are on stderr.
pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = profile_dir();
        let target = profile.parent().expect("the profile folder lies in the target folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(checkout()).args(["build", "--package", "host"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        // What the cargo that runs the tests says about their package: build scripts that look at it would run anew.
        let about_tests = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "OUT_DIR"];
        for (name, _) in std::env::vars_os() {
            if about_tests.iter().any(|start| name.to_string_lossy().starts_with(start)) {
                cargo.env_remove(name);
            }
        }
        run(cargo.env("CARGO_TARGET_DIR", target));
        let built = Built {
            host: profile.join("udf-host"),
            udfs: checkout().join("udfs"),
            cache: target.join("test-cache"),
        };
        let mut plugins = Command::new(&built.host);
        plugins.arg("build").arg("--udfs").arg(&built.udfs).env("XDG_CACHE_HOME", &built.cache);
        run(&mut plugins);
        built
    })
}

/// `target/<profile>`: the folder above `deps/`, where this test binary lies.
fn profile_dir() -> PathBuf {
    let binary = std::env::current_exe().expect("the test knows its own path");
    binary
        .parent()
        .and_then(Path::parent)
        .expect("test binaries lie in <profile>/deps")
        .to_path_buf()
}

fn run(command: &mut Command) {
    // Its stdout joins stderr's stream of the test run: tests print results only.
    let output =
        command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
