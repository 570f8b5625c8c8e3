//! `udf-host inbox watch`: the list, drawn again whenever it has changed.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use terminal_size::terminal_size;
use tokio::runtime::Runtime;

use super::super::visible;
use super::desk::Desk;
use super::door::Door;
use super::source::Open;
use super::{list_json, render};
use crate::error::HostError;

/// Between two looks at files, which cost a few microseconds.
const LOOK: Duration = Duration::from_millis(250);
/// Between two calls where only a call can tell, or for what has no stamp: the requests of runs.
const ASK: Duration = Duration::from_secs(2);

/// What is written where.
struct Screen {
    terminal: bool,
    json: bool,
    last: Option<String>,
}

/// Shows the list until Ctrl-C, or until nobody reads it any more.
///
/// # Errors
/// The first look failed. Later ones leave a note in the list, since the host may come back.
pub(super) fn run(
    desk: &Desk,
    door: &dyn Door,
    project: &str,
    json: bool,
) -> Result<(), HostError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| HostError::Internal {
        message: "cannot wait for Ctrl-C".to_owned(),
        detail: error.to_string(),
    })?;
    let mut screen = Screen { terminal: io::stdout().is_terminal(), json, last: None };
    // Before the first look: what changes during it is seen at the next one.
    let (mut stamp, mut asked) = (door.stamp(), Instant::now());
    let mut open = desk.open(project)?;
    loop {
        if !screen.show(&open) || interrupted(&runtime, LOOK) || !is_read() {
            return Ok(());
        }
        let now = door.stamp();
        if (now.is_some() && now != stamp) || asked.elapsed() >= ASK {
            (stamp, asked) = (now, Instant::now());
            match desk.open(project) {
                Ok(found) => open = found,
                Err(error) => open.notes = vec![format!("not up to date: {error}")],
            }
        }
    }
}

/// Waits; true if Ctrl-C came meanwhile.
fn interrupted(runtime: &Runtime, time: Duration) -> bool {
    runtime.block_on(async { tokio::time::timeout(time, tokio::signal::ctrl_c()).await.is_ok() })
}

/// Whether anybody still reads what is printed: a list that never changes is never written again to find out.
fn is_read() -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    let told = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    told.is_err() || !polled[0].revents().intersects(gone)
}

impl Screen {
    /// Writes it if it differs from what stands there. False if nobody reads.
    fn show(&mut self, open: &Open) -> bool {
        let now = Timestamp::now();
        // Ages alone are a change for people, not for programs.
        let (key, text) = if self.json {
            let text = visible::json(&list_json(open, now)).into_owned();
            (format!("{:?} {:?}", open.rows, open.notes), text)
        } else {
            let text = render::list(open, now);
            let text = match terminal_size().filter(|_| self.terminal) {
                Some((width, height)) => fit(&text, width.0.into(), height.0.into()),
                None => text,
            };
            let key = if self.terminal {
                text.clone()
            } else {
                format!("{:?} {:?}", open.rows, open.notes)
            };
            (key, text)
        };
        if self.last.as_ref() == Some(&key) {
            return true;
        }
        let first = self.last.replace(key).is_none();
        let text = match (self.json, self.terminal) {
            (true, _) => format!("{text}\n"),
            // To the top left corner, each line up to the end of the window's, then clear what is below.
            (false, true) => {
                let clear = if first { "\x1b[2J" } else { "" };
                format!("{clear}\x1b[H{}\x1b[K\n\x1b[J", text.replace('\n', "\x1b[K\n"))
            }
            (false, false) => format!("{}{text}\n", if first { "" } else { "\n" }),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
    }
}

/// As much of it as a window shows: redrawing what has scrolled out of it would leave pieces behind.
fn fit(text: &str, width: usize, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    // The line below the text is where the cursor stands.
    let room = height.saturating_sub(1).max(1);
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    let mut fitted: Vec<String> =
        lines.iter().take(shown).map(|line| visible::cut_end(line, width.max(1))).collect();
    if shown < lines.len() {
        fitted
            .push(visible::cut_end(&format!("… {} more lines", lines.len() - shown), width.max(1)));
    }
    fitted.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_never_overfilled() {
        let text = "one\n\nthree is long\nfour";
        assert_eq!(fit(text, 80, 24), text);
        assert_eq!(fit(text, 80, 5), text);
        assert_eq!(fit(text, 8, 5), "one\n\nthree i…\nfour");
        assert_eq!(fit("日本語のテキスト", 8, 5), "日本語…");
        assert_eq!(fit(text, 80, 4), "one\n\n… 2 more lines");
        assert_eq!(fit(text, 80, 0), "… 4 more lines");
    }
}
