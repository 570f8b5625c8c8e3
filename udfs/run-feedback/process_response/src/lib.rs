//! `process_response`: records an answer and says how the run goes on. Contract and examples: `spec.md`.

use run_feedback_common::{Answer, Operation, RunDir, Stop, Surroundings, answer, local_user};
use sdk::prelude::*;

/// Checks an answer against the open request, records it once, and says what the caller does next.
#[udf(folders)]
fn process_response(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// The request it answers.
    #[arg(default)]
    request_id: &str,
    /// An option of the request, case and blanks around it aside; any text for a clarification.
    #[arg(default)]
    response: &str,
    /// What else was said; empty = none.
    #[arg(default)]
    comment: &str,
    /// `cli`, `issue_comment` or `parallel_coordination`.
    #[arg(default = "cli")]
    source: &str,
    /// Who answers; empty = the person at this machine. Needed for `issue_comment`.
    #[arg(default)]
    user: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let given = Answer::check(run_id, request_id, response, comment, source, user);
    let outcome = given.map_err(Stop::from).and_then(|given| process(ctx, given, base_path));
    answer(Operation::ProcessResponse, None, outcome)
}

fn process(ctx: &Context, mut given: Answer, base_path: &str) -> Result<Value, Stop> {
    let dir = RunDir::open(ctx, base_path, &given.run_id)?;
    dir.check_state_exists()?;
    if given.user.is_empty() {
        // git is asked before the lock is taken: others wait for it.
        given.user = local_user(&Surroundings::of_process()).user;
    }
    let mut guard = dir.lock()?;
    let mut state = guard.state()?;
    let decision = given.decide(&state)?;
    // On a copy first, so that a history that cannot take the answer leaves no event behind.
    let now = ctx.now();
    decision.apply(&given, &mut state.clone(), 0, &now)?;
    let (event_id, _) = guard.write_event(&decision.event(&given), Some(&state), &now)?;
    decision.apply(&given, &mut state, event_id, &now)?;
    guard.write_state(&state)?;
    Ok(decision.reply(&given))
}
