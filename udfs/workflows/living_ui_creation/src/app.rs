//! [`App`]: the sources of one app and the folder in which its programs run.

use std::time::Duration;

use sdk::prelude::*;
use sdk::workflow::{Answer, DomainError, Task};

use crate::process::Process;
use crate::schema::Schema;
use crate::settings::{Map, Settings, checked};

const SOURCES_LOCK: &str = ".app.lock";
const RUN_LOCK: &str = ".run.lock";
const WAIT: Duration = Duration::from_secs(10);
/// Settings of all apps of a state folder, and of one app in its run folder.
const SETTINGS: &str = "pipeline.json";
/// Names that are listed at most.
const LISTED: usize = 1000;
/// Directories that hold what tools fetched or made.
const PASSED_OVER: [&str; 4] = ["node_modules", ".git", "target", "dist"];
/// Characters of a log that are shown.
const SHOWN: usize = 20_000;

/// The logs that programs leave.
pub(crate) const LOGS: [&str; 7] =
    ["serve", "superuser", "schema", "types", "build", "health", "tunnel"];

const INDEX: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>New app</title></head>
<body><p>Nothing here yet.</p></body>
</html>
";

/// One app.
#[derive(Debug)]
pub(crate) struct App<'c> {
    pub(crate) ctx: &'c Context,
    pub(crate) id: String,
    sources: Folder<'c>,
    pub(crate) run: Folder<'c>,
}

