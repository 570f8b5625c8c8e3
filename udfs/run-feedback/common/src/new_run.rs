//! A run at its creation: `metadata.json`, the first `state.json`, the counter (§4, §5).

use serde_json::{Value, json};

use crate::codes::{Code, Refusal};
use crate::query::PHASES;
use crate::run_id::{RunId, RunPaths};
use crate::state::{State, document};
use sdk::Timestamp;

/// What `init_run` is given, as text (§5).
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the parameters of the contract")]
pub struct NewRunParams<'a> {
    pub run_id: &'a str,
    pub work_id: &'a str,
    pub target: &'a str,
    pub workflow: &'a str,
    pub autonomy: &'a str,
    pub source_type: &'a str,
    pub phases: &'a str,
    pub parent_run: &'a str,
    pub rerun_of: &'a str,
}

/// What the process knows about where it runs; fixed in the metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `USER`, else `unknown`.
    pub user: String,
    /// Name of the machine.
    pub hostname: String,
    /// `unknown` outside a repository or in one without commits.
    pub git_branch: String,
    /// As `git_branch`.
    pub git_commit: String,
    /// Absolute.
    pub working_directory: String,
}

/// The files of a run that has just been created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Its id.
    pub run_id: RunId,
    work_id: String,
    metadata: Value,
    state: State,
    created_at: Timestamp,
}

impl NewRunParams<'_> {
    /// Checks the parameters; the environment is asked only if they are right.
    ///
    /// # Errors
    /// `MISSING_RUN_ID`, `MISSING_WORK_ID`, `INVALID_RUN_ID`.
    pub fn check(
        &self,
        now: &Timestamp,
        environment: impl FnOnce() -> Environment,
    ) -> Result<NewRun, Refusal> {
        if self.run_id.is_empty() {
            return Err(Refusal::new(Code::MissingRunId, "run_id is missing"));
        }
        if self.work_id.is_empty() {
            return Err(Refusal::new(Code::MissingWorkId, "work_id is missing"));
        }
        let run_id =
            RunId::parse(self.run_id).ok_or_else(|| Refusal::invalid_run_id(self.run_id))?;
        let environment = environment();
        let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let or =
            |text: &str, default: &str| Value::from(if text.is_empty() { default } else { text });
        let phases: Vec<&str> = match self.phases {
            "" => PHASES.to_vec(),
            list => list.split(',').filter(|part| !part.is_empty()).collect(),
        };
        let metadata = json!({
            "run_id": run_id.to_string(),
            "work_id": self.work_id,
            "target": or_null(self.target),
            "workflow_id": or(self.workflow, "default"),
            "autonomy": or(self.autonomy, "guarded"),
            "source_type": or(self.source_type, "github"),
            "phases": phases,
            "created_at": now.to_string(),
            "created_by": environment.user,
            "relationships": {
                "parent_run_id": or_null(self.parent_run),
                "rerun_of": or_null(self.rerun_of),
                "child_runs": [],
            },
            "environment": {
                "hostname": environment.hostname,
                "git_branch": environment.git_branch,
                "git_commit": environment.git_commit,
                "working_directory": environment.working_directory,
            },
        });
        Ok(NewRun {
            state: first_state(&run_id, self.work_id, now),
            run_id,
            work_id: self.work_id.to_owned(),
            metadata,
            created_at: *now,
        })
    }
}

fn first_state(run_id: &RunId, work_id: &str, now: &Timestamp) -> State {
    let phases: serde_json::Map<String, Value> = PHASES
        .iter()
        .map(|&phase| {
            let mut entry = json!({ "status": "pending", "steps": [] });
            if phase == "evaluate" {
                entry["retry_count"] = 0.into();
            }
            (phase.to_owned(), entry)
        })
        .collect();
    let members = json!({
        "run_id": run_id.to_string(),
        "work_id": work_id,
        "workflow_version": "2.1",
        "status": "pending",
        "current_phase": null,
        "last_event_id": 0,
        "started_at": null,
        "updated_at": now.to_string(),
        "completed_at": null,
        "phases": phases,
        "artifacts": {},
        "errors": [],
    });
    match members {
        Value::Object(members) => State::from_members(members),
        _ => unreachable!("the literal above is an object"),
    }
}

impl NewRun {
    /// Every file of the new directory: path below it, content.
    pub fn files(&self) -> [(&'static str, String); 3] {
        [
            ("metadata.json", document(&self.metadata)),
            ("state.json", self.state.render()),
            ("events/.next-id", "1\n".to_owned()),
        ]
    }

    /// `{status, operation, run_id, run_dir, work_id, created_at, files_created}`.
    pub fn reply(&self, base_path: &str) -> Value {
        let paths = RunPaths::new(base_path, &self.run_id);
        json!({
            "status": "success",
            "operation": "init-run-directory",
            "run_id": self.run_id.to_string(),
            "run_dir": paths.run_dir(),
            "work_id": self.work_id,
            "created_at": self.created_at.to_string(),
            "files_created": self.files().map(|(name, _)| paths.file(name)),
        })
    }

    /// A run of this id is there already.
    pub fn exists(&self) -> Refusal {
        Refusal::new(Code::RunExists, format!("run {} exists already", self.run_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

    fn now() -> Timestamp {
        Timestamp::from_unix_ms(1_765_044_249_120)
    }

    #[test]
    fn checks_come_in_order_and_before_the_environment() {
        for (run_id, work_id, want) in [
            ("", "", Code::MissingRunId),
            ("x", "", Code::MissingWorkId),
            ("-/_/------------------------------------", "1", Code::InvalidRunId),
        ] {
            let params = NewRunParams { run_id, work_id, ..NewRunParams::default() };
            assert_eq!(params.check(&now(), || panic!("not asked")).unwrap_err().code, want);
        }
    }

    #[test]
    fn empty_phases_are_dropped() {
        let phases = |list: &str| {
            let params =
                NewRunParams { run_id: RUN, work_id: "7", phases: list, ..NewRunParams::default() };
            params.check(&now(), Environment::default).unwrap().metadata["phases"].to_string()
        };
        assert_eq!(phases(""), r#"["frame","architect","build","evaluate","release"]"#);
        assert_eq!(phases("frame,,build,"), r#"["frame","build"]"#);
    }

    #[test]
    fn quotes_stay_text() {
        let environment = || Environment { user: "al\"ex\\".into(), ..Environment::default() };
        let params = NewRunParams {
            run_id: RUN,
            work_id: "7\"",
            target: "csv \"export\" é",
            ..NewRunParams::default()
        };
        let run = params.check(&now(), environment).unwrap();
        for (name, text) in run.files() {
            if name.ends_with(".json") {
                let read: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(read["work_id"], "7\"", "{name}");
            }
        }
        assert_eq!(run.metadata["created_by"], "al\"ex\\");
        assert_eq!(
            run.reply("var/runs")["files_created"][2],
            format!("var/runs/{RUN}/events/.next-id")
        );
    }
}
