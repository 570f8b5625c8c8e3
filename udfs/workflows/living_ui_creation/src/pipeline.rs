//! The launch: serve → schema import → type generation → build → health. Each step is a configured command; the
//! first that fails ends the launch, and what it said goes verbatim into the next round of work.

use std::thread;
use std::time::{Duration, Instant};

use sdk::prelude::*;

use crate::app::{App, url};
use crate::http::{self, Request};
use crate::process::{self, LOOK, Process, Start, end_marked};
use crate::registry::Registry;
use crate::schema::Schema;
use crate::serving::{self, Serving};
use crate::settings::{Health, SchemaImport, SchemaStep, Settings, Step, filled};
use crate::{output, pocketbase};

/// How long a launch waits for another call that starts or ends the app.
const WAIT: Duration = Duration::from_secs(60);

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) step: &'static str,
    pub(crate) errors: Vec<String>,
}

/// One launch of one app.
struct Launch<'a, 'c> {
    serving: Serving<'a, 'c>,
    settings: Settings,
    port: u16,
    sources: String,
    data: String,
    password: String,
    passed: Vec<&'static str>,
}

/// Ends what is served of the app and launches it anew, in the form of a work outcome:
/// `{"status": "success", "url", "port", "steps"}` or `{"status": "error", "step", "errors", "steps"}`.
///
/// # Errors
/// The state folder cannot be used; whatever is wrong with the app is an outcome.
pub(crate) fn launch(app: &App<'_>, registry: &Registry<'_>) -> Result<Value, UdfError> {
    let mut passed = Vec::new();
    match launched(app, registry, &mut passed) {
        Ok(Ok(port)) => {
            Ok(json!({"status": "success", "url": url(port), "port": port, "steps": passed}))
        }
        Ok(Err(Failed { step, errors })) => {
            Ok(json!({"status": "error", "step": step, "errors": errors, "steps": passed}))
        }
        Err(error) => Err(error),
    }
}

fn launched(
    app: &App<'_>,
    registry: &Registry<'_>,
    passed: &mut Vec<&'static str>,
) -> Result<Result<u16, Failed>, UdfError> {
    let settings = match app.settings() {
        Ok(settings) => settings,
        Err(error) => {
            return Ok(Err(Failed { step: "settings", errors: vec![error.message().to_owned()] }));
        }
    };
    let mut serving = Serving::lock(app, WAIT)?;
    serving.stop()?;
    let port = match registry.port(&app.id, settings.serve.port) {
        Ok(port) => port,
        Err(error) => {
            return Ok(Err(Failed { step: "serve", errors: vec![error.message().to_owned()] }));
        }
    };
    let mut launch = Launch {
        serving,
        settings,
        port,
        sources: app.sources_path()?,
        data: app.data_path()?,
        password: app.ctx.uuid(),
        passed: Vec::new(),
    };
    let done = launch.steps();
    *passed = std::mem::take(&mut launch.passed);
    Ok(done.map(|()| port))
}

/// Serves an app again that was launched before: after its lease, a crash, or a start of the machine.
///
/// # Errors
/// It does not come up, in words.
pub(crate) fn serve_again(app: &App<'_>, registry: &Registry<'_>) -> Result<u16, UdfError> {
    let settings = app.settings()?;
    let mut serving = Serving::lock(app, WAIT)?;
    if serving.settle()?
        && let Some(served) = app.served()?
    {
        return Ok(served.port);
    }
    serving.stop()?;
    let port = registry.port(&app.id, settings.serve.port)?;
    let (sources, data) = (app.sources_path()?, app.data_path()?);
    let mut launch = Launch {
        serving,
        settings,
        port,
        sources,
        data,
        password: app.ctx.uuid(),
        passed: Vec::new(),
    };
    let served = launch.serve().and_then(|()| launch.health());
    served.map_err(|Failed { step, errors }| {
        UdfError::raised(format!("{step}: {}", errors.join("\n")))
    })?;
    Ok(port)
}

