//! [`Libraries`]: the artifacts that this worker has opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sdk::abi::PluginRef;
use sdk::host::{Access, Descriptor};
use sdk::{ErrorKind, UdfError};

use crate::plugins::open_library;

/// An opened artifact.
#[derive(Clone)]
pub(super) struct Library {
    pub(super) plugin: PluginRef,
    pub(super) access: Arc<Access>,
}

/// The artifacts that this worker has opened, by path. None is ever closed.
#[derive(Default)]
pub(super) struct Libraries(Mutex<HashMap<PathBuf, Slot>>);

/// Filled by the first call that needs the artifact; the others wait for it.
type Slot = Arc<OnceLock<Result<Library, String>>>;

impl Libraries {
    /// The artifact's plugin, opened at the first asking.
    ///
    /// # Errors
    /// It cannot be opened here, although the host has checked it.
    pub(super) fn get(&self, artifact: &Path) -> Result<Library, UdfError> {
        let slot = {
            let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match slots.get(artifact) {
                Some(slot) => Arc::clone(slot),
                None => Arc::clone(slots.entry(artifact.to_owned()).or_default()),
            }
        };
        slot.get_or_init(|| open(artifact))
            .clone()
            .map_err(|message| UdfError::new(ErrorKind::Internal, message))
    }
}

fn open(artifact: &Path) -> Result<Library, String> {
    let plugin = open_library(artifact)
        .map_err(|refusal| format!("{}; {}", refusal.reason, refusal.remedy))?;
    let descriptor = Descriptor::of(plugin).map_err(|error| error.message().to_owned())?;
    Ok(Library { plugin, access: Arc::new(descriptor.access()) })
}
