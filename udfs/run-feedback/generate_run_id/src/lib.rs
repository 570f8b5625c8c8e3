//! `generate_run_id`: a new run id. Contract and examples: `spec.md`.

use run_feedback_common::{
    Code, Operation, Refusal, RunId, Stop, answer, directory_name, origin_url, owner_of_remote,
    sanitise_segment, uuid_v4,
};
use sdk::prelude::*;

/// Prints a new run id `org/project/uuid`, named after the repository unless told otherwise.
#[udf]
fn generate_run_id(
    ctx: &Context,
    /// First segment; empty = owner in the remote `origin`, else `local`.
    #[arg(default)]
    org: &str,
    /// Second segment; empty = name of the repository's root, else of the working directory.
    #[arg(default)]
    project: &str,
    /// Only the last segment.
    #[arg(default = false)]
    uuid_only: bool,
) -> Result<Reply, UdfError> {
    let uuid = uuid_v4(ctx.random());
    if uuid_only {
        return Ok(Reply::text(&uuid));
    }
    let run_id = segment("org", org, || {
        origin_url()
            .and_then(|url| owner_of_remote(&url).map(str::to_owned))
            .unwrap_or_else(|| "local".to_owned())
    })
    .and_then(|org| {
        Ok((org, segment("project", project, || directory_name().unwrap_or_default())?))
    })
    .and_then(|(org, project)| {
        RunId::from_segments(&org, &project, &uuid).ok_or_else(|| {
            Refusal::new(Code::InvalidName, format!("{org}/{project} cannot name a run"))
        })
    });
    answer(
        Operation::GenerateRunId,
        None,
        run_id.map(|run_id| Value::String(run_id.to_string())).map_err(Stop::from),
    )
}

fn segment(name: &str, given: &str, otherwise: impl FnOnce() -> String) -> Result<String, Refusal> {
    let text = if given.is_empty() { otherwise() } else { given.to_owned() };
    sanitise_segment(&text).ok_or_else(|| {
        Refusal::new(
            Code::InvalidName,
            format!("nothing of the {name} {text:?} can stand in a run id: pass another one"),
        )
    })
}
