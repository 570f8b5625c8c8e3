//! [`Address`]: which operation is meant, `workspace.project.op`.

use std::fmt;
use std::sync::Arc;

/// Which operation is meant. Cheap to clone. Shown as `workspace.project.op`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// From `project.toml`; `default` when absent.
    pub workspace: Arc<str>,
    /// The folder above the operation's; `main` for a crate directly in `udfs/`.
    pub project: Arc<str>,
    /// The operation's folder.
    pub op: Arc<str>,
}

impl Address {
    /// An address of these three parts, which are taken as they are.
    #[must_use]
    pub fn new(workspace: &str, project: &str, op: &str) -> Self {
        Self { workspace: workspace.into(), project: project.into(), op: op.into() }
    }

    /// Splits `workspace.project.op`; none when there are not exactly three non-empty parts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (workspace, project, op) = (parts.next()?, parts.next()?, parts.next()?);
        let whole =
            parts.next().is_none() && [workspace, project, op].iter().all(|part| !part.is_empty());
        whole.then(|| Self::new(workspace, project, op))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.workspace, self.project, self.op)
    }
}
