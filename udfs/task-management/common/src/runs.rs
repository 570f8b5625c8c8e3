//! Which runs belong to which task.

use sdk::prelude::*;

/// The task with its `runs` (in file order), `isLive` (one of them is `started`) and `liveRunCount`
/// (how many are), set in this order on a copy.
///
/// A task joins the runs whose `taskId` equals its `id`; both missing is equal, too.
///
/// # Errors
/// The task with its runs is more than twice as deep as a file may be.
pub fn with_runs(task: &Record, runs: &Collection<'_>) -> Result<Record, UdfError> {
    let own = runs_of(task.get("id"), runs);
    let live = own.iter().filter(|run| run.is("status", "started")).count();
    task.edit().set("runs", own).set("isLive", live > 0).set("liveRunCount", live).into_record()
}

/// By the store's index for texts; ids of other kinds are rare enough to look at every run.
fn runs_of(id: Option<JsonRef<'_>>, runs: &Collection<'_>) -> Vec<Record> {
    if let Some(id) = id.and_then(|id| id.as_str_exact()) {
        return runs.matching("taskId", &id);
    }
    let key = |id: Option<JsonRef<'_>>| id.map_or_else(|| "null".to_owned(), text::canonical);
    let wanted = key(id);
    let mut own = runs.objects();
    own.retain(|run| key(run.get("taskId")) == wanted);
    own
}
