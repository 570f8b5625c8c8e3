//! Gets every operation from its folder to something callable, on a thread behind the host, and again when one changes.
//!
//! Walk the roots, publish what is there, take what was built before and has not changed, build the rest. Each
//! operation becomes callable by itself, as soon as its own artifact is there. A host that serves then watches the
//! roots; every change, whatever it was, leads to another look of the same kind, in which all that has not changed
//! stays as it is.

mod look;
mod outcome;
mod work;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::build::Running;
use super::catalog::Catalog;
use super::refusal::Refusal;
use super::watch::{Nudge, Watch};
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
            look(&mut looks, &catalog);
            if config.watch {
                keep_looking(&mut looks, &catalog, nudges, told);
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
fn look(looks: &mut Looks<'_>, catalog: &Catalog) {
    let work = std::panic::AssertUnwindSafe(|| looks.look());
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

fn keep_looking(
    looks: &mut Looks<'_>,
    catalog: &Catalog,
    nudges: Sender<Nudge>,
    told: Receiver<Nudge>,
) {
    let mut watch = Watch::start(nudges, told);
    loop {
        // What came into a folder before it was watched was not seen to come: a look follows every new watch.
        if !watch.follow(&looks.watched()) && !watch.wait() {
            return;
        }
        look(looks, catalog);
    }
}
