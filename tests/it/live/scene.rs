//! A folder of operations of a test's own, and a host that serves it while it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};

/// Builds take turns on a busy machine.
pub(super) const BUILD: Duration = Duration::from_secs(300);

/// A root with one project. Its name is the test's own: two tests must not build one artifact.
pub(super) struct Scene {
    pub(super) tree: tempfile::TempDir,
    pub(super) project: &'static str,
}

impl Scene {
    pub(super) fn new(project: &'static str) -> Self {
        let scene = Self { tree: tempfile::tempdir().unwrap(), project };
        fs::create_dir_all(scene.root()).unwrap();
        scene
    }

    pub(super) fn root(&self) -> PathBuf {
        self.tree.path().join("udfs")
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root().join(self.project).join(path)
    }

    /// Lays out the operation, which answers `answer`.
    pub(super) fn lay_out(&self, op: &str, answer: &str) {
        let package = format!("udf-{}-{op}", self.project);
        write(&self.at(op).join("Cargo.toml"), cargo(&package, "").as_bytes());
        write(&self.at(op).join("spec.md"), format!("# {op}\n").as_bytes());
        self.save(op, answer);
    }

    /// Saves a source of the operation that answers `answer`.
    pub(super) fn save(&self, op: &str, answer: &str) {
        write(&self.at(op).join("src/lib.rs"), says(op, answer).as_bytes());
    }

    pub(super) fn options(&self) -> HostOptions {
        let state = self.tree.path().join("state");
        let options = HostOptions::new().udfs(Some(&self.root())).arg("--app-dir").arg(state);
        options.arg("--log").arg("debug")
    }

    pub(super) fn host(&self) -> HostProcess {
        HostProcess::start(&self.options())
    }

    /// Runs a command of the host that asks a running one.
    pub(super) fn command_at(&self, host: &HostProcess, words: &[&str]) -> (bool, String) {
        self.run(
            Command::new(&built().host)
                .env("UDF_HOST_ORIGIN", &host.origin)
                .env("UDF_HOST_TOKEN", &host.token),
            words,
        )
    }

    /// Runs a command of the host over the same root.
    pub(super) fn command(&self, words: &[&str]) -> (bool, String) {
        self.run(&mut Command::new(&built().host), words)
    }

    fn run(&self, command: &mut Command, words: &[&str]) -> (bool, String) {
        command.args(words).arg("--only").arg("--udfs").arg(self.root());
        let output = command.env("XDG_CACHE_HOME", &built().cache).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// Waits until the operation answers `want`.
    #[track_caller]
    pub(super) fn answers(&self, host: &HostProcess, op: &str, want: &str) {
        self.answers_with(host, op, &json!({}), &json!(want));
    }

    /// Waits until the operation answers `want` when it is called with these parameters.
    #[track_caller]
    pub(super) fn answers_with(&self, host: &HostProcess, op: &str, with: &Value, want: &Value) {
        let mut last = (0, Value::Null);
        let answered = wait_until(BUILD, want.as_str().unwrap_or("an answer"), || {
            last = host.exec("default", self.project, op, with);
            (last.0 == 200 && last.1["data"] == *want).then_some(())
        });
        assert!(answered.is_some(), "{op} answers {last:?}, not {want}\n{}", host.stderr());
    }

    /// Waits until what the catalog says of the operation passes `test`.
    #[track_caller]
    pub(super) fn listed(
        &self,
        host: &HostProcess,
        op: &str,
        test: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        let found = wait_until(BUILD, "the catalog", || {
            let listed = host.get("/api/udfs").json();
            let udfs = listed["data"]["udfs"].as_array().unwrap();
            last = udfs
                .iter()
                .find(|udf| udf["project"] == self.project && udf["op"] == op)
                .cloned()
                .unwrap_or_default();
            test(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{op} is listed as {last}\n{}", host.stderr()))
    }

    /// Waits until a call of the operation has this status.
    #[track_caller]
    pub(super) fn status(&self, host: &HostProcess, workspace: &str, op: &str, want: u16) {
        let mut last = (0, Value::Null);
        let seen = wait_until(BUILD, "a status", || {
            last = host.exec(workspace, self.project, op, &json!({}));
            (last.0 == want).then_some(())
        });
        assert!(seen.is_some(), "{op}: {last:?}, not {want}\n{}", host.stderr());
    }
}

pub(super) fn cargo(package: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\ndoctest = false\n\n\
         [dependencies]\nsdk = {{ workspace = true }}\n{dependencies}"
    )
}

/// A source of an operation that answers `answer`.
pub(super) fn says(op: &str, answer: &str) -> String {
    format!(
        "use sdk::prelude::*;\n\n/// Says something.\n#[udf]\nfn {op}(_ctx: &Context) -> Result<Reply, UdfError> {{\n    \
         Ok(Reply::text(\"{answer}\"))\n}}\n"
    )
}

/// Puts a file in place as `cargo`, `rsync` and `pack` do: whole, by a rename.
pub(super) fn put(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    write(&beside, bytes);
    fs::rename(beside, path).unwrap();
}
