//! What cargo says while it builds, line by line.
//!
//! Messages are asked for as JSON with the compiler's own included, not as rendered text on stderr: that is what
//! tells whose error an error is.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde::Deserialize;

/// What cargo tells while it builds.
#[derive(Debug)]
pub(crate) enum Event {
    /// A crate is done; its library lies here.
    Built {
        /// The crate's Cargo.toml, in the shadow.
        manifest: PathBuf,
        /// The file.
        library: PathBuf,
        /// Whether cargo took what was built before.
        fresh: bool,
    },
    /// The compiler refuses a crate.
    Error {
        /// The crate's Cargo.toml, in the shadow.
        manifest: PathBuf,
        /// The crate's name.
        name: String,
        /// One line.
        message: String,
        /// As the compiler shows it.
        rendered: String,
    },
    /// Nothing more comes of a crate. What the compiler said of it is on its way, if it said anything.
    Failed {
        /// The name of its package.
        package: String,
    },
    /// Cargo waits for another one.
    Waiting {
        /// Cargo's words for what it waits for.
        what: String,
    },
    /// A crate's turn has come.
    Compiling {
        /// The crate.
        what: String,
    },
    /// Something else is done that was needed.
    Step,
    /// Nothing was heard for a while.
    Silence,
}

/// A line of cargo's.
pub(super) enum Line {
    /// On standard output: a message for programs.
    Message(String),
    /// On standard error: words for people.
    Said(String),
}

/// The most bytes of a line; a message of the compiler's is one.
const LINE: u64 = 16 << 20;
/// How many lines may wait to be read. Whoever prints without end is held up then, and not the memory used up.
const WAITING: usize = 1024;

/// Both streams line by line, as they come. Read on threads of their own: a full pipe would stop cargo.
pub(super) fn lines(
    stdout: impl Read + Send + 'static,
    stderr: impl Read + Send + 'static,
) -> Receiver<Line> {
    fn forward(stream: impl Read + Send + 'static, to: SyncSender<Line>, wrap: fn(String) -> Line) {
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!((&mut stream).take(LINE).read_until(b'\n', &mut line), Ok(read) if read > 0)
            {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if to.send(wrap(text)).is_err() {
                    return;
                }
            }
        });
    }
    let (sender, receiver) = sync_channel(WAITING);
    forward(stdout, sender.clone(), Line::Message);
    forward(stderr, sender, Line::Said);
    receiver
}

/// A message of cargo's on stdout, as far as we care.
pub(super) fn event(text: &str) -> Option<Event> {
    #[derive(Deserialize)]
    #[serde(tag = "reason")]
    enum Message {
        #[serde(rename = "compiler-artifact")]
        Built {
            manifest_path: PathBuf,
            target: Crate,
            filenames: Vec<PathBuf>,
            #[serde(default)]
            fresh: bool,
        },
        #[serde(rename = "build-script-executed")]
        Script,
        #[serde(rename = "compiler-message")]
        Diagnosed { manifest_path: PathBuf, target: Crate, message: Diagnostic },
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    struct Crate {
        name: String,
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Diagnostic {
        level: String,
        message: String,
        rendered: Option<String>,
    }
    match serde_json::from_str(text).ok()? {
        Message::Built { manifest_path, target, filenames, fresh } => {
            let cdylib = target.kind.iter().any(|kind| kind == "cdylib");
            let library = filenames
                .into_iter()
                .filter(|_| cdylib)
                .find(|file| file.extension().is_some_and(|extension| extension == "so"));
            Some(match library {
                Some(library) => Event::Built { manifest: manifest_path, library, fresh },
                None => Event::Step,
            })
        }
        Message::Diagnosed { manifest_path, target, message } => {
            // "aborting due to .." and the like say nothing beside the errors before them.
            let error = message.level.starts_with("error")
                && !message.message.starts_with("aborting due to");
            error.then(|| Event::Error {
                manifest: manifest_path,
                name: target.name,
                rendered: message.rendered.unwrap_or_else(|| message.message.clone()),
                message: message.message,
            })
        }
        Message::Script => Some(Event::Step),
        Message::Other => None,
    }
}

/// The package that, as this line of cargo's on stderr says, is not built.
pub(super) fn failed(line: &str) -> Option<Event> {
    let (package, _) = line.strip_prefix("error: could not compile `")?.split_once('`')?;
    Some(Event::Failed { package: package.to_owned() })
}

/// A line of cargo's on stderr that is about progress.
pub(super) fn progress(line: &str) -> Option<Event> {
    let (verb, rest) = line.trim_start().split_once(' ')?;
    match verb {
        "Blocking" => {
            Some(Event::Waiting { what: rest.trim_start_matches("waiting for ").to_owned() })
        }
        "Compiling" => {
            Some(Event::Compiling { what: rest.split(" (").next().unwrap_or(rest).to_owned() })
        }
        "Finished" | "Fresh" | "Locking" | "Adding" | "Removing" | "Updating" | "Downloading"
        | "Downloaded" => Some(Event::Compiling { what: line.trim().to_owned() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_are_told_apart() {
        let artifact = r#"{"reason":"compiler-artifact","package_id":"path+file:///s#udf-p-a@0.1.0","manifest_path":"/s/udfs/p/a/Cargo.toml","target":{"kind":["cdylib"],"crate_types":["cdylib"],"name":"udf_p_a","src_path":"/s/udfs/p/a/src/lib.rs","edition":"2024"},"features":[],"filenames":["/t/release/libudf_p_a.so"],"executable":null,"fresh":true}"#;
        assert!(
            matches!(event(artifact), Some(Event::Built { library, fresh: true, .. }) if library.ends_with("libudf_p_a.so"))
        );
        let library = artifact.replace("cdylib", "lib").replace(".so", ".rlib");
        assert!(matches!(event(&library), Some(Event::Step)));
        let error = r#"{"reason":"compiler-message","manifest_path":"/s/udfs/p/a/Cargo.toml","target":{"kind":["cdylib"],"name":"udf_p_a"},"message":{"rendered":"error: no\n --> x","message":"no","level":"error","spans":[]}}"#;
        assert!(matches!(event(error), Some(Event::Error { message, .. }) if message == "no"));
        assert!(event(&error.replace("\"level\":\"error\"", "\"level\":\"warning\"")).is_none());
        assert!(event(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(event("not json").is_none());
    }

    #[test]
    fn progress_is_not_a_complaint() {
        let waiting = progress("    Blocking waiting for file lock on build directory");
        assert!(
            matches!(waiting, Some(Event::Waiting { what }) if what == "file lock on build directory")
        );
        let compiling = progress("   Compiling udf-p-a v0.1.0 (/s/udfs/p/a)");
        assert!(matches!(compiling, Some(Event::Compiling { what }) if what == "udf-p-a v0.1.0"));
        let complaint = "error: failed to parse manifest at `/s/x/Cargo.toml`";
        assert!(progress(complaint).is_none() && failed(complaint).is_none());
        let failure = "error: could not compile `udf-p-a` (lib) due to 2 previous errors";
        assert!(progress(failure).is_none());
        assert!(matches!(failed(failure), Some(Event::Failed { package }) if package == "udf-p-a"));
    }
}