impl Launch<'_, '_> {
    fn steps(&mut self) -> Result<(), Failed> {
        // A schema that cannot be read is told before anything is started for it.
        let schema = self.schema()?;
        self.serve()?;
        self.passed.push("serve");
        if let Some((step, schema)) = schema {
            self.import(&step, schema).map_err(|errors| Failed { step: "schema", errors })?;
            self.passed.push("schema");
        }
        for (name, step) in
            [("types", self.settings.types.clone()), ("build", self.settings.build.clone())]
        {
            if let Some(step) = step {
                self.run(name, &step, &[]).map_err(|errors| Failed { step: name, errors })?;
                self.passed.push(name);
            }
        }
        self.health()?;
        self.passed.push("health");
        Ok(())
    }

    fn ctx(&self) -> &Context {
        self.serving.app.ctx
    }

    fn filled(&self, command: &[String], more: &[(&str, &str)]) -> Vec<String> {
        let (port, url) = (self.port.to_string(), url(self.port));
        let places = [
            ("port", port.as_str()),
            ("url", &url),
            ("app", &self.sources),
            ("data", &self.data),
            ("name", &self.serving.app.id),
            ("email", pocketbase::EMAIL),
            ("password", &self.password),
        ];
        filled(command, &[&places, more].concat())
    }

    fn env(&self) -> Vec<(String, String)> {
        let mut env = vec![("PORT".to_owned(), self.port.to_string())];
        env.extend(self.settings.env.iter().cloned());
        env
    }

    /// Reads the schema of the app; `None` when there is nothing to import.
    fn schema(&self) -> Result<Option<(SchemaStep, Schema)>, Failed> {
        let Some(step) = self.settings.schema.clone() else { return Ok(None) };
        let failed = |errors| Failed { step: "schema", errors };
        let text =
            self.serving.app.read(&step.file).map_err(|error| failed(vec![error.to_string()]))?;
        let Some(text) = text else { return Ok(None) };
        let schema = Schema::parse(&text).map_err(|faults| {
            failed(faults.into_iter().map(|fault| format!("{}: {fault}", step.file)).collect())
        })?;
        Ok((!schema.is_empty()).then_some((step, schema)))
    }

    fn serve(&mut self) -> Result<(), Failed> {
        let failed = |errors| Failed { step: "serve", errors };
        // What belongs to the app's data is the app's own, not the store's.
        std::fs::create_dir_all(&self.data)
            .map_err(|error| failed(vec![format!("cannot create {}: {error}", self.data)]))?;
        if let Some(SchemaStep { how: SchemaImport::PocketBase { superuser }, within, .. }) =
            self.settings.schema.clone()
        {
            self.run("superuser", &Step { command: superuser, within }, &[]).map_err(failed)?;
        }
        let serve = self.settings.serve.clone();
        let argv = self.filled(&serve.command, &[]);
        let (env, lease, port) = (self.env(), self.settings.lease, self.port);
        let served =
            self.serving.start("serve", port, &argv, &env, lease).map_err(|e| failed(vec![e]))?;
        let up = self.comes_up(&served, &argv[0], serve.within);
        if let Err(errors) = up {
            // What does not serve is not left running; it is still known if it cannot be ended.
            if let Err(error) = self.serving.end("serve") {
                self.ctx().warn(&format!("a program that does not serve was not ended: {error}"));
            }
            return Err(failed(errors));
        }
        Ok(())
    }

    fn comes_up(
        &self,
        served: &Process,
        program: &str,
        within: Duration,
    ) -> Result<(), Vec<String>> {
        let (_, log) = self.serving.paths("serve").map_err(|error| vec![error.to_string()])?;
        let until = Instant::now() + within;
        loop {
            if !served.is_running() {
                let headline =
                    format!("`{program}` ended before it listened on port {}", self.port);
                return Err(output::failure(headline, &log, "serve"));
            }
            // A stranger that took the port meanwhile is not the app.
            if http::listens(self.port)
                && serving::listens(&served.members(), self.port) != Some(false)
            {
                return Ok(());
            }
            if Instant::now() >= until {
                let headline = format!(
                    "`{program}` did not listen on port {} within {} s",
                    self.port,
                    within.as_secs()
                );
                return Err(output::failure(headline, &log, "serve"));
            }
            self.go_on()?;
        }
    }

