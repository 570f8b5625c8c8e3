//! The runs that a comment may be about.

use super::inbox::Inbox;
use crate::github::number;
use crate::outcome::Stop;
use crate::params::plain;
use crate::query::Filter;
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::state::State;

/// The runs that matter to a comment.
#[derive(Default)]
pub(super) struct Candidates {
    /// Those that wait.
    pub(super) open: Vec<(RunId, State)>,
    /// Those that have been answered, whether they wait again or not.
    pub(super) answered: Vec<(RunId, State)>,
    /// Those of which nobody can tell, as their state cannot be read.
    pub(super) unreadable: Vec<RunId>,
}

impl Inbox<'_> {
    /// The run that is named, by its whole id or its last segment, or else all of the issue.
    pub(super) fn candidates(&self, named: Option<&str>) -> Result<Candidates, Stop> {
        let mut all = Candidates::default();
        let filter = Filter::default();
        Runs::open(self.ctx, self.base_path)?.each(&filter, |run_id, state| {
            let is_named = |name| run_id.to_string() == name || run_id.uuid() == name;
            let Ok(state) = state else {
                if named.is_none_or(is_named) {
                    all.unreadable.push(run_id);
                }
                return;
            };
            if !named.map_or_else(|| is_issue(&state, self.issue), is_named) {
                return;
            }
            if state.open_request().is_some() {
                all.open.push((run_id.clone(), state.clone()));
            }
            if !state.history().is_empty() {
                all.answered.push((run_id, state));
            }
        })?;
        Ok(all)
    }
}

/// Whether the run belongs to the issue of this number.
fn is_issue(state: &State, issue: &str) -> bool {
    let id = state.get("work_id").map(plain).unwrap_or_default();
    number(&id).is_ok_and(|digits| same_number(digits, issue))
}

/// `007` is issue 7.
fn same_number(a: &str, b: &str) -> bool {
    a.trim_start_matches('0') == b.trim_start_matches('0')
}
