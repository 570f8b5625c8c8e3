//! The `udf-host` binary: runs the command, prints the error chain, turns it into an exit code.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use host::Exit;

fn main() -> ExitCode {
    match host::run(std::env::args_os()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let mut text = format!("udf-host: {error}");
            if let Some(detail) = error.detail() {
                let _infallible = write!(text, ": {detail}");
            }
            let mut cause = error.source();
            while let Some(error) = cause {
                let _infallible = write!(text, "\n  because {error}");
                cause = error.source();
            }
            // With standard error closed the exit code still tells.
            let _closed = writeln!(std::io::stderr(), "{text}");
            Exit::of(&error).into()
        }
    }
}