    /// Whether there is still somebody to work for.
    fn go_on(&self) -> Result<(), Vec<String>> {
        if self.ctx().cancelled() {
            return Err(vec![
                "the launch was given up by its caller, or its time is over".to_owned(),
            ]);
        }
        thread::sleep(LOOK);
        Ok(())
    }

    fn import(&mut self, step: &SchemaStep, schema: Schema) -> Result<(), Vec<String>> {
        match &step.how {
            SchemaImport::PocketBase { .. } => {
                pocketbase::import(self.ctx(), self.port, &self.password, schema, step.within)
            }
            SchemaImport::Command(command) => {
                let text = |error: UdfError| vec![error.to_string()];
                let plain = schema.clone().with_ids(&[]);
                self.serving
                    .put("schema.json", &format!("{:#}\n", plain.to_value()))
                    .map_err(text)?;
                let path = format!("{}/schema.json", self.serving.app.run.path().map_err(text)?);
                let step = Step { command: command.clone(), within: step.within };
                self.run("schema", &step, &[("schema", &path)]).map_err(|errors| {
                    let mut blamed = schema.blamed(&errors.join("\n"));
                    blamed.extend(errors);
                    blamed
                })
            }
        }
    }

    fn health(&mut self) -> Result<(), Failed> {
        let failed = |errors| Failed { step: "health", errors };
        let (path, within) = match self.settings.health.clone() {
            Health::Command(step) => return self.run("health", &step, &[]).map_err(failed),
            Health::Path(path, within) => (path, within),
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
            let request =
                Request { method: "GET", path: &path, headers: &[], body: "", within: left };
            let headline = match http::ask(self.ctx(), self.port, &request) {
                Ok(answer) if answer.status < 400 => return Ok(()),
                Ok(answer) => {
                    let body: String = answer.body.trim().chars().take(300).collect();
                    format!("GET {path} answered {}: {body}", answer.status)
                }
                Err(error) => error,
            };
            let dead = self.serving.app.served().is_ok_and(|served| served.is_none());
            if dead || Instant::now() >= until {
                let log = self.serving.paths("serve").map(|(_, log)| log).unwrap_or_default();
                let headline =
                    if dead { format!("{headline}; the app has ended") } else { headline };
                return Err(failed(output::failure(headline, &log, "serve")));
            }
            self.go_on().map_err(failed)?;
        }
    }

    /// Runs a program to its end; whatever it leaves running is ended with it.
    fn run(&self, name: &str, step: &Step, more: &[(&str, &str)]) -> Result<(), Vec<String>> {
        let argv = self.filled(&step.command, more);
        let (directory, log) = self.serving.paths(name).map_err(|error| vec![error.to_string()])?;
        let mark = self.ctx().uuid();
        let env = self.env();
        // The lease is for a host that dies meanwhile.
        let lease = step.within + Duration::from_secs(30);
        let start = Start { argv: &argv, env: &env, directory: &directory, log: &log, lease };
        let mut child = process::command(&start, &mark)
            .and_then(|mut command| {
                command.spawn().map_err(|error| format!("cannot start `{}`: {error}", argv[0]))
            })
            .map_err(|error| vec![error])?;
        let until = Instant::now() + step.within;
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if Instant::now() >= until => {
                    break Err(format!(
                        "`{}` was ended: it took longer than {} s",
                        argv[0],
                        step.within.as_secs()
                    ));
                }
                Ok(None) => {
                    if let Err(error) = self.go_on() {
                        break Err(error.join("; "));
                    }
                }
                Err(error) => break Err(format!("`{}` cannot be waited for: {error}", argv[0])),
            }
        };
        end_marked(&mark);
        if ended.is_err() {
            // Ended just now; it is reaped, so that no zombie stays.
            let _reaped = child.wait();
        }
        let headline = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => match status.code() {
                Some(code) => format!("`{}` ended with status {code}", argv[0]),
                None => format!("`{}` was ended by a signal", argv[0]),
            },
            Err(headline) => headline,
        };
        Err(output::failure(headline, &log, name))
    }
}
