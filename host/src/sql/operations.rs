//! [`Operations`]: what SQL needs to know of operations. The dispatcher implements it; tests answer
//! from fixtures.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::error::OperationFailure;
use super::table::{Body, Declared};

/// Where an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpAddress {
    /// `_core`, or the addressed workspace.
    pub workspace: String,
    /// The project.
    pub project: String,
    /// The operation.
    pub op: String,
}

impl fmt::Display for OpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.workspace, self.project, self.op)
    }
}

/// What an operation says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The names of its parameters; `app_dir` need not be among them.
    pub params: Vec<String>,
    /// Whether it declares that it changes anything.
    pub writes: bool,
    /// The columns it declares.
    pub columns: Vec<Declared>,
    /// The parameters that do no more than filter by a column.
    pub filters: Vec<Filter>,
}

/// A parameter that filters: with a text, the operation answers those rows of its answer without it whose column is
/// that text, in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    /// The parameter.
    pub param: String,
    /// The column.
    pub column: String,
}

/// Why there is no signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// Nothing of that name; these are the ones there are, where the address first goes wrong.
    Absent {
        /// "workspaces", "projects" or "operations".
        what: &'static str,
        /// Their names.
        known: Vec<String>,
    },
    /// It exists but cannot be called.
    Failed(OperationFailure),
}

/// The arguments of a call: every one a text (the SQL contract §2).
pub type Arguments = BTreeMap<String, String>;

/// What a call answered.
pub struct Answered {
    /// The rows to be.
    pub body: Body,
    /// Whether another call would answer the same. `None` if nobody can tell.
    pub fresh: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

/// Rows of which others of the same moment may be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniformRows {
    /// The rows, as JSON texts.
    pub rows: Vec<String>,
    /// What they are of: rows of one moment belong together, rows of two need not.
    pub moment: String,
}

/// Looking up and calling operations.
pub trait Operations: Sync {
    /// Whether this project can be addressed.
    ///
    /// # Errors
    /// [`LookupError::Absent`] with the names there are.
    fn project(&self, workspace: &str, project: &str) -> Result<(), LookupError>;

    /// What the operation says of itself; runs nothing.
    ///
    /// # Errors
    /// When there is no such operation, or it cannot be called.
    fn lookup(&self, address: &OpAddress) -> Result<Signature, LookupError>;

    /// Calls an operation that was looked up.
    ///
    /// # Errors
    /// The operation's own failure, with the status that a direct call would have had.
    fn call(&self, address: &OpAddress, args: &Arguments) -> Result<Answered, OperationFailure>;

    /// Whether all rows that a call could answer now have just the declared columns, with cells of the declared types:
    /// then some of the rows look the same with the others and without.
    fn is_uniform(&self, _: &OpAddress, _: &Arguments) -> bool {
        false
    }

    /// The rows of a call, if [`Operations::is_uniform`] holds at the moment that they are of.
    ///
    /// # Errors
    /// As [`Operations::call`].
    fn uniform_rows(
        &self,
        _: &OpAddress,
        _: &Arguments,
    ) -> Result<Option<UniformRows>, OperationFailure> {
        Ok(None)
    }
}
