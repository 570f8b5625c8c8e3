//! [`Exit`]: how a command ended, as a number for scripts.

use std::process::ExitCode;

use crate::error::HostError;

/// Shown under every `--help`.
pub(super) const HELP: &str = "\
Exit codes:
  0  done
  1  the operation failed, or a check found something
  2  the command line, a setting or a parameter is wrong
  3  there is no such operation
  4  the machine said no: a port, a file, a permission";

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
            | HostError::UnknownOp { .. } => Self::Unknown,
            HostError::Raised { .. }
            | HostError::Panicked { .. }
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
