//! [`Call`]: one operation that runs in this worker.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sdk::abi::Method;
use sdk::host::{HostService, invoke};
use sdk::wire::{CallRequest, HttpAsk, TraceRequest, Wire};
use sdk::{Params, Reply, UdfError};

use super::libraries::Library;
use super::serving::{Progress, Serving};
use crate::dispatch::Reading;
use crate::host_api::{Outside, Service};
use crate::lane::frames::{FromWorker, Run};

/// One operation that runs here. State, time and chance are served in this process, on the same files and locks as
/// everywhere else; the rest goes to the host.
pub(super) struct Call<'a> {
    serving: &'a Serving,
    number: u64,
    progress: &'a Progress,
    deadline: Instant,
    reading: Option<Reading>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        serving: &'a Serving,
        number: u64,
        progress: &'a Progress,
        deadline: Instant,
        reading: bool,
    ) -> Self {
        Self { serving, number, progress, deadline, reading: reading.then(Reading::default) }
    }

    /// Runs it to its end. What it left open is given up before this returns.
    pub(super) fn run(&self, library: &Library, run: &Run<'_>) -> Result<Reply, UdfError> {
        let app = self.serving.store.app(Path::new(run.app_dir));
        let service = Service::new(self, &self.serving.store, app, Arc::clone(&library.access));
        let params: Params = run.params.iter().copied().collect();
        invoke(library.plugin, &Careful { service, serving: self.serving }, &params)
    }

    /// Whether a call that must change nothing asked for more than collections.
    pub(super) fn asked_beyond_collections(&self) -> bool {
        self.reading.as_ref().is_some_and(Reading::beyond_collections)
    }
}

impl Outside for Call<'_> {
    fn trace(&self, level: u8, message: &str) {
        let frame = TraceRequest { level, message }.encode();
        let request = FromWorker::Request { request: 0, method: Method::TRACE.0, frame: &frame };
        self.serving.send(&request, self.number);
    }

    fn call_other(&self, op: &str, params: &[(&str, &str)]) -> Result<Vec<u8>, UdfError> {
        let frame = CallRequest { op, params: params.to_vec() }.encode();
        self.serving.ask(self.number, self.progress, Method::CALL, &frame)
    }

    fn http(&self, ask: &HttpAsk<'_>) -> Result<Vec<u8>, UdfError> {
        self.serving.ask(self.number, self.progress, Method::HTTP, &ask.encode())
    }

    fn setting(&self, name: &str) -> Result<Option<String>, UdfError> {
        let answer =
            self.serving.ask(self.number, self.progress, Method::SETTING, &name.encode())?;
        Ok(Option::<&str>::decode(&answer)?.map(str::to_owned))
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn reading(&self) -> Option<&Reading> {
        self.reading.as_ref()
    }
}

/// The service, minding what the operation may have done: a store that opens a file must not get descriptor 1, nor make
/// one that nobody may read.
struct Careful<'a> {
    service: Service<'a>,
    serving: &'a Serving,
}

impl HostService for Careful<'_> {
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        self.serving.descriptors.restore();
        self.serving.restore_mask();
        self.service.call(method, request)
    }

    fn cancelled(&self) -> bool {
        self.service.cancelled()
    }
}
