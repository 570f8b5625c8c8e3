//! All runs below a base: exactly three levels, names that form a run id (§14).

use sdk::{Context, Folder};

use crate::codes::Code;
use crate::outcome::Stop;
use crate::query::Filter;
use crate::run_id::{RunId, RunPaths};
use crate::state::State;

/// The runs below a base.
#[derive(Debug)]
pub struct Runs<'c> {
    base: Folder<'c>,
}

impl<'c> Runs<'c> {
    /// `base_path` empty is the default; a base that does not exist has no runs.
    ///
    /// # Errors
    /// A fault of the host.
    pub fn open(ctx: &'c Context, base_path: &str) -> Result<Runs<'c>, Stop> {
        // Nothing is ever locked at this level.
        Ok(Runs { base: ctx.folder(RunPaths::base(base_path), "", ".lock")? })
    }

    /// Calls `each` with every run that `filter` wants by its id, and its state; the reason if that cannot be read.
    /// A directory without state is no run.
    ///
    /// # Errors
    /// `STATE_CORRUPTED` if a directory cannot be listed.
    pub fn each(
        &self,
        filter: &Filter<'_>,
        mut each: impl FnMut(RunId, Result<State, Stop>),
    ) -> Result<(), Stop> {
        for org in self.directories("")?.iter().filter(|org| filter.wants_org(org)) {
            for project in
                self.directories(org)?.iter().filter(|project| filter.wants_project(project))
            {
                for uuid in self.directories(&format!("{org}/{project}"))? {
                    let Some(run_id) = RunId::from_segments(org, project, &uuid) else { continue };
                    let text = self.base.read(&format!("{run_id}/state.json"));
                    match text.map_err(|error| Stop::disk(error, Code::StateCorrupted)) {
                        Ok(None) => {}
                        Ok(Some(text)) => {
                            each(run_id, State::for_reading(&text).map_err(Stop::from))
                        }
                        Err(Stop::Refused(refusal)) => each(run_id, Err(refusal.into())),
                        Err(failed) => return Err(failed),
                    }
                }
            }
        }
        Ok(())
    }

    fn directories(&self, path: &str) -> Result<Vec<String>, Stop> {
        let entries =
            self.base.list(path).map_err(|error| Stop::disk(error, Code::StateCorrupted))?;
        let hidden = |name: &str| name.starts_with('.');
        Ok(entries
            .into_iter()
            .filter(|entry| entry.is_directory && !hidden(&entry.name))
            .map(|entry| entry.name)
            .collect())
    }
}
