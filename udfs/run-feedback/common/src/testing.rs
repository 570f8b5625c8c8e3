//! What the tests of the operations share (feature `testing`): runs laid out on a disk in memory, and a look at what a
//! crash leaves of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sdk::Context;
use sdk::testing::TestHost;
use sdk::testing::store::{Crash, MemoryBackend};
use sdk::testing::store::{Durability, Store, StoreOptions};
use serde_json::Value;

use crate::codes::Code;
use crate::run_dir::RunDir;
use crate::run_id::RunId;
use crate::state::State;

/// The base of all runs of a test.
pub const BASE: &str = "/runs";

/// A run.
pub const RUN: &str = "acme/widgets/0f0e0d0c-0b0a-4908-8706-050403020100";

/// A disk with one run in it, at [`BASE`].
#[derive(Debug, Clone, Default)]
pub struct RunDisk(pub MemoryBackend);

impl RunDisk {
    /// A run with this state, and an event counter at 1.
    pub fn with_state(state: &str) -> RunDisk {
        let disk = RunDisk::default();
        disk.put("state.json", state);
        disk.put("events/.next-id", "1\n");
        disk
    }

    /// Puts a file into the run.
    pub fn put(&self, name: &str, text: &str) {
        self.0.put(&RunDisk::path(name), text.as_bytes()).expect("a disk in memory takes a file");
    }

    fn path(name: &str) -> PathBuf {
        Path::new(BASE).join(RUN).join(name)
    }

    /// A host over this disk that acknowledges only what would survive a power failure.
    pub fn host(&self) -> TestHost {
        let options = StoreOptions { durability: Durability::Full };
        TestHost::over(Store::with_backend(Arc::new(self.0.clone()), options))
    }

    /// What each way to crash leaves of the disk.
    pub fn crashes(&self) -> [RunDisk; 3] {
        [Crash::Process, Crash::Power, Crash::NamesOnly].map(|how| RunDisk(self.0.crash(how)))
    }
}

/// What is in a run: its state, and the type of every event by number.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// `None`: no state.
    pub state: Option<State>,
    /// In order of number, each with its whole content.
    pub events: Vec<(u64, Value)>,
}

impl Found {
    /// Looks at the run; panics where something is half there.
    pub fn look(ctx: &Context) -> Found {
        let run_id = RunId::parse(RUN).expect("it is one");
        let dir = RunDir::open(ctx, BASE, &run_id).expect("nothing leads out of the base");
        let state = match dir.state(Code::StateNotFound) {
            Ok(state) => Some(state),
            Err(crate::Stop::Refused(refusal)) if refusal.code == Code::StateNotFound => None,
            Err(other) => panic!("the state is damaged: {other:?}"),
        };
        let folder = ctx.folder(BASE, RUN, "state.json.lock").expect("plain names");
        let events = dir
            .events(Code::StateCorrupted)
            .expect("the directory can be listed")
            .into_iter()
            .map(|file| {
                let name = format!("events/{}", crate::event_file_name(file.event_id, &file.kind));
                let text = folder.read(&name).expect("it can be read").expect("it was listed");
                (
                    file.event_id,
                    serde_json::from_str(&text)
                        .unwrap_or_else(|fault| panic!("{name} is damaged: {fault}")),
                )
            });
        Found { state, events: events.collect() }
    }

    /// The open request, if there is one.
    pub fn open_request_id(&self) -> Option<&str> {
        self.state.as_ref()?.open_request_id()
    }

    /// How many events of this type name this request.
    pub fn events_of(&self, kind: &str, request_id: &str) -> usize {
        let of =
            |event: &Value| event["type"] == kind && event["metadata"]["request_id"] == request_id;
        self.events.iter().filter(|(_, event)| of(event)).count()
    }
}
