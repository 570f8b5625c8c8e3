//! `udf-host pack OUT`: operations as files, for machines without cargo.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::{Exit, exit, output, progress, selection};
use crate::Host;
use crate::config::Config;
use crate::error::HostError;
use crate::plugins::{self, Entry, EntryState};

/// Write built operations to a folder that `serve --plugins OUT` serves on a machine without cargo and sources.
///
/// Builds what is missing first. The folder holds artifacts, specs, settings, data files and pack.json, with the hash of
/// each file. It appears whole or not at all, and takes the place of a pack that was there, but of nothing else.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Pack {
    /// The folder to write.
    out: PathBuf,
    /// Which ones: `PROJECT` or `PROJECT/OP` [default: all]
    #[arg(value_name = "OPERATION")]
    operations: Vec<String>,
    /// Print JSON: the folder, its operations and files.
    #[arg(long)]
    json: bool,
}

impl Pack {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let host = Host::start(config)?;
        // A name that no folder has is told before anything is built.
        selection::select(&host, &self.operations)?;
        if !progress::until_settled(&host) {
            return Err(HostError::Internal {
                message: "the build did not end".to_owned(),
                detail: host.catalog.progress().note,
            });
        }
        let entries = selection::select(&host, &self.operations)?;
        if entries.is_empty() {
            return Err(HostError::BadRequest {
                message: "there is no operation to pack: start it where `udfs/` is, or name one with --udfs".to_owned(),
            });
        }
        let mut refused = 0;
        for entry in &entries {
            if let EntryState::Refused(refusal) = entry.state() {
                refused += 1;
                output::error(&format!(
                    "{}: {}; {}",
                    entry.address, refusal.reason, refusal.remedy
                ));
            }
        }
        if refused > 0 {
            output::error(&format!(
                "nothing is packed: {refused} of {} operations cannot be called; correct them, or name those to pack",
                entries.len()
            ));
            return Ok(Exit::Failed);
        }
        self.check_place(&entries)?;
        let written = plugins::pack::write(&self.out, &entries)?;
        let manifest = &written.manifest;
        if self.json {
            let mut value = json!(manifest);
            value["folder"] = json!(written.folder);
            value["bytes"] = written.bytes.into();
            output::json(&value)?;
            return Ok(Exit::Done);
        }
        output::line(&format!(
            "{}, {}, {:.1} MB for {} in {}",
            output::count(manifest.operations.len(), "operation"),
            output::count(manifest.files.len(), "file"),
            written.bytes as f64 / 1e6,
            manifest.target,
            written.folder.display()
        ))?;
        output::line(&format!(
            "serve it with: udf-host serve --only --plugins {}",
            written.folder.display()
        ))?;
        Ok(Exit::Done)
    }

    /// A pack among the sources would be taken for a project at the next start.
    fn check_place(&self, entries: &[Arc<Entry>]) -> Result<(), HostError> {
        let out = std::path::absolute(&self.out)
            .map_err(|error| HostError::io("resolve", &self.out, &error))?;
        // What there is of the way to it, links resolved as discovery does it.
        let above = out.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
        let root = |entry: &Entry| {
            let project = entry.folder.parent()?;
            let direct = project.file_name().is_none_or(|name| *name != *entry.address.project);
            if direct { Some(project.to_owned()) } else { Some(project.parent()?.to_owned()) }
        };
        let inside = |entry: &&Arc<Entry>| {
            let root = root(entry).filter(|_| entry.folder.join("Cargo.toml").exists());
            root.zip(above.as_deref()).is_some_and(|(root, above)| above.starts_with(root))
        };
        match entries.iter().find(inside) {
            None => Ok(()),
            Some(entry) => Err(HostError::BadRequest {
                message: format!(
                    "`{}` lies among the sources of `{}`: name a folder beside them",
                    self.out.display(),
                    entry.address
                ),
            }),
        }
    }
}
