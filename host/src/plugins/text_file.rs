//! Text files that authors write: read whole, unless they are no text, no file or without end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The most bytes of one; nobody writes as much by hand.
const MOST: u64 = 1 << 20;

/// The text of a file.
///
/// # Errors
/// It is not there, no regular file (opening a pipe would wait for its writer), larger than 1 MiB, or not UTF-8.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if facts.len() > MOST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    let mut text = String::new();
    // It may grow meanwhile.
    let read = file.take(MOST + 1).read_to_string(&mut text);
    match read {
        Ok(read) if read as u64 <= MOST => Ok(text),
        Ok(_) => Err(io::Error::other("it is larger than 1 MiB")),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(io::Error::other("it is not UTF-8"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_a_sane_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let most = usize::try_from(MOST).unwrap();
        std::fs::write(at("text"), "größe").unwrap();
        std::fs::write(at("full"), "x".repeat(most)).unwrap();
        std::fs::write(at("long"), "x".repeat(most + 1)).unwrap();
        // The limit cuts a character in two.
        std::fs::write(at("wide"), "ß".repeat(most)).unwrap();
        std::fs::write(at("latin"), b"gr\xf6\xdfe").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(pipe.success());
        assert_eq!(read(&at("text")).unwrap(), "größe");
        assert_eq!(read(&at("full")).unwrap().len(), most);
        for (name, want) in [
            ("long", "larger than 1 MiB"),
            ("wide", "larger than 1 MiB"),
            ("latin", "not UTF-8"),
            ("folder", "not a regular file"),
            ("pipe", "not a regular file"),
        ] {
            let error = read(&at(name)).unwrap_err().to_string();
            assert!(error.contains(want), "{name}: {error}");
        }
        assert_eq!(read(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
