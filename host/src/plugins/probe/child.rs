//! The far side of a probe: opens files that nobody trusts yet and says what they are.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::process::Resource;
use sdk::host::Descriptor;

use super::Finding;
use crate::plugins::load;
use crate::plugins::refusal::Refusal;
use crate::tether;

/// The most memory that initialisers may ask for.
const MEMORY: u64 = 4 << 30;
/// The most that they may write to any one file, our standard error included.
const WRITTEN: u64 = 1 << 20;

/// Answers one JSON line ([`Finding`]) for each path on standard input, which end in NUL, until that closes. `host` is
/// the process that asks, with which this one ends.
///
/// # Errors
/// The asker is gone, or the system refuses the precautions.
pub(crate) fn serve(host: u32) -> io::Result<()> {
    // What a plugin prints must not get between the answers.
    let mut answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    tether::lead_a_group()?;
    tether::end_with(host)?;
    for (resource, most) in
        [(Resource::As, MEMORY), (Resource::Fsize, WRITTEN), (Resource::Core, 0)]
    {
        tether::limit(resource, most)?;
    }
    let mut asked = io::stdin().lock();
    let mut path = Vec::new();
    while asked.read_until(0, &mut path)? > 0 {
        let file = path.strip_suffix(&[0]).unwrap_or(&path);
        let mut line = serde_json::to_vec(&look(Path::new(as_os_str(file))))?;
        line.push(b'\n');
        answers.write_all(&line)?;
        path.clear();
    }
    // Not by way of destructors, which belong to the plugins that were opened.
    answers.sync_data().ok();
    std::process::exit(0)
}

fn as_os_str(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Opens the file in this process.
pub(super) fn look(file: &Path) -> Finding {
    let described = load::open(file).and_then(|plugin| {
        Descriptor::of(plugin).map_err(|error| undescribed(error.message()).file(file))
    });
    Finding::of(described)
}

/// The refusal of a plugin that says of itself what nobody understands.
fn undescribed(found: &str) -> Box<Refusal> {
    Refusal::new("what it says of itself cannot be read", load::REBUILD)
        .compared("a descriptor as #[udf] writes it", found)
}
