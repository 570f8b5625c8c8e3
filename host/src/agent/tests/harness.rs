//! A domain made from a case's configuration, served as its plugin would be, and beside it the few operations of people.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use core_store::{Crash, Durability, MemoryBackend, Store, StoreOptions};
use sdk::abi::Method;
use sdk::host::{Access, HostService, StoreSession, with_context};
use sdk::workflow::{
    Answer, Request, StateClass, Subject, Task, TurnContext, Workflow, journal, serve,
};
use sdk::{ErrorKind, UdfError};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::operations::{CallError, Operations, Tool, WorkflowPlace};
use super::super::provider::{Chat, Message, Provider, ProviderError};
use super::super::{AgentLoop, Limits, NewTask, Turned};
use crate::plugins::Address;

/// A domain as a case configures it.
pub(super) struct Domain {
    pub(super) name: String,
    pub(super) worker: String,
    pub(super) checker: Option<String>,
    pub(super) stage: Option<String>,
    pub(super) notify: Option<String>,
    pub(super) round_budget: u32,
    prompt: String,
    operation: String,
    bootstrapped: Arc<AtomicBool>,
}

/// The name of a case's action as an operation.
pub(super) fn operation(name: &str) -> String {
    format!("_core.harness.{name}")
}

impl Workflow for Domain {
    fn name(&self) -> &str {
        &self.name
    }
    fn system_prompt(&self) -> &str {
        &self.prompt
    }
    fn worker_agent(&self) -> &str {
        &self.worker
    }
    fn checker_agent(&self) -> Option<&str> {
        self.checker.as_deref()
    }
    fn state_class(&self) -> StateClass {
        StateClass { legacy_keys: StateClass::BUILD_KEYS, ..StateClass::WORK }
    }
    fn round_budget(&self) -> u32 {
        self.round_budget
    }
    fn stage_action(&self) -> Option<&str> {
        self.stage.as_deref()
    }
    fn notify_action(&self) -> Option<&str> {
        self.notify.as_deref()
    }
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>> {
        let named =
            task.data.get("subject").and_then(Value::as_str).filter(|name| !name.is_empty());
        Ok(Some(Subject::new(named.unwrap_or(&task.id))))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        format!("work/{}", subject.id)
    }
    fn is_bootstrapped(&self, _: &TurnContext<'_>) -> Answer<bool> {
        Ok(self.bootstrapped.load(Ordering::Relaxed))
    }
    fn work_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok(if self.stage.is_some() { "Build it to the requirements." } else { "Write the draft." }
            .to_owned())
    }
    fn check_query(&self, _: &TurnContext<'_>) -> Answer<String> {
        Ok("Check it.".to_owned())
    }
}

/// The world of one test: operations, model and clock.
pub(super) struct World {
    pub(super) folder: TempDir,
    agents: TempDir,
    pub(super) domain: Option<Domain>,
    pub(super) bootstrapped: Arc<AtomicBool>,
    pub(super) installed: AtomicBool,
    /// Answers of the harness' actions, in order.
    pub(super) answers: Mutex<Vec<Result<Value, String>>>,
    pub(super) calls: Mutex<Vec<String>>,
    pub(super) cards: Mutex<Vec<Value>>,
    pub(super) cards_fail: AtomicBool,
    pub(super) comments: Mutex<Vec<Value>>,
    pub(super) runs: Mutex<Vec<Value>>,
    pub(super) statuses: Mutex<HashMap<String, String>>,
    pub(super) replies: Mutex<Vec<Reply>>,
    pub(super) heard: Mutex<Vec<Vec<Message>>>,
    pub(super) systems: Mutex<Vec<String>>,
    pub(super) now: AtomicU64,
    /// How many reads wait for each other, and the most that did.
    pub(super) meet: AtomicU64,
    pub(super) together: AtomicU64,
    /// A disk in memory and the steps it has, for tests that kill.
    disk: Mutex<Option<(MemoryBackend, usize)>>,
    deaths: AtomicU64,
    /// Answers in place of `replies`.
    pub(super) brain: Mutex<Option<Brain>>,
    inside: (Mutex<u64>, std::sync::Condvar),
}

