//! Recording an answer: check, event and one state write under the run's lock (§10, steps 2 to 8).

use sdk::Context;
use serde_json::Value;

use crate::answer::Answer;
use crate::identity::{Surroundings, local_user};
use crate::outcome::Stop;
use crate::run_dir::RunDir;

/// Records the answer once and gives the reply of `process_response`.
///
/// # Errors
/// The refusals of §11; nothing is changed then.
pub fn respond(ctx: &Context, mut given: Answer, base_path: &str) -> Result<Value, Stop> {
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
