//! [`Fixture`]: the read operations over a fixture's files, as far as the cases go.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use crate::sql::error::OperationFailure;
use crate::sql::operations::{
    Answered, Arguments, Filter, LookupError, OpAddress, Operations, Signature, UniformRows,
};
use crate::sql::table::{Body, Declared, Kind, Table};

/// Operation, parameters, columns with their types; no columns and a `!` for one that writes.
const OPERATIONS: &[(&str, &str, &str, &str)] = &[
    ("feedback-management", "list_cards", "task", CARD),
    ("feedback-management", "list_open_cards", "project", CARD),
    ("feedback-management", "get_card", "id", CARD),
    ("feedback-management", "inbox_view", "project", "items:j pending:j"),
    ("feedback-management", "is_feedback_key_dismissed", "id", "value:b"),
    ("feedback-management", "has_unresolved_message", "task_id", "value:b"),
    ("feedback-management", "create_card", "task", "!"),
    ("feedback-management", "cancel_task_cards", "task", "!"),
    ("feedback-management", "delete_project", "project", "!"),
    ("task-management", "read", "id", TASK),
    ("task-management", "list_comments", "task_id", COMMENT),
    ("task-management", "delete", "id", "!"),
    ("run-management", "read", "task_ids", RUN),
    ("run-management", "transcript", "run_id", ""),
    ("artifact-chat-management", "read", "project artifact_type artifact_stem", CHAT),
    ("artifact-chat-management", "get", "project artifact_type artifact_stem", CHAT),
];
const CARD: &str = "id:s project:s taskId:s effect:s status:s continuationPolicy:s idempotencyKey:s summary:s payload:j result:j createdBy:s sourceRunId:s resolvedBy:s createdAt:s resolvedAt:s";
const TASK: &str = "id:s project:s number:i title:s description:s status:s agentId:s createdBy:s createdAt:s updatedAt:s parentId:s workMode:s blockedBy:j runs:j isLive:b liveRunCount:i";
const COMMENT: &str = "id:s taskId:s author:s body:s createdAt:s kind:s widget:j";
const RUN: &str = "id:s taskId:s prompt:s status:s createdAt:s finishedAt:s errorMessage:s errorFamily:s retryNotBefore:s summary:s costUsd:f usage:j model:s";
const CHAT: &str = "id:s project:s artifactType:s artifactStem:s title:s createdAt:s lastActivityAt:s messageCount:i sessionKey:s";

/// A fixture's files.
pub(in crate::sql) struct Fixture {
    files: BTreeMap<String, Value>,
    pub(in crate::sql) calls: AtomicUsize,
    /// Whether rows can be asked for by the text of a column.
    pub(in crate::sql) by_parts: bool,
    /// The arguments of calls for some of the rows.
    pub(in crate::sql) narrowed: Mutex<Vec<Arguments>>,
    /// Whether every part is of another moment.
    pub(in crate::sql) changing: bool,
}

impl Fixture {
    pub(in crate::sql) fn new(files: &Map<String, Value>) -> Self {
        Self {
            files: files.clone().into_iter().collect(),
            calls: AtomicUsize::new(0),
            by_parts: true,
            narrowed: Mutex::default(),
            changing: false,
        }
    }

