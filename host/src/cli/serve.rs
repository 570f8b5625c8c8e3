//! `udf-host dev serve`: answers over HTTP until it is told to end.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::options::ServeOptions;
use super::{Exit, doctor, exit};
use crate::agent::provider::Choice;
use crate::agent::{AgentLoop, Bell, Provider, Stop, Triggers};
use crate::config::Config;
use crate::dispatch::runtime_threads;
use crate::envelope::REPLY_LIMIT;
use crate::error::HostError;
use crate::http::{Bound, Shutdown, State, Token, bind, raise_open_files, router, serve};
use crate::parent::Parent;
use crate::{Host, logging};

/// How long the end waits for calls whose client is gone: a write among them is completed.
const LAST_CALLS: Duration = Duration::from_secs(3);

/// Serve operations over HTTP on this machine.
///
/// Prints one line to standard output, {"origin","port","token","pid"}, and nothing after it; logs go to standard
/// error. Builds what is missing behind that line: a call waits for its own operation. What is saved, added or removed
/// in the folders while it runs is built and served without a restart. SIGTERM and SIGINT end it with
/// exit code 0 once running requests are answered; a second one ends it at once.
///
/// With `--agent` it runs agent tasks too; without it `POST /api/agent/message` takes messages for whoever does.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Serve {
    #[command(flatten)]
    pub(super) options: ServeOptions,
}

#[derive(Serialize)]
struct Handshake<'a> {
    origin: String,
    port: u16,
    token: &'a str,
    pid: u32,
}

/// Bytes of stack of each thread: what is read, walked and written by recursion may nest as deep as any JSON may.
const STACK: usize = 8 << 20;

/// Serves until a signal, or the end of the parent where that was asked for.
pub(super) fn run(config: Config) -> Result<Exit, HostError> {
    // First of all: the parent may end at any moment, and later its id would be another's.
    let parent = config.exit_with_parent.then(Parent::now);
    let _log = logging::start_serving(config.log.as_deref())?;
    raise_open_files();
    let bound = bind(config.port)?;
    let token = Token::mint()
        .map_err(|error| internal("there are no random numbers for a token", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(runtime_threads())
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|error| internal("cannot start the runtime", &error))?;
    let body_limit = config.body_limit;
    // A model that is not set is said before anything starts.
    let provider = if config.agent { Some(connect()?) } else { None };
    let watch = !config.no_watch;
    let host = Host::start(Config { watch, ..config })?;
    // It serves all the same: a call may name another folder, and this one may be mended meanwhile.
    if let Some(fault) = doctor::folder_fault(&host.dispatcher.app_dir(None)) {
        tracing::warn!("the state folder cannot be used: {fault}");
    }
    let tasks = provider.map(|provider| Tasks::start(&host, provider)).transpose()?;
    let state = State {
        port: bound.port,
        token: token.clone(),
        body_limit,
        reply_limit: REPLY_LIMIT,
        host,
    };
    let served = runtime.block_on(serve_until_told(bound, state, parent, &token));
    if let Some(tasks) = tasks {
        tasks.end();
    }
    // A call that hangs cannot delay the end for longer; a file is its old or its new bytes anyway.
    runtime.shutdown_timeout(LAST_CALLS);
    served.map(|()| Exit::Done)
}

/// The model that the environment names.
fn connect() -> Result<Arc<dyn Provider>, HostError> {
    Ok(Arc::new(Choice::resolve(None, None, |name| std::env::var(name).ok())?.connect()))
}

/// Agent tasks that run beside serving.
struct Tasks {
    stop: Stop,
    bell: Bell,
    thread: JoinHandle<()>,
}

impl Tasks {
    /// Tasks that may run at one time.
    const PARALLEL: usize = 4;

    fn start(host: &Host, provider: Arc<dyn Provider>) -> Result<Self, HostError> {
        let (stop, bell) = (Stop::default(), host.bell.clone());
        let agent = AgentLoop::of_host(host, provider).with_stop(stop.clone());
        let triggers = Triggers::new(agent, bell.clone(), Self::PARALLEL);
        let (catalog, stopped) = (Arc::clone(&host.catalog), stop.clone());
        let run = move || {
            // A task must not meet an operation that is not there yet.
            while !catalog.wait_settled(Instant::now() + LAST_CALLS) {
                if stopped.is_stopped() {
                    return;
                }
            }
            let ran = triggers.run(|tasks| tracing::info!(tasks, "agent tasks are served"));
            if let Err(error) = ran {
                tracing::error!("agent tasks are not served: {error}");
            }
        };
        let thread = std::thread::Builder::new()
            .name("triggers".to_owned())
            .spawn(run)
            .map_err(|error| internal("cannot start a thread", &error))?;
        Ok(Self { stop, bell, thread })
    }

    /// Lets turns that are under way come to their end for a moment. What is cut off goes on at the next start.
    fn end(self) {
        self.stop.stop();
        self.bell.ring();
        let until = Instant::now() + LAST_CALLS;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

async fn serve_until_told(
    bound: Bound,
    state: State,
    parent: Option<Parent>,
    token: &Token,
) -> Result<(), HostError> {
    let shutdown = Shutdown::default();
    // Before the handshake: whoever has read it may send a signal.
    end_on_signals(&shutdown)?;
    if let Some(parent) = parent {
        let shutdown = shutdown.clone();
        parent.watch(move |how| {
            tracing::info!("ending: {how}");
            shutdown.begin();
        });
    }
    let (origin, port) = (bound.origin(), bound.port);
    let line = serde_json::to_string(&Handshake {
        origin,
        port,
        token: token.reveal(),
        pid: std::process::id(),
    })
    .map_err(|error| internal("cannot render the handshake", &error))?;
    // Requests that come before the first accept wait in the socket's queue.
    say(&line);
    logging::capture_output()?;
    tracing::info!(port, "serving");
    serve(bound, router(state), shutdown)
        .await
        .map_err(|error| internal("cannot serve", &error))?;
    tracing::info!("ended");
    Ok(())
}

/// The one line on standard output. Without anybody to read it the host still serves: it may have been started by hand
/// with a fixed port, and a client that is gone is the parent watch's business.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        tracing::warn!(%error, "nobody reads standard output");
    }
}

fn end_on_signals(shutdown: &Shutdown) -> Result<(), HostError> {
    // A closed terminal (SIGHUP) is an end like the others.
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(|error| internal("cannot take signals", &error))?;
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            let mut told = false;
            while signals.recv().await.is_some() {
                if std::mem::replace(&mut told, true) || shutdown.has_begun() {
                    // Whoever sends a second one does not want to wait.
                    std::process::exit(128 + kind.as_raw_value());
                }
                tracing::info!("ending: signal {}", kind.as_raw_value());
                shutdown.begin();
            }
        });
    }
    Ok(())
}

fn internal(message: &str, error: &impl ToString) -> HostError {
    HostError::Internal { message: message.to_owned(), detail: error.to_string() }
}
