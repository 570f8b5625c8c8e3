//! [`Inside`]: a host in this process, right on the store.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use core_store::AppStore;

use super::super::super::progress;
use super::{COLLECTIONS, Door, WORKSPACE};
use crate::Host;
use crate::config::Config;
use crate::dispatch::Call;
use crate::envelope::{self, REPLY_LIMIT};
use crate::error::HostError;
use crate::plugins::Address;

/// A host in this process. One that runs on the same files does not mind.
pub(in super::super) struct Inside {
    host: Host,
    app: AppStore,
    files: Vec<PathBuf>,
}

impl Inside {
    /// Starts it.
    ///
    /// # Errors
    /// As [`Host::start`].
    pub(in super::super) fn start(config: Config) -> Result<Self, HostError> {
        let host = Host::start(config)?;
        let app = host.store.app(&host.dispatcher.app_dir(None));
        let state = app.dir().join("state");
        let files = COLLECTIONS.map(|name| state.join(format!("{name}.json"))).to_vec();
        Ok(Self { host, app, files })
    }
}

impl Door for Inside {
    fn call(&self, project: &str, op: &str, params: &[(&str, &str)]) -> Result<String, HostError> {
        let address = Address::new(WORKSPACE, project, op);
        let catalog = &self.host.catalog;
        if catalog.entry(&address).and_then(|entry| entry.ready()).is_none() {
            catalog.wait_discovered(Instant::now() + progress::BUILD_TIME);
            let entry = catalog.find(WORKSPACE, project, op)?;
            progress::until(&self.host, |_| entry.is_decided());
        }
        let call =
            params.iter().fold(Call::new(address), |call, (name, value)| call.param(name, value));
        let reply = self.host.dispatcher.call(call)?;
        super::data(envelope::render_reply(&reply, REPLY_LIMIT)?)
    }

    fn stamp(&self) -> Option<u64> {
        // A commit replaces the file, so that at least its number or its time is another one.
        let mut hasher = DefaultHasher::new();
        for file in &self.files {
            let found = fs::metadata(file).ok();
            let seen = found.map(|of| {
                (of.ino(), of.size(), of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec())
            });
            seen.hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    fn damaged(&self) -> Vec<String> {
        super::damaged(&self.app)
    }
}
