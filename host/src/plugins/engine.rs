//! Gets every operation from its folder to something callable, on a thread behind the host, and again when one changes.
//!
//! Walk the roots, publish what is there, take what was built before and has not changed, build the rest. Each
//! operation becomes callable by itself, as soon as its own artifact is there. A host that serves then watches the
//! roots; every change, whatever it was, leads to another look of the same kind, in which all that has not changed
//! stays as it is.
//!
//! - `look` is one look over the folders; `crates` finds out which have to be built and `work` builds them; `outcome` is
//!   what comes of a version.

mod blame;
mod crates;
mod look;
mod outcome;
mod work;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::build::Running;
use super::catalog::Catalog;
use super::refusal::Refusal;
use super::watch::{Nudge, Watch, Watched};
use crate::config::Config;
use crate::dispatch::panic_text;
use crate::error::HostError;
use look::Looks;

/// The work behind a host, for whoever has to stop it.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    running: Running,
    nudges: Sender<Nudge>,
}

impl Engine {
    /// Starts the thread.
    pub(crate) fn spawn(config: &Arc<Config>, catalog: &Arc<Catalog>) -> Result<Self, HostError> {
        let running = Running::default();
        let (nudges, told) = channel();
        let engine = Self { running: running.clone(), nudges: nudges.clone() };
        let (config, catalog) = (Arc::clone(config), Arc::clone(catalog));
        let work = move || {
            let mut looks = Looks::new(&config, &catalog, &running);
            if config.watch {
                let watch = Watch::start(nudges, told, running.clone());
                keep_looking(&mut looks, &catalog, &running, watch);
            } else {
                look(&mut looks, &catalog, &mut |_| {});
            }
        };
        thread::Builder::new().name("udf-build".to_owned()).spawn(work).map_err(|error| {
            HostError::Internal {
                message: "the build thread could not be started".to_owned(),
                detail: error.to_string(),
            }
        })?;
        Ok(engine)
    }

    /// Ends a running build, and the watching.
    pub(crate) fn stop(&self) {
        self.running.stop();
        // Without a watch there is nobody to tell.
        let _unwatched = self.nudges.send(Nudge::Stop);
    }
}

/// Looks once. Nothing waits for a version that this left unfinished.
fn look(looks: &mut Looks<'_>, catalog: &Catalog, follow: &mut dyn FnMut(&Watched)) {
    let work = std::panic::AssertUnwindSafe(|| looks.look(follow));
    if let Err(payload) = std::panic::catch_unwind(work) {
        tracing::error!(panic = panic_text(&*payload), "the build thread failed");
        let refusal = Refusal::new(
            "the host failed while preparing it",
            "save it again, or restart the host",
        );
        outcome::refuse_pending(catalog, &refusal);
    }
    catalog.settle();
}

/// Looks, and again at every change.
fn keep_looking(looks: &mut Looks<'_>, catalog: &Catalog, running: &Running, mut watch: Watch) {
    let mut restless = Restless::default();
    loop {
        running.forget_changes();
        let mut more = false;
        look(looks, catalog, &mut |watched| more = watch.follow(watched));
        // What came into a folder before it was watched was not seen to come: a look follows every new watch.
        more |= watch.follow(&looks.watched());
        let goes_on = match restless.pause_after(looks.has_built() && running.has_changes()) {
            Some(pause) => watch.rest(pause),
            None => more || watch.wait(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Builds that change the folders they are built from, so that each is followed by another.
#[derive(Debug, Default)]
struct Restless {
    in_a_row: u32,
}

impl Restless {
    /// So many in a row may be a person who saves a lot.
    const PATIENCE: u32 = 4;
    /// The longest pause between two such builds.
    const MOST: Duration = Duration::from_secs(60);

    /// The pause before the next look, when it should wait. `disturbed` says that something was built and something
    /// changed meanwhile.
    fn pause_after(&mut self, disturbed: bool) -> Option<Duration> {
        self.in_a_row = if disturbed { self.in_a_row + 1 } else { 0 };
        let over = self.in_a_row.checked_sub(Self::PATIENCE)?;
        let pause = Duration::from_secs(1 << over.min(6)).min(Self::MOST);
        if over == 0 {
            tracing::warn!(
                "every build is followed by a change in its own folders, as if it wrote there itself: the next ones wait \
                 for longer and longer, or until something is saved after them"
            );
        }
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_disturbed_builds_in_a_row_are_paced() {
        let mut restless = Restless::default();
        let mut pauses = |times: usize, disturbed: bool| -> Vec<u64> {
            (0..times)
                .map(|_| restless.pause_after(disturbed).map_or(0, |pause| pause.as_secs()))
                .collect()
        };
        assert_eq!(pauses(3, true), [0, 0, 0]);
        assert_eq!(pauses(1, false), [0]);
        assert_eq!(pauses(11, true), [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses(1, false), [0]);
        assert_eq!(pauses(4, true), [0, 0, 0, 1]);
    }
}
