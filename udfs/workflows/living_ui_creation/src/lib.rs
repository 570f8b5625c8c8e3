//! `living_ui_creation`: a small web app is built, launched, checked by walking through it, put right, and handed over.
//! Contract and examples: `spec.md`. The agents it spawns are described in `agents/`.
//!
//! - `app` is the sources of one app, `registry` whose it is and its port.
//! - `pipeline` launches it by the commands of `settings`; `schema` and `pocketbase` are its schema step.
//! - `process` is a program that outlives the call, `serving` the right to start and end one, `tunnel` the
//!   public address.

mod app;
mod http;
mod output;
mod pipeline;
mod pocketbase;
mod process;
mod registry;
mod schema;
mod serving;
mod settings;
mod texts;
mod tunnel;

use std::time::Duration;

use sdk::prelude::*;
use sdk::workflow::{
    Answer, Request, StateClass, Subject, Task, TurnContext, Workflow, serve, texts as engine_texts,
};

use crate::app::App;
use crate::registry::Registry;
use crate::serving::Serving;

/// The action that makes finished work a staged result.
const VALIDATE: &str = "living_ui_validate";
/// The action that announces a verified app.
const NOTIFY: &str = "living_ui_notify_ready";
/// How long a call waits for a launch that runs.
const WAIT: Duration = Duration::from_secs(30);
/// How long a starting host waits for one: a launch takes as long as its build.
const BOOT_WAIT: Duration = Duration::from_millis(500);
/// Characters of an answer that `fetch` gives.
const FETCHED: usize = 8000;

/// Drives the making of a small web app, and keeps, launches and serves it. `call` says what is wanted.
#[udf(folders, net)]
#[expect(
    clippy::too_many_arguments,
    reason = "one parameter per field of a workflow call, and the app's own"
)]
fn living_ui_creation(
    ctx: &Context,
    /// A call of every workflow (`step`, `record_check_outcome`, `state`, …), or one of the app's own:
    /// `living_ui_validate`, `living_ui_notify_ready`, `start`, `stop`, `status`, `apps`, `scaffold`, `ensure_owner`,
    /// `configure`, `write_file`, `remove_file`, `read_file`, `list_files`, `read_log`, `app_problems`, `fetch`.
    call: &str,
    /// The task: `{"id", "query", "waiting", "subject"}`. A subject names an app that stands; without one the app is
    /// the task's own.
    #[arg(default)]
    task: Json<Value>,
    /// What the user said this turn.
    #[arg(default)]
    message: &str,
    /// State directory of the app; empty is that of the task's app.
    #[arg(default)]
    state_dir: &str,
    /// Arguments of a recorder by name; the settings of `configure`; `reset` and `request` of `ensure_owner`.
    #[arg(default)]
    arguments: Json<Value>,
    /// Path of a file below the app's sources, or what `fetch` asks for.
    #[arg(default)]
    path: &str,
    /// Text of the file, or JSON that `fetch` sends.
    #[arg(default)]
    text: &str,
    /// Name of a log, or the method of `fetch` (GET).
    #[arg(default)]
    name: &str,
) -> Result<Reply, UdfError> {
    let workflow = LivingUi { ctx };
    let request = Request { call, task: &task, message, state_dir, arguments: &arguments };
    let app = || App::of(ctx, state_dir, &task);
    let registry = Registry::open(ctx)?;
    match call {
        "step" => {
            workflow.prepare(&registry, &task)?;
            serve(ctx, &workflow, &request)
        }
        "adopt_reset" => {
            // The loop that gives the app to another task says to which.
            if let Some(owner) = arguments.get("task").and_then(Value::as_str) {
                registry.bind(&app()?.id, owner)?;
            }
            serve(ctx, &workflow, &request)
        }
        "ensure_owner" => workflow.ensure_owner(&registry, &app()?, &request),
        VALIDATE => Ok(Reply::value(&pipeline::launch(&app()?, &registry)?)),
        NOTIFY => workflow.notify_ready(&registry, &app()?, &request),
        "start" => {
            let port = pipeline::serve_again(&app()?, &registry)?;
            Ok(Reply::value(&json!({"ok": true, "url": app::url(port), "port": port})))
        }
        "stop" => {
            let ran = Serving::lock(&app()?, WAIT)?.stop()?;
            Ok(Reply::value(&json!({"ok": true, "ran": ran})))
        }
        "status" => Ok(Reply::value(&workflow.status(&registry, &app()?)?)),
        "apps" => {
            let entries = registry.entries()?;
            let apps: Result<Vec<Value>, UdfError> = entries
                .iter()
                .map(|entry| workflow.status(&registry, &App::named(ctx, &entry.id)?))
                .collect();
            Ok(Reply::value(&apps?))
        }
        "scaffold" => {
            let app = app()?;
            let query = task.get("query").and_then(Value::as_str).unwrap_or_default();
            let created = app.scaffold(query)?;
            Ok(Reply::value(&json!({"app": app.id, "created": created, "files": app.files()?})))
        }
        "configure" => {
            app()?.configure(&arguments)?;
            Ok(Reply::value(&json!({"ok": true})))
        }
        "write_file" => {
            app()?.write(path, text)?;
            workflow.touched(&request, path)?;
            Ok(Reply::value(&json!({"ok": true, "chars": text.chars().count()})))
        }
        "remove_file" => {
            let removed = app()?.remove(path)?;
            if removed {
                workflow.touched(&request, path)?;
            }
            Ok(if removed { Reply::value(&json!({"ok": true})) } else { Reply::not_found() })
        }
        "read_file" => {
            Ok(app()?.read(path)?.map_or_else(Reply::not_found, |text| Reply::text(&text)))
        }
        "list_files" => Ok(Reply::value(&app()?.files()?)),
        "read_log" => {
            Ok(app()?.log(name)?.map_or_else(Reply::not_found, |text| Reply::text(&text)))
        }
        "app_problems" => Ok(Reply::value(&app()?.problems()?)),
        "fetch" => fetch(&app()?, name, path, text),
        _ => serve(ctx, &workflow, &request),
    }
}

