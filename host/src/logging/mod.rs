//! The log: tracing events on standard error, one line each.
//!
//! A serving host writes through [`sink`], which never blocks, and leads the output of plugins here through
//! [`capture`]. A command in a terminal writes straight to standard error. Neither ever logs a token or the value of a
//! parameter: no event carries a URL, a header or a body.

pub(crate) mod budget;
mod capture;
mod repeats;
mod sink;

use std::io;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

use crate::error::HostError;
use repeats::Repeats;
pub(crate) use repeats::TARGET as CALL_TARGET;
use sink::Sink;

/// Level of a serving host that was told none.
pub(crate) const SERVE_LEVEL: &str = "info";
/// Level of a command that was told none: its own output says the rest.
pub(crate) const COMMAND_LEVEL: &str = "error";

/// The log of a serving host; says the rest and flushes when dropped.
#[derive(Debug)]
pub(crate) struct ServeLog {
    sink: Sink,
    repeats: Repeats,
}

impl Drop for ServeLog {
    fn drop(&mut self) {
        self.repeats.report();
        self.sink.flush(Duration::from_millis(500));
    }
}

/// Starts the log of a serving host. `filter` is a level (`info`) or a list of directives (`info,host=debug`).
///
/// # Errors
/// [`HostError::Config`] for a filter that does not parse.
pub(crate) fn start_serving(filter: Option<&str>) -> Result<ServeLog, HostError> {
    let filter = parse(filter.unwrap_or(SERVE_LEVEL))?;
    // A host started with standard error closed has nowhere to log and serves all the same.
    let out =
        capture::stderr_copy().or_else(|_| std::fs::File::options().write(true).open("/dev/null"));
    let sink = out.and_then(Sink::start).map_err(|error| no_log(&error))?;
    let writer = sink.clone();
    let repeats = Repeats::default();
    subscribe(filter, Some(repeats.clone()), move || Writer(writer.clone()));
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let words = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic in the host: {}", words.unwrap_or("no message"));
    }));
    Ok(ServeLog { sink, repeats })
}

/// Leads whatever else writes to standard output or standard error into the log.
///
/// # Errors
/// [`HostError::Internal`] when the system gives no pipe or thread.
pub(crate) fn capture_output() -> Result<(), HostError> {
    capture::start().map_err(|error| no_log(&error))
}

/// Starts the log of a command.
///
/// # Errors
/// [`HostError::Config`] for a filter that does not parse.
pub(crate) fn start_command(filter: Option<&str>) -> Result<(), HostError> {
    subscribe(parse(filter.unwrap_or(COMMAND_LEVEL))?, None, || Lossy(io::stderr()));
    Ok(())
}

fn subscribe<W, M>(filter: EnvFilter, repeats: Option<Repeats>, writer: M)
where
    M: Fn() -> W + Send + Sync + 'static,
    W: io::Write + 'static,
{
    // Without colours, also on a terminal: asking for them panics unless the crate is built with them.
    let lines =
        tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).with_filter(repeats);
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // Only a test that starts two hosts in one process comes here twice; the first log serves both.
    let _second = tracing::subscriber::set_global_default(subscriber);
}

fn parse(filter: &str) -> Result<EnvFilter, HostError> {
    let bad = |reason: String| HostError::Config {
        place: "--log".to_owned(),
        message: format!(
            "`{filter}` is no log level ({reason}): use off, error, warn, info, debug or trace"
        ),
    };
    EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(filter)
        .map_err(|error| bad(error.to_string()))
}

fn no_log(error: &io::Error) -> HostError {
    HostError::Internal { message: "cannot start the log".to_owned(), detail: error.to_string() }
}

struct Writer(Sink);

impl io::Write for Writer {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error, taking a closed one for an open one.
struct Lossy(io::Stderr);

impl io::Write for Lossy {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let _closed = self.0.write_all(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
