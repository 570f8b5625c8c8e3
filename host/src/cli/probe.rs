//! `udf-host probe FILE`: what a built file is, found out without trusting it.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, exit, output};
use crate::config::Config;
use crate::error::HostError;
use crate::plugins::artifact::Cache;
use crate::plugins::loaded::check_fit;
use crate::plugins::probe::{self, Prober};
use crate::plugins::{Address, DEFAULT_WORKSPACE, LaneChoice, Refusal};

/// Open a built file in a child process and say what it is, as one line of JSON.
///
/// `state` is `accepted`, with `hash`, `bytes` and `descriptor`, or `refused` (exit code 1), with `reason`, `expected`,
/// `found`, `files` and `remedy`. An initialiser that aborts or hangs ends the child only.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Probe {
    /// The shared library; `-` makes this the child: paths that end in NUL on standard input, a line for each.
    file: PathBuf,
    /// Also check that it belongs to this folder.
    #[arg(long = "as", value_name = "PROJECT/OP")]
    place: Option<String>,
    /// The lane its calls are to run in: a library that aborts on panics is for `worker` alone.
    #[arg(long, value_enum, default_value_t = LaneChoice::Worker, value_name = "LANE")]
    lane: LaneChoice,
    /// The process that asks, with which the child ends. It says so itself: it may be gone before the child can look.
    #[arg(long, hide = true, value_name = "PID")]
    host: Option<u32>,
}

impl Probe {
    pub(super) fn run(self, config: &Config) -> Result<Exit, HostError> {
        if self.file == Path::new("-") {
            let host = self.host.unwrap_or_else(std::os::unix::process::parent_id);
            probe::serve(host).map_err(|error| HostError::Internal {
                message: "the probe cannot go on".to_owned(),
                detail: error.to_string(),
            })?;
            return Ok(Exit::Done);
        }
        let place = self.place.as_deref().map(address).transpose()?;
        let (exit, mut value) = match self.look(config, place.as_ref()) {
            Ok(value) => (Exit::Done, value),
            Err(refusal) => {
                let mut value = json!(refusal);
                value["state"] = "refused".into();
                (Exit::Failed, value)
            }
        };
        value["file"] = json!(self.file);
        output::line(&value.to_string())?;
        Ok(exit)
    }

    fn look(&self, config: &Config, place: Option<&Address>) -> Result<Value, Box<Refusal>> {
        let cache = Cache::open(&config.cache_dir)?;
        let artifact = cache.take(&self.file)?;
        let named = |mut refusal: Box<Refusal>| {
            refusal.files = vec![self.file.clone()];
            refusal
        };
        // Not from memory: whoever asks by hand wants to know how it is now.
        let descriptor = Prober::default().probe_now(&artifact.path).map_err(named)?;
        let own = Address::new(
            DEFAULT_WORKSPACE,
            descriptor.project.as_deref().unwrap_or_default(),
            &descriptor.op,
        );
        check_fit(&descriptor, place.unwrap_or(&own), self.lane).map_err(named)?;
        Ok(json!({
            "state": "accepted",
            "hash": artifact.hash,
            "bytes": artifact.bytes,
            "descriptor": descriptor,
        }))
    }
}

fn address(text: &str) -> Result<Address, HostError> {
    let parts = text.split_once('/').filter(|(project, op)| !project.is_empty() && !op.is_empty());
    let (project, op) = parts.ok_or_else(|| HostError::BadRequest {
        message: format!("`{text}` is not PROJECT/OP: write for example `my-project/greet`"),
    })?;
    Ok(Address::new(DEFAULT_WORKSPACE, project, op))
}
