//! The process in which operations are tried. It writes down what it is about to try before it does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use super::super::{Exit, progress, selection};
use super::Line;
use crate::Host;
use crate::check::{self, Caller, Finding, Rule, Subject};
use crate::config::{Config, Durability};
use crate::dispatch::Call;
use crate::error::HostError;
use crate::plugins::{Address, Descriptor, Entry, EntryState, LaneChoice};
use crate::reply::Reply;

/// What the parent tells its child; nobody else has a use for it.
#[derive(Debug, Default, Args)]
pub(super) struct ChildOptions {
    /// The file to report to.
    #[arg(long, hide = true, requires = "place")]
    report: Option<PathBuf>,
    /// Where calls may leave files.
    #[arg(long, hide = true)]
    place: Option<PathBuf>,
}

impl ChildOptions {
    pub(super) fn is_given(&self) -> bool {
        self.report.is_some()
    }
}

/// Checks the operations in turn.
pub(super) fn run(
    options: &ChildOptions,
    names: &[String],
    config: Config,
    limit: Duration,
) -> Result<Exit, HostError> {
    let (report, place) =
        (options.report.clone().unwrap_or_default(), options.place.clone().unwrap_or_default());
    let fault = |error| HostError::io("report to", report.as_path(), &error);
    let file = OpenOptions::new().create(true).append(true).open(&report).map_err(fault)?;
    let journal = RefCell::new(Journal { file, failed: None });
    // What is tried here is gone afterwards: it need not survive a power cut.
    let host = Host::start(Config { no_build: true, durability: Durability::Os, ..config })?;
    progress::until_settled(&host);
    let caller = InHost { host: &host, limit };
    for (at, entry) in selection::select(&host, names)?.iter().enumerate() {
        journal.borrow_mut().put(&Line::Begin(entry.address.to_string()));
        one(&host, entry, &caller, &place.join(at.to_string()), &journal).map_err(fault)?;
        journal.borrow_mut().put(&Line::End);
    }
    match journal.into_inner().failed {
        Some(error) => Err(fault(error)),
        None => Ok(Exit::Done),
    }
}

fn one(
    host: &Host,
    entry: &Arc<Entry>,
    caller: &InHost<'_>,
    place: &Path,
    journal: &RefCell<Journal>,
) -> io::Result<()> {
    let tell = |finding| journal.borrow_mut().put(&Line::Found(finding));
    let loaded = match entry.state() {
        EntryState::Ready(loaded) => loaded,
        EntryState::Building => {
            tell(Finding::of(Rule::Loads, vec!["it did not get ready".to_owned()], 0));
            return Ok(());
        }
        EntryState::Refused(refusal) => {
            let what = format!("{}; {}", refusal.reason, refusal.remedy);
            tell(Finding::of(Rule::Loads, vec![what], 0));
            return Ok(());
        }
    };
    tell(Finding::of(Rule::Loads, Vec::new(), 0));
    let mut callees = BTreeMap::new();
    find_callees(host, &entry.address, &loaded.descriptor, &mut callees);
    let subject = Subject {
        address: &entry.address,
        descriptor: &loaded.descriptor,
        spec: &entry.spec,
        callees: &callees,
    };
    let mut step = |rule, what: &str| journal.borrow_mut().put(&Line::Step(rule, what.to_owned()));
    check::check(&subject, caller, place, &mut step, &mut |finding| tell(finding))
}

/// All that it may call, and all that these may call.
fn find_callees(
    host: &Host,
    own: &Address,
    descriptor: &Descriptor,
    found: &mut BTreeMap<String, Descriptor>,
) {
    for name in &descriptor.calls {
        let address = match name.split('.').collect::<Vec<_>>()[..] {
            [project, op] => Address::new(&own.workspace, project, op),
            [workspace, project, op] => Address::new(workspace, project, op),
            _ => continue,
        };
        let Some(loaded) = host.catalog.entry(&address).and_then(|entry| entry.ready()) else {
            continue;
        };
        if found.insert(name.clone(), loaded.descriptor.clone()).is_none() {
            find_callees(host, &address, &loaded.descriptor, found);
        }
    }
}

struct Journal {
    file: File,
    failed: Option<io::Error>,
}

impl Journal {
    /// In the file before this returns: the next thing may be the end of the process.
    fn put(&mut self, line: &Line) {
        let written = serde_json::to_string(line).map_err(io::Error::from).and_then(|mut text| {
            text.push('\n');
            self.file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

/// Calls through the dispatcher, as everybody does.
struct InHost<'a> {
    host: &'a Host,
    limit: Duration,
}

impl Caller for InHost<'_> {
    fn call(
        &self,
        _lane: LaneChoice,
        op: &Address,
        params: &[(String, String)],
        app_dir: &Path,
    ) -> Result<Reply, HostError> {
        let (params, own) = crate::envelope::split_app_dir(params.to_vec());
        let app_dir = own.or_else(|| app_dir.to_str().map(str::to_owned));
        let deadline = Some(Instant::now() + self.limit);
        self.host.dispatcher.call(Call { params, app_dir, deadline, ..Call::new(op.clone()) })
    }

    fn lanes(&self) -> &[LaneChoice] {
        &[LaneChoice::Inline]
    }

    fn stand_in(&self, folder: &Path) -> io::Result<()> {
        std::env::set_current_dir(folder)
    }
}
