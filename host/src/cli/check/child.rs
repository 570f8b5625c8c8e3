//! The process in which operations are tried. It writes down what it is about to try before it does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use super::super::{Exit, progress, selection};
use super::parent::Line;
use crate::Host;
use crate::check::{self, Caller, Finding, Rule, Subject};
use crate::config::{Config, Durability};
use crate::dispatch::Call;
use crate::error::HostError;
use crate::plugins::{Address, Descriptor, EntryState, LaneChoice};
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
    let (durability, timeout) = (Durability::Os, limit);
    let config = Config { no_build: true, offline: true, durability, timeout, ..config };
    let host = |lane| Host::start(Config { lane: Some(lane), ..config.clone() });
    let hosts = [host(LaneChoice::Worker)?, host(LaneChoice::Inline)?];
    hosts.iter().for_each(|host| {
        progress::until_unsaid(host, |progress| progress.settled);
    });
    let unusable = |error| HostError::io("use", place.as_path(), &error);
    // After the folders of operations were looked for around the old one, and before any worker is started.
    std::fs::create_dir_all(place.join(check::ROOT)).map_err(unusable)?;
    let place = place.canonicalize().map_err(unusable)?;
    std::env::set_current_dir(place.join(check::ROOT)).map_err(unusable)?;
    for entry in &selection::select(&hosts[0], names)? {
        journal.borrow_mut().put(&Line::Begin(entry.address.to_string()));
        one(&hosts, &entry.address, limit, &place, &journal).map_err(unusable)?;
        journal.borrow_mut().put(&Line::End);
    }
    match journal.into_inner().failed {
        Some(error) => Err(fault(error)),
        None => Ok(Exit::Done),
    }
}

/// `hosts` are one for workers and one for calls in this process.
fn one(
    hosts: &[Host; 2],
    address: &Address,
    limit: Duration,
    place: &Path,
    journal: &RefCell<Journal>,
) -> io::Result<()> {
    let tell = |finding| journal.borrow_mut().put(&Line::Found(finding));
    let (mut lanes, mut entries, mut refused) = (Vec::new(), Vec::new(), None);
    for (host, lane) in hosts.iter().zip([LaneChoice::Worker, LaneChoice::Inline]) {
        let entry = host.catalog.entry(address);
        match entry.as_ref().map(|entry| entry.state()) {
            Some(EntryState::Ready(loaded)) => {
                lanes.push(lane);
                entries.extend(entry.map(|entry| (host, entry, loaded)));
            }
            Some(EntryState::Refused(refusal)) => refused = Some(refusal),
            Some(EntryState::Building) | None => {}
        }
    }
    let Some((host, entry, loaded)) = entries.first() else {
        let mut finding = Finding::of(Rule::Loads, vec!["it did not get ready".to_owned()], 0);
        if let Some(refusal) = refused {
            finding.what = vec![refusal.reason.clone()];
            finding.remedy = refusal.remedy.clone();
        }
        tell(finding);
        return Ok(());
    };
    tell(Finding::of(Rule::Loads, Vec::new(), 0));
    let only_lane = refused.map(|refusal| refusal.reason.clone()).unwrap_or_default();
    let caller = Lanes { hosts, lanes, only_lane, limit };
    let mut callees = BTreeMap::new();
    find_callees(host, address, &loaded.descriptor, &mut callees);
    let (descriptor, spec) = (&loaded.descriptor, &*entry.spec);
    let subject = Subject { address, descriptor, spec, callees: &callees };
    let mut step = |rule, what: &str| journal.borrow_mut().put(&Line::Step(rule, what.to_owned()));
    check::check(&subject, &caller, place, &mut step, &mut |finding| tell(finding))
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

/// Calls through the dispatchers, as everybody does.
struct Lanes<'a> {
    hosts: &'a [Host; 2],
    lanes: Vec<LaneChoice>,
    only_lane: String,
    limit: Duration,
}

impl Caller for Lanes<'_> {
    fn call(
        &self,
        lane: LaneChoice,
        op: &Address,
        params: &[(String, String)],
        app_dir: &Path,
    ) -> Result<Reply, HostError> {
        let host = match lane {
            LaneChoice::Worker => &self.hosts[0],
            LaneChoice::Inline => &self.hosts[1],
        };
        let (params, own) = crate::envelope::split_app_dir(params.to_vec());
        let app_dir = own.or_else(|| app_dir.to_str().map(str::to_owned));
        let deadline = Some(Instant::now() + self.limit);
        host.dispatcher.call(Call { params, app_dir, deadline, ..Call::new(op.clone()) })
    }

    fn lanes(&self) -> &[LaneChoice] {
        &self.lanes
    }

    fn only_lane(&self) -> &str {
        &self.only_lane
    }
}
