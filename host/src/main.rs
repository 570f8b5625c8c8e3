//! The `udf-host` binary: runs the command, prints the error chain, turns it into an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use host::Exit;

fn main() -> ExitCode {
    match host::run_as_program(std::env::args_os()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // With standard error closed the exit code still tells.
            let _closed = writeln!(std::io::stderr(), "{}", Exit::report(&error));
            Exit::of(&error).into()
        }
    }
}
