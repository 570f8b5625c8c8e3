//! `udf-host new PROJECT/OP`: a folder that builds, passes its test and answers, to be changed from there.

mod template;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::{Exit, exit, output};
use crate::config::Config;
use crate::error::HostError;
use crate::plugins::manifest;
use crate::plugins::roots::{RootKind, Surroundings, roots};

/// Write the folder of a new operation: Cargo.toml, spec.md, src/lib.rs with a test that passes.
///
/// It appears whole or not at all. A running host builds and serves it without a restart.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct New {
    /// The project and the operation, as in `my-project/greet`.
    #[arg(value_name = "PROJECT/OP")]
    name: String,
    /// Write a workflow instead: a job that a worker does and a checker verifies, with both as data files. Its
    /// project is `workflows`.
    #[arg(long)]
    workflow: bool,
    /// Print JSON: the folder and the address.
    #[arg(long)]
    json: bool,
}

impl New {
    pub(super) fn run(self, config: &Config) -> Result<Exit, HostError> {
        let name = Name::parse(&self.name)?;
        self.check_place(&name)?;
        let root = root(config)?;
        refuse_clash(&root, &name)?;
        let folder = write(&root, &name, self.files(&name))?;
        let workspace = workspace(&root.join(name.project))?;
        let address = format!("{workspace}.{}.{}", name.project, name.op);
        if self.json {
            output::json(
                &json!({"folder": folder, "address": address, "package": name.package()}),
            )?;
        } else {
            output::line(&format!("wrote {}", folder.display()))?;
            // Elsewhere cargo alone does not know what a workspace would say of it.
            if root.parent().is_some_and(|beside| beside.join("Cargo.toml").is_file()) {
                output::line(&format!("test it:  cargo test -p {}", name.package()))?;
            }
            output::line(&format!("check it: udf-host check {}/{}", name.project, name.op))?;
            if self.workflow {
                output::line(&format!(
                    "run it:   udf-host agent run --workflow {} --request TEXT",
                    name.op
                ))?;
            } else {
                output::line(&format!("call it:  udf-host exec {address} name=you"))?;
            }
        }
        Ok(Exit::Done)
    }

    fn check_place(&self, name: &Name<'_>) -> Result<(), HostError> {
        if self.workflow && name.project != WORKFLOWS {
            return Err(bad(format!(
                "a workflow is found by its project: write `udf-host new {WORKFLOWS}/{} --workflow`",
                name.op
            )));
        }
        Ok(())
    }

    /// What the folder holds beside its Cargo.toml.
    fn files(&self, name: &Name<'_>) -> Vec<(&'static str, String)> {
        if self.workflow {
            let mut files = vec![
                ("src/lib.rs", template::workflow::library(name.op)),
                ("spec.md", template::workflow::spec(name.project, name.op)),
            ];
            files.extend(template::workflow::AGENTS.map(|(path, text)| (path, text.to_owned())));
            return files;
        }
        vec![
            ("src/lib.rs", template::library(name.op)),
            ("spec.md", template::spec(name.project, name.op)),
        ]
    }
}

/// The project in which the agent loop looks for workflows.
const WORKFLOWS: &str = "workflows";

/// Both parts of `PROJECT/OP`, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name<'a> {
    project: &'a str,
    op: &'a str,
}

impl<'a> Name<'a> {
    fn parse(text: &'a str) -> Result<Name<'a>, HostError> {
        let Some((project, op)) = text.split_once('/') else {
            return Err(bad(format!(
                "`{text}` is not PROJECT/OP: write for example `my-project/greet`"
            )));
        };
        if !manifest::is_name(project)
            || !project.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        {
            return Err(bad(format!(
                "`{project}` cannot name a project: letters, digits, `_` and `-`, starting with a letter"
            )));
        }
        // Passed over by discovery, or not a crate of the author's.
        if matches!(op, "common" | "widgets" | "target") {
            return Err(bad(format!(
                "`{op}` has another meaning in a project's folder: choose another name"
            )));
        }
        let word = op.starts_with(|c: char| c.is_ascii_lowercase())
            && op.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !word || KEYWORDS.contains(&op) {
            return Err(bad(format!(
                "`{op}` cannot name an operation: it is also a Rust function, so lower-case letters, digits and `_`, \
                 starting with a letter, and no word of the language"
            )));
        }
        Ok(Name { project, op })
    }

    fn package(self) -> String {
        format!("udf-{}-{}", self.project, self.op)
    }
}

/// Words that no Rust function can have as its name.
const KEYWORDS: [&str; 49] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "while",
];

