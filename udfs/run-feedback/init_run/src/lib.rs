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