/// What the task is about: the app it names, else its own. `None` for a task without an id.
pub(crate) fn subject(task: &Task) -> Answer<Option<String>> {
    let app = task.subject_name();
    if app.is_empty() {
        return Ok(None);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if app.starts_with('.') || app.len() > 100 || !app.chars().all(plain) {
        return Err(DomainError::new(format!(
            "`{app}` cannot name an app: ASCII letters, digits, `_`, `-` and `.` only, 100 at most"
        )));
    }
    Ok(Some(app.to_owned()))
}

/// Where the state of the work lies.
pub(crate) fn state_dir(app: &str) -> String {
    format!("workflows/living_ui_creation/{app}")
}

/// Where the sources lie.
pub(crate) fn place(app: &str) -> String {
    format!("living-ui/apps/{app}/app")
}

/// The area of the product that a file belongs to.
pub(crate) fn area(path: &str) -> &str {
    match path.split_once('/').map(|(first, _)| first) {
        Some(area @ ("frontend" | "backend" | "tests" | "docs")) => area,
        _ if path.ends_with(".md") => "docs",
        _ => "config",
    }
}

impl<'c> App<'c> {
    /// The app of a call that is no turn: that of the state directory, else that of the task.
    pub(crate) fn of(ctx: &'c Context, state_dir: &str, task: &Value) -> Result<Self, UdfError> {
        let app = subject(&Task::of_call(state_dir, task))
            .map_err(|error| UdfError::raised(error.to_string()))?;
        let app = app.ok_or_else(|| {
            UdfError::raised("which app: give `state_dir`, or a `task` with `id` or `subject`")
        })?;
        Self::named(ctx, &app)
    }

    /// The app of this name.
    pub(crate) fn named(ctx: &'c Context, app: &str) -> Result<Self, UdfError> {
        Ok(Self {
            ctx,
            id: app.to_owned(),
            sources: ctx.folder("", &place(app), SOURCES_LOCK)?,
            run: ctx.folder("", &format!("living-ui/apps/{app}/run"), RUN_LOCK)?,
        })
    }

    /// Makes the folders of an app that is new, with a page that says so; true if they were made now.
    pub(crate) fn scaffold(&self, query: &str) -> Result<bool, UdfError> {
        if !self.run.exists()? {
            self.run.create(&[], &[])?;
        }
        if self.sources.exists()? {
            return Ok(false);
        }
        let requirements = format!("# Requirements\n\n{}\n", query.trim());
        let config = format!("{:#}\n", json!({"name": self.id}));
        self.sources.create(
            &["frontend", "backend", "config", "tests", "docs"],
            &[
                ("frontend/index.html", INDEX),
                ("backend/schema.json", "[]\n"),
                ("config/app.json", &config),
                ("docs/requirements.md", &requirements),
            ],
        )
    }

    /// Where the sources are.
    pub(crate) fn sources_path(&self) -> Result<String, UdfError> {
        self.sources.path()
    }

    /// Where the data of the app is: beside its sources, so that nothing that is built touches it.
    pub(crate) fn data_path(&self) -> Result<String, UdfError> {
        let run = self.run.path()?;
        Ok(format!("{}/data", run.strip_suffix("/run").unwrap_or(&run)))
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> Result<(), UdfError> {
        self.refuse_reserved(path)?;
        self.scaffold("")?;
        let guard = self.sources.lock(WAIT)?;
        guard.ok_or_else(|| busy("the app's sources"))?.replace(path, text)
    }

    pub(crate) fn remove(&self, path: &str) -> Result<bool, UdfError> {
        self.refuse_reserved(path)?;
        if !self.sources.exists()? {
            return Ok(false);
        }
        let guard = self.sources.lock(WAIT)?;
        guard.ok_or_else(|| busy("the app's sources"))?.remove(path)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Option<String>, UdfError> {
        self.refuse_reserved(path)?;
        self.sources.read(path)
    }

    fn refuse_reserved(&self, path: &str) -> Result<(), UdfError> {
        if path.is_empty() || path == SOURCES_LOCK {
            return Err(UdfError::raised(format!(
                "`{path}` is no file of an app: give a `path` such as `frontend/index.html`"
            )));
        }
        Ok(())
    }

    /// Every file of the sources, in order; what tools fetched or made is passed over.
    pub(crate) fn files(&self) -> Result<Vec<String>, UdfError> {
        let (mut files, mut directories) = (Vec::new(), vec![String::new()]);
        while let Some(directory) = directories.pop() {
            for entry in self.sources.list(&directory)? {
                let path = if directory.is_empty() {
                    entry.name.clone()
                } else {
                    format!("{directory}/{}", entry.name)
                };
                if !entry.is_directory {
                    if path != SOURCES_LOCK && files.len() < LISTED {
                        files.push(path);
                    }
                } else if !PASSED_OVER.contains(&entry.name.as_str()) {
                    directories.push(path);
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// What keeps the worker from being done.
    pub(crate) fn problems(&self) -> Result<Vec<String>, UdfError> {
        let mut problems = Vec::new();
        match self.read("frontend/index.html")? {
            None => problems.push("there is no frontend/index.html".to_owned()),
            Some(text) if text == INDEX => {
                problems.push("frontend/index.html is still the empty page".to_owned());
            }
            Some(_) => {}
        }
        if let Some(text) = self.read("backend/schema.json")?
            && let Err(faults) = Schema::parse(&text)
        {
            problems
                .extend(faults.into_iter().map(|fault| format!("backend/schema.json: {fault}")));
        }
        Ok(problems)
    }

    /// The end of a log.
    pub(crate) fn log(&self, name: &str) -> Result<Option<String>, UdfError> {
        if !LOGS.contains(&name) {
            return Err(UdfError::raised(format!(
                "there is no log `{name}`; known: {}",
                LOGS.join(", ")
            )));
        }
        let path = format!("{}/{name}.log", self.run.path()?);
        // Programs write what they like; a log is shown as far as it is text.
        let Ok(bytes) = std::fs::read(path) else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        Ok(Some(text[from..].to_owned()))
    }

    /// The settings this app has on top of the built-in ones, innermost last.
    fn layers(&self) -> Result<Vec<Map>, UdfError> {
        let common = self.ctx.folder("", "living-ui", ".unused.lock")?;
        let mut layers = Vec::new();
        for (text, place) in [
            (common.read(SETTINGS)?, "living-ui/pipeline.json"),
            (self.run.read(SETTINGS)?, "the app's run/pipeline.json"),
        ] {
            let Some(text) = text else { continue };
            let value: Result<Value, _> = text.parse();
            let value =
                value.map_err(|error| UdfError::raised(format!("{place} is not JSON: {error}")))?;
            layers.push(
                checked(&value).map_err(|error| UdfError::raised(format!("{place}: {error}")))?,
            );
        }
        Ok(layers)
    }

    pub(crate) fn settings(&self) -> Result<Settings, UdfError> {
        Settings::layered(&self.layers()?)
            .map_err(|error| UdfError::raised(format!("pipeline settings: {error}")))
    }

    /// Stores settings for this app, checked together with all others; an empty object removes them.
    pub(crate) fn configure(&self, settings: &Value) -> Result<(), UdfError> {
        let bad = |error: String| UdfError::bad_parameter(format!("`arguments`: {error}"));
        let map = checked(settings).map_err(bad)?;
        let mut layers = self.layers()?;
        if self.run.read(SETTINGS)?.is_some() {
            layers.pop();
        }
        layers.push(map.clone());
        Settings::layered(&layers).map_err(bad)?;
        self.scaffold("")?;
        let guard = self.run.lock(WAIT)?;
        let mut guard = guard.ok_or_else(|| busy("the app"))?;
        if map.is_empty() {
            guard.remove(SETTINGS)?;
            return Ok(());
        }
        guard.replace(SETTINGS, &format!("{settings:#}\n"))
    }

    /// A program of the app as its record has it: `serve` or `tunnel`.
    pub(crate) fn process(&self, name: &str) -> Result<Option<Process>, UdfError> {
        Ok(self.run.read(&format!("{name}.json"))?.as_deref().and_then(Process::read))
    }

    /// The served app, if it is running.
    pub(crate) fn served(&self) -> Result<Option<Process>, UdfError> {
        Ok(self.process("serve")?.filter(Process::is_running))
    }

    /// The address the tunnel gave the app, while both run.
    pub(crate) fn public_address(&self) -> Result<Option<String>, UdfError> {
        let Some(text) = self.run.read("tunnel.json")? else { return Ok(None) };
        if !Process::read(&text).is_some_and(|tunnel| tunnel.is_running())
            || self.served()?.is_none()
        {
            return Ok(None);
        }
        let value: Value = text.parse().unwrap_or(Value::Null);
        Ok(value["address"].as_str().map(str::to_owned))
    }
}

/// Where a port of this machine is reached.
pub(crate) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Somebody else holds a lock for longer than anything takes.
pub(crate) fn busy(what: &str) -> UdfError {
    UdfError::raised(format!("{what} is in use by another call: try again when it is done"))
}