/// Asks the running app something.
fn fetch(app: &App<'_>, method: &str, path: &str, body: &str) -> Result<Reply, UdfError> {
    let served =
        app.served()?.ok_or_else(|| UdfError::raised("the app is not served at the moment"))?;
    let request = http::Request {
        method: if method.is_empty() { "GET" } else { method },
        path: if path.is_empty() { "/" } else { path },
        headers: &[],
        body,
        within: Duration::from_secs(20),
    };
    let answer = http::ask(app.ctx, served.port, &request).map_err(UdfError::raised)?;
    let mut shown: String = answer.body.chars().take(FETCHED).collect();
    if shown.len() < answer.body.len() {
        shown.push_str("… (cut)");
    }
    Ok(Reply::value(
        &json!({"status": answer.status, "content_type": answer.content_type, "body": shown}),
    ))
}

struct LivingUi<'c> {
    ctx: &'c Context,
}

impl LivingUi<'_> {
    /// Before a turn: the task owns the app, the app has its folders, and what was launched is served again if it
    /// ended meanwhile.
    fn prepare(&self, registry: &Registry<'_>, task: &Value) -> Result<(), UdfError> {
        let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default();
        // A task without an id has no subject; the engine says so.
        if text("id").is_empty() {
            return Ok(());
        }
        let app = App::of(self.ctx, "", task)?;
        registry.claim(&app.id, text("id"))?;
        app.scaffold(text("query"))?;
        if app.process("serve")?.is_some() && app.served()?.is_none() {
            // The checker reports an app that does not come up again; the turn itself goes on.
            if let Err(error) = pipeline::serve_again(&app, registry) {
                self.ctx.warn(&format!("the app `{}` is not served again: {error}", app.id));
            }
        }
        Ok(())
    }

    /// The one way an app changes hands (contract §10): bound and saved, then reset, then the request as a lead. The
    /// caller cancels the task named as `previous` first.
    fn ensure_owner(
        &self,
        registry: &Registry<'_>,
        app: &App<'_>,
        request: &Request<'_>,
    ) -> Result<Reply, UdfError> {
        let task = request.task.get("id").and_then(Value::as_str).unwrap_or_default();
        if task.is_empty() {
            return Err(UdfError::raised(
                "`ensure_owner` needs the `id` of the task that is to own the app",
            ));
        }
        app.scaffold(request.task.get("query").and_then(Value::as_str).unwrap_or_default())?;
        let bound = registry.bind(&app.id, task)?;
        let (reset, lead) = (request.arguments.get("reset"), request.arguments.get("request"));
        let state_dir = app::state_dir(&app.id);
        let record = |call: &str, arguments: &Value| {
            serve(self.ctx, self, &Request { call, arguments, state_dir: &state_dir, ..*request })
        };
        let lead = lead.and_then(Value::as_str).unwrap_or_default();
        if reset == Some(&Value::Bool(true)) {
            record("adopt_reset", &json!({"targeted": !lead.is_empty(), "incoming": lead}))?;
        }
        if !lead.is_empty() {
            record("record_user_lead", &json!({"text": lead}))?;
        }
        Ok(Reply::value(&json!({
            "app": app.id, "owner": task, "previous": bound.previous, "workflow_id": self.name(),
        })))
    }

    /// Announces a verified app: served, with its public address if a tunnel is configured.
    fn notify_ready(
        &self,
        registry: &Registry<'_>,
        app: &App<'_>,
        request: &Request<'_>,
    ) -> Result<Reply, UdfError> {
        let state_dir = app::state_dir(&app.id);
        let state = Request { call: "state", state_dir: &state_dir, ..*request };
        let state: Value = serve(self.ctx, self, &state)?.to_json()?.parse()?;
        if state["phase"] != "done" {
            return Err(UdfError::raised(format!(
                "the app `{}` is not verified, so it is not announced",
                app.id
            )));
        }
        let port = pipeline::serve_again(app, registry)?;
        let (public, fault) = match tunnel::open(app) {
            Ok(address) => (address, None),
            // An app without its public address is still an app.
            Err(error) => (None, Some(error.message().to_owned())),
        };
        let now = self.ctx.now().to_string();
        registry.change(&app.id, |entry| {
            entry.ready_at = now;
            Ok(())
        })?;
        Ok(Reply::value(&json!({
            "status": "success", "url": app::url(port), "public_url": public, "tunnel_error": fault,
        })))
    }

    fn status(&self, registry: &Registry<'_>, app: &App<'_>) -> Result<Value, UdfError> {
        let entry = registry.entry(&app.id)?.unwrap_or_default();
        let served = app.served()?;
        let state_dir = app::state_dir(&app.id);
        let (task, arguments) = (Value::Null, Value::Null);
        let state = Request {
            call: "state",
            task: &task,
            message: "",
            state_dir: &state_dir,
            arguments: &arguments,
        };
        let state: Value = serve(self.ctx, self, &state)?.to_json()?.parse()?;
        Ok(json!({
            "app": app.id,
            "owner": entry.owner,
            "phase": state["phase"],
            "validated": state["state"]["verified"] == true,
            "running": served.is_some(),
            "pid": served.as_ref().and_then(|served| served.pid),
            "url": served.as_ref().map(|served| app::url(served.port)),
            "public_url": app.public_address()?,
            "ready_at": entry.ready_at,
        }))
    }

    /// The write tap: the area is touched, and what was verified is verified no more.
    fn touched(&self, request: &Request<'_>, path: &str) -> Result<(), UdfError> {
        let area = json!({"area": app::area(path)});
        for call in ["record_touch", "record_invalidated"] {
            serve(self.ctx, self, &Request { call, arguments: &area, ..*request })?;
        }
        Ok(())
    }

    fn app(&self, ctx: &TurnContext<'_>) -> Answer<App<'_>> {
        Ok(App::named(self.ctx, &ctx.subject.id)?)
    }

    fn address(&self, ctx: &TurnContext<'_>) -> String {
        let served = self.app(ctx).and_then(|app| Ok(app.served()?));
        served.ok().flatten().map(|served| app::url(served.port)).unwrap_or_default()
    }
}

