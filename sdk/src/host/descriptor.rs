use serde::{Deserialize, Serialize};

use super::Access;
use crate::abi::PluginRef;
use crate::error::{ErrorKind, UdfError};

/// What a plugin says about its operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Interface version of the sdk it was built with.
    pub interface: u32,
    /// Project in the package name, if it follows `udf-<project>-<op>`.
    #[serde(default)]
    pub project: Option<String>,
    /// Name of the function.
    pub op: String,
    /// Version of its package.
    #[serde(default)]
    pub version: Option<String>,
    /// Its doc comment.
    #[serde(default)]
    pub doc: String,
    /// Its parameters in order, `app_dir` left out.
    #[serde(default)]
    pub params: Vec<ParamDescriptor>,
    /// Collections it reads.
    #[serde(default)]
    pub reads: Vec<String>,
    /// Collections it writes.
    #[serde(default)]
    pub writes: Vec<String>,
    /// Operations it calls.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Directories of logs it uses.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Whether it uses the network.
    #[serde(default)]
    pub net: bool,
    /// Whether it uses folders.
    #[serde(default)]
    pub folders: bool,
    /// Whether it only reads them.
    #[serde(default)]
    pub folders_read_only: bool,
    /// Columns of its rows; empty if it does not say.
    #[serde(default)]
    pub columns: Vec<ColumnDescriptor>,
    /// Member of its reply that holds the rows; without one the reply itself is the rows.
    #[serde(default)]
    pub rows: Option<String>,
    /// `unwind` or `abort`: what a panic in it does.
    pub panic: String,
    /// Version of the sdk it was built with.
    pub sdk: String,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamDescriptor {
    /// As callers send it.
    pub name: String,
    /// Its doc comment.
    #[serde(default)]
    pub doc: String,
    /// `string`, `boolean`, `integer`, `number` or `json`.
    #[serde(rename = "type")]
    pub json_type: String,
    /// The text it has when it is left out.
    #[serde(default)]
    pub default: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// The column that it filters by: with a text here, the answer is the rows of the answer without it whose column
    /// is that text, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<String>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDescriptor {
    /// The record's field.
    pub name: String,
    /// `s` text, `i` integer, `f` float, `b` bool, `j` JSON.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Descriptor {
    /// Asks a loaded plugin, whose interface version has been checked.
    ///
    /// # Errors
    /// The plugin panicked, or answers something else.
    pub fn of(plugin: PluginRef) -> Result<Self, UdfError> {
        let text = plugin.descriptor()();
        if text.is_empty() {
            let message = "the plugin panicked when asked what it is";
            return Err(UdfError::new(ErrorKind::Panicked, message));
        }
        Self::parse(&text)
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// It is not a descriptor.
    pub fn parse(text: &[u8]) -> Result<Self, UdfError> {
        serde_json::from_slice(text).map_err(|error| {
            UdfError::new(
                ErrorKind::Internal,
                format!("the plugin's descriptor is not one: {error}"),
            )
        })
    }

    /// Whether it declares that it may change anything: such an operation cannot stand in a query.
    pub fn changes(&self) -> bool {
        !self.writes.is_empty() || (self.folders && !self.folders_read_only)
    }

    /// The part that is enforced.
    pub fn access(&self) -> Access {
        Access {
            op: self.op.clone(),
            reads: self.reads.clone(),
            writes: self.writes.clone(),
            calls: self.calls.clone(),
            logs: self.logs.clone(),
            folders: self.folders,
            folders_read_only: self.folders_read_only,
            net: self.net,
        }
    }
}