/// Where new operations go: the first folder of sources that the host looks in.
fn root(config: &Config) -> Result<PathBuf, HostError> {
    if let Some(named) = config.udfs.first() {
        fs::create_dir_all(named).map_err(|error| HostError::io("create", named, &error))?;
    }
    let (roots, _) = roots(config, &Surroundings::of_process());
    roots.into_iter().find(|root| root.kind == RootKind::Sources).map(|root| root.path).ok_or_else(|| {
        bad("there is no `udfs` folder at or above this one: make one in a workspace that has the sdk, or name it with --udfs")
    })
}

/// Two packages that differ in `-` and `_` alone would be one file.
fn refuse_clash(root: &Path, name: &Name<'_>) -> Result<(), HostError> {
    let wanted = name.package().replace('-', "_");
    for (project, folder) in folders(root)? {
        // An operation directly in the root belongs to project `main`.
        let direct = (format!("udf_main_{}", project.replace('-', "_")), folder.clone());
        let below = folders(&folder)?.into_iter().map(|(op, folder)| {
            (format!("udf_{}_{}", project.replace('-', "_"), op.replace('-', "_")), folder)
        });
        for (package, folder) in below.chain([direct]) {
            if package == wanted
                && (folder.join("Cargo.toml").exists()
                    || folder == root.join(name.project).join(name.op))
            {
                return Err(bad(format!(
                    "{} is there already, and `{wanted}` can be built once",
                    folder.display()
                )));
            }
        }
    }
    Ok(())
}

fn folders(at: &Path) -> Result<Vec<(String, PathBuf)>, HostError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(at).map_err(|error| HostError::io("read", at, &error))? {
        let path = entry.map_err(|error| HostError::io("read", at, &error))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && path.is_dir()
        {
            found.push((name.to_owned(), path.clone()));
        }
    }
    Ok(found)
}

/// Makes everything beside the root and moves it in by one rename: a half-written folder inside would break every
/// cargo command of the workspace for as long as it is there.
fn write(
    root: &Path,
    name: &Name<'_>,
    files: Vec<(&'static str, String)>,
) -> Result<PathBuf, HostError> {
    let beside = root.parent().unwrap_or(root);
    let made = tempfile::Builder::new()
        .prefix(".udf-new-")
        .tempdir_in(beside)
        .map_err(|error| HostError::io("create a folder in", beside, &error))?;
    let (project, folder) = (root.join(name.project), root.join(name.project).join(name.op));
    let op = made.path().join(name.op);
    for (path, text) in files {
        create(&op.join(path), &text)?;
    }
    create(&op.join("Cargo.toml"), &template::cargo(&name.package()))?;
    if project.is_dir() {
        let manifest = project.join("project.toml");
        if !manifest.exists() {
            let whole = made.path().join("project.toml");
            create(&whole, template::PROJECT)?;
            fs::rename(&whole, &manifest)
                .map_err(|error| HostError::io("create", &manifest, &error))?;
        }
        fs::rename(&op, &folder).map_err(|error| HostError::io("create", &folder, &error))?;
    } else {
        let whole = made.path().join("project");
        create(&whole.join("project.toml"), template::PROJECT)?;
        let inside = whole.join(name.op);
        fs::rename(&op, &inside).map_err(|error| HostError::io("create", &inside, &error))?;
        fs::rename(&whole, &project).map_err(|error| HostError::io("create", &project, &error))?;
    }
    Ok(folder)
}

fn create(path: &Path, text: &str) -> Result<(), HostError> {
    let failed = |error| HostError::io("create", path, &error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = fs::File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn workspace(project: &Path) -> Result<String, HostError> {
    let path = project.join("project.toml");
    let text = fs::read_to_string(&path).map_err(|error| HostError::io("read", &path, &error))?;
    let manifest = manifest::ProjectManifest::parse(&text)
        .map_err(|message| HostError::Config { place: path.display().to_string(), message })?;
    Ok(manifest.workspace().to_owned())
}

fn bad(message: impl Into<String>) -> HostError {
    HostError::BadRequest { message: message.into() }
}

#[cfg(test)]
mod tests;
