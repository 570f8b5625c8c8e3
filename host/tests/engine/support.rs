use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::{Address, Call, Config, Host, HostError, Reply};

/// A root with operations, and a home for one or more hosts that serve it.
pub(crate) struct Udfs {
    home: tempfile::TempDir,
}

/// What cargo may need when nothing is built yet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

impl Udfs {
    pub(crate) fn new() -> Self {
        let udfs = Self { home: tempfile::tempdir().unwrap() };
        fs::create_dir(udfs.root()).unwrap();
        udfs
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("udfs")
    }

    pub(crate) fn app_dir(&self) -> PathBuf {
        self.home.path().join("app")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// An operation whose source is this.
    pub(crate) fn op(&self, project: &str, op: &str, source: &str) -> &Self {
        self.write(
            &format!("{project}/{op}/Cargo.toml"),
            &cargo_toml(&format!("udf-{project}-{op}")),
        )
        .write(&format!("{project}/{op}/spec.md"), &format!("# {op}\n"))
        .write(&format!("{project}/{op}/src/lib.rs"), source)
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::resolve(&[], Some(self.home.path()), None, None);
        config.udfs = vec![self.root()];
        config.only = true;
        config.app_dir = Some(self.app_dir());
        config
    }

    /// A host that has come to an end with every operation.
    pub(crate) fn host(&self) -> Host {
        self.host_with(|_| {})
    }

    pub(crate) fn host_with(&self, change: impl FnOnce(&mut Config)) -> Host {
        let mut config = self.config();
        change(&mut config);
        let host = Host::start(config).unwrap();
        assert!(
            host.catalog.wait_settled(Instant::now() + PATIENCE),
            "{:?}",
            host.catalog.progress()
        );
        host
    }
}

pub(crate) fn cargo_toml(package: &str) -> String {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("sdk");
    format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[lib]\ncrate-type = [\"cdylib\"]\ndoctest = false\n\n[dependencies]\nsdk = {{ path = \"{}\" }}\n\n[workspace]\n",
        sdk.display()
    )
}

/// Calls `project.op` of workspace `default`.
pub(crate) fn call(host: &Host, op: &str, params: &[(&str, &str)]) -> Result<String, HostError> {
    let mut call = Call::new(Address::parse(&format!("default.{op}")).unwrap());
    for (name, value) in params {
        call = call.param(name, value);
    }
    host.dispatcher.call(call).map(|reply: Reply| reply.to_json().into_owned())
}

/// An operation that greets.
pub(crate) const HELLO: &str = r#"//! Greets.

use sdk::prelude::*;

/// Greets by name.
#[udf]
fn hello(_ctx: &Context, #[arg(default = "world")] name: &str) -> Result<Reply, UdfError> {
    Ok(Reply::text(&format!("hello {name}")))
}
"#;
