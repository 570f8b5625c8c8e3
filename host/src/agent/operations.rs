//! [`Operations`]: what an agent sees of the operations. In the host it is the dispatcher, in tests whatever they need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdk::host::ParamDescriptor;
use serde_json::{Map, Value};

use crate::dispatch::{Call, Dispatcher, FIRST_BUILD};
use crate::error::HostError;
use crate::plugins::{Address, EntryState};

/// Project whose operations are workflows.
pub(super) const WORKFLOWS: &str = "workflows";

/// An operation as a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Where it is.
    pub address: Address,
    /// Its doc comment.
    pub doc: String,
    /// Its parameters.
    pub params: Vec<ParamDescriptor>,
    /// Whether it declares that it changes nothing, by itself or through others.
    pub is_read: bool,
}

/// A workflow that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowPlace {
    /// Its operation.
    pub address: Address,
    /// Its folder, with `agents/<type>.toml`.
    pub folder: PathBuf,
}

/// What a call came to when it did not come to a reply. For the model to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// What an agent sees of the operations.
pub trait Operations: Send + Sync {
    /// Calls one; parameters as texts.
    ///
    /// # Errors
    /// Whatever the call failed with.
    fn call(&self, address: &Address, params: Vec<(String, String)>) -> Result<Value, CallError>;

    /// One operation.
    fn tool(&self, address: &Address) -> Option<Tool>;

    /// Why an operation cannot be called; `None` if it can, or will be as soon as it is built. `waits` for that.
    fn lacks(&self, address: &Address, waits: bool) -> Option<String> {
        let _ = waits;
        self.tool(address).is_none().then(|| format!("there is no operation `{address}`"))
    }

    /// All operations that can be called.
    fn tools(&self) -> Vec<Tool>;

    /// The workflow of this id or alias.
    fn workflow(&self, id: &str) -> Option<WorkflowPlace>;

    /// The ids of all workflows, also of those that are not built yet.
    fn workflows(&self) -> Vec<String> {
        let tools = self.tools().into_iter().map(|tool| tool.address);
        let workflows = tools.filter(|address| &*address.project == WORKFLOWS);
        workflows.map(|address| address.op.to_string()).collect()
    }
}

/// JSON parameters as an operation takes them: a text as it stands, null as absent, anything else as its JSON.
pub(super) fn texts(parameters: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    };
    parameters.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// The operations of a host, on one state folder.
#[derive(Debug)]
pub struct HostOperations {
    dispatcher: Arc<Dispatcher>,
    app_dir: Option<String>,
}

/// How long the first look waits for the folders to be walked.
const DISCOVERY: Duration = Duration::from_secs(60);

impl HostOperations {
    /// Those behind this dispatcher; `app_dir` as in a call.
    #[must_use]
    pub fn new(dispatcher: Arc<Dispatcher>, app_dir: Option<String>) -> Self {
        Self { dispatcher, app_dir }
    }
}

impl Operations for HostOperations {
    fn call(&self, address: &Address, params: Vec<(String, String)>) -> Result<Value, CallError> {
        let call = Call { params, app_dir: self.app_dir.clone(), ..Call::new(address.clone()) };
        let reply = self.dispatcher.call(call).map_err(|error| CallError(error.to_string()))?;
        // Numbers keep their text; what a model cannot read in a reply (NaN) is an error it can.
        serde_json::from_str(&reply.to_json())
            .map_err(|error| CallError(format!("the reply is not JSON: {error}")))
    }

    fn tool(&self, address: &Address) -> Option<Tool> {
        let entry = self.dispatcher.catalog().entry(address)?;
        let EntryState::Ready(loaded) = entry.state() else { return None };
        let descriptor = &loaded.descriptor;
        Some(Tool {
            address: address.clone(),
            doc: descriptor.doc.clone(),
            params: descriptor.params.clone(),
            is_read: !descriptor.changes()
                && descriptor.calls.is_empty()
                && descriptor.logs.is_empty()
                && !descriptor.net,
        })
    }

    fn lacks(&self, address: &Address, waits: bool) -> Option<String> {
        let until = Instant::now() + if waits { FIRST_BUILD } else { Duration::ZERO };
        match self.dispatcher.catalog().wait_ready(address, until) {
            Ok(_) => None,
            Err(HostError::StillBuilding { .. }) if !waits => None,
            Err(error) => Some(error.to_string()),
        }
    }

    fn tools(&self) -> Vec<Tool> {
        let entries = self.dispatcher.catalog().entries();
        entries.iter().filter_map(|entry| self.tool(&entry.address)).collect()
    }

    fn workflow(&self, id: &str) -> Option<WorkflowPlace> {
        let catalog = self.dispatcher.catalog();
        catalog.wait_discovered(Instant::now() + DISCOVERY);
        let entries = catalog.entries();
        let workflows = || entries.iter().filter(|entry| &*entry.address.project == WORKFLOWS);
        let place = |entry: &Arc<crate::plugins::Entry>| WorkflowPlace {
            address: entry.address.clone(),
            folder: entry.folder.clone(),
        };
        if let Some(entry) = workflows().find(|entry| &*entry.address.op == id) {
            return Some(place(entry));
        }
        workflows()
            .find(|entry| aliases(&entry.folder).get(id) == Some(&entry.address.op.to_string()))
            .map(place)
    }

    fn workflows(&self) -> Vec<String> {
        let entries = self.dispatcher.catalog().entries();
        let addresses = entries.iter().map(|entry| &entry.address);
        let workflows = addresses.filter(|address| &*address.project == WORKFLOWS);
        workflows.map(|address| address.op.to_string()).collect()
    }
}

/// `[aliases]` of the project an operation lies in: old id to name.
fn aliases(operation: &Path) -> BTreeMap<String, String> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Manifest {
        aliases: BTreeMap<String, String>,
    }
    let file = operation.parent().map(|project| project.join("project.toml"));
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    // A broken manifest is named by discovery.
    toml::from_str::<Manifest>(&text).unwrap_or_default().aliases
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_old_id_leads_to_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(aliases(&folder.path().join("essay")).is_empty());
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(folder.path().join("project.toml"), "[aliases]\nletter = \"essay\"\n")
            .unwrap();
        assert_eq!(aliases(&folder.path().join("essay"))["letter"], "essay");
    }

    #[test]
    fn parameters_become_texts() {
        let parameters = json!({"a": "x", "b": null, "c": true, "d": [1, "y"], "e": 1.50});
        let want = [("a", "x"), ("c", "true"), ("d", "[1,\"y\"]"), ("e", "1.50")];
        let want: Vec<_> = want.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let parsed: Value = serde_json::from_str("1.50").unwrap();
        let mut parameters = parameters.as_object().unwrap().clone();
        parameters["e"] = parsed;
        assert_eq!(texts(&parameters), want);
    }
}
