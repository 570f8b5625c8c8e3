//! One state folder, the agent commands on it, and a model that answers as it is told.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::build::built;
use super::host_process::{HostOptions, HostProcess};
use super::model::{Answer, Asked, ModelService};
use super::parse;

/// One state folder and the commands on it.
pub(crate) struct Bench {
    /// The state folder.
    pub(crate) folder: TempDir,
    env: Vec<(&'static str, String)>,
    udfs: Option<PathBuf>,
}

impl Bench {
    /// A folder of its own; `model` is the provider of its commands.
    pub(crate) fn new(model: Option<&ModelService>) -> Bench {
        let env = model.map(|model| model.env().to_vec()).unwrap_or_default();
        Bench { folder: tempfile::tempdir().unwrap(), env, udfs: None }
    }

    /// The same with this variable in the environment of its commands.
    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Bench {
        self.env.push((name, value.to_owned()));
        self
    }

    /// The same with these operations beside the shipped ones.
    pub(crate) fn beside(self, udfs: PathBuf) -> Bench {
        Bench { udfs: Some(udfs), ..self }
    }

    /// A command on it, its output piped.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let built = built();
        let mut command = Command::new(&built.host);
        // Built already: no command of these waits for another cargo.
        command.arg("--no-build").arg("--udfs").arg(&built.udfs);
        if let Some(udfs) = &self.udfs {
            command.arg("--udfs").arg(udfs);
        }
        command.arg("--app-dir").arg(self.folder.path());
        command.args(words).env("XDG_CACHE_HOME", &built.cache).envs(self.env.clone());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `dev serve` on it, with these arguments.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str]) -> HostProcess {
        let mut options = HostOptions::new().arg("--no-build").arg("--app-dir");
        options = options.arg(self.folder.path()).cwd(self.folder.path());
        for argument in arguments {
            options = options.arg(argument);
        }
        for (name, value) in &self.env {
            options = options.env(name, value);
        }
        HostProcess::start(&options)
    }

    /// Runs a command; no key may show.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let output = self.command(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("sk-never-shown"), "a key in the log: {said}");
        output
    }

    /// A command that must work, and the JSON it prints.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// A report from its request to where it stops.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        let request = "A report on tea";
        self.json(&["agent", "run", "--workflow", "report_writing", "--request", request, "--json"])
    }

    /// Ids of its agent tasks.
    pub(crate) fn tasks(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("agent/tasks")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What happened in a task, whether it ended or not.
    pub(crate) fn events(&self, task: &str) -> String {
        let at = |place: &str| {
            let path = format!("agent/{place}/{task}/events.ndjson");
            std::fs::read_to_string(self.folder.path().join(path)).ok()
        };
        at("tasks").or_else(|| at("ended")).unwrap_or_default()
    }

    /// Where the state of a report's work lies.
    pub(crate) fn state_dir(&self, task: &str) -> PathBuf {
        self.folder.path().join("workflows/report_writing").join(task)
    }

    /// The state of a report's work.
    pub(crate) fn state(&self, task: &str) -> Value {
        parse(&std::fs::read_to_string(self.state_dir(task).join("logs/work_state.json")).unwrap())
    }

    /// Events of the journal, steps and what cut them off left out.
    pub(crate) fn journal(&self, task: &str) -> Vec<Value> {
        let lines = self.journal_lines(task).into_iter();
        lines.filter(|line| line["event"] != "step" && line["event"] != "interrupted").collect()
    }

    /// The stages whose steps were cut off.
    pub(crate) fn interruptions(&self, task: &str) -> Vec<Value> {
        let lines = self.journal_lines(task).into_iter();
        let cut = lines.filter(|line| line["event"] == "interrupted");
        cut.map(|line| line["stage"].clone()).collect()
    }

    fn journal_lines(&self, task: &str) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.state_dir(task).join("logs/workflow_journal.jsonl"));
        text.unwrap().lines().map(parse).collect()
    }

    /// Records of a collection.
    pub(crate) fn stored(&self, collection: &str) -> Vec<Value> {
        let path = self.folder.path().join(format!("state/{collection}.json"));
        std::fs::read_to_string(path)
            .map_or(Vec::new(), |text| parse(&text).as_array().unwrap().clone())
    }
}

/// The model chooses one action.
pub(crate) fn act(name: &str, parameters: Value) -> Answer {
    Answer::Says(
        json!({"reasoning": "r", "actions": [{"action_name": name, "parameters": parameters}]}),
    )
}

/// A sub-agent ends as completed.
pub(crate) fn ends(result: &str) -> Answer {
    act("sub_task_end", json!({"status": "completed", "result": result}))
}

/// Asked as a worker of report_writing.
pub(crate) fn is_worker(asked: &Asked) -> bool {
    asked.system.contains("careful writer")
}

/// Asked as a checker of report_writing.
pub(crate) fn is_checker(asked: &Asked) -> bool {
    asked.system.contains("strict checker")
}

/// A worker that saves a draft and ends, and a model that talks as it is told; verdicts are the test's.
pub(crate) fn writes_or_talks(asked: &Asked) -> Answer {
    if is_worker(asked) {
        return match asked.messages.len() {
            1 => act("write_draft", json!({"text": "# Tea\nIt is grown in Assam."})),
            _ => ends("written"),
        };
    }
    if asked.last().contains("wait_for_user_reply=true") {
        return act("send_message", json!({"message": "Claim 3 stays without a source."}));
    }
    if asked.last().contains("task_end") {
        return Answer::Says(json!({"actions": [
            {"action_name": "send_message", "parameters": {"message": "Here is the report."}},
            {"action_name": "task_end", "parameters": {"status": "complete", "summary": "tea"}},
        ]}));
    }
    act("send_message", json!({"message": "I am on it."}))
}

/// The events of journal lines.
pub(crate) fn kinds(journal: &[Value]) -> Vec<&str> {
    journal.iter().map(|line| line["event"].as_str().unwrap()).collect()
}
