//! Shows that long work is going on: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{output, visible};
use crate::Host;
use crate::plugins::Progress;

/// How long a command waits for a build before it says that something hangs.
pub(super) const BUILD_TIME: Duration = Duration::from_secs(60 * 60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Work that is over by then shows nothing.
const QUIET: Duration = Duration::from_millis(400);

/// Where nobody watches a bar, work that is over by then says nothing.
const UNSAID: Duration = Duration::from_secs(5);
/// Between two lines there.
const PAUSE: Duration = Duration::from_secs(10);

/// Waits until nothing is left to build or load, and shows it. `false` if that took too long.
pub(super) fn until_settled(host: &Host) -> bool {
    until(host, |progress| progress.settled)
}

/// Waits until `done`, or until nothing is left to build or load, and shows it.
pub(super) fn until(host: &Host, done: impl Fn(&Progress) -> bool) -> bool {
    wait(host, done, Some(Lines::default()))
}

/// The same for a command whose standard error is read by programs: it shows something on a terminal alone.
pub(super) fn until_unsaid(host: &Host, done: impl Fn(&Progress) -> bool) -> bool {
    wait(host, done, None)
}

fn wait(host: &Host, done: impl Fn(&Progress) -> bool, mut lines: Option<Lines>) -> bool {
    let began = Instant::now();
    let terminal = io::stderr().is_terminal();
    let mut bar: Option<ProgressBar> = None;
    let settled = loop {
        if host.catalog.wait_settled(Instant::now() + LOOK) || done(&host.catalog.progress()) {
            break true;
        }
        let progress = host.catalog.progress();
        if began.elapsed() > BUILD_TIME {
            break false;
        }
        if !terminal {
            let line = lines.as_mut().and_then(|lines| lines.due(began.elapsed(), &progress.note));
            if let Some(line) = line {
                output::error(&visible::line(line));
            }
        } else if began.elapsed() > QUIET {
            let bar = bar.get_or_insert_with(|| new_bar(&progress));
            bar.set_length(progress.total as u64);
            bar.set_position((progress.ready + progress.refused) as u64);
            bar.set_message(progress.note);
        }
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    settled
}

fn new_bar(progress: &Progress) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
        .expect("the template is fixed and names only fields that exist");
    ProgressBar::new(progress.total as u64).with_style(style)
}

/// The lines that stand in for a bar.
#[derive(Debug, Default)]
struct Lines {
    /// The last one, and after how long it was said.
    last: Option<(Duration, String)>,
}

impl Lines {
    /// The note, if it is time for one and this one is new.
    fn due<'a>(&mut self, waited: Duration, note: &'a str) -> Option<&'a str> {
        let (from, said) = match &self.last {
            None => (UNSAID, ""),
            Some((at, said)) => (*at + PAUSE, &**said),
        };
        if waited < from || note == said {
            return None;
        }
        self.last = Some((waited, note.to_owned()));
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_late_seldom_and_once() {
        let mut lines = Lines::default();
        for (second, note, want) in [
            (1, "building 2 operations", false),
            (4, "building 2 operations", false),
            (5, "", false),
            (6, "building 2 operations", true),
            (7, "built 1 of 2 operations", false),
            (15, "building 2 operations", false),
            (16, "building 2 operations", false),
            (30, "built 1 of 2 operations", true),
            (39, "waiting for another host", false),
            (40, "waiting for another host", true),
            (99, "waiting for another host", false),
        ] {
            let due = lines.due(Duration::from_secs(second), note);
            assert_eq!(due, want.then_some(note), "{note} after {second} s");
        }
    }
}