    fn list(&self, name: &str) -> Vec<Value> {
        match self.files.get(&format!("state/{name}.json")) {
            Some(Value::Array(items)) => items.clone(),
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn matching(&self, name: &str, filters: &[(&str, &str)]) -> Vec<Value> {
        let keep = |item: &Value| {
            filters.iter().all(|(key, want)| want.is_empty() || item[*key] == **want)
        };
        self.list(name).into_iter().filter(keep).collect()
    }

    fn answer(&self, address: &OpAddress, args: &Arguments) -> Value {
        let arg = |key: &str| args.get(key).map_or("", String::as_str);
        match (address.project.as_str(), address.op.as_str()) {
            (_, "list_cards") => json!(self.matching("cards", &[("taskId", arg("task"))])),
            (_, "list_open_cards") => {
                json!(
                    self.matching("cards", &[("status", "pending"), ("project", arg("project"))])
                        .into_iter()
                        .filter(|c| c["effect"] != "review_work_product")
                        .collect::<Vec<_>>()
                )
            }
            (_, "get_card") => {
                self.matching("cards", &[("id", arg("id"))]).pop().unwrap_or_default()
            }
            (_, "is_feedback_key_dismissed") => {
                json!(self.list("dismissedFeedbackKeys").iter().any(|k| *k == arg("id")))
            }
            (_, "has_unresolved_message") => json!(false),
            ("task-management", "read") => {
                let runs = self.list("runs");
                let tasks = self.list("tasks").into_iter().map(|mut task| {
                    let own = runs
                        .iter()
                        .filter(|run| run["taskId"] == task["id"])
                        .cloned()
                        .collect::<Vec<_>>();
                    let live = own.iter().filter(|run| run["status"] == "started").count();
                    task["runs"] = json!(own);
                    task["isLive"] = json!(live > 0);
                    task["liveRunCount"] = json!(live);
                    task
                });
                tasks.collect()
            }
            (_, "list_comments") => {
                json!(
                    self.list("comments")
                        .into_iter()
                        .filter(|c| c["taskId"] == arg("task_id"))
                        .collect::<Vec<_>>()
                )
            }
            ("run-management", "read") => {
                let ids = arg("task_ids");
                let ids: Vec<String> = serde_json::from_str(ids)
                    .unwrap_or_else(|_| ids.split(',').map(|id| id.trim().to_owned()).collect());
                json!(
                    self.list("runs")
                        .into_iter()
                        .filter(|run| { ids == [""] || ids.iter().any(|id| run["taskId"] == *id) })
                        .collect::<Vec<_>>()
                )
            }
            (_, "transcript") => {
                let path = self.files.keys().find(|path| path.contains(arg("run_id")));
                let lines = path.and_then(|path| self.files[path].as_str()).unwrap_or_default();
                lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
            }
            ("artifact-chat-management", op) => {
                let chats = self.matching(
                    "artifactChats",
                    &[
                        ("project", arg("project")),
                        ("artifactType", arg("artifact_type")),
                        ("artifactStem", arg("artifact_stem")),
                    ],
                );
                if op == "get" {
                    chats.into_iter().next().unwrap_or_default()
                } else {
                    json!(chats)
                }
            }
            _ => Value::Null,
        }
    }
}

impl Operations for Fixture {
    fn project(&self, workspace: &str, project: &str) -> Result<(), LookupError> {
        if workspace == "_core" && OPERATIONS.iter().any(|(other, ..)| *other == project) {
            return Ok(());
        }
        Err(LookupError::Absent { what: "projects", known: vec!["feedback-management".to_owned()] })
    }

    fn lookup(&self, address: &OpAddress) -> Result<Signature, LookupError> {
        self.project(&address.workspace, &address.project)?;
        let Some((_, _, params, columns)) = OPERATIONS
            .iter()
            .find(|(project, op, ..)| *project == address.project && *op == address.op)
        else {
            return Err(LookupError::Absent {
                what: "operations",
                known: vec!["list_cards".to_owned()],
            });
        };
        Ok(Signature {
            params: params.split(' ').map(str::to_owned).collect(),
            writes: *columns == "!",
            columns: columns
                .split(' ')
                .filter_map(|column| column.split_once(':'))
                .map(|(name, kind)| Declared::new(name, Some(Kind::of_letter(kind))))
                .collect(),
            filters: if address.op == "list_cards" && self.by_parts {
                vec![Filter { param: "task".to_owned(), column: "taskId".to_owned() }]
            } else {
                Vec::new()
            },
        })
    }

    fn call(&self, address: &OpAddress, args: &Arguments) -> Result<Answered, OperationFailure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let value = self.answer(address, args);
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let body = match &value {
            Value::Array(items) => Body::Records(items.iter().map(pretty).collect()),
            other => Body::Value(pretty(other)),
        };
        Ok(Answered { body, fresh: None })
    }

    fn is_uniform(&self, address: &OpAddress, _: &Arguments) -> bool {
        let declared = self.lookup(address).map(|signature| signature.columns).unwrap_or_default();
        let rows = self.answer(address, &Arguments::new());
        let rows = rows.as_array().into_iter().flatten().map(Value::to_string).collect();
        let columns = |rows| Table::new(&declared, Body::Records(rows)).unwrap().columns().to_vec();
        self.by_parts && columns(rows) == columns(Vec::new())
    }

    fn uniform_rows(
        &self,
        address: &OpAddress,
        args: &Arguments,
    ) -> Result<Option<UniformRows>, OperationFailure> {
        let moment = {
            let mut narrowed = self.narrowed.lock().unwrap();
            narrowed.push(args.clone());
            if self.changing { narrowed.len().to_string() } else { String::new() }
        };
        match self.call(address, args)?.body {
            Body::Records(rows) => Ok(Some(UniformRows { rows, moment })),
            Body::Value(_) => Ok(None),
        }
    }
}