impl Workflow for LivingUi<'_> {
    fn name(&self) -> &str {
        "living_ui_creation"
    }
    fn system_prompt(&self) -> &str {
        texts::SYSTEM
    }
    fn worker_agent(&self) -> &str {
        "coding_agent"
    }
    fn checker_agent(&self) -> Option<&str> {
        Some("walk_verify")
    }
    fn state_class(&self) -> StateClass {
        StateClass { legacy_keys: StateClass::BUILD_KEYS, ..StateClass::WORK }
    }
    fn ledger_key(&self) -> &str {
        "VALIDATE"
    }
    fn stage_action(&self) -> Option<&str> {
        Some(VALIDATE)
    }
    fn notify_action(&self) -> Option<&str> {
        Some(NOTIFY)
    }
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>> {
        Ok(app::subject(task)?.map(Subject::new))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        app::state_dir(&subject.id)
    }
    fn is_bootstrapped(&self, ctx: &TurnContext<'_>) -> Answer<bool> {
        // A worker that came to its end is in the ledger.
        Ok(!ctx.ledger.is_empty() || ctx.state.built || ctx.state.staged || ctx.state.verified)
    }
    fn work_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        let files = self.app(ctx)?.files()?;
        Ok(texts::work_brief(&ctx.task.query, ctx.state.update_scope, &files))
    }
    fn check_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        Ok(texts::check_brief(&ctx.task.query, &self.address(ctx)))
    }
    fn describe_subject(&self, ctx: &TurnContext<'_>) -> String {
        format!("their app ({})", texts::headline(&ctx.task.query))
    }
    fn presentation_prompt(&self, ctx: &TurnContext<'_>) -> String {
        let text = engine_texts::presentation(&self.describe_subject(ctx), &ctx.state.backlog);
        let public = self.app(ctx).and_then(|app| Ok(app.public_address()?)).ok().flatten();
        match (public, self.address(ctx)) {
            (Some(public), _) => format!("{text}\nTell them that the app is at {public}."),
            (None, url) if !url.is_empty() => {
                format!("{text}\nTell them that the app is at {url}, on this machine.")
            }
            (None, _) => text,
        }
    }
    fn task_state(&self, task: &Task) -> String {
        let status = || {
            let app = app::subject(task).ok()??;
            let served = App::named(self.ctx, &app).ok()?.served().ok()?;
            Some(match served {
                Some(served) => format!("The app is served at {}.", app::url(served.port)),
                None => "The app is not served at the moment.".to_owned(),
            })
        };
        status().unwrap_or_default()
    }
    fn on_task_ended(&self, task: &Task, status: &str) -> Answer<()> {
        let Some(app) = app::subject(task)? else { return Ok(()) };
        let registry = Registry::open(self.ctx)?;
        if registry.entry(&app)?.is_none_or(|entry| entry.owner != task.id) {
            return Ok(());
        }
        if status == "complete" {
            // What was handed over is the user's to use and to stop; its lease goes on.
            registry.change(&app, |entry| {
                entry.kept = true;
                Ok(())
            })?;
            return Ok(());
        }
        Serving::lock(&App::named(self.ctx, &app)?, WAIT)?.stop()?;
        Ok(())
    }
    fn on_boot(&self, running: &[&str]) -> Answer<Vec<String>> {
        let registry = Registry::open(self.ctx)?;
        for entry in registry.entries()? {
            let app = App::named(self.ctx, &entry.id)?;
            if app.process("serve")?.is_none() && app.process("tunnel")?.is_none() {
                continue;
            }
            // Whoever starts or ends it this very moment attends to it.
            let mut serving = match Serving::lock(&app, BOOT_WAIT) {
                Ok(serving) => serving,
                Err(error) => {
                    self.ctx.warn(&format!("passed over: {error}"));
                    continue;
                }
            };
            let runs = serving.settle()?;
            if !entry.kept && !running.contains(&entry.owner.as_str()) {
                serving.stop()?;
            } else if !runs {
                // A tunnel to nothing.
                serving.end("tunnel")?;
            }
        }
        Ok(registry.ghosts(running))
    }
}

#[cfg(test)]
mod tests;
