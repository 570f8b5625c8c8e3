//! `agent serve`: runs whatever has something to do, until it is told to end.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Exit, HELP, Model, driver, output};
use crate::agent::{Bell, Stop, Triggers};
use crate::config::Config;
use crate::error::HostError;

/// How long the end waits for turns that are under way. What is cut off then goes on at the next start.
const LAST_TURNS: Duration = Duration::from_secs(5);

/// Run tasks as they get something to do: a message, an answered card, a run that ended, a timer.
///
/// Prints one line, {"pid","tasks"}, once the tasks of before are restored, and what tasks do to standard error. Serves no
/// HTTP: that is `dev serve`, which does this as well with `--agent`. SIGTERM and SIGINT end it with exit code 0; a
/// second one ends it at once.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Serve {
    /// Tasks that may run at one time; `--dry-run` is one at a time.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(4).expect("4 is not 0"))]
    parallel: NonZeroUsize,
    #[command(flatten)]
    model: Model,
}

impl Serve {
    pub(super) fn run(self, config: Config) -> Result<Exit, HostError> {
        let stop = Stop::default();
        let bell = Bell::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| internal("cannot start the runtime", &error))?;
        // Before anything that takes time: whoever starts this may end it at any moment.
        let signals = {
            let _entered = runtime.enter();
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
                .map(|kind| signal(kind).map(|signals| (kind, signals)))
        };
        // Replies of a script are in one order.
        let parallel = if self.model.is_scripted() { 1 } else { self.parallel.get() };
        let watch = !config.no_watch;
        let (_host, agent) = driver(Config { watch, ..config }, &self.model, stop.clone())?;
        let triggers = Triggers::new(agent, bell.clone(), parallel);
        let served = std::thread::Builder::new()
            .name("triggers".to_owned())
            .spawn(move || {
                triggers.run(|tasks| {
                    let line = json!({"pid": std::process::id(), "tasks": tasks}).to_string();
                    if let Err(error) = output::line(&line) {
                        tracing::warn!("nobody reads standard output: {error}");
                    }
                })
            })
            .map_err(|error| internal("cannot start a thread", &error))?;
        let mut over = Vec::new();
        for signals in signals {
            let (kind, mut signals) =
                signals.map_err(|error| internal("cannot take signals", &error))?;
            let (stop, bell) = (stop.clone(), bell.clone());
            over.push(runtime.spawn(async move {
                while signals.recv().await.is_some() {
                    if stop.is_stopped() {
                        std::process::exit(128 + kind.as_raw_value());
                    }
                    stop.stop();
                    bell.ring();
                }
            }));
        }
        runtime.block_on(async {
            let look = Duration::from_millis(20);
            let mut waited = Duration::ZERO;
            while !served.is_finished() && waited < LAST_TURNS {
                tokio::time::sleep(look).await;
                if stop.is_stopped() {
                    waited += look;
                }
            }
        });
        if !served.is_finished() {
            // As after a kill: all of it is durable.
            return Ok(Exit::Done);
        }
        match served.join() {
            Ok(served) => served.map(|()| Exit::Done).map_err(HostError::from),
            Err(_) => Err(internal("the loop crashed", &"its message is above")),
        }
    }
}

fn internal(message: &str, error: &impl ToString) -> HostError {
    HostError::Internal { message: message.to_owned(), detail: error.to_string() }
}
