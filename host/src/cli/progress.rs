//! Shows that long work is going on, to people only.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Host;
use crate::plugins::Progress;

/// How long a command waits for a build before it says that something hangs.
pub(super) const BUILD_TIME: Duration = Duration::from_secs(60 * 60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Work that is over by then shows nothing.
const QUIET: Duration = Duration::from_millis(400);

/// Waits until nothing is left to build or load, with a bar on a terminal. `false` if that took too long.
pub(super) fn until_settled(host: &Host) -> bool {
    until(host, |progress| progress.settled)
}

/// Waits until `done`, or until nothing is left to build or load.
pub(super) fn until(host: &Host, done: impl Fn(&Progress) -> bool) -> bool {
    let began = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    let settled = loop {
        if host.catalog.wait_settled(Instant::now() + LOOK) || done(&host.catalog.progress()) {
            break true;
        }
        let progress = host.catalog.progress();
        if began.elapsed() > BUILD_TIME {
            break false;
        }
        if began.elapsed() > QUIET && io::stderr().is_terminal() {
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
