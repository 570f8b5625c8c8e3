//! Gets every operation from its folder to something callable, on a thread behind the host, and again when one changes.
//!
//! Walk the roots, publish what is there, take what was built before and has not changed, build the rest. Each
//! operation becomes callable by itself, as soon as its own artifact is there. A host that serves then watches the
//! roots; every change, whatever it was, leads to another look of the same kind, in which all that has not changed
//! stays as it is.
//!
//! - `look` is one look over the folders; `crates` finds out which have to be built and `work` builds them,
//!   in the order of `queue`; `outcome` is
//!   what comes of a version.

mod blame;
mod crates;
mod look;
mod outcome;
mod queue;
mod work;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::build::Running;
use super::catalog::Catalog;
use super::refusal::Refusal;
use super::watch::{Nudge, Watch, Watched};
use crate::config::Config;
use crate::dispatch::panic_text;
use crate::error::HostError;
use look::Looks;

/// How often to say that the copies are still in use, for whoever removes old ones.
const REFRESH: Duration = Duration::from_secs(24 * 3600);

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
                drop(nudges);
                look(&mut looks, &catalog, &mut |_| {});
                // Until it is told to stop, or nobody is left to tell it.
                while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(REFRESH) {
                    looks.refresh();
                }
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
    let (mut restless, mut retries) = (Pauses::of_restless_builds(), Pauses::of_retries());
    let mut retry: Option<Instant> = None;
    let mut refreshed = Instant::now();
    loop {
        if refreshed.elapsed() >= REFRESH {
            looks.refresh();
            refreshed = Instant::now();
        }
        if retry.is_some_and(|moment| moment <= Instant::now()) {
            looks.try_again();
            retry = None;
        }
        running.forget_changes();
        let mut more = false;
        look(looks, catalog, &mut |watched| more = watch.follow(watched));
        // What came into a folder before it was watched was not seen to come: a look follows every new watch.
        more |= watch.follow(&looks.watched());
        if !looks.may_pass() {
            retries.end();
            retry = None;
        } else if retry.is_none() {
            retry = retries.pause_after(true).map(|pause| Instant::now() + pause);
        }
        let goes_on = match restless.pause_after(looks.disturbed) {
            Some(pause) => {
                if restless.just_began() {
                    tracing::warn!(
                        "every build is followed by a change in its own folders, as if it wrote there itself: the next \
                         ones wait for longer and longer, or until something is saved after them"
                    );
                }
                watch.rest(pause)
            }
            None if more => true,
            None => watch.wait(retry.unwrap_or(refreshed + REFRESH).min(refreshed + REFRESH)),
        };
        if !goes_on {
            return;
        }
    }
}

/// Looks that follow each other without anybody having saved something; each pause is twice the one before.
#[derive(Debug)]
struct Pauses {
    /// So many in a row come without a pause.
    free: u32,
    first: Duration,
    most: Duration,
    in_a_row: u32,
}

impl Pauses {
    /// Builds that change the folders they are built from, so that each is followed by another. A few in a row may be a
    /// person who saves a lot.
    fn of_restless_builds() -> Self {
        Self { free: 3, first: Duration::from_secs(1), most: Duration::from_secs(60), in_a_row: 0 }
    }

    /// What failed for a reason that may pass by itself.
    fn of_retries() -> Self {
        let first = Duration::from_secs(10);
        Self { free: 0, first, most: Duration::from_secs(600), in_a_row: 0 }
    }

    /// The pause before the next look, if there is `another` one of this kind and it should wait.
    fn pause_after(&mut self, another: bool) -> Option<Duration> {
        if !another {
            self.end();
            return None;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        let over = self.in_a_row.checked_sub(self.free + 1)?;
        Some(self.first.saturating_mul(1 << over.min(16)).min(self.most))
    }

    /// The row is over.
    fn end(&mut self) {
        self.in_a_row = 0;
    }

    /// Whether the last pause was the first of its row.
    fn just_began(&self) -> bool {
        self.in_a_row == self.free + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_come_after_what_is_free_and_grow_to_a_limit() {
        let mut restless = Pauses::of_restless_builds();
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
        assert!(restless.just_began());
        let mut retries = Pauses::of_retries();
        let pauses = [(); 8].map(|()| retries.pause_after(true).map(|pause| pause.as_secs()));
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600].map(Some));
        assert_eq!(retries.pause_after(false), None);
    }
}
