//! [`CrashRecord`]: how often one version of an operation ended its worker, and whether it is in quarantine.
//!
//! An operation that ends its worker three times within a minute gets a worker of its own, so that the others of its
//! project no longer suffer. That is kept in a file beside the artifact: a restarted host and the commands `list` and
//! `doctor` know it as well. A new build of the operation is another artifact and starts without a record.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, fs};

use serde::{Deserialize, Serialize};

use super::cause::Cause;

/// This many crashes…
const CRASHES: usize = 3;
/// …within this time put an operation in quarantine,
const WITHIN: Duration = Duration::from_secs(60);
/// which it leaves when it has not crashed for this long.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// The crashes of one version of an operation.
#[derive(Debug)]
pub(crate) struct CrashRecord {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the file has been looked at.
    read: bool,
    recent: VecDeque<Instant>,
    quarantine: Option<Quarantine>,
}

/// Why an operation has a worker of its own, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quarantine {
    /// What ended its worker the last time.
    pub(crate) cause: String,
    /// When that was, in seconds since 1970.
    pub(crate) crashed_at: u64,
}

impl Quarantine {
    fn is_over(&self) -> bool {
        now().saturating_sub(self.crashed_at) >= KEPT.as_secs()
    }
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in quarantine: it crashed {CRASHES} times within a minute ({}) and runs in a worker of its own until it has \
             not crashed for {} minutes, or is built anew",
            self.cause,
            KEPT.as_secs() / 60
        )
    }
}

impl CrashRecord {
    /// The record of this artifact.
    pub(crate) fn beside(artifact: &Path) -> Self {
        Self { file: artifact.with_extension("quarantine.json"), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.read, true) {
            // Unreadable is as good as absent: the operation shows anew what it is.
            let text = fs::read(&self.file).unwrap_or_default();
            state.quarantine = serde_json::from_slice(&text).ok();
        }
        if state.quarantine.as_ref().is_some_and(Quarantine::is_over) {
            state.quarantine = None;
            let _not_there = fs::remove_file(&self.file);
        }
        state
    }

    /// Given while the operation is in quarantine.
    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        self.state().quarantine.clone()
    }

    /// Whether the operation is in quarantine.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.state().quarantine.is_some()
    }

    /// Takes note of a crash; true when it puts the operation in quarantine.
    pub(crate) fn crashed(&self, cause: &Cause) -> bool {
        let (mut state, moment) = (self.state(), Instant::now());
        state.recent.retain(|crash| moment.duration_since(*crash) < WITHIN);
        state.recent.push_back(moment);
        let was = state.quarantine.is_some();
        if !was && state.recent.len() < CRASHES {
            return false;
        }
        let quarantine = Quarantine { cause: cause.to_string(), crashed_at: now() };
        if let Err(error) = self.write(&quarantine) {
            // It holds for this host all the same.
            tracing::warn!(file = %self.file.display(), %error, "a quarantine cannot be kept");
        }
        state.quarantine = Some(quarantine);
        !was
    }

    fn write(&self, quarantine: &Quarantine) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut temp = tempfile::Builder::new().prefix(".quarantine-").tempfile_in(folder)?;
        temp.write_all(&serde_json::to_vec(quarantine)?)?;
        temp.persist(&self.file)?;
        Ok(())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_crashes_within_a_minute_are_kept_beside_the_artifact() {
        let folder = tempfile::tempdir().unwrap();
        let artifact = folder.path().join("abc.so");
        let record = CrashRecord::beside(&artifact);
        assert!(!record.crashed(&Cause::Stack) && !record.crashed(&Cause::Stack));
        assert_eq!(record.quarantine(), None);
        assert!(record.crashed(&Cause::Exit(0)), "the third one");
        assert!(!record.crashed(&Cause::Exit(7)), "it is there already");
        let kept = record.quarantine().unwrap();
        assert_eq!(kept.cause, "it left with exit code 7");
        assert_eq!(CrashRecord::beside(&artifact).quarantine(), Some(kept.clone()), "a later host");
        assert_eq!(
            CrashRecord::beside(&folder.path().join("b.so")).quarantine(),
            None,
            "a new build"
        );

        let long_ago = Quarantine { crashed_at: kept.crashed_at - 3600, ..kept };
        record.write(&long_ago).unwrap();
        assert_eq!(CrashRecord::beside(&artifact).quarantine(), None, "it is over");
        assert!(!folder.path().join("abc.quarantine.json").exists());
    }
}
