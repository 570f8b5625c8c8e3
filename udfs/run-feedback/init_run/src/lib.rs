//! `init_run`: a new run directory. Contract and examples: `spec.md`.

use run_feedback_common::{Environment, NewRunParams, Operation, RunDir, Stop, answer};
use sdk::prelude::*;

/// Creates the directory of a run with its metadata, first state and event counter, all at once.
#[udf(folders)]
fn init_run(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// The issue or ticket it works on.
    #[arg(default)]
    work_id: &str,
    /// What is to be built; empty = null.
    #[arg(default)]
    target: &str,
    /// Name of the workflow.
    #[arg(default = "default")]
    workflow: &str,
    /// `dry-run`, `assist`, `guarded` or `autonomous`; not checked.
    #[arg(default = "guarded")]
    autonomy: &str,
    /// `github`, `jira`, `linear` or `manual`; not checked.
    #[arg(default = "github")]
    source_type: &str,
    /// Comma list of phases; empty = all five.
    #[arg(default)]
    phases: &str,
    /// The run that started this one; empty = null.
    #[arg(default)]
    parent_run: &str,
    /// The run that this one repeats; empty = null.
    #[arg(default)]
    rerun_of: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let params = NewRunParams {
        run_id,
        work_id,
        target,
        workflow,
        autonomy,
        source_type,
        phases,
        parent_run,
        rerun_of,
    };
    answer(Operation::InitRun, None, init(ctx, &params, base_path))
}

fn init(ctx: &Context, params: &NewRunParams<'_>, base_path: &str) -> Result<Value, Stop> {
    let run = params.check(&ctx.now(), Environment::of_process)?;
    let dir = RunDir::open(ctx, base_path, &run.run_id)?;
    if dir.create(&run.files())? { Ok(run.reply(base_path)) } else { Err(run.exists().into()) }
}

#[cfg(test)]
mod tests {
    use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
    use sdk::testing::TestHost;

    use super::*;

    fn init_once(host: &TestHost) -> Value {
        host.call_json(UDF, &[("base_path", BASE), ("run_id", RUN), ("work_id", "7")])
    }

    #[test]
    fn of_eight_creators_one_wins() {
        let host = RunDisk::default().host();
        let replies: Vec<Value> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| init_once(&host))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let won = replies.iter().filter(|reply| reply["status"] == "success").count();
        let lost = replies.iter().filter(|reply| reply["error"]["code"] == "RUN_EXISTS").count();
        assert_eq!((won, lost), (1, 7));
        let names: Vec<_> =
            host.context(UDF).folder(BASE, "acme/widgets", ".lock").unwrap().list("").unwrap();
        assert_eq!(names.len(), 1, "losers remove what they built: {names:?}");
    }

    #[test]
    fn a_crash_leaves_no_run_or_a_whole_one() {
        for steps in 0.. {
            let disk = RunDisk::default();
            disk.0.stop_after(steps);
            let acknowledged = init_once(&disk.host())["status"] == "success";
            for left in disk.crashes() {
                let host = left.host();
                let found = Found::look(&host.context(UDF));
                assert!(found.state.is_some() || !acknowledged, "after step {steps}");
                let again = init_once(&host);
                let want = if found.state.is_some() { json!("RUN_EXISTS") } else { Value::Null };
                assert_eq!(again["error"]["code"], want, "after step {steps}");
                let state = Found::look(&host.context(UDF)).state.unwrap();
                assert_eq!(state.status(), Some("pending"));
            }
            if acknowledged {
                break;
            }
        }
    }
}
