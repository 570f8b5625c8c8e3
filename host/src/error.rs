//! [`HostError`]: every way a call, or the host itself, can fail.
//!
//! A message is written for the caller: it names what failed and what to do, and never carries a path of the
//! host's own code, a backtrace or a token. What only the log should have goes into [`HostError::detail`].

use std::path::PathBuf;
use std::time::Duration;

use crate::lane::{Cause, Company};
use crate::plugins::Address;
use crate::sql::SqlError;

/// Every way a call, or the host itself, can fail. `http/error.rs` turns each into a status by one exhaustive match.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No project belongs to this workspace (404).
    #[error("unknown workspace `{workspace}`; known: {}", names(known))]
    UnknownWorkspace {
        /// As the caller gave it.
        workspace: String,
        /// The workspaces that exist.
        known: Vec<String>,
    },
    /// The workspace has no such project (404).
    #[error("unknown project `{project}` in workspace `{workspace}`; known: {}", names(known))]
    UnknownProject {
        /// The workspace that was searched.
        workspace: String,
        /// As the caller gave it.
        project: String,
        /// The projects of that workspace.
        known: Vec<String>,
    },
    /// The project has no such operation (404).
    #[error(
        "unknown operation `{op}` in project `{project}` of workspace `{workspace}`; known: {}",
        names(known)
    )]
    UnknownOp {
        /// The workspace that was searched.
        workspace: String,
        /// The project that was searched.
        project: String,
        /// As the caller gave it.
        op: String,
        /// The operations of that project.
        known: Vec<String>,
    },
    /// Nothing anywhere is called by this name (404).
    #[error("unknown operation `{name}`; known: {}", names(known))]
    UnknownName {
        /// As the caller gave it.
        name: String,
        /// All operations.
        known: Vec<String>,
    },
    /// The request itself is malformed: not JSON, wrong shape, an unusable address (400).
    #[error("{message}")]
    BadRequest {
        /// What is wrong and what was expected.
        message: String,
    },
    /// A parameter is missing, undeclared or of the wrong form (400).
    #[error("{message}")]
    BadParameter {
        /// Names parameter, value and expected form.
        message: String,
    },
    /// The operation itself raised this (422).
    #[error("{message}")]
    Raised {
        /// The operation's own words.
        message: String,
    },
    /// The operation panicked; the next call works (500).
    #[error("`{op}` panicked: {message}")]
    Panicked {
        /// Where it happened.
        op: Address,
        /// The panic's payload, if it was text.
        message: String,
    },
    /// The process that ran the operation ended during the call; the next one gets another process (500).
    #[error("`{op}` crashed: {cause}{company}")]
    Crashed {
        /// The operation that was running.
        op: Address,
        /// What ended its worker.
        cause: Cause,
        /// Who else may have to answer for it.
        company: Company,
        /// For the log: the end of what the worker printed.
        detail: String,
    },
    /// The operation reached for something that its `#[udf(..)]` does not declare (500: a fault of the plugin).
    #[error("`{op}` was refused access: {message}")]
    Undeclared {
        /// The operation at fault.
        op: Address,
        /// What it reached for, and the declaration that would allow it.
        message: String,
    },
    /// The plugin exists but cannot be called: it did not build, or its artifact was refused (500).
    #[error("`{op}` cannot run: {reason}; {remedy}")]
    Refused {
        /// The operation asked for.
        op: Address,
        /// Why it was refused, one line.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// The operation was still being built when the call's time was up (504).
    #[error("`{op}` is still being built after {} ms; call again in a moment", waited.as_millis())]
    StillBuilding {
        /// The operation asked for.
        op: Address,
        /// How long the call waited.
        waited: Duration,
    },
    /// As many calls as allowed are running already (503).
    #[error("overloaded: {limit} calls are running already; try again in a moment")]
    Overloaded {
        /// The in-flight cap.
        limit: usize,
    },
    /// The call's time was up (504). A write that had not begun to commit by then will not commit.
    #[error("`{op}` did not finish within {} ms", after.as_millis())]
    Timeout {
        /// The operation asked for.
        op: Address,
        /// The time it had.
        after: Duration,
    },
    /// The call was cancelled, because its client is gone or the host is ending (503).
    #[error("the call of `{op}` was cancelled")]
    Cancelled {
        /// The operation asked for.
        op: Address,
    },
    /// The host itself failed (500); `detail` is for the log.
    #[error("internal error: {message}")]
    Internal {
        /// What failed, in the caller's terms.
        message: String,
        /// For the log only.
        detail: String,
    },
    /// A host that runs elsewhere was asked, and answered with an error or not at all. Commands only.
    #[error("{}", remote(origin, *status, message))]
    Remote {
        /// Where it was asked.
        origin: String,
        /// The status of its answer, if there was one.
        status: Option<u16>,
        /// Its words, or why there is no answer.
        message: String,
    },
    /// A statement has no answer; its own status.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A setting could not be understood; the host does not start.
    #[error("{place}: {message}")]
    Config {
        /// The flag, variable or file at fault.
        place: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// The port that was asked for cannot be had; the host does not start.
    #[error(
        "cannot listen on port {port}{holder} ({reason}): name another port, or let the system choose with `--port 0`"
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// `, held by process 4711 (node)` where the system tells, else empty.
        holder: String,
        /// The system's words.
        reason: String,
    },
    /// A file of the host's own could not be used.
    #[error("cannot {action} `{path}`: {reason}")]
    Io {
        /// What was tried, for example "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
}

impl HostError {
    /// The outcome's name in the log line and in counters.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownWorkspace { .. }
            | Self::UnknownProject { .. }
            | Self::UnknownOp { .. }
            | Self::UnknownName { .. } => "unknown",
            Self::BadRequest { .. } => "bad_request",
            Self::BadParameter { .. } => "bad_parameter",
            Self::Raised { .. } => "raised",
            Self::Panicked { .. } => "panicked",
            Self::Crashed { .. } => "crashed",
            Self::Undeclared { .. } => "undeclared",
            Self::Refused { .. } => "refused",
            Self::StillBuilding { .. } => "building",
            Self::Overloaded { .. } => "overloaded",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::Internal { .. } => "internal",
            Self::Remote { .. } => "remote",
            Self::Sql(_) => "sql",
            Self::Config { .. } => "config",
            Self::PortTaken { .. } => "port_taken",
            Self::Io { .. } => "io",
        }
    }

    /// What the log gets beyond the caller's message.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Internal { detail, .. } | Self::Crashed { detail, .. } if !detail.is_empty() => {
                Some(detail)
            }
            _ => None,
        }
    }

    /// An I/O failure of the host's own.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        error: &std::io::Error,
    ) -> Self {
        Self::Io { action, path: path.into(), reason: error.to_string() }
    }
}

fn remote(origin: &str, status: Option<u16>, message: &str) -> String {
    match status {
        None => format!("cannot reach the host at {origin}: {message}"),
        Some(401) => {
            format!("the host at {origin} does not know this token: take the one of its first line")
        }
        Some(status) => format!("{message} (said the host at {origin}, with status {status})"),
    }
}

/// At most a handful of names, so that a message stays one line.
fn names(known: &[String]) -> String {
    const SHOWN: usize = 20;
    if known.is_empty() {
        return "none".to_owned();
    }
    let mut text =
        known.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if known.len() > SHOWN {
        text.push_str(&format!(" and {} more", known.len() - SHOWN));
    }
    text
}