/// Answers by what was said.
pub(super) type Brain = fn(&Chat<'_>) -> String;

/// What the model does when it is asked.
pub(super) enum Reply {
    Text(String),
    Down,
    /// Something happens while the model thinks.
    Meanwhile(Box<dyn FnOnce() + Send>, String),
}

impl World {
    pub(super) fn new(config: &Value) -> Arc<Self> {
        let bootstrapped = Arc::new(AtomicBool::new(true));
        let name = |key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
        let domain = config.is_object().then(|| Domain {
            name: name("workflow_id").unwrap(),
            worker: name("worker_agent").unwrap(),
            checker: name("checker_agent"),
            stage: name("stage_action").map(|name| operation(&name)),
            notify: name("notify_action").map(|name| operation(&name)),
            round_budget: config["round_budget"].as_u64().unwrap().try_into().unwrap(),
            prompt: name("system_prompt").unwrap_or_else(|| "You look after the work.".to_owned()),
            operation: name("operation").or_else(|| name("workflow_id")).unwrap(),
            bootstrapped: Arc::clone(&bootstrapped),
        });
        let agents = tempfile::tempdir().unwrap();
        std::fs::create_dir(agents.path().join("agents")).unwrap();
        for kind in domain.iter().flat_map(|domain| domain.checker.iter().chain([&domain.worker])) {
            #[expect(clippy::disallowed_methods, reason = "a test's own file")]
            std::fs::write(
                agents.path().join(format!("agents/{kind}.toml")),
                format!("prompt = \"You are {kind}.\""),
            )
            .unwrap();
        }
        Arc::new(Self {
            folder: tempfile::tempdir().unwrap(),
            agents,
            domain,
            bootstrapped,
            installed: AtomicBool::new(true),
            answers: Mutex::default(),
            calls: Mutex::default(),
            cards: Mutex::default(),
            cards_fail: AtomicBool::new(false),
            comments: Mutex::default(),
            runs: Mutex::default(),
            statuses: Mutex::default(),
            replies: Mutex::default(),
            heard: Mutex::default(),
            systems: Mutex::default(),
            now: AtomicU64::new(1_767_225_600_000),
            meet: AtomicU64::new(1),
            together: AtomicU64::new(0),
            disk: Mutex::default(),
            deaths: AtomicU64::new(0),
            brain: Mutex::default(),
            inside: Default::default(),
        })
    }

    /// A report-writing domain of this budget.
    pub(super) fn reports(round_budget: u32) -> Arc<Self> {
        Self::new(&json!({
            "workflow_id": "report_writing", "worker_agent": "research_agent",
            "checker_agent": "fact_check", "round_budget": round_budget,
        }))
    }

    /// Puts an agent type in place, or takes it away; gives what was there.
    pub(super) fn agent_file(&self, kind: &str, text: Option<&str>) -> String {
        let file = self.agents.path().join(format!("agents/{kind}.toml"));
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        match text {
            #[expect(clippy::disallowed_methods, reason = "a test's own file")]
            Some(text) => std::fs::write(file, text).unwrap(),
            None => std::fs::remove_file(file).unwrap(),
        }
        before
    }

    /// A store as a host that just started has it.
    fn store(&self) -> Store {
        let options = StoreOptions { durability: Durability::Os };
        match &*self.disk.lock().unwrap() {
            Some((disk, _)) => Store::with_backend(Arc::new(disk.clone()), options),
            None => Store::open(options),
        }
    }

    /// From here on the state lies on a disk in memory that stops after so many steps.
    pub(super) fn stop_after(&self, steps: usize) {
        let mut disk = self.disk.lock().unwrap();
        let disk_was_used = disk.is_some();
        let next =
            disk.take().map_or_else(MemoryBackend::new, |(disk, _)| disk.crash(Crash::Process));
        next.stop_after(steps);
        if disk_was_used {
            self.deaths.fetch_add(1, Ordering::Relaxed);
        }
        *disk = Some((next, steps));
    }

    /// Whether a disk has stopped so far.
    pub(super) fn died(&self) -> bool {
        self.deaths.load(Ordering::Relaxed) > 0
    }

    /// Whether the disk has stopped: the host is as good as killed.
    pub(super) fn is_dead(&self) -> bool {
        self.disk.lock().unwrap().as_ref().is_some_and(|(disk, limit)| disk.steps() > *limit)
    }

    /// A loop as a host that just started has it: nothing is remembered but what is on disk.
    pub(super) fn agent(self: &Arc<Self>) -> AgentLoop {
        let world = Arc::clone(self);
        AgentLoop::new(
            Arc::clone(self) as Arc<dyn Operations>,
            Arc::clone(self) as Arc<dyn Provider>,
            self.store(),
            self.folder.path().to_owned(),
        )
        .with_limits(Limits { unattended: 60, ..Limits::default() })
        .with_clock(Arc::new(move || world.now.load(Ordering::Relaxed)))
    }

    pub(super) fn start(self: &Arc<Self>) -> String {
        let workflow_id =
            self.domain.as_ref().map(|domain| domain.name.clone()).unwrap_or_default();
        let new = NewTask { request: "do it".into(), workflow_id, ..NewTask::default() };
        self.agent().start(new).unwrap()
    }

    pub(super) fn turn(self: &Arc<Self>, id: &str) -> Turned {
        self.agent().turn(id).unwrap()
    }

    pub(super) fn wait(&self, seconds: u64) {
        self.now.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    pub(super) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().extend(replies);
    }

    /// A sub-agent that ends at once.
    pub(super) fn ends(status: &str, result: &str) -> Reply {
        let end = json!({"action_name": "sub_task_end", "parameters": {"status": status, "result": result}});
        Reply::Text(end.to_string())
    }

    pub(super) fn says(parameters: &Value) -> Reply {
        let message =
            json!({"actions": [{"action_name": "send_message", "parameters": parameters}]});
        Reply::Text(message.to_string())
    }

    /// Replies that nobody took.
    pub(super) fn left(&self) -> usize {
        self.replies.lock().unwrap().len()
    }

    pub(super) fn asked(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    pub(super) fn workflow(&self, task: &Value, call: &str) -> Value {
        let task = task.to_string();
        let params = [("call".to_owned(), call.to_owned()), ("task".to_owned(), task)];
        self.serve(&params).unwrap()
    }

    pub(super) fn state(&self, id: &str) -> Value {
        self.workflow(&json!({"id": id}), "state")
    }

    pub(super) fn journal(&self, id: &str) -> Vec<Value> {
        let path = self.folder.path().join(format!("work/{id}/{}", journal::PATH));
        let bytes = std::fs::read(path).unwrap_or_default();
        journal::read(&bytes)
            .into_iter()
            .filter(|line| line["event"] != "step")
            .map(|mut line| {
                line.shift_remove("ts");
                Value::Object(line)
            })
            .collect()
    }

    fn serve(&self, params: &[(String, String)]) -> Result<Value, CallError> {
        let text = |name: &str| {
            params.iter().find(|(key, _)| key == name).map_or("", |(_, text)| text.as_str())
        };
        let json = |name: &str| match text(name) {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap(),
        };
        let (task, arguments) = (json("task"), json("arguments"));
        let request = Request {
            call: text("call"),
            task: &task,
            message: text("message"),
            state_dir: text("state_dir"),
            arguments: &arguments,
        };
        let store = self.store();
        let access = Access { op: "harness".into(), folders: true, ..Access::default() };
        let session = StoreSession::new(&store, store.app(self.folder.path()), Arc::new(access));
        let now = self.now.load(Ordering::Relaxed);
        let session = session.at(i64::try_from(now).unwrap());
        let domain = self.domain.as_ref().unwrap();
        let reply = with_context(&Session(session), |ctx| serve(ctx, domain, &request));
        let reply = reply.map_err(|error| CallError(error.to_string()))?;
        Ok(serde_json::from_str(&reply.to_json().unwrap()).unwrap())
    }

    /// A read returns once as many are inside as are to meet.
    fn meet_others(&self) {
        let meet = self.meet.load(Ordering::Relaxed);
        let mut inside = self.inside.0.lock().unwrap();
        *inside += 1;
        self.together.fetch_max(*inside, Ordering::Relaxed);
        self.inside.1.notify_all();
        let limit = std::time::Duration::from_secs(60);
        let met = |inside: &mut u64| *inside < meet && self.together.load(Ordering::Relaxed) < meet;
        let (mut inside, _) = self.inside.1.wait_timeout_while(inside, limit, met).unwrap();
        *inside -= 1;
    }

    /// A person answers a card.
    pub(super) fn resolve(&self, card: &str, status: &str, result: Value) {
        let mut cards = self.cards.lock().unwrap();
        let card = cards.iter_mut().find(|found| found["id"] == card).unwrap();
        card["status"] = status.into();
        card["result"] = result;
    }

    pub(super) fn pending(&self) -> Vec<Value> {
        let cards = self.cards.lock().unwrap();
        cards.iter().filter(|card| card["status"] == "pending").cloned().collect()
    }
}

struct Session(StoreSession);

impl HostService for Session {
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        match self.0.call(method, request) {
            Some(answer) => answer,
            None if method == Method::TRACE => Ok(Vec::new()),
            None => Err(UdfError::new(ErrorKind::Unsupported, "not here")),
        }
    }
    fn cancelled(&self) -> bool {
        false
    }
}

impl Operations for World {
    fn call(&self, address: &Address, params: Vec<(String, String)>) -> Result<Value, CallError> {
        let param = |name: &str| {
            params.iter().find(|(key, _)| key == name).map_or("", |(_, text)| text.as_str())
        };
        if self.is_dead() {
            return Err(CallError("the host is dead".into()));
        }
        match (&*address.project, &*address.op) {
            ("workflows", _) => self.serve(&params),
            ("harness", op) => {
                self.calls.lock().unwrap().push(op.to_owned());
                if op == "get_message" {
                    self.meet_others();
                }
                let mut answers = self.answers.lock().unwrap();
                let answer = if answers.is_empty() { Ok(json!("done")) } else { answers.remove(0) };
                answer.map_err(CallError)
            }
            ("feedback-management", "create_card") => {
                let mut cards = self.cards.lock().unwrap();
                let key = param("idempotency_key");
                if let Some(card) = cards.iter().find(|card| card["idempotencyKey"] == key) {
                    return Ok(card.clone());
                }
                for card in cards.iter_mut().filter(|card| card["status"] == "pending") {
                    card["status"] = "superseded".into();
                }
                let payload: Value = serde_json::from_str(param("payload")).unwrap();
                if self.cards_fail.load(Ordering::Relaxed) {
                    return Err(CallError("the disk is full".into()));
                }
                let card = json!({
                    "id": format!("card_{}", cards.len()), "taskId": param("task_id"),
                    "idempotencyKey": key, "status": "pending", "payload": payload, "result": null,
                });
                cards.push(card.clone());
                Ok(card)
            }
            ("feedback-management", "list_cards") => {
                let cards = self.cards.lock().unwrap();
                let task = |card: &&Value| card["taskId"] == param("task");
                Ok(cards.iter().filter(task).cloned().collect())
            }
            ("feedback-management", "resolve_card") => {
                let mut cards = self.cards.lock().unwrap();
                let open =
                    |card: &&mut Value| card["id"] == param("id") && card["status"] == "pending";
                cards.iter_mut().filter(open).for_each(|card| card["status"] = "cancelled".into());
                Ok(json!(null))
            }
            ("feedback-management", "cancel_task_cards") => {
                let mut cards = self.cards.lock().unwrap();
                let open = |card: &&mut Value| {
                    card["taskId"] == param("task") && card["status"] == "pending"
                };
                cards.iter_mut().filter(open).for_each(|card| card["status"] = "cancelled".into());
                Ok(json!([]))
            }
            ("run-management", "read") => Ok(self.runs.lock().unwrap().iter().cloned().collect()),
            ("task-management", "add_comment") => {
                let comment = json!({
                    "taskId": param("task_id"), "body": param("body"), "author": param("author"),
                });
                self.comments.lock().unwrap().push(comment.clone());
                Ok(comment)
            }
            ("task-management", "list_comments") => {
                let comments = self.comments.lock().unwrap();
                let task = |comment: &&Value| comment["taskId"] == param("task_id");
                Ok(comments.iter().filter(task).cloned().collect())
            }
            ("task-management", "create" | "update_status") => {
                let status = param("status").to_owned();
                self.statuses.lock().unwrap().insert(param("id").to_owned(), status);
                Ok(json!({"id": param("id")}))
            }
            _ => Err(CallError(format!("unknown operation `{address}`"))),
        }
    }

    fn tool(&self, address: &Address) -> Option<Tool> {
        (&*address.project != "gone").then(|| Tool {
            address: address.clone(),
            doc: "A tool.".into(),
            params: vec![],
            is_read: &*address.op == "get_message",
        })
    }

    fn tools(&self) -> Vec<Tool> {
        ["search_gmail", "get_message", "living_ui_validate", "living_ui_notify_ready"]
            .iter()
            .filter_map(|name| self.tool(&Address::parse(&operation(name)).unwrap()))
            .collect()
    }

    fn workflow(&self, id: &str) -> Option<WorkflowPlace> {
        let domain = self.domain.as_ref()?;
        let is_it = domain.operation == id || format!("old_{}", domain.name) == id;
        let is_there = self.installed.load(Ordering::Relaxed) && is_it;
        is_there.then(|| WorkflowPlace {
            address: Address::new("_core", "workflows", &domain.operation),
            folder: PathBuf::from(self.agents.path()),
        })
    }
}

impl Provider for World {
    fn complete(&self, chat: &Chat<'_>) -> Result<String, ProviderError> {
        self.heard.lock().unwrap().push(chat.messages.to_vec());
        self.systems.lock().unwrap().push(chat.system.to_owned());
        if self.is_dead() {
            return Err(ProviderError::Broken { failures: 1, last: "the host is dead".into() });
        }
        if let Some(brain) = *self.brain.lock().unwrap() {
            return Ok(brain(chat));
        }
        let reply = {
            let mut replies = self.replies.lock().unwrap();
            assert!(
                !replies.is_empty(),
                "the model is asked without need: {:?}",
                chat.messages.last()
            );
            replies.remove(0)
        };
        match reply {
            Reply::Text(text) => Ok(text),
            Reply::Down => Err(ProviderError::Broken { failures: 3, last: "down".into() }),
            Reply::Meanwhile(happens, text) => {
                happens();
                Ok(text)
            }
        }
    }
}
