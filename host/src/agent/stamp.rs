//! [`Stamp`]: whether a file or directory changed since it was last looked at.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A change younger than this may be followed by another one with the same time: file systems count in ticks.
const TICK: Duration = Duration::from_millis(200);

/// Clocks of two machines do not differ by more.
const PUT_BACK: Duration = Duration::from_secs(60);

/// What a file looked like. Two equal stamps that are [settled](Stamp::is_settled) are of one unchanged file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    place: Option<(u64, u64, u64)>,
    modified: Option<SystemTime>,
    settled: bool,
}

impl Stamp {
    /// The stamp of what is at this path; one that is missing has a stamp too.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let Ok(metadata) = std::fs::metadata(path) else {
            return Self { settled: true, ..Self::default() };
        };
        let modified = metadata.modified().ok();
        // A clock that was put back far leaves times in the future; the next change has one of now, and shows.
        let age = modified.and_then(|modified| match modified.elapsed() {
            Ok(age) => Some(age),
            Err(ahead) => Some(ahead.duration()).filter(|ahead| *ahead > PUT_BACK),
        });
        Self {
            place: Some((metadata.dev(), metadata.ino(), metadata.len())),
            modified,
            // One a little in the future may be that of another machine, whose next change may have it too.
            settled: age.is_some_and(|age| age > TICK),
        }
    }

    /// Whether another change would show.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether nothing changed since `before` was taken.
    #[must_use]
    pub fn is_still(&self, before: &Self) -> bool {
        before.settled && (self.place, self.modified) == (before.place, before.modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_change_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let missing = Stamp::of(&file);
        assert!(missing.is_settled() && Stamp::of(&file).is_still(&missing));
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&file, "1").unwrap();
        let fresh = Stamp::of(&file);
        assert!(!fresh.is_still(&missing) && !fresh.is_settled() && !fresh.is_still(&fresh));
        let old = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
        let settled = Stamp::of(&file);
        assert!(Stamp::of(&file).is_still(&settled));
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&file, "2").unwrap();
        assert!(!Stamp::of(&file).is_still(&settled));
        for (ahead, is_settled) in [(5, false), (5000, true)] {
            let ahead = SystemTime::now() + Duration::from_secs(ahead);
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(ahead).unwrap();
            assert_eq!(Stamp::of(&file).is_settled(), is_settled);
        }
    }
}
