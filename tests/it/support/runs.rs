//! Runs of run feedback, as tests lay them out and look at them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::fixture::write;
use super::host_process::HostProcess;
use super::parse;

/// Runs below a base directory.
pub(crate) struct RunFolder {
    _folder: tempfile::TempDir,
    /// Where the host is started.
    pub(crate) root: PathBuf,
}

impl RunFolder {
    /// No runs yet.
    pub(crate) fn new() -> RunFolder {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        RunFolder { _folder: folder, root }
    }

    /// The id of the run of this number.
    pub(crate) fn id(number: usize) -> String {
        format!("acme/widgets/00000000-0000-4000-8000-{number:012x}")
    }

    /// The directory of a run.
    pub(crate) fn dir(&self, run: &str) -> PathBuf {
        self.root.join(".fractary/plugins/faber/runs").join(run)
    }

    /// A run that is under way, with the issue of this number; its id.
    pub(crate) fn add(&self, number: usize, work_id: &str) -> String {
        let run = RunFolder::id(number);
        self.put(&run, &json!({"run_id": run, "work_id": work_id, "status": "in_progress", "last_event_id": 0}));
        run
    }

    /// A run that waits for an approval, asked long ago.
    pub(crate) fn add_waiting(&self, number: usize, work_id: &str) -> String {
        let run = RunFolder::id(number);
        let state = json!({"run_id": run, "work_id": work_id, "status": "awaiting_feedback", "last_event_id": 0,
            "current_phase": "build", "current_step": "review",
            "feedback_request": {"request_id": format!("fr-20260101-{number:06x}"), "type": "approval",
                "prompt": "Ship it?", "options": ["approve", "reject"], "context": {},
                "requested_at": "2026-01-01T00:00:00Z",
                "notification_sent": {"cli": false, "issue_comment": false, "comment_url": null}},
            "resume_point": {"phase": "build", "step": "review", "step_index": null}});
        self.put(&run, &state);
        run
    }

    fn put(&self, run: &str, state: &Value) {
        let dir = self.dir(run);
        write(&dir.join("state.json"), format!("{state:#}\n").as_bytes());
        write(&dir.join("events/.next-id"), b"1\n");
    }

    /// The state of a run.
    pub(crate) fn state(&self, run: &str) -> Value {
        parse(&fs::read_to_string(self.dir(run).join("state.json")).unwrap())
    }

    /// The events of a run by number; panics if one is damaged or its name says something else.
    pub(crate) fn events(&self, run: &str) -> Vec<(u64, Value)> {
        let mut events: Vec<(u64, Value)> = names(&self.dir(run).join("events"))
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .map(|name| {
                let event =
                    parse(&fs::read_to_string(self.dir(run).join("events").join(&name)).unwrap());
                let number: u64 = name.split('-').next().unwrap().parse().unwrap();
                assert_eq!(event["event_id"], number, "{name}");
                (number, event)
            })
            .collect();
        events.sort_by_key(|(number, _)| *number);
        events
    }

    /// How many events of a type there are.
    pub(crate) fn count(&self, run: &str, kind: &str) -> usize {
        self.events(run).iter().filter(|(_, event)| event["type"] == kind).count()
    }
}

/// Names in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Calls an operation of run feedback that must answer; its reply, a refusal as well.
#[track_caller]
pub(crate) fn call(host: &HostProcess, op: &str, overrides: &Value) -> Value {
    host.data("run-feedback", op, overrides)
}

/// The parameters of a question.
pub(crate) fn question(run: &str) -> Value {
    json!({"run_id": run, "phase": "build", "step": "review", "feedback_type": "approval", "prompt": "Ship it?",
        "post_to_issue": false, "cli_prompt": false})
}
