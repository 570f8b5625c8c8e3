//! [`Inline`]: the call runs in the host's own process, on the thread that brings it.

use std::sync::Arc;

use core_store::Store;
use sdk::Params;
use sdk::host::invoke;

use super::{Job, Lane};
use crate::error::HostError;
use crate::host_api::{Service, Within, to_host_error};

/// Runs calls in the host's own process.
#[derive(Debug)]
pub(crate) struct Inline {
    store: Store,
    limit: usize,
}

impl Inline {
    /// `limit` is how many calls the host runs at a time, for the message of one that finds no room.
    pub(crate) fn new(store: Store, limit: usize) -> Self {
        Self { store, limit }
    }
}

impl Lane for Inline {
    fn run(&self, job: &Job<'_>) -> Result<sdk::Reply, HostError> {
        let app = self.store.app(&job.dispatcher.app_dir(job.call.app_dir.as_deref()));
        let outside = Within(job);
        let service = Service::new(&outside, &self.store, app, Arc::clone(&job.loaded.access));
        let params: Params =
            job.call.params.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let plugin = job.loaded.plugin().map_err(|refusal| HostError::Refused {
            op: job.entry.address.clone(),
            reason: refusal.reason.clone(),
            remedy: refusal.remedy.clone(),
        })?;
        invoke(plugin, &service, &params).map_err(|error| to_host_error(&error, job, self.limit))
    }
}
