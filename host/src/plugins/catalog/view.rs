//! [`EntryView`]: an operation as it is shown, to people and to programs.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::entry::{Entry, EntryState, Update};
use crate::plugins::lossy;
use crate::plugins::refusal::Refusal;

/// An operation as `list`, `describe` and `GET /api/udfs` show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntryView {
    /// The first part of the address.
    pub workspace: String,
    /// The second part of the address.
    pub project: String,
    /// The third part of the address.
    pub op: String,
    /// `building`, `ready` or `refused`.
    pub state: &'static str,
    /// Why it was refused, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would have been right, when something was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was there instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The files or folders at fault.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "lossy::paths")]
    pub files: Vec<PathBuf>,
    /// What to do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The whole story, for example the compiler's message, with the author's paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the plugin says of itself: doc, params, declared access, columns. Absent until it is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<serde_json::Value>,
    /// Where its calls run.
    pub lane: &'static str,
    /// Set while its calls run elsewhere than it was meant to: why, and what that means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_note: Option<String>,
    /// What a call may take, if `project.toml` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a result may be reused, in seconds, if `project.toml` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_max_age: Option<u64>,
    /// The operation's folder.
    #[serde(serialize_with = "lossy::path")]
    pub folder: PathBuf,
    /// What became of a newer version, while the older one answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateView>,
    /// How many builds of it are open, in the host's process and its workers; they stay so until that process ends.
    pub versions: usize,
    /// The bytes of their files.
    pub version_bytes: u64,
    /// The version of its package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// SHA-256 of the loaded artifact, lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// When the artifact was built, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_at: Option<u64>,
    /// Calls since the host started.
    pub calls: u64,
    /// Those that ended in an error.
    pub errors: u64,
    /// Half of the calls took at most this many microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// 99 of 100 calls took at most this many microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
    /// Calls that were answered "timeout" and are still running.
    pub stuck: usize,
}

/// A newer version that is not the one that answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpdateView {
    /// `building` or `failed`.
    pub state: &'static str,
    /// Why it failed: reason, remedy, files and, as `detail`, the compiler's message.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

impl Entry {
    /// The operation as it is shown.
    #[must_use]
    pub fn view(&self) -> EntryView {
        let state = match self.state() {
            EntryState::Ready(loaded) => match loaded.open_failure() {
                Some(refusal) => EntryState::Refused(refusal),
                None => EntryState::Ready(loaded),
            },
            other => other,
        };
        let (loaded, refusal) = match &state {
            EntryState::Building => (None, None),
            EntryState::Ready(loaded) => (Some(loaded), None),
            EntryState::Refused(refusal) => (None, Some(refusal)),
        };
        let counts = self.stats.counts();
        let (versions, version_bytes) = self.versions.count();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        EntryView {
            workspace: self.address.workspace.to_string(),
            project: self.address.project.to_string(),
            op: self.address.op.to_string(),
            state: match &state {
                EntryState::Building => "building",
                EntryState::Ready(_) => "ready",
                EntryState::Refused(_) => "refused",
            },
            reason: refusal.map(|refusal| refusal.reason.clone()),
            expected: refusal.and_then(|refusal| refusal.expected.clone()),
            found: refusal.and_then(|refusal| refusal.found.clone()),
            files: refusal.map(|refusal| refusal.files.clone()).unwrap_or_default(),
            remedy: refusal.map(|refusal| refusal.remedy.clone()),
            detail: refusal.and_then(|refusal| refusal.detail.clone()),
            descriptor: loaded.map(|loaded| loaded.descriptor_json.clone()),
            lane: self.lane().name(),
            lane_note: loaded.and_then(|loaded| {
                let quarantine = loaded.crashes.quarantine().map(|it| it.to_string());
                quarantine.or_else(|| self.moved(loaded))
            }),
            timeout_ms: self.settings.timeout.and_then(|time| u64::try_from(time.as_millis()).ok()),
            cache_max_age: self.settings.cache_max_age.map(|time| time.as_secs()),
            folder: self.folder.clone(),
            update: self.update().map(|update| match update {
                Update::Building => UpdateView { state: "building", refusal: None },
                Update::Failed(refusal) => {
                    UpdateView { state: "failed", refusal: Some(Refusal::clone(&refusal)) }
                }
            }),
            versions,
            version_bytes,
            version: loaded.and_then(|loaded| loaded.descriptor.version.clone()),
            hash: loaded.map(|loaded| loaded.hash.clone()),
            built_at: loaded
                .and_then(|loaded| loaded.built_at.duration_since(std::time::UNIX_EPOCH).ok())
                .map(|since| since.as_secs()),
            calls: counts.calls,
            errors: counts.errors,
            p50_us: counts.p50.map(micros),
            p99_us: counts.p99.map(micros),
            stuck: counts.stuck,
        }
    }
}
