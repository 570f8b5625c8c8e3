//! `udf-host run-feedback poll`: brings in what people answered on issues, once or over and over.

use std::thread;
use std::time::Duration;

use clap::Args;

use super::project::Project;
use super::{is_refusal, pretty, print, refused, say};
use crate::cli::{Exit, output};
use crate::error::HostError;
use crate::plugins::manifest::parse_duration;

const OP: &str = "poll_replies";

/// The shortest pause between two rounds: a tracker is asked by many.
const SHORTEST: Duration = Duration::from_secs(1);

const HELP: &str = "\
Needs GITHUB_REPOSITORY (owner/name) and GITHUB_TOKEN in the environment, GITHUB_API_URL for another server than
github.com; repository and address may stand in project.toml instead. What has been done about a comment is
remembered: rounds may overlap, end at any moment, and run beside a webhook.

Exit codes: 0 done; 1 not set up; 2 the memory cannot be used; 6 some comments have to wait for the next round.
With --every it goes on until it is ended, and prints a line of JSON for each round in which something happened.";

/// Read new comments on issues with open requests and act on them.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Poll {
    /// Go on, with this pause between two rounds: `30s`, `5m`
    #[arg(long, value_name = "TIME", value_parser = pause)]
    every: Option<Duration>,
    /// Where runs live [default: .fractary/plugins/faber/runs]
    #[arg(long, value_name = "DIR")]
    base_path: Option<String>,
}

/// The longest that a server's word keeps it from asking again. Limits are for an hour; a server that names a year, or
/// counts in other units, would be waited for in silence for ever.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long it rests after a round in which a server asked for so many seconds.
fn rest(asked: Option<u64>, every: Duration) -> Duration {
    asked.map(Duration::from_secs).unwrap_or_default().min(LONGEST).max(every)
}

fn pause(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|pause| *pause >= SHORTEST)
        .ok_or_else(|| "expected a time of a second or more, such as `30s` or `5m`".to_owned())
}

impl Poll {
    pub(super) fn run(self, project: &Project) -> Result<Exit, HostError> {
        // Waits for its build, if need be, before the time of a call begins to count.
        project.flags(OP)?;
        let base = self.base_path.map(|base| ("base_path".to_owned(), base));
        let params: Vec<(String, String)> = base.into_iter().collect();
        let Some(every) = self.every else {
            let round = project.call_json(OP, &params)?;
            if is_refusal(&round) {
                return refused(&round);
            }
            print(&pretty(&round)?)?;
            let whole = round["failures"].as_array().is_none_or(Vec::is_empty);
            return Ok(if whole { Exit::Done } else { Exit::Operation(6) });
        };
        for number in 0_u64.. {
            let round = match project.call_json(OP, &params) {
                Ok(round) => round,
                // Such as a round that took too long; the next one goes on where it ended.
                Err(error) if number > 0 => {
                    say(&format!("{error}\n"));
                    thread::sleep(every);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if is_refusal(&round) {
                // What is wrong at the start stays wrong; later it may be a disk that is full for a while.
                let exit = refused(&round)?;
                if number == 0 {
                    return Ok(exit);
                }
            } else if [&round["outcomes"], &round["failures"]]
                .iter()
                .any(|rows| rows.as_array().is_some_and(|rows| !rows.is_empty()))
            {
                output::line(&round.to_string())?;
            }
            thread::sleep(rest(round["retry_after_s"].as_u64(), every));
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_left_alone_for_as_long_as_makes_sense() {
        let every = Duration::from_secs(30);
        for (asked, want) in
            [(None, 30), (Some(5), 30), (Some(600), 600), (Some(1_767_225_600_000), 3600)]
        {
            assert_eq!(rest(asked, every), Duration::from_secs(want));
        }
        assert_eq!(rest(Some(u64::MAX), 3 * LONGEST), 3 * LONGEST);
    }

    #[test]
    fn a_pause_is_a_second_or_more() {
        for (text, want) in [("30s", Some(30)), ("5m", Some(300)), ("1", Some(1))] {
            assert_eq!(pause(text).ok(), want.map(Duration::from_secs), "{text}");
        }
        for text in ["0s", "500ms", "soon", "", "-1"] {
            assert!(pause(text).is_err(), "{text}");
        }
    }
}
