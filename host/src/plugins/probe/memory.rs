//! Findings kept beside the copies they are about, by content hash.
//!
//! Another build of the host may judge otherwise, so a finding counts only for the one that made it.

use std::borrow::Cow;
use std::fs;

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::plugins::artifact::Cache;
use crate::plugins::stamp::replace_file;
use crate::program;

#[derive(Debug, Serialize, Deserialize)]
struct Kept<'a> {
    /// Which host found it.
    by: Cow<'a, str>,
    finding: Cow<'a, Finding>,
}

/// What this host found out about the copy before. A file that cannot be read is no memory.
pub(super) fn recall(cache: &Cache, hash: &str) -> Option<Finding> {
    let text = fs::read(cache.beside(hash)).ok()?;
    let kept: Kept<'_> = serde_json::from_slice(&text).ok()?;
    (kept.by == program::fingerprint()).then(|| kept.finding.into_owned())
}

/// Keeps it. When that fails the next start probes again, which is all that is lost.
pub(super) fn remember(cache: &Cache, hash: &str, finding: &Finding) {
    let kept = Kept { by: program::fingerprint().into(), finding: Cow::Borrowed(finding) };
    let path = cache.beside(hash);
    let written = serde_json::to_vec(&kept)
        .map_err(std::io::Error::other)
        .and_then(|text| replace_file(&path, &text));
    if let Err(error) = written {
        tracing::warn!(file = %path.display(), %error, "cannot keep what a probe found");
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

    use super::*;
    use crate::plugins::refusal::Refusal;

    #[test]
    fn a_finding_comes_back_to_the_host_that_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        assert_eq!(recall(&cache, "aa"), None);
        let finding = Finding::Refused(Refusal::new("no", "yes").compared("a", "b"));
        remember(&cache, "aa", &finding);
        assert_eq!(recall(&cache, "aa"), Some(finding));
        let path = cache.beside("aa");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&program::fingerprint(), "another")).unwrap();
        assert_eq!(recall(&cache, "aa"), None, "found by another build");
        fs::write(&path, "{\"by\":").unwrap();
        assert_eq!(recall(&cache, "aa"), None, "cut short");
    }
}
