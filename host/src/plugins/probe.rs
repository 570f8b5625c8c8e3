//! Probing: a new artifact is opened in a child process first, since opening runs whatever code it holds.
//!
//! - `child` is the far side: it opens file after file and answers one JSON line for each.
//! - [`Prober`] is the near side: it asks, waits no longer than a limit, and takes the end of the child for an answer.
//! - `memory` keeps the answers beside the copies, so that a start with known plugins asks nothing.

mod child;
mod memory;
mod prober;

use serde::{Deserialize, Serialize};

use sdk::host::Descriptor;

use super::artifact::{Artifact, Cache};
use super::refusal::Refusal;

pub(crate) use child::serve;
pub(crate) use prober::Prober;

/// What a probe found the file to be. Whether that fits the folder it came from is judged elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Finding {
    /// A plugin of this interface; this is what it says of itself.
    Plugin(Box<Descriptor>),
    /// Nothing that can be opened.
    Refused(Box<Refusal>),
}

impl Finding {
    fn of(opened: Result<Descriptor, Box<Refusal>>) -> Self {
        match opened {
            Ok(descriptor) => Self::Plugin(Box::new(descriptor)),
            Err(refusal) => Self::Refused(refusal),
        }
    }

    fn into_result(self) -> Result<Descriptor, Box<Refusal>> {
        match self {
            Self::Plugin(descriptor) => Ok(*descriptor),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl Prober {
    /// What the file is, by a probe.
    pub(crate) fn probe_now(&mut self, file: &std::path::Path) -> Result<Descriptor, Box<Refusal>> {
        self.probe(file).finding.into_result()
    }
}

/// What the copy is, from memory or else by a probe.
pub(crate) fn examine(
    cache: &Cache,
    prober: &mut Prober,
    artifact: &Artifact,
) -> Result<Descriptor, Box<Refusal>> {
    if let Some(known) = memory::recall(cache, &artifact.hash) {
        return known.into_result();
    }
    tracing::debug!(file = %artifact.path.display(), "probing");
    let probed = prober.probe(&artifact.path);
    if probed.lasting {
        memory::remember(cache, &artifact.hash, &probed.finding);
    }
    probed.finding.into_result()
}
