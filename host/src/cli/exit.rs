//! [`Exit`]: how a command ended, as a number for scripts.

use std::error::Error;
use std::process::ExitCode;

use super::visible;
use crate::error::HostError;

/// What every command may end with.
macro_rules! codes {
    () => {
        "\
Exit codes:
  0  done
  1  the operation failed, or a check found something
  2  the command line, a setting or a parameter is wrong
  3  there is no such operation
  4  the machine said no: a port, a file, a permission"
    };
}

/// Shown under every `--help`.
pub(super) const HELP: &str = codes!();

/// Shown under the `--help` of the program itself: with what single commands add.
pub(super) const ALL: &str = concat!(
    codes!(),
    "
  5  somebody else was faster (`inbox`)

`exec` and `run-feedback` also end with the number of a reply that refuses: see their help."
);

/// How a command ended. Each command's `--help` lists the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The operation failed, or a check found something.
    Failed,
    /// The command line, a setting or a parameter is wrong.
    Usage,
    /// There is no such operation.
    Unknown,
    /// The machine said no: a port, a file, a permission.
    Machine,
    /// A number that the operation itself gives, for commands that stand in for a script.
    Operation(u8),
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
            Self::Machine => 4,
            Self::Operation(number) => number,
        }
    }

    /// The exit that belongs to an error.
    #[must_use]
    pub fn of(error: &HostError) -> Self {
        match error {
            HostError::BadRequest { .. }
            | HostError::BadParameter { .. }
            | HostError::Config { .. } => Self::Usage,
            HostError::UnknownWorkspace { .. }
            | HostError::UnknownProject { .. }
            | HostError::UnknownOp { .. }
            | HostError::UnknownName { .. } => Self::Unknown,
            HostError::Raised { .. }
            | HostError::Panicked { .. }
            | HostError::Crashed { .. }
            | HostError::Undeclared { .. }
            | HostError::Refused { .. }
            | HostError::StillBuilding { .. }
            | HostError::Overloaded { .. }
            | HostError::Timeout { .. }
            | HostError::Cancelled { .. } => Self::Failed,
            HostError::Remote { status, .. } => match status {
                None => Self::Machine,
                Some(400 | 401 | 403) => Self::Usage,
                Some(404) => Self::Unknown,
                Some(_) => Self::Failed,
            },
            HostError::Sql(error) => match error.status() {
                400 => Self::Usage,
                404 => Self::Unknown,
                _ => Self::Failed,
            },
            HostError::Internal { .. } | HostError::PortTaken { .. } | HostError::Io { .. } => {
                Self::Machine
            }
        }
    }
}

impl Exit {
    /// The error and what caused it, for standard error. A message may quote what others wrote, so it is shown with
    /// marks in place of what steers a terminal.
    #[must_use]
    pub fn report(error: &HostError) -> String {
        let mut text = format!("udf-host: {error}");
        if let Some(detail) = error.detail() {
            text.push_str(&format!(": {detail}"));
        }
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!("\n  because {error}"));
            cause = error.source();
        }
        visible::lines(&text).collect::<Vec<_>>().join("\n")
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_steers_no_terminal() {
        let message = "the reply \u{1b}[2J is\nnot JSON".to_owned();
        let error = HostError::Internal { message, detail: "\u{202e}x".to_owned() };
        assert_eq!(
            Exit::report(&error),
            "udf-host: internal error: the reply ␛[2J is\nnot JSON: <U+202E>x"
        );
    }
}
